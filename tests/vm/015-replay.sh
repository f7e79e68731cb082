#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the trace of a zswap run, replayed without a guest, gives the same results
# drivers: 6.12/in-tree 7.3/in-tree 7.3/ours
# boot: host
# set: full 7.3/in-tree
# limit: 180
# shellcheck source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

if in_guest; then
	begin
	bind_device 0
	set_zswap deflate-iaa
	mapfile -t files < <(sample_files)
	must memhog --mb 16 --threads 2 --page-out --data "${files[@]}"
	must swapoff /dev/ram0
	echo "completed=$(counter 0 completed)"
	exit 0
fi

start_guest --timeout $((170 * scale)) --trace "$logs/trace"
wait_for_guest $((180 * scale))
cat "$guest_output"
same "the run's exit status" "$guest_status" 0
completed=$(value completed <"$guest_output")
check "descriptors in the run" "$completed" -ge 8000
step "replay"
timeout $((120 * scale)) iaa-device replay "$logs/trace/device-0.trace" | tee "$logs/replay"
status=${PIPESTATUS[0]}
((status == 0)) || fail "the replay found differences: exit status $status"
grep -qE ' 0 differences' "$logs/replay" || fail "the replay does not say that nothing differs"
replayed=$(sed -nE 's/^([0-9]+) records replayed.*/\1/p' "$logs/replay")
check "descriptors replayed" "$replayed" -ge "$completed"
rm -rf "$logs/trace"
