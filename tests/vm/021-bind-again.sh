#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the last WQ disabled and enabled again (in-tree: the algorithm is registered twice, and gone)
# compare: the last WQ disabled and enabled again
# boot: own in-tree
# limit: 60
# splats: crypto-reregistered
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
bind_device 0
load_run 0 30 pattern=mixed count=20
load_clean 0
disable_wq "$iax" 0

if [[ $driver == in-tree ]]; then
	name_wq "$iax" 0
	if accel-config enable-wq "$iax/wq${iax#iax}.0"; then
		fail "the in-tree driver was bound a second time"
	fi
	dmesg | grep -q 'registration failed (-17)' || fail "the kernel does not say that the name is taken"
	load_run 0 30 pattern=mixed count=20
	check "requests that failed" "$(load_value 0 comp_errno_19)" -eq 20
	weakness "stays disabled" "after the last WQ is disabled none can be enabled until the module is loaded anew"
	exit 0
fi

for round in 1 2 3; do
	step "round $round"
	before=$(compressions 0)
	name_wq "$iax" 0
	enable_wq "$iax" 0
	load_run 0 30 pattern=mixed count=20
	load_clean 0
	check "compressions by the device" $(($(compressions 0) - before)) -ge 20
	disable_wq "$iax" 0
done
step "the whole device"
disable_device "$iax"
bind_device 0
load_run 0 30 pattern=mixed count=20
load_clean 0
