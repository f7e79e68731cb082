#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the testbed ends as it should with a signal, a panic, and a device that may die
# drivers: 7.3/none
# boot: host
# set: full
# limit: 150
# shellcheck disable=SC2016 source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

guest() { "$project/scripts/testbed/run" --kernel "$kernel" --driver none --name "042-$$" "$@"; }

step "a signal to the testbed"
"$project/scripts/testbed/run" --kernel "$kernel" --driver none --name "042-$$" -- \
	sh -c 'echo up; sleep 1000' </dev/null >"$logs/out" 2>"$logs/err" &
guest_pid=$!
# shellcheck disable=SC2317  # called by wait_for
up() { grep -q up "$logs/out"; }
wait_for 60 "the guest is up" up
qemu=$(child_of "$guest_pid" qemu-system-x86) || fail "there is no QEMU below the testbed"
kill -TERM "$guest_pid"
wait "$guest_pid"
status=$?
guest_pid=''
same "exit status" $status 143
kill -0 "$qemu" 2>/dev/null && fail "QEMU still runs"

step "a panic"
guest -- sh -c 'echo c >/proc/sysrq-trigger' </dev/null >"$logs/out" 2>"$logs/err"
same "exit status" $? 121
grep -q "kernel panicked" "$logs/err" || fail "the testbed does not say that the kernel panicked"

step "a device that may die, in a guest on two nodes that binds by itself"
guest --device-may-die --autoprobe --node cpus=0,memory=512M --node cpus=1,memory=512M \
	--device "node=1" --driver in-tree --iaa-device "$build/device/iaa-device" -- bash -c '
		cat /sys/bus/pci/devices/*/iax*/numa_node
		cat /sys/bus/dsa/drivers_autoprobe
		echo up
		sleep 5' </dev/null >"$logs/out" 2>"$logs/err" &
guest_pid=$!
wait_for 60 "the guest is up" up
kill -KILL "$(child_of "$guest_pid" iaa-device)"
wait "$guest_pid"
status=$?
guest_pid=''
cat "$logs/out" "$logs/err"
same "exit status" $status 0
same "node of the device, and autoprobe" "$(head -n 2 "$logs/out" | tr '\n' ' ')" "1 1 "
grep -q "going on without it" "$logs/err" || fail "the testbed does not say that the device is gone"
