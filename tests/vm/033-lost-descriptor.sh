#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a descriptor that is never answered: its WQ is reset and serves again, and no request stays behind
# drivers: ours
# lanes: full slub swiotlb iommu
# limit: 180
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

wq_is() { grep -q "state: $1" /sys/kernel/debug/iaa_crypto/wq_stats; }
all_in_use() { [[ $(grep -c "state: in use" /sys/kernel/debug/iaa_crypto/wq_stats) == "$1" ]]; }
log_has() { dmesg | grep -q "wq${iax#iax}.$1: .*$2"; }
resets() { counter 0 command.0x0a; }
config() { echo "$(<"$wq/state") $(<"$wq/name") $(<"$wq/type") $(<"$wq/mode") $(<"$wq/priority") $(<"$wq/driver_name") $(<"$wq/max_transfer_size")"; }

# again WHAT: the WQ comes back as it was, and the device does what is asked.
again() {
	wait_for 20 "the WQ is used again" wq_is "in use"
	same "the WQ after its reset" "$(config)" "$configured"
	local before
	before=$(compressions 0)
	load_run 0 30 pattern=mixed threads=2 count=20 >/dev/null
	load_clean 0
	check "compressions by the device after $1" $(($(compressions 0) - before)) -ge 40
}

begin
echo $((200 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
bind_device 0
iax=$(iax_of 0)
wq=$dsa/devices/wq${iax#iax}.0
dmesg -C
configured=$(config)
check "resets so far" "$(resets)" -eq 0

step "a small request: software does it at once"
fault 0 '{}' '{"never_complete": true}' '{"after": 4, "count": 1}'
load_run 0 30 pattern=mixed count=20
load_clean 0
check "longest request in us" "$(load_value 0 max_us)" -lt $((3000000 * scale))
log_has 0 "no answer in time, taken out of use" || fail "the WQ that owes an answer is still in use"
again "a small one"
check "resets" "$(resets)" -eq 1

step "large ones: they wait until the device cannot write to their memory any more"
fault 0 '{"min_size": 60000}' '{"never_complete": true}' '{"count": 2}'
load_run 0 60 pattern=text size=65536 threads=2 count=1 stuck_ms=$((30000 * scale))
load_clean 0
check "longest request in us" "$(load_value 0 max_us)" -ge 4500000
again "a large one"
check "resets" "$(resets)" -eq 2
check "descriptors that were never completed" $(($(counter 0 accepted) - $(counter 0 completed))) -ge 2

step "two WQs of one device at once: both are reset, neither in the other's way"
unbind
bind_device 0 wqs=2
before=$(resets)
for n in 0 1; do fault 0 "{\"wq\": $n, \"min_size\": 60000}" '{"never_complete": true}' '{"count": 1}'; done
load_run 0 60 pattern=text size=65536 threads=4 count=4 stuck_ms=$((30000 * scale))
load_clean 0
wait_for 40 "both WQs are used again" all_in_use 2
check "resets" $(($(resets) - before)) -eq 2
for n in 0 1; do log_has $n "answers again and is used again" || fail "WQ $n was not reset"; done
if log_has . "is unbound"; then fail "a WQ was unbound"; fi

step "one, while another one of its device is disabled: it waits until that has a mode"
dmesg -C
disable_wq "$iax" 1
fault 0 '{"wq": 0}' '{"never_complete": true}' '{"count": 1}'
load_run 0 30 pattern=mixed count=20 >/dev/null
load_clean 0
wait_for 20 "the log says what it waits for" log_has 0 "waits to be enabled"
nap 8
check "lines about it" "$(dmesg | grep -c "waits to be enabled")" -eq 1
[[ -e $crypto_driver/wq${iax#iax}.0 ]] || fail "the WQ is unbound"
before=$(counter 0 accepted)
load_run 0 30 pattern=mixed count=20 >/dev/null
load_clean 0
check "descriptors meanwhile" "$(counter 0 accepted)" -eq "$before"
name_wq "$iax" 1
wait_for 30 "the WQ is used again" all_in_use 1
enable_wq "$iax" 1
wait_for 10 "both WQs are used" all_in_use 2
before=$(compressions 0)
load_run 0 30 pattern=mixed count=20 >/dev/null
load_clean 0
check "compressions by the device" $(($(compressions 0) - before)) -ge 20
