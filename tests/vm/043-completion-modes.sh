#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: sync, async and async_irq: self-tests, callers of all kinds, all data right, histograms and tracepoints
# drivers: ours
# set: full 6.12/ours
# lanes: full slub swiotlb iommu
# limit: 240
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

stats=/sys/kernel/debug/iaa_crypto
global() { awk -v name="$1:" '$1 == name {print $2}' $stats/global_stats; }
# latencies OPERATION MODE: requests in that histogram.
latencies() { awk -v op="$1" -v mode="$2" '$1 == op && $2 == mode {n += $4} END {print n + 0}' $stats/latency; }
registered() { grep -q '^driver *: deflate-iaa' /proc/crypto; }

run() {
	load_run 0 60 "$@" >/dev/null
	load_clean 0
}

begin
echo $((1000 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
iax=$(iax_of 0)
events=/sys/kernel/tracing/events/iaa_crypto
sample_data 0
for mode in sync async async_irq; do
	step "$mode: the algorithms are registered anew, and tested in this mode"
	set_attribute sync_mode $mode
	bind_device 0
	echo 1 >$stats/stats_reset
	for verify in 0 1; do
		set_attribute verify_compress $verify
		run pattern=data threads=3 count=20
		run pattern=mixed size=1-9000 src_nents=3 dst_nents=2 src_uneven=1 threads=2 count=20
		run pattern=mixed size=60000-131072 sleep=1 threads=2 count=5
		run pattern=mixed size=4096 atomic=1 threads=2 count=10
		run pattern=far comp=zlib decomp=deflate-iaa count=10
	done
	check "compressions by the device" "$(global total_comp_calls)" -eq 260
	check "in software" $(($(global total_sw_comp_calls) + $(global total_sw_decomp_calls))) -eq 0
	check "compressions in the histogram of $mode" "$(latencies comp $mode)" -eq 260
	check "decompressions in it" "$(latencies decomp $mode)" -eq "$(global total_decomp_calls)"
	check "bytes out" "$(global total_decomp_bytes_out)" -gt "$(global total_decomp_bytes_in)"
	check "bytes in" "$(global total_comp_bytes_in)" -gt "$(global total_comp_bytes_out)"

	step "$mode: what does not fit, and what the device cannot take"
	load_run 0 30 mode=compress pattern=random room=2000 count=10 >/dev/null
	check "requests that ended with -ENOSPC" "$(load_value 0 comp_errno_28)" -eq 10
	before=$(global total_sw_decomp_calls)
	fault 0 '{"opcode": "decompress", "verify": false}' '{"status": "0x0a", "error_code": 13}'
	run pattern=mixed threads=2 count=10
	check "decompressions in software" $(($(global total_sw_decomp_calls) - before)) -eq 20
	grep -q '^decomp error 0x0d: ' $stats/errors || fail "the error is not in $stats/errors: $(<$stats/errors)"
	ctl 0 fault-clear >/dev/null

	step "$mode: tracepoints"
	echo >/sys/kernel/tracing/trace
	echo 1 >$events/enable
	run pattern=text count=5
	disable_wq "$iax" 0
	echo 0 >$events/enable
	for event in "iaa_submit: wq${iax#iax}.0 desc=[0-9]* compress $mode src_len=4096" \
		"iaa_complete: wq${iax#iax}.0 desc=[0-9]* decompress rc=0 status=0x1" \
		"iaa_wq_state: wq${iax#iax}.0 unbound"; do
		grep -q "$event" /sys/kernel/tracing/trace || fail "no event '$event'"
	done
	step "$mode: without a WQ the algorithms go"
	remove_module acomp_load
	gone() { ! registered; }
	wait_for 20 "the algorithms go" gone
	load_acomp_load
	sample_data 0
	disable_device "$iax"
done

step "they stay while somebody holds one, and are there again with the next WQ"
bind_device 0
load_start 0 pattern=mixed threads=2 seconds=600
wait_for_work 30 0 20
disable_wq "$iax" 0
nap 3
registered || fail "the algorithms have gone from under their users"
name_wq "$iax" 0
enable_wq "$iax" 0
wait_for_work 30 0 20
disable_wq "$iax" 0
load_stop 0
load_wait 0 30
load_clean 0
wait_for 20 "they go, when the last one lets go" gone
