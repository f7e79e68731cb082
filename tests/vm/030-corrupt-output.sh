#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: verification catches a corrupted compression (in-tree: the request fails)
# compare: a corrupted compression, verified
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute verify_compress 1
bind_device 0
fault 0 '{"opcode": 67}' '{"corrupt": {"offset": 5, "flip": 64, "crc": "stale"}}' '{"every": 4}'
load_run 0 60 pattern=text threads=2 count=40
check "compressions that were corrupted" "$(counter 0 faults)" -ge 15
check "wrong data" "$(load_value 0 mismatches)" -eq 0
if [[ $driver == in-tree ]]; then
	check "requests that failed" "$(load_value 0 comp_errno_22)" -ge 15
	weakness "-EINVAL" "a corrupted compression is noticed, and the request fails though software could do it"
else
	load_clean 0
fi
