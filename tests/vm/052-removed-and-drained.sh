#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: WQs disabled while the device still finishes what it has, as hardware does (in-tree: uses freed memory)
# compare: the same, answered as the WQ is drained
# boot: own in-tree
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 120
# splats: request-freed-with-its-work-queue polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0 wqs=2
iax=$(iax_of 0)
load_start 0 pattern=mixed seconds=600 cpus=1 threads=2 stuck_ms=$((20000 * scale))
for round in 1 2 3 4 5 6; do
	step "round $round"
	fault 0 '{"wq": 1, "opcode": "compress"}' '{"never_complete": true, "on_drain": "complete"}' '{"count": 1}'
	ctl 0 "{\"command\": \"wait\", \"counter\": \"faults\", \"value\": $round}" >/dev/null
	unbind_wq "$iax" 1
	load_goes_on 0 4
	! oopsed || break
	ctl 0 fault-clear >/dev/null
	name_wq "$iax" 1
	enable_wq "$iax" 1
done
load_stop 0
settle 0 40 'oops|hangs|-E*' "removing a WQ does not wait for its requests, which go on in freed memory"
