#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the device halts while a request is in flight (in-tree: polls for ever, or uses freed memory)
# compare: the device halts under load
# boot: own
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 90
# splats: request-freed-with-its-work-queue polls-for-ever portal-unmapped-twice
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
load_start 0 pattern=mixed cpus=1 count=2000 stuck_ms=$((8000 * scale))
load_goes_on 0 10
fault 0 '{}' '{"delay_ms": 100}'
ctl 0 '{"command": "halt", "leave_by": "flr"}' >/dev/null
settle 0 60 'oops|hangs|-E*' "requests that a halt takes are not given up"
