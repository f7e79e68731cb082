#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one answer that comes late (in-tree on 7.3: the driver is off for good)
# compare: one answer that comes late
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
fault 0 '{}' "{\"delay_ms\": $((2000 * scale))}" '{"after": 20, "count": 1}'
load_start 0 pattern=mixed count=100 stuck_ms=$((20000 * scale))
settle 0 60 'pass|-ENODEV*' "one answer that comes late, and the driver is off until it is loaded anew"
