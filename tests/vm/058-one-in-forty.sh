#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one descriptor in forty is never answered (in-tree: polls for ever, or is disabled for good)
# compare: one descriptor in 40 is never answered
# boot: own in-tree
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 120
# splats: polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
echo $((200 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
bind_device 0
fault 0 '{}' '{"never_complete": true}' '{"every": 40}'
load_start 0 pattern=mixed cpus=1 count=200 stuck_ms=$((5000 * scale))
settle 0 40 'hangs|-ENODEV*' "lost"
