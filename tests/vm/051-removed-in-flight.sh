#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a WQ disabled while a request is in flight that is never answered (in-tree: uses freed memory)
# compare: a WQ disabled, a request of it in flight
# boot: own in-tree
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# splats: request-freed-with-its-work-queue polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
iax=$(iax_of 0)
fault 0 '{}' '{"never_complete": true}' '{"after": 20, "count": 1}'
load_start 0 pattern=mixed count=50 cpus=1 stuck_ms=$((5000 * scale))
ctl 0 '{"command": "wait", "counter": "faults", "value": 1}' >/dev/null
# The in-tree driver of 7.3 waits for a third of a second, which is too short to start accel-config.
unbind_wq "$iax" 0
settle 0 40 'oops|hangs' "removing a WQ does not wait for its requests, which go on in freed memory"
