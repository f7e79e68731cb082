#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a WQ disabled that owes answers by interrupts (in-tree: a wild write)
# compare: async_irq: a WQ disabled that owes answers
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# splats: flush-takes-request-for-dma-txd
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute sync_mode async_irq
set_attribute verify_compress 0
bind_device 0
fault 0 '{}' '{"never_complete": true}' '{"count": 4}'
load_start 0 mode=compress pattern=mixed threads=4 count=3 stuck_ms=$((5000 * scale))
ctl 0 '{"command": "wait", "counter": "faults", "value": 4}' >/dev/null
# Who does it may die of it.
within 30 unbind_wq "$(iax_of 0)" 0 || [[ $driver == in-tree ]] || fail "the WQ is not unbound"
settle 0 40 'oops' "disabling a WQ completes its requests as if they were the dmaengine's"
