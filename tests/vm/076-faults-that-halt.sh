#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the device halts while zswap swaps, in each completion mode: no page is lost; reset, it serves again
# drivers: ours
# boot: own
# set: full
# limit: 400
# splats: portal-unmapped-twice
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/vm/faults.sh
. "$(dirname "$0")/faults.sh"

sys=/sys/bus/pci/devices/$(pci_devices | head -n 1)
unbound() { [[ ! -e $crypto_driver/wq${iax#iax}.0 ]]; }

for mode in sync async async_irq; do
	for way in "$compression" "$decompression" "$verification" reset flr; do
		step "$mode: a halt by ${way/#reset/the command}"
		begin_faults
		set_attribute sync_mode $mode
		# One that a command asks for comes between the pages of two rounds.
		if [[ $way == \{* ]]; then
			fault 0 "$way" '{"halt": true}' "$once"
		else
			swap_out_and_in
			ctl 0 "{\"command\": \"halt\", \"leave_by\": \"$way\"}" >/dev/null
		fi
		swap_out_and_in
		[[ $way != \{* ]] || check "faults" "$(counter 0 faults)" -eq 1
		wait_for 40 "the WQ is unbound" unbound
		swap_out_and_in

		clean_slate
		# idxd oopses where it finds a device halted.
		echo 1 >"$sys/reset" || fail "the device cannot be reset"
		begin_faults
		swap_out_and_in
		check "compressions by the device" "$(compressions 0)" -ge 500
	done
done
