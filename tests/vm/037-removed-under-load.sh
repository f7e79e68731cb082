#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: WQs disabled and enabled, and the module removed, while requests are under way: none is lost
# drivers: ours
# set: full 6.12/ours
# lanes: slub full swiotlb iommu
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_timeout() { echo $((1000 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms; }
set_timeout
bind_device 0 wqs=2
iax=$(iax_of 0)
n=${iax#iax}

# The device, or somebody, has compressed so many times more than before.
device_did() { (($(compressions 0) >= before + $1)); }
both_did() { (($(load_value 0 comp_ok) >= was[0] + $1 && $(load_value 1 comp_ok) >= was[1] + $1)); }
now() {
	before=$(compressions 0)
	was=("$(load_value 0 comp_ok)" "$(load_value 1 comp_ok)")
}

step "WQs go and come, at last both"
load_start 0 pattern=mixed size=1-20000 src_nents=2 threads=2 seconds=600 stuck_ms=$((20000 * scale))
load_start 1 pattern=text size=30000 sleep=1 threads=2 seconds=600 stuck_ms=$((20000 * scale))
for wq in 0 1 0; do
	now
	wait_for 30 "the device is at work" device_did 20
	disable_wq "$iax" $wq
	now
	wait_for 30 "the other WQ is at work" device_did 20
	name_wq "$iax" $wq
	enable_wq "$iax" $wq
done
now
wait_for 30 "the device is at work" device_did 20
disable_wq "$iax" 0
disable_wq "$iax" 1
accepted=$(counter 0 accepted)
now
wait_for 30 "both loads go on, in software" both_did 5
check "descriptors without a WQ" "$(counter 0 accepted)" -eq "$accepted"
# To enable one, idxd writes the configuration of all, and one without a mode will not do.
name_wq "$iax" 0
name_wq "$iax" 1
enable_wq "$iax" 0

step "the module stays while somebody holds an algorithm"
if rmmod iaa_crypto 2>/dev/null; then fail "iaa_crypto is removed from under its users"; fi
now
wait_for 30 "the device goes on" device_did 5
for slot in 0 1; do load_stop $slot; done
for slot in 0 1; do
	load_wait $slot 30
	load_clean $slot
done
check "descriptors that were never completed" $(($(counter 0 accepted) - $(counter 0 completed))) -eq 0

step "without users it goes, WQ and all, and comes again"
remove_module acomp_load
must rmmod iaa_crypto
same "the WQ" "$(<"$dsa/devices/wq$n.0/state")" disabled
same "the algorithm" "$(algorithm deflate-iaa driver)" ""
load_driver
set_timeout
load_acomp_load
name_wq "$iax" 0
name_wq "$iax" 1
enable_wq "$iax" 0
before=$(compressions 0)
load_run 0 30 pattern=mixed count=20 >/dev/null
load_clean 0
check "compressions with the new module" $(($(compressions 0) - before)) -ge 20
