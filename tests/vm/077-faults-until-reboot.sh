#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a drain that never ends, and a halt that only a reboot ends, while zswap swaps: no page is lost
# drivers: ours
# boot: own
# set: full
# reboots: 3
# limit: 300
# splats: portal-unmapped-twice polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/vm/faults.sh
. "$(dirname "$0")/faults.sh"

modes=(sync async async_irq)
begin_faults
bind_device 1
swap_on_each_cpu() {
	local cpu
	for cpu in 0 1; do
		must taskset -cp $cpu $$ >/dev/null
		swap_out_and_in
	done
}
swap_on_each_cpu
for n in 0 1; do check "compressions by device $n" "$(compressions $n)" -ge 100; done
mode=${modes[IAA_BOOT - 1]:-}
[[ $mode ]] || exit 0

set_attribute sync_mode "$mode"
step "$mode: device 0 does not answer, and then does not let go of that"
fault 0 "$decompression" '{"never_complete": true, "on_drain": "wait"}' '{"after": 50, "count": 1}'
swap_on_each_cpu
check "faults" "$(counter 0 faults)" -eq 1
# shellcheck disable=SC2317  # called by wait_for
log_has() { dmesg | grep -q "$1"; }
wait_for 30 "the WQ is reset" log_has "wq${iax#iax}.0: still no answer: is reset"
swap_out_and_in
step "$mode: device 1 halts for good"
ctl 1 '{"command": "halt", "leave_by": "cold"}' >/dev/null
swap_on_each_cpu
before=$(($(compressions 0) + $(compressions 1)))
swap_on_each_cpu
check "compressions by the devices" $(($(compressions 0) + $(compressions 1) - before)) -eq 0
# idxd waits for its command in the middle of the WQ's reset: nothing can be cleared away.
step "reboot"
sync -f /run/testbed
echo b >/proc/sysrq-trigger
sleep $((60 * scale))
fail "the guest has not rebooted"
