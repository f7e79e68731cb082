#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: async_irq with verification and few descriptors (in-tree: waits for itself for ever)
# compare: async_irq with verification and 4 descriptors
# boot: own in-tree
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
job="pattern=text threads=8 count=40 stuck_ms=$((5000 * scale))"

step "4 descriptors without verification: passes"
set_attribute sync_mode async_irq
set_attribute verify_compress 0
bind_device 0 size=4
load_run 0 60 "$job"
load_clean 0
reload_modules

step "4 descriptors with verification"
set_attribute sync_mode async_irq
set_attribute verify_compress 1
bind_device 0 size=4
if [[ $driver == ours ]]; then
	load_run 0 90 "$job"
	load_clean 0
	exit 0
fi
load_start 0 "$job"
wait_for 60 "all threads are stuck" load_is 0 state stuck
sed 's/^/   /' "$load_dir/0/result"
before=$(counter 0 accepted)
sleep 2
check "descriptors in two more seconds" $(($(counter 0 accepted) - before)) -eq 0
check "descriptors that the device owes" $(($(counter 0 accepted) - $(counter 0 completed))) -eq 0
weakness "hangs" "async_irq with verification: the interrupt's thread waits for a descriptor that only it could free"
