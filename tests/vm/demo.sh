#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The guest's half of scripts/demo: binds work queues with accel-config, swaps real data through zswap
# and prints what happened, from the device's own counters.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

megabytes=${IAA_DEMO_MB:-128}

title() { printf '\n%s\n' "$*"; }
line() { printf '  %-30s %s\n' "$1" "$2"; }
number() { sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta' <<<"$1"; }
seconds() { awk -v ms="$1" 'BEGIN {printf "%.1f s", ms / 1000}'; }
mega() { awk -v bytes="$1" 'BEGIN {printf "%.1f MB", bytes / 1048576}'; }

{
	begin
	iax=$(iax_of 0)
	bind_device 0 wqs=2
} >/tmp/setup 2>&1 || {
	cat /tmp/setup
	exit 1
}

title "The machine"
line kernel "$(uname -r), $(nproc) CPUs, as the distribution ships it"
line device "$iax at $(pci_devices | head -n 1): the model, profile $(device_state 0 .profile), version $(<$dsa/devices/"$iax"/version)"
if [[ $driver == ours ]]; then
	line driver "iaa_crypto of this project ($(modinfo -n iaa_crypto))"
else
	line driver "the kernel's own iaa_crypto ($(modinfo -n iaa_crypto))"
fi

title "Work queues, set up with accel-config"
for wq in "$dsa"/devices/wq"${iax#iax}".*; do
	[[ $(<"$wq/state") == enabled ]] || continue
	line "$(basename "$wq")" "$(<"$wq/size") entries, group $(<"$wq/group_id"), $(<"$wq/mode"), driver $(<"$wq/driver_name"), enabled"
done
line "deflate-iaa in /proc/crypto" "self-test passed, $(counter 0 completed) descriptors"

title "Swapping $megabytes MB of program code, text and noise through zswap"
set_zswap deflate-iaa $((megabytes * 2)) >>/tmp/setup 2>&1
ctl 0 counters-reset >/dev/null
out=$(vmstat zswpout) in=$(vmstat zswpin)
mapfile -t files < <(sample_files)
coproc HOG {
	memhog --mb "$megabytes" --threads 2 --data "${files[@]}" --page-out --pause \
		--cgroup /sys/fs/cgroup/demo --limit-mb $((megabytes * 4 / 5)) 2>&1
}
hog=$HOG_PID
exec 3<&"${HOG[0]}" 4>&"${HOG[1]}"
report=
while read -r -t $((300 * scale)) text <&3; do
	report+=$text$'\n'
	[[ $text != state=out ]] || break
done
[[ $text == state=out ]] || fail "the pages did not get out: $report"
pages=$(value pages <<<"$report")
line "out" "$(number "$(value swapped <<<"$report")") of $(number "$pages") pages in $(seconds "$(value out_ms <<<"$report")")"
stored=$(zswap_stat stored_pages)
pool=$(zswap_stat pool_total_size)
echo >&4
report+=$(cat <&3)
wait "$hog" || fail "memhog: exit status $?: $report"
line "in again" "$(number "$pages") pages in $(seconds "$(value in_ms <<<"$report")")"
line "compared, byte by byte" "$(number "$(value compared <<<"$report")") pages, $(value bad <<<"$report") of them wrong"

title "What the device did"
line "pages in zswap" "$(number "$stored"), $(mega $((stored * 4096))) kept in $(mega "$pool"): $(awk -v a=$((stored * 4096)) -v b="$pool" 'BEGIN {printf "%.2f to 1", b ? a / b : 0}')"
comp=$(compressions 0)
decomp=$(decompressions 0)
read_back=$(($(vmstat zswpin) - in))
line "compressions" "$(number "$comp")"
line "decompressions" "$(number "$decomp"): $(number "$read_back") pages read back, $(number $((decomp - read_back))) checks of what was compressed"
line "descriptors in all" "$(number "$(counter 0 completed)"), $(number "$(counter 0 bytes_in)") bytes in, $(number "$(counter 0 bytes_out)") bytes out"
line "lost or refused" "$(counter 0 dropped) of them"
for wq in 0 1; do line "by work queue $wq" "$(number "$(counter 0 wq.$wq.completed)") descriptors"; done
line "pages through zswap" "$(number $(($(vmstat zswpout) - out))) out, $(number $(($(vmstat zswpin) - in))) in"
((comp >= pages / 2)) || fail "the device compressed only $comp of $pages pages"
swapoff /dev/ram0 || fail "swap cannot be turned off"
unbind >/dev/null 2>&1
title "Swap off, work queues disabled: done."
