#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a lane looks at, whichever test runs in it: lane.sh begin|end, by guest.sh. `begin` once a boot,
# before anything is loaded; `end` behind a test that has passed.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

lane=${IAA_VM_LANE:?the lane}
swiotlb=/sys/kernel/debug/swiotlb
# Of its own: tests trace as well.
tracing=/sys/kernel/tracing/instances/lane
kept=/run/lane

devices() { for each in $(pci_devices); do echo "/sys/bus/pci/devices/$each"; done; }

# trace EVENT, with room for the last thousand or so.
trace() {
	mkdir $tracing || fail "no instance of the tracing"
	echo 64 >$tracing/buffer_size_kb
	echo 1 >"$tracing/events/$1/enable" || fail "$1 cannot be traced"
}

# ---- slub: what uses freed memory, or writes beyond its own, finds poison and red zones ----

slub_begin() {
	local each
	for each in sanity_checks red_zone poison store_user; do
		same "$each of kmalloc-64" "$(<"/sys/kernel/slab/kmalloc-64/$each")" 1
	done
}
slub_end() {
	local each count=0
	# Objects that are not freed or allocated again are looked at now. What is found is in the log.
	for each in /sys/kernel/slab/{,dma-}kmalloc-*/validate; do
		echo 1 >"$each" || fail "cannot validate $each"
		count=$((count + 1))
	done
	check "caches that were looked through" $count -ge 10
}

# ---- swiotlb: every mapping has a bounce buffer, which a mapping that is forgotten keeps ----

swiotlb_begin() {
	echo "$(<$swiotlb/io_tlb_used)" >$kept
	trace swiotlb/swiotlb_bounced
}
none_kept() { (($(<$swiotlb/io_tlb_used) == $(<$kept))); }
swiotlb_end() {
	# The kernel's own high water mark stays 0.
	check "mappings among the last" "$(grep -c ' swiotlb_bounced: ' $tracing/trace)" -gt 0
	echo >$tracing/trace
	wait_for 5 "mappings are undone: io_tlb_used is $(<$swiotlb/io_tlb_used), and was $(<$kept)" none_kept
	same "slots that are used" "$(<$swiotlb/io_tlb_used)" "$(<$kept)"
}

# ---- iommu: the device reaches what is mapped for it, at another address, and nothing else ----

iommu_begin() {
	local each
	for each in $(devices); do
		same "${each##*/} is behind" "$(basename "$(realpath "$each/iommu")")" dmar0
		same "the domain of ${each##*/}" "$(<"$each/iommu_group/type")" DMA
	done
	trace iommu/map
}
iommu_faults() {
	local n status
	for ((n = 0; n < $(control_ports); n++)); do
		for status in 0x03 0x83 0x1a 0x22; do
			check "device $n: descriptors that ended with status $status" "$(counter $n status.$status)" -eq 0
		done
	done
}
iommu_end() {
	# "map: IOMMU: iova=0xffffe000 - 0xfffff000 paddr=0x104567000 size=4096"
	awk '/ map: IOMMU: / {
		all++
		match($0, /iova=0x[0-9a-f]+/); iova = substr($0, RSTART + 7, RLENGTH - 7)
		match($0, /paddr=0x[0-9a-f]+/); paddr = substr($0, RSTART + 8, RLENGTH - 8)
		sub(/^0+/, "", iova); sub(/^0+/, "", paddr)
		moved += iova != paddr
	}
	END {print "mappings=" all + 0; print "moved=" moved + 0}' $tracing/trace >$kept
	echo >$tracing/trace
	check "mappings among the last" "$(value mappings <$kept)" -gt 0
	same "those at another address than the memory's" "$(value moved <$kept)" "$(value mappings <$kept)"
	if dmesg | grep -E 'DMAR: .*[Ff]ault'; then fail "the IOMMU has seen faults"; fi
}

case ${1:-} in
begin)
	"${lane}_begin"
	;;
end)
	step "lane $lane"
	[[ $lane != iommu ]] || iommu_faults
	clean_slate
	"${lane}_end"
	;;
*) fail "usage: lane.sh begin|end" ;;
esac
