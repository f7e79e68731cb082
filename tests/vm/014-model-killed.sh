#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the model is killed in mid-load: testbed and QEMU end, and say what happened
# drivers: in-tree 7.3/ours
# boot: host
# limit: 120
# shellcheck source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

if in_guest; then
	begin
	bind_device 0
	load_start 0 pattern=mixed threads=2 seconds=600
	wait_for_work 60 0 100
	echo "@@ loaded"
	sleep $((120 * scale))
	fail "nothing has ended this guest"
fi

start_guest --timeout $((150 * scale))
wait_for_line 120 "@@ loaded"
model=$(child_of "$guest_pid" iaa-device) || fail "there is no iaa-device below the testbed"
qemu=$(child_of "$guest_pid" qemu-system-x86) || fail "there is no QEMU below the testbed"
step "killing the model, process $model"
kill -KILL "$model"
wait_for_guest 60
cat "$guest_output"
same "the testbed's exit status for a device that died" "$guest_status" 122
grep -q 'iaa-device 0 was ended by signal 9 (SIGKILL) in mid-run' "$guest_output" ||
	fail "the testbed does not say what happened"
kill -0 "$qemu" 2>/dev/null && fail "QEMU still runs"
exit 0
