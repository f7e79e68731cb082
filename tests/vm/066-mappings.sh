#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: requests of several segments leave no mapping behind (in-tree on 6.12: each leaves one)
# compare: mappings left behind by several segments
# append: swiotlb=force
# limit: 60
# set: full
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
used() { cat /sys/kernel/debug/swiotlb/io_tlb_used; }
before=$(used)
for shape in "src_nents=2" "dst_nents=2" "src_nents=3 dst_nents=2"; do
	load_run 0 30 "pattern=mixed size=9000 $shape count=50" >/dev/null
	[[ $kernel/$driver == 6.12/in-tree ]] || load_clean 0
done
left=$(($(used) - before))
if [[ $kernel/$driver == 6.12/in-tree ]]; then
	check "slots of the bounce buffer that stay in use" $left -ge 150
	weakness "leaks $left slots" "a buffer of two segments is refused, and its mapping stays"
else
	check "slots of the bounce buffer that stay in use" $left -eq 0
fi
