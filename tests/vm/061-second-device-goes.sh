#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one of two devices is disabled under load, the other one goes on (in-tree: requests fail)
# compare: one of two devices disabled under load
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# splats: request-freed-with-its-work-queue polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:2
for n in 0 1; do bind_device $n; done
load_start 0 pattern=mixed threads=2 cpus=0-1 seconds=600 stuck_ms=$((20000 * scale))
for n in 0 1; do wait_for_work 30 $n 20; done
iax=$(iax_of 1)
unbind_wq "$iax" 0
disable_device "$iax"
load_goes_on 0 25
load_stop 0
settle 0 30 '-ENODEV*|-ENXIO*' "as a device goes, requests fail for a while though another one is left"
