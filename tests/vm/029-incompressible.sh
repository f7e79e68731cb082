#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: pages that do not compress are told apart (in-tree: as -E2BIG, which zswap counts as a failure)
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
load_run 0 30 mode=compress pattern=random room=4096 threads=2 count=50
check "bytes written beside the buffer" "$(load_value 0 overruns)" -eq 0
if [[ $driver == in-tree ]]; then
	check "requests that ended with -E2BIG" "$(load_value 0 comp_errno_7)" -eq 100
	weakness "what does not fit is -E2BIG, where users look for -ENOSPC"
else
	check "requests that ended with -ENOSPC" "$(load_value 0 comp_errno_28)" -eq 100
fi
