#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: WQs and a second device come and go while requests run (in-tree: some find no WQ)
# compare: WQs and devices come and go under load
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 90
# splats: request-freed-with-its-work-queue polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:2
bind_device 0 wqs=2
iax=$(iax_of 0)
load_start 0 pattern=mixed size=1-9000 threads=2 seconds=600 stuck_ms=$((20000 * scale))
load_goes_on 0 25
step "a second device comes"
bind_device 1
load_goes_on 0 25
step "a WQ goes and comes"
for _ in 1 2 3; do
	unbind_wq "$iax" 1
	load_goes_on 0 25
	name_wq "$iax" 1
	enable_wq "$iax" 1
	load_goes_on 0 25
done
load_stop 0
settle 0 30 '-ENODEV*|-ENXIO*' "as a WQ comes or goes, requests find the table of WQs empty"
