#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: signals for a process that swaps, while the WQ is full (in-tree: its pages are not compressed)
# compare: signals while zswap waits for a full WQ
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute verify_compress 0
bind_device 0 size=1
set_zswap deflate-iaa
mapfile -t files < <(sample_files)
coproc HOG { memhog --mb 4 --random-percent 0 --pause --data "${files[@]}" --cgroup /sys/fs/cgroup/memhog --limit-mb 64 2>&1; }
hog=$HOG_PID
exec 3<&"${HOG[0]}" 4>&"${HOG[1]}"
while read -r -t $((60 * scale)) line <&3; do [[ $line != state=out ]] || break; done
[[ $line == state=out ]] || fail "memhog does not fill its memory"

fault 0 '{}' '{"delay_ms": 1}'
load_start 0 pattern=mixed threads=4 seconds=600 stuck_ms=$((20000 * scale))
step "pages are taken from memhog by somebody who gets signals, and handles them"
rejected() {
	local n
	n=$(zswap_stat reject_compress_fail)
	# 7.3 keeps such pages as they are.
	[[ ! -e /sys/kernel/debug/zswap/stored_incompressible_pages ]] ||
		n=$((n + $(zswap_stat stored_incompressible_pages)))
	echo "$n"
}
failed=$(rejected)
bash -c 'trap : USR1
	echo >/tmp/trapped
	for ((i = 0; i < 100; i++)); do echo 256K >/sys/fs/cgroup/memhog/memory.reclaim; done
	exit 0' 2>/dev/null &
reclaimer=$!
wait_for 20 "the reclaimer is ready" test -e /tmp/trapped
signals=0
while kill -USR1 $reclaimer 2>/dev/null; do
	signals=$((signals + 1))
	((signals < 20000)) || fail "the reclaimer does not end"
	nap 0.02
done
failed=$(($(rejected) - failed))
check "signals" $signals -ge 20
check "pages that were swapped out" $(($(zswap_stat stored_pages) + failed)) -ge 100
load_stop 0
load_wait 0 30 >/dev/null
load_is 0 mismatches 0 || fail "wrong data$(load_errnos 0)"

step "all pages are read back"
echo >&4
report=$(cat <&3)
wait "$hog"
check "memhog's exit status" $? -eq 0
check "pages compared" "$(value compared <<<"$report")" -eq 1024
check "pages that were wrong" "$(value bad <<<"$report")" -eq 0
if [[ $driver == in-tree ]]; then
	check "pages that were not compressed" $failed -ge 50
	weakness "$failed pages rejected" "a signal that comes while a descriptor is awaited fails the request"
else
	# One that does not compress may be among memhog's.
	check "pages that were not compressed" $failed -le 10
fi
