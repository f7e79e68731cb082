#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a function level reset and a halt while requests are under way, and a halt while none is: none is lost
# drivers: ours
# boot: own
# set: full 6.12/ours
# lanes: full slub swiotlb iommu
# limit: 240
# splats: portal-unmapped-twice
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_timeout() { echo $((300 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms; }
set_timeout
iax=$(iax_of 0)
sys=/sys/bus/pci/devices/$(pci_devices | head -n 1)
device_did() { (($(compressions 0) >= before + $1)); }
both_go_on() { (($(load_value 0 comp_ok) >= was[0] + 5 && $(load_value 1 comp_ok) >= was[1] + 5)); }
# under_load WHAT CMD...: it happens while small, gathered and mapped requests are under way.
under_load() {
	local what=$1 slot
	shift
	step "$what"
	load_start 0 pattern=mixed size=1-9000 src_nents=2 threads=2 seconds=600 stuck_ms=$((20000 * scale))
	load_start 1 pattern=text size=30000 sleep=1 threads=2 seconds=600 stuck_ms=$((20000 * scale))
	before=$(compressions 0)
	wait_for 30 "the device is at work" device_did 20
	must "$@"
	was=("$(load_value 0 comp_ok)" "$(load_value 1 comp_ok)")
	wait_for 30 "both loads go on" both_go_on
	for slot in 0 1; do load_stop $slot; done
	for slot in 0 1; do
		load_wait $slot 30
		load_clean $slot
	done
}
flr() { echo 1 >"$sys/reset"; }
halt() { ctl 0 "{\"command\": \"halt\", \"leave_by\": \"$1\"}" >/dev/null; }
unbound() { [[ ! -e $crypto_driver/wq${iax#iax}.0 ]]; }
# idxd of 7.3 resets the device by itself, and leaves its WQ unbound.
noticed() { [[ $(<"$dsa/devices/$iax/state") != enabled ]] || unbound; }

bind_device 0
echo flr >"$sys/reset_method" || fail "FLR cannot be chosen"
under_load "a function level reset" flr
case $kernel in
6.12)
	# It does not notice the reset: for it the device is enabled. It is not, and is enabled anew.
	wait_for 40 "the WQ is unbound" unbound
	unbind
	bind_device 0
	;;
*)
	note "idxd of $kernel enables the device again, and leaves its WQ disabled"
	wait_for 40 "the WQ is unbound" unbound
	name_wq "$iax" 0
	enable_wq "$iax" 0
	;;
esac
device_serves

# Not one that a reset by command would end: idxd starts its work for that anew at every error that the
# halted device reports, while it is queued, and the kernel's workqueues break.
# What has been answered and has had its interrupt lost is in idxd's lists, which it empties then.
set_attribute sync_mode async_irq
fault 0 '{}' '{"interrupt": "lost"}' '{"every": 2}'
under_load "a halt that a function level reset ends, and interrupts that are lost" halt flr
wait_for 40 "the WQ is unbound" unbound
ctl 0 fault-clear >/dev/null

start_over() {
	step "reset by hand, the device works again"
	remove_module acomp_load
	remove_module iaa_crypto
	# It oopses where it finds a device halted.
	remove_module idxd
	flr
	load_idxd
	load_driver
	set_timeout
	load_acomp_load
	set_attribute sync_mode "$1"
	bind_device 0
	device_serves
}
start_over async

step "a halt while nothing is under way: the next request finds it"
halt flr
wait_for 20 "idxd has noticed" noticed
load_run 0 30 pattern=mixed count=20 >/dev/null
load_clean 0
wait_for 40 "the WQ is unbound" unbound
start_over sync
