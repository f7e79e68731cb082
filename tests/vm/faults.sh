# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The faults of the model (Documentation/device-control.rst), each in each completion mode while zswap
# swaps: no page may be lost, and the WQ has to serve again. For tests that source it behind lib.sh.
# shellcheck disable=SC2034,SC2154  # what one of them sets another one uses

# Longer than this the driver waits for no answer.
patience=$((1000 * scale))
compression='{"opcode": "compress"}'
decompression='{"opcode": "decompress", "verify": false}'
verification='{"opcode": "decompress", "verify": true}'
often='{"every": 3}'
once='{"after": 200, "count": 1}'

# NAME|MODES|USUAL|MATCH|FAULT|WHEN|OUTCOME
#   USUAL    the mode of those in which an ordinary run has it; -: none
#   OUTCOME  on     the WQ is in use all the time
#            back   it is taken out of use, and comes back by itself
#            reset  it comes back by a reset
# Not here: a decompression whose wrong data or length nothing shows, and a record that is written twice
# (complete_twice): the second one says that whatever uses the descriptor by then has ended.
all='sync async async_irq'
cases=(
	"dropped compression|$all|sync|$compression|{\"drop\": true}|$once|reset"
	"dropped decompression|$all|-|$decompression|{\"drop\": true}|$once|reset"
	"dropped verification|$all|-|$verification|{\"drop\": true}|$once|reset"
	"compression never completed|$all|async|$compression|{\"never_complete\": true}|$once|reset"
	"decompression never completed|$all|sync|$decompression|{\"never_complete\": true}|$once|reset"
	"verification never completed|$all|async_irq|$verification|{\"never_complete\": true}|$once|reset"
	"compression completed by the drain|$all|-|$compression|{\"never_complete\": true, \"on_drain\": \"complete\"}|$once|reset"
	"decompression completed by the drain|$all|-|$decompression|{\"never_complete\": true, \"on_drain\": \"complete\"}|$once|reset"
	"compression too large|$all|async|$compression|{\"status\": 10, \"error_code\": 25}|$often|on"
	"decompression refused|$all|async_irq|$decompression|{\"status\": 10, \"error_code\": 13}|$often|on"
	"decompression too large|$all|sync|$decompression|{\"status\": 11}|$often|on"
	"verification with a hardware error|$all|async_irq|$verification|{\"status\": 32}|$often|on"
	"compression done, and called an error|$all|sync|$compression|{\"status\": 32, \"execute\": true}|$often|on"
	"decompression done, and called an error|$all|async|$decompression|{\"status\": 32, \"execute\": true}|$often|on"
	"compression corrupted|$all|async_irq|$compression|{\"corrupt\": true}|$often|on"
	"checksum of the verification corrupted|$all|async|$verification|{\"corrupt\": {\"crc\": \"matching\"}}|$often|on"
	"compression said to be shorter|$all|sync|$compression|{\"output_size\": 20}|$often|on"
	"compression said to be empty|$all|async|$compression|{\"output_size\": 0}|$often|on"
	"compression said to be longer than its buffer|$all|async_irq|$compression|{\"output_size\": 100000}|$often|on"
	"decompression said to be longer than its buffer|$all|sync|$decompression|{\"output_size\": 100000}|$often|on"
	"interrupts lost|async_irq|async_irq|{}|{\"interrupt\": \"lost\"}|{\"every\": 100}|on"
	"interrupts doubled|async_irq|-|{}|{\"interrupt\": \"doubled\"}|$often|on"
	"slow device|$all|async|{}|{\"delay_ms\": 5}|{\"every\": 20}|on"
	"compression answered late|$all|async_irq|$compression|{\"delay_ms\": $((3 * patience))}|$once|back"
	"decompression answered late|$all|async|$decompression|{\"delay_ms\": $((3 * patience))}|$once|back"
	"record written late|$all|sync|{}|{\"late_ms\": $((3 * patience))}|$once|back"
)

wq_in_use() { grep -q "state: in use" /sys/kernel/debug/iaa_crypto/wq_stats; }

begin_faults() {
	begin
	echo $patience >/sys/module/iaa_crypto/parameters/timeout_ms
	iax=$(iax_of 0)
	bind_device 0
	set_zswap deflate-iaa 64
	mapfile -t files < <(sample_files)
}

# swap_out_and_in: 2 MB, every page compared.
swap_out_and_in() {
	local report
	report=$(memhog --mb 2 --threads 2 --page-out --data "${files[@]}" 2>&1) || fail "memhog: exit status $?: $report"
	check "pages that were out" "$(value swapped <<<"$report")" -ge 400
	check "pages compared" "$(value compared <<<"$report")" -eq 512
	check "pages that were wrong" "$(value bad <<<"$report")" -eq 0
}

run_case() { # MODE CASE
	local mode=$1 name match fault when outcome
	IFS='|' read -r name _ _ match fault when outcome <<<"$2"
	step "$mode: $name"
	set_attribute sync_mode "$mode"
	ctl 0 counters-reset >/dev/null
	dmesg -C
	fault 0 "$match" "$fault" "$when"
	swap_out_and_in
	check "faults" "$(counter 0 faults)" -ge 1
	ctl 0 fault-clear >/dev/null
	wait_for 30 "the WQ is in use" wq_in_use
	case $outcome in
	on) check "times that the WQ was out of use" "$(dmesg | grep -c "taken out of use")" -eq 0 ;;
	back) check "times that the WQ was out of use" "$(dmesg | grep -c "taken out of use")" -eq 1 ;;
	reset) check "resets" "$(counter 0 command.0x0a)" -eq 1 ;;
	esac
	device_serves
	[[ $outcome != on ]] || return 0
	# How often a WQ comes back is limited; bound anew it starts from nothing.
	disable_wq "$iax" 0
	name_wq "$iax" 0
	enable_wq "$iax" 0
}
