#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: zswap on deflate-iaa: 72 MB out and in again under memory pressure, every page compared
# lanes: full slub iommu
# limit: 180
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
set_zswap deflate-iaa
ctl 0 counters-reset >/dev/null
out=$(vmstat zswpout) in=$(vmstat zswpin)

# Two at once, so that both CPUs swap. The limit counts what zswap keeps as well: a part of the pages
# leaves as memory is filled, and the rest when that is done.
mapfile -t files < <(sample_files)
for n in 1 2; do
	memhog --mb 36 --threads 2 --seed $n --data "${files[@]}" --cgroup /sys/fs/cgroup/memhog$n --limit-mb 29 \
		--page-out >/tmp/memhog$n 2>&1 &
	pids[n]=$!
done
for n in 1 2; do
	wait "${pids[n]}"
	status=$?
	report=$(</tmp/memhog$n)
	printf '%s\n' "$report"
	((status == 0)) || fail "memhog $n: exit status $status"
	pages=$(value pages <<<"$report")
	check "pages" "$pages" -eq 9216
	check "pages out at once" "$(value swapped <<<"$report")" -ge $((pages * 99 / 100))
	check "pages compared" "$(value compared <<<"$report")" -eq "$pages"
	check "pages that were wrong" "$(value bad <<<"$report")" -eq 0
done
check "pages into zswap" $(($(vmstat zswpout) - out)) -ge 16384
check "pages out of zswap" $(($(vmstat zswpin) - in)) -ge 16384
# Same-filled pages never get as far as the device.
check "compressions by the device" "$(compressions 0)" -ge 16384
check "decompressions by the device" "$(decompressions 0)" -ge 16384
check "descriptors that were lost" "$(counter 0 dropped)" -eq 0
[[ ! -e /sys/kernel/debug/zswap/decompress_fail ]] ||
	check "pages that zswap could not decompress" "$(zswap_stat decompress_fail)" -eq 0
must swapoff /dev/ram0
