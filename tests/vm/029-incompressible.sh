#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: pages that do not compress are told apart (in-tree: as -E2BIG, which zswap counts as a failure)
# compare: pages that do not compress
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

refused() { # MODE ERRNO
	step "$1"
	load_run 0 30 mode=compress pattern=random room=4096 threads=2 count=50
	check "bytes written beside the buffer" "$(load_value 0 overruns)" -eq 0
	check "requests that ended with $(errno_name "$2")" "$(load_value 0 "comp_errno_$2")" -eq 100
}

begin
set_attribute sync_mode async_irq
bind_device 0
if [[ $driver == in-tree ]]; then
	refused async_irq 5
	reload_modules
	bind_device 0
	refused sync 7
	weakness "-E2BIG, -EIO" "what does not fit is -E2BIG or, in async_irq, -EIO, where users look for -ENOSPC"
else
	refused async_irq 28
	set_attribute sync_mode sync
	refused sync 28
fi
