#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: requests while no WQ is left (in-tree: errors, and what was compressed cannot be read)
# compare: requests while no WQ is left
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
load_start 0 mode=decompress alg=deflate-iaa hold=1 threads=2 count=100 pattern=mixed
load_prepared 0
# Held by somebody, the algorithm stays.
load_start 1 comp=deflate-iaa decomp=zlib pattern=mixed threads=2 count=50 hold=1
load_prepared 1
disable_wq "$(iax_of 0)" 0
before=$(counter 0 accepted)
load_go 0
load_wait 0 60
if [[ $driver == in-tree ]]; then
	# -ENODEV, or -ENXIO where the table of WQs is still there, empty.
	refused=$(($(load_value 0 decomp_errno_19) + $(load_value 0 decomp_errno_6)))
	check "requests that failed for want of a WQ" $refused -eq 200
	weakness "-ENODEV" "without a WQ decompression fails, though software could do it"
	load_stop 1
else
	load_clean 0
	check "decompressions" "$(load_value 0 decomp_ok)" -eq 200
	step "compression as well, readable by others"
	load_go 1
	load_wait 1 60
	load_clean 1
fi
check "descriptors" $(($(counter 0 accepted) - before)) -eq 0
