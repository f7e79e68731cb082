#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: two CPUs decompress in software at once (in-tree on 6.12: one state for both, wrong data)
# compare: two CPUs decompress in software at once
# boot: own 6.12/in-tree
# set: full 6.12/ours
# limit: 90
# splats: software-fallback-without-a-lock
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires cpus:2
bind_device 0
sample_data 0
step "every decompression is refused with an analytics error: software has to do it"
fault 0 '{"opcode": 66}' '{"status": 10, "error_code": 13}'
job="mode=decompress comp=zlib decomp=deflate-iaa pattern=data streams=16 threads=2 cpus=0-1 stuck_ms=3000"

step "one CPU"
load_run 0 60 "$job threads=1 cpus=0 count=100"
load_clean 0

if [[ $kernel/$driver == 6.12/in-tree ]]; then
	step "two CPUs, until something goes wrong"
	load_start 0 "$job seconds=$((60 * scale))"
	# shellcheck disable=SC2317
	went_wrong() {
		(($(load_value 0 mismatches) + $(load_value 0 decomp_failed) + $(load_value 0 stuck) > 0)) ||
			dmesg | grep -qE 'Oops|soft lockup|general protection'
	}
	wait_for 60 "software decompression goes wrong" went_wrong
	sed 's/^/   /' "$load_dir/0/result"
	load_stop 0
	weakness "wrong data" "software fallback on two CPUs at once: $(load_value 0 mismatches) wrong pages, $(load_value 0 decomp_failed) errors in $(load_value 0 rounds)"
	exit 0
fi

step "two CPUs"
load_run 0 60 "$job count=1500"
load_clean 0
check "decompressions" "$(load_value 0 decomp_ok)" -eq 3000
check "descriptors that were refused" "$(counter 0 status.0x0a)" -ge 3000
