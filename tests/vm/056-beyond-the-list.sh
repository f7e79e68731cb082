#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: lengths beyond the scatterlists are refused (in-tree: memory behind them is read and written)
# compare: lengths beyond the scatterlist
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute verify_compress 0
bind_device 0
ctl 0 counters-reset >/dev/null
load_run 0 30 mode=compress pattern=random room=2000 dlen_lie=4096 count=5
written=$(load_value 0 overruns) refused=$(load_value 0 comp_errno_22)
load_run 0 30 mode=compress pattern=text slen_lie=4096 count=5
refused=$((refused + $(load_value 0 comp_errno_22)))
read=$(counter 0 bytes_in)

if [[ $driver == in-tree ]]; then
	check "destinations that were written beyond their end" "$written" -eq 5
	check "bytes that the device read, of 40960" "$read" -eq 61440
	weakness "writes and reads beyond" "lengths are believed: the device reads and writes what lies behind the scatterlist"
else
	check "requests that were refused" $refused -eq 10
	check "destinations that were written beyond their end" "$written" -eq 0
	check "bytes that the device read" "$read" -eq 0
fi
