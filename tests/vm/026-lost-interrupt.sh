#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one lost interrupt in async_irq (in-tree: the request never ends, though it was carried out)
# compare: one lost interrupt in async_irq
# boot: own in-tree
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute sync_mode async_irq
set_attribute verify_compress 0
bind_device 0
fault 0 '{}' '{"interrupt": "lost"}' '{"after": 10, "count": 1}'
if [[ $driver == in-tree ]]; then
	load_start 0 pattern=text count=100 stuck_ms=$((5000 * scale))
	wait_for 40 "the request is stuck" load_is 0 state stuck
	sed 's/^/   /' "$load_dir/0/result"
	check "requests that ended" $(($(load_value 0 comp_ok) + $(load_value 0 decomp_ok))) -eq 10
	check "descriptors that the device completed" "$(counter 0 completed)" -eq "$(counter 0 accepted)"
	weakness "hangs" "async_irq: one lost interrupt, and the request waits for ever"
	exit 0
fi

lost() { sed -n 's/^  lost_interrupts: //p' /sys/kernel/debug/iaa_crypto/global_stats; }
# all_right: the job's requests have ended well, by the device.
all_right() {
	load_clean 0
	check "descriptors that the device completed" "$(counter 0 completed)" -eq "$(counter 0 accepted)"
	check "compressions in software" "$(sed -n 's/^  total_sw_comp_calls: //p' $stats)" -eq "$sw"
}
stats=/sys/kernel/debug/iaa_crypto/global_stats
echo $((1000 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
sw=$(sed -n 's/^  total_sw_comp_calls: //p' $stats)
load_run 0 60 pattern=text count=100
all_right
check "times that an interrupt was missing" "$(lost)" -ge 1

step "none comes at all, with verification and without"
fault 0 '{}' '{"interrupt": "lost"}'
for verify in 0 1; do
	set_attribute verify_compress $verify
	load_run 0 60 pattern=mixed size=1-20000 threads=4 count=10
	all_right
done

step "each comes twice"
ctl 0 fault-clear >/dev/null
fault 0 '{}' '{"interrupt": "doubled"}'
load_run 0 60 pattern=mixed size=1-20000 threads=4 count=50
all_right
