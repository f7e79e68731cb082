#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a function level reset and a halt while requests are under way: none is lost
# drivers: ours
# boot: own
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
echo $((300 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
iax=$(iax_of 0)
sys=/sys/bus/pci/devices/$(pci_devices | head -n 1)
# under_load WHAT CMD...: it happens while small, gathered and mapped requests are under way.
under_load() {
	local what=$1 slot
	shift
	step "$what"
	load_start 0 pattern=mixed size=1-9000 src_nents=2 threads=2 seconds=600
	load_start 1 pattern=text size=30000 sleep=1 threads=2 seconds=600
	nap 0.5
	must "$@"
	nap 2
	for slot in 0 1; do load_stop $slot; done
	for slot in 0 1; do
		load_wait $slot 30
		load_clean $slot
	done
}
flr() { echo 1 >"$sys/reset"; }
halt() { ctl 0 "{\"command\": \"halt\", \"leave_by\": \"$1\"}" >/dev/null; }

bind_device 0
echo flr >"$sys/reset_method" || fail "FLR cannot be chosen"
under_load "a function level reset" flr
dmesg | tail -n 20
