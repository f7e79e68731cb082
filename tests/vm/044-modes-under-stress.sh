#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: async and async_irq: lost and late answers, WQs that go and come, modes that change under load
# drivers: ours
# set: full 6.12/ours
# lanes: full slub swiotlb iommu
# limit: 240
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

wq_is() { grep -q "state: $1" /sys/kernel/debug/iaa_crypto/wq_stats; }
all_in_use() { [[ $(grep -c "state: in use" /sys/kernel/debug/iaa_crypto/wq_stats) == 2 ]]; }
resets() { counter 0 command.0x0a; }
owed() { echo $(($(counter 0 accepted) - $(counter 0 completed))); }
in_use_again() {
	wait_for 30 "the WQ is used again" wq_is "in use"
	device_serves
}

begin
echo $((200 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
iax=$(iax_of 0)
owed_so_far=0
for mode in async async_irq; do
	# A WQ is given so many chances and no more; it begins anew with each binding.
	unbind
	bind_device 0
	set_attribute sync_mode $mode
	before=$(resets)
	step "$mode: a small request that is never answered: software does it, the WQ is reset"
	fault 0 '{}' '{"never_complete": true}' '{"after": 4, "count": 1}'
	load_run 0 30 pattern=mixed threads=3 count=20
	load_clean 0
	check "longest request in us" "$(load_value 0 max_us)" -lt $((4000000 * scale))
	in_use_again
	check "resets" $(($(resets) - before)) -eq 1

	step "$mode: one that is read back and not answered then"
	fault 0 '{"verify": true}' '{"never_complete": true}' '{"count": 1}'
	load_run 0 30 pattern=mixed threads=3 count=20
	load_clean 0
	in_use_again
	check "resets" $(($(resets) - before)) -eq 2

	step "$mode: large ones wait until the device cannot write to their memory any more"
	fault 0 '{"min_size": 60000}' '{"never_complete": true}' '{"count": 2}'
	load_run 0 60 pattern=text size=65536 threads=2 count=1 stuck_ms=$((30000 * scale))
	load_clean 0
	check "longest request in us" "$(load_value 0 max_us)" -ge 4500000
	in_use_again
	check "resets" $(($(resets) - before)) -eq 3

	step "$mode: late answers are taken in, and nothing is reset"
	check "descriptors that are owed" "$(owed)" -eq $((owed_so_far += 4))
	fault 0 '{}' "{\"delay_ms\": $((1000 * scale))}" '{"after": 4, "count": 2}'
	load_run 0 60 pattern=mixed size=1-20000 threads=3 count=20
	load_clean 0
	in_use_again
	check "resets" $(($(resets) - before)) -eq 3
	check "descriptors that are owed" "$(owed)" -eq $owed_so_far
	ctl 0 fault-clear >/dev/null
done

step "the modes change, WQs go and come, and requests are lost, all under load"
unbind
bind_device 0 wqs=2
load_start 0 pattern=mixed size=1-20000 src_nents=2 threads=3 seconds=600 stuck_ms=$((30000 * scale))
load_start 1 pattern=text size=30000 sleep=1 threads=2 seconds=600 stuck_ms=$((30000 * scale))
wait_for_work 30 0 20
for mode in async_irq sync async async_irq; do
	set_attribute sync_mode $mode
	set_attribute verify_compress $((RANDOM % 2))
	wait_for_work 60 0 30
	disable_wq "$iax" 1
	# Not the small ones of the self-check.
	fault 0 '{"wq": 0, "min_size": 1000}' '{"never_complete": true}' '{"count": 2}'
	nap 1
	name_wq "$iax" 1
	enable_wq "$iax" 1
	wait_for_work 60 0 30
	wait_for 40 "both WQs are used again" all_in_use
done
for slot in 0 1; do load_stop $slot; done
for slot in 0 1; do
	load_wait $slot 60
	load_clean $slot
done
device_serves
