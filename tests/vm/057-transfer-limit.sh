#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: requests above the WQ's transfer limit (in-tree: fail)
# compare: requests above max_transfer_size
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
bind_device 0 enable=0
echo 8192 >"$dsa/devices/wq${iax#iax}.0/max_transfer_size" || fail "max_transfer_size does not take 8192"
enable_device "$iax"
enable_wq "$iax" 0
wait_for 60 "the self-test of deflate-iaa passes" selftest_passed
load_start 0 pattern=text size=65536 threads=2 count=10
settle 0 30 '-E*' "a request above the transfer limit fails, though software could do it"
