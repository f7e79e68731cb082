#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: four devices at once: all are configured, serve and are disabled again
# smp: 4
# numa: 2
# device: --profile spr node=0
# device: --profile spr node=0
# device: --profile spr node=1
# device: --profile gnr node=1
# set: full 6.12/ours
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:4 cpus:4
for n in 0 1 2 3; do
	bind_device $n wqs=2
done
for n in 0 1 2 3; do ctl $n counters-reset >/dev/null; done
load_run 0 120 pattern=mixed threads=8 cpus=0-3 count=25
load_clean 0
used=0
for n in 0 1 2 3; do
	count=$(compressions $n)
	echo "   compressions by device $n: $count"
	((count == 0)) || used=$((used + 1))
	check "descriptors that device $n lost" "$(counter $n dropped)" -eq 0
done
check "devices used" $used -eq 4
unbind
