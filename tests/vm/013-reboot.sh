#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the guest reboots in the same machine (ours: under load): the device is found and works again
# drivers: in-tree ours
# boot: own
# set: full 6.12/ours
# reboots: 1
# limit: 180
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# The testbed runs the test again after the reboot; this folder is the host's.
kept=/run/testbed/reboot-test
if [[ ! -e $kept ]]; then
	begin
	bind_device 0
	load_run 0 30 pattern=mixed threads=2 count=40
	load_clean 0
	# The in-tree driver of 6.12 would poll for ever for what the reboot takes from the device, on every
	# CPU, and the machine would not get to its reboot.
	if [[ $driver != in-tree ]]; then
		load_start 0 pattern=mixed threads=2 seconds=600
		wait_for_work 30 0 20
	fi
	compressions 0 >$kept
	step "reboot"
	sync -f $kept
	busybox reboot -f
	sleep $((60 * scale))
	fail "the guest has not rebooted"
fi
step "after the reboot"
read -r compressed <$kept
check "this boot's number" "${IAA_BOOT:-0}" -eq 2
check "compressions before" "$compressed" -ge 80
same "the device is as after power-on" "$(device_state 0 .state)" disabled
begin
bind_device 0
load_run 0 30 pattern=mixed threads=2 count=40
load_clean 0
check "compressions after" "$(compressions 0)" -ge 80
check "commands that enabled it" "$(counter 0 command.0x01)" -ge 1
