#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: every kind of data, size and alignment comes back byte by byte, as zlib reads it too
# lanes: slub iommu full swiotlb
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0

run() {
	step "$*"
	load_run 0 60 "$@" >/dev/null
	load_clean 0
}

sample_data 0
for pattern in text zero random mixed far period high data; do
	run pattern=$pattern threads=2 count=20
done
run pattern=text size=1-64 count=100
run pattern=mixed size=1-8192 threads=2 count=50
run pattern=data size=60000-131072 count=10
run pattern=mixed size=1048576 count=2
run pattern=text src_offset=1 dst_offset=4095 count=20
run pattern=mixed src_offset=4090 dst_offset=3 size=1-4096 count=40

step "the kernel's zlib reads what the device made, and the other way round"
before=$(decompressions 0)
run pattern=data comp=deflate-iaa decomp=zlib threads=2 count=40
run pattern=far comp=deflate-iaa decomp=zlib count=20
run pattern=data comp=zlib decomp=deflate-iaa threads=2 count=40
run pattern=random comp=zlib decomp=deflate-iaa count=20
check "zlib's streams that the device decompressed" $(($(decompressions 0) - before)) -ge 100

if [[ $driver == ours ]]; then
	step "scatterlists of several entries"
	run pattern=mixed src_nents=2 count=20
	run pattern=mixed dst_nents=3 size=5000-9000 count=20
	run pattern=data src_nents=5 dst_nents=4 src_uneven=1 dst_uneven=1 src_offset=33 size=300-9000 threads=2 count=40
fi
check "compressions" "$(compressions 0)" -ge 500
check "descriptors that were lost" "$(counter 0 dropped)" -eq 0
