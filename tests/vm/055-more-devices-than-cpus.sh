#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: three devices on two CPUs (in-tree: one of them is never used)
# compare: 3 devices, 2 CPUs
# device: --profile spr
# device: --profile spr
# device: --profile gnr
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:3
for n in 0 1 2; do bind_device $n; done
for n in 0 1 2; do ctl $n counters-reset >/dev/null; done
load_run 0 60 pattern=mixed threads=4 cpus=0-1 count=40
load_clean 0
unused=0
for n in 0 1 2; do
	count=$(compressions $n)
	echo "   compressions by device $n: $count"
	((count)) || unused=$((unused + 1))
done
if [[ $driver == in-tree ]]; then
	check "devices that nobody uses" $unused -eq 1
	weakness "one is idle" "with more devices than CPUs some are never used"
else
	check "devices that nobody uses" $unused -eq 0
fi
