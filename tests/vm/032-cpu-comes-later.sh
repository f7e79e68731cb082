#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a CPU that comes online after two devices were bound (in-tree: it is never served)
# compare: a CPU that comes online after two devices
# boot: own
# limit: 60
# set: full
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# In a guest of its own: a CPU that comes online takes the features that it lacks from the whole machine,
# and so the instruction that idxd looks for when it is loaded.
begin
requires device:2 cpus:2
echo 0 >/sys/devices/system/cpu/cpu1/online || skip "CPU 1 cannot be taken offline"
trap 'echo 1 >/sys/devices/system/cpu/cpu1/online' EXIT
for n in 0 1; do
	bind_device $n
done
if [[ $driver == ours ]]; then
	step "CPU 0 alone uses both devices"
	load_run 0 60 pattern=mixed cpus=0 count=40 >/dev/null
	load_clean 0
	for n in 0 1; do
		check "compressions by device $n" "$(compressions $n)" -ge 20
	done
	step "CPU 1 comes"
fi
echo 1 >/sys/devices/system/cpu/cpu1/online || fail "CPU 1 does not come back"
load_run 0 60 pattern=mixed threads=2 cpus=0-1 count=40
check "operations on CPU 0" "$(load_value 0 cpu0_ok)" -eq 80
if [[ $driver == in-tree ]]; then
	check "operations that failed on CPU 1" "$(load_value 0 cpu1_failed)" -eq 40
	weakness "-ENODEV" "a CPU that comes online later is never served"
else
	load_clean 0
	check "operations on CPU 1" "$(load_value 0 cpu1_ok)" -eq 80
	step "CPU 1 goes: its device is CPU 0's again"
	echo 0 >/sys/devices/system/cpu/cpu1/online || fail "CPU 1 cannot be taken offline again"
	for n in 0 1; do before[n]=$(compressions $n); done
	both_work() {
		load_run 0 60 pattern=mixed cpus=0 count=10 >/dev/null
		load_clean 0
		(($(compressions 0) > before[0] && $(compressions 1) > before[1]))
	}
	wait_for 20 "both devices serve CPU 0" both_work
fi
