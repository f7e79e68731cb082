#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: two NUMA nodes with devices on each: the kernel sees where they are, every CPU is served
# smp: 4
# numa: 2
# device: --profile spr node=0
# device: --profile spr node=0
# device: --profile spr node=1
# device: --profile gnr node=1
# set: full 6.12/ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:4 cpus:4
for n in 0 1 2 3; do
	same "node of device $n" "$(<$dsa/devices/"$(iax_of $n)"/numa_node)" $((n / 2))
done
step "one device of each node"
for n in 0 2; do
	bind_device $n
done
for n in 0 2; do ctl $n counters-reset >/dev/null; done
load_run 0 90 pattern=mixed threads=4 cpus=0-3 count=40
load_clean 0
for cpu in 0 1 2 3; do
	check "operations on CPU $cpu" "$(load_value 0 cpu${cpu}_ok)" -eq 80
done
for n in 0 2; do
	check "compressions by device $n" "$(compressions $n)" -ge 40
done
