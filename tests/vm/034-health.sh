#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: late answers and comebacks, a device that is wrong where it is checked, and how an administrator has it tried again
# drivers: ours
# lanes: full slub
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

wq_is() { grep -q "state: $1" /sys/kernel/debug/iaa_crypto/wq_stats; }
log_has() { dmesg | grep -q "wq${iax#iax}.0: .*$1"; }
answer_late() { fault 0 '{}' "{\"delay_ms\": $((700 * scale))}" '{"count": 1}'; }
one_request() {
	load_run 0 30 pattern=mixed mode=compress count=1 >/dev/null
	load_clean 0
}

begin
iax=$(iax_of 0)
dmesg -C
echo $((250 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms

step "a device that fails its check as it is bound is not used"
bind_device 0 enable=0
enable_device "$iax"
fault 0 '{"opcode": "compress"}' '{"corrupt": {"offset": 9, "flip": 1}}'
if accel-config enable-wq "$iax/wq${iax#iax}.0" 2>/dev/null; then fail "a device that compresses wrongly is bound"; fi
log_has "known-answer compression" || fail "the log does not say what was wrong"
same "the WQ" "$(<"$dsa/devices/wq${iax#iax}.0/state")" disabled
ctl 0 fault-clear >/dev/null
name_wq "$iax" 0
enable_wq "$iax" 0
wait_for 60 "the self-test of deflate-iaa passes" selftest_passed

step "a transfer limit below a page"
disable_wq "$iax" 0
name_wq "$iax" 0
echo 2048 >"$dsa/devices/wq${iax#iax}.0/max_transfer_size" || fail "max_transfer_size does not take 2048"
enable_wq "$iax" 0
before=$(compressions 0)
load_run 0 30 pattern=text size=1500 room=2000 count=10 >/dev/null
load_clean 0
check "compressions by the device" $(($(compressions 0) - before)) -ge 10
disable_wq "$iax" 0
name_wq "$iax" 0
enable_wq "$iax" 0

step "late answers: the WQ is used again without a reset, five times"
before=$(counter 0 command.0x0a)
for round in 1 2 3 4 5; do
	answer_late
	one_request
	wait_for 20 "the WQ is used again, time $round" wq_is "in use"
done
check "resets" $(($(counter 0 command.0x0a) - before)) -eq 0
step "and then no more"
answer_late
one_request
wait_for 20 "the log says that it stays out of use" log_has "stays out of use: it was tried again 5 times"
wq_is "out of use" || fail "the WQ is in use"
before=$(counter 0 accepted)
load_run 0 30 pattern=mixed count=10 >/dev/null
load_clean 0
check "descriptors of a WQ out of use" "$(counter 0 accepted)" -eq "$before"

step "disabled, configured and enabled it is as new"
disable_wq "$iax" 0
name_wq "$iax" 0
enable_wq "$iax" 0
load_run 0 30 pattern=mixed count=10 >/dev/null
load_clean 0
check "descriptors" "$(counter 0 accepted)" -ge $((before + 20))

step "an error where it is checked is looked at again"
dmesg -C
answer_late
fault 0 '{}' '{"status": "0x20"}' '{"count": 1}'
one_request
wait_for 20 "the WQ is used again" log_has "is used again"
log_has "known-answer decompression: status 0x20" || fail "the error is not in the log"

step "a wrong answer is not"
answer_late
fault 0 '{"opcode": "decompress"}' '{"corrupt": {"offset": 3, "flip": 1, "crc": "stale"}}'
one_request
wait_for 20 "the log says that it stays out of use" log_has "stays out of use: it answers, and wrongly"
wq_is "out of use" || fail "the WQ is in use"
