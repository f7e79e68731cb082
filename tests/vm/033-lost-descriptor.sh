#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a descriptor that is never answered: its WQ is reset and serves again, and no request stays behind
# drivers: ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

wq_is() { grep -q "state: $1" /sys/kernel/debug/iaa_crypto/wq_stats; }
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
wq=$dsa/devices/wq$(iax_of 0 | tr -d iax).0
configured=$(config)
check "resets so far" "$(resets)" -eq 0

step "a small request: software does it at once"
fault 0 '{}' '{"never_complete": true}' '{"after": 4, "count": 1}'
load_run 0 30 pattern=mixed count=20
load_clean 0
check "longest request in us" "$(load_value 0 max_us)" -lt $((3000000 * scale))
wq_is "out of use" || fail "the WQ that owes an answer is still in use"
again "a small one"
check "resets" "$(resets)" -eq 1

step "large ones: they wait until the device cannot write to their memory any more"
fault 0 '{"min_size": 60000}' '{"never_complete": true}' '{"count": 2}'
load_run 0 60 pattern=text size=65536 threads=2 count=1
load_clean 0
check "longest request in us" "$(load_value 0 max_us)" -ge 4500000
again "a large one"
check "resets" "$(resets)" -eq 2
check "descriptors that were never completed" $(($(counter 0 accepted) - $(counter 0 completed))) -ge 2
