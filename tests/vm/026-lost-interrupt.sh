#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one lost interrupt in async_irq (in-tree: the request never ends, though it was carried out)
# drivers: in-tree
# boot: own
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute sync_mode async_irq
set_attribute verify_compress 0
bind_device 0
fault 0 '{}' '{"interrupt": "lost"}' '{"after": 10, "count": 1}'
load_start 0 pattern=text count=100 stuck_ms=$((5000 * scale))
wait_for 40 "the request is stuck" load_is 0 state stuck
sed 's/^/   /' "$load_dir/0/result"
check "requests that ended" $(($(load_value 0 comp_ok) + $(load_value 0 decomp_ok))) -eq 10
check "descriptors that the device completed" "$(counter 0 completed)" -eq "$(counter 0 accepted)"
weakness "async_irq: one lost interrupt, and the request waits for ever"
