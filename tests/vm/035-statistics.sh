#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the statistics count what was done, why software did it, and are reset
# drivers: ours
# set: full 6.12/ours
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

stats=/sys/kernel/debug/iaa_crypto
global() { awk -v name="$1:" '$1 == name {print $2}' $stats/global_stats; }
# of_wq KEY: from the paragraph of the one WQ.
of_wq() { sed -n "/^  wqs:/,\$s/^    $1: //p" $stats/wq_stats; }
reset_stats() { echo 1 >$stats/stats_reset || fail "stats_reset takes no number"; }

begin
echo $((1000 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
bind_device 0
iax=$(iax_of 0)

step "the kernel's self-tests are the first that is counted"
same "the first line" "$(head -n 1 $stats/global_stats)" "global stats:"
for counter in comp:2 decomp:4 sw_comp:2 sw_decomp:4; do
	check "total_${counter%:*}_calls" "$(global "total_${counter%:*}_calls")" -eq "${counter#*:}"
done
for total in comp_bytes_out decomp_bytes_in completion_{einval,timeout,comp_buf_overflow}_errors; do
	[[ $(global "total_$total") ]] || fail "there is no total_$total"
done

step "what the device does"
reset_stats
load_run 0 30 pattern=mixed threads=2 count=20 >/dev/null
load_clean 0
for key in comp decomp; do
	check "total_${key}_calls" "$(global total_${key}_calls)" -eq 40
	check "total_sw_${key}_calls" "$(global total_sw_${key}_calls)" -eq 0
	check "${key}_calls of the WQ" "$(of_wq ${key}_calls)" -eq 40
	check "${key}_bytes of the WQ" "$(of_wq ${key}_bytes)" -eq "$(load_value 0 bytes_comp)"
done
check "total_comp_bytes_out" "$(global total_comp_bytes_out)" -eq "$(load_value 0 bytes_comp)"
check "total_decomp_bytes_in" "$(global total_decomp_bytes_in)" -eq "$(load_value 0 bytes_comp)"
same "the device" "$(sed -n 's/^  \(id\|n_wqs\): //p' $stats/wq_stats | tr '\n' ' ')" "${iax#iax} 1 "
same "the WQ" "$(of_wq name), $(of_wq state)" "iaa_crypto, in use"
reset_stats
check "total_comp_calls after the reset" "$(global total_comp_calls)" -eq 0
check "comp_calls of the WQ after it" "$(of_wq comp_calls)" -eq 0

# reason SIDE_REASON COUNT JOB: the job's operations are so many of that reason, or at least one where
# COUNT is +.
reason() {
	local name=$1 count=$2 op=-eq
	shift 2
	[[ $count != + ]] || op=-ge count=1
	reset_stats
	load_run 0 60 "$@" >/dev/null
	load_clean 0
	check "sw_$name" "$(global "sw_$name")" $op "$count"
	check "total_sw_${name%%_*}_calls" "$(global "total_sw_${name%%_*}_calls")" -ge "$count"
	ctl 0 fault-clear >/dev/null
}
step "why software did it"
comp="mode=compress pattern=text"
decomp="mode=decompress comp=zlib pattern=text streams=2"
fault 0 '{"opcode": "decompress"}' '{"status": "0x0a", "error_code": 13}'
reason decomp_stream 3 "$decomp count=3"
fault 0 '{"opcode": "compress"}' '{"status": "0x0b"}'
reason comp_too_small 3 "$comp count=3"
fault 0 '{"opcode": "compress"}' '{"status": "0x20"}'
reason comp_device_error 3 "$comp count=3"
fault 0 '{"opcode": "compress"}' '{"corrupt": {"offset": 5, "flip": 64}}'
reason comp_verify 3 "$comp count=3"
fault 0 '{"opcode": "decompress"}' '{"status": "0x24"}'
reason decomp_timeout 3 "$decomp count=3"
check "total_completion_timeout_errors" "$(global total_completion_timeout_errors)" -eq 3
reason comp_too_large 2 "$comp size=200000 src_nents=3 count=2"
fault 0 '{}' "{\"delay_ms\": $((30 * scale))}"
reason comp_no_buffer + "$comp size=20000 src_nents=2 sleep=1 threads=8 count=3"
reset_stats
load_run 0 30 mode=compress pattern=random room=4096 count=3 >/dev/null
check "total_completion_comp_buf_overflow_errors" "$(global total_completion_comp_buf_overflow_errors)" -eq 3

step "a full WQ, and none"
unbind
bind_device 0 size=1
fault 0 '{}' "{\"delay_ms\": $((30 * scale))}"
reason comp_wq_full + "$comp sleep=1 threads=4 count=3"
load_start 0 "$comp hold=1 count=5"
load_prepared 0
disable_wq "$iax" 0
reset_stats
load_go 0
load_wait 0 30 >/dev/null
load_clean 0
check "sw_comp_no_wq" "$(global sw_comp_no_wq)" -eq 5
same "wq_stats without a WQ" "$(<$stats/wq_stats)" ""
