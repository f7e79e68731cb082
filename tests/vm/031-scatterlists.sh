#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: buffers of several segments (in-tree on 6.12: refused with -EIO)
# compare: buffers of several segments
# set: full 6.12/ours
# lanes: iommu full slub
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
for shape in "src_nents=2" "dst_nents=2" "src_nents=3 dst_nents=3 src_uneven=1 dst_uneven=1 src_offset=4000"; do
	step "$shape"
	load_run 0 30 "pattern=mixed size=4096 $shape count=20"
	if [[ $kernel/$driver == 6.12/in-tree ]]; then
		check "requests that failed" "$(load_value 0 comp_errno_5)" -eq 20
	else
		load_clean 0
	fi
done
[[ $kernel/$driver != 6.12/in-tree ]] || weakness "-EIO" "a buffer of two segments is refused"
