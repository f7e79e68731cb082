#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a device on a NUMA node without CPUs, and CPUs on a node without a device: all serve and are served
# compare: NUMA nodes without CPUs, without a device
# node: cpus=0-1,memory=512M
# node: memory=256M
# node: cpus=2-3,memory=256M
# device: --profile spr node=0
# device: --profile gnr node=1
# limit: 60
# set: full
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:2 cpus:4
for n in 0 1; do
	node=$(<"$dsa/devices/$(iax_of $n)/numa_node")
	cpus[n]=$(<"/sys/devices/system/node/node$node/cpulist")
	bind_device $n
done
same "CPUs on the devices' nodes" "${cpus[0]} ${cpus[1]}" "0-1 "
for n in 0 1; do ctl $n counters-reset >/dev/null; done
load_run 0 90 pattern=mixed threads=4 cpus=0-3 count=40
load_clean 0
for cpu in 0 1 2 3; do
	check "operations on CPU $cpu" "$(load_value 0 cpu${cpu}_ok)" -eq 80
done
for n in 0 1; do
	check "compressions by device $n" "$(compressions $n)" -ge 40
done
