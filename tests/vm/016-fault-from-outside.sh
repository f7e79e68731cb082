#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: faults put in from the host while the guest works (in-tree: hardware errors reach the caller)
# drivers: in-tree 7.3/ours
# boot: host
# set: full 7.3/in-tree
# limit: 120
# shellcheck source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

if in_guest; then
	begin
	set_attribute verify_compress 0
	bind_device 0
	load_start 0 pattern=mixed threads=2 seconds=$((20 * scale)) pause_us=2000
	echo "@@ loaded"
	wait_for 60 "the host is done" test -e /run/testbed/done
	load_stop 0
	load_wait 0 30
	load_is 0 mismatches 0 || fail "wrong data$(load_errnos 0)"
	echo "errors=$(($(load_value 0 comp_failed) + $(load_value 0 decomp_failed)))"
	echo "errno22=$(($(load_value 0 comp_errno_22) + $(load_value 0 decomp_errno_22)))"
	exit 0
fi

start_guest --timeout $((150 * scale))
wait_for_line 120 "@@ loaded"
control=$guest_folder/device-0.control
[[ -S $control ]] || fail "there is no control socket $control"
outside() { timeout $((20 * scale)) iaa-device ctl "$control" "$@"; }
must outside '{"command": "fault-add", "fault": {"status": 32}, "when": {"every": 3, "count": 7}}'
must outside wait counter=faults value=7 timeout_ms=$((15000 * scale))
touch "$guest_folder/share/done"
wait_for_guest $((60 * scale))
cat "$guest_output"
same "the run's exit status" "$guest_status" 0
if [[ $driver == in-tree ]]; then
	check "requests that failed" "$(value errors <"$guest_output")" -eq 7
	check "requests that failed with -EINVAL" "$(value errno22 <"$guest_output")" -eq 7
	weakness "-EINVAL" "a hardware error that software could cover reaches the caller"
else
	check "requests that failed" "$(value errors <"$guest_output")" -eq 0
fi
