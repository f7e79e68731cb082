#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: streams with a window that the device does not have end in software
# compare: streams with a window of 32 KB
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
sample_data 0

load_run 0 60 mode=decompress comp=zlib15 decomp=deflate-iaa pattern=data size=65536 streams=8 count=24
check "streams that the device refused" "$(counter 0 status.0x0a)" -ge 1
check "wrong data" "$(load_value 0 mismatches)" -eq 0
if [[ $kernel/$driver == 7.3/in-tree ]]; then
	# The kernel's deflate keeps 2 KB of window where the output is longer than a page.
	check "streams that the software refused as well" "$(load_value 0 decomp_errno_22)" -ge 1
	check "other failures" "$(load_value 0 decomp_failed)" -eq "$(load_value 0 decomp_errno_22)"
	did "refuses some"
	note "7.3's own software refuses $(load_value 0 decomp_errno_22) of 24 valid streams"
else
	load_clean 0
	check "streams decompressed" "$(load_value 0 decomp_ok)" -eq 24
fi
