#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: CPUs that were not there at boot come and go under load
# compare: CPUs come and go under load
# boot: own
# smp: 4
# append: maxcpus=1
# limit: 90
# set: full
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
cpu() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online" || fail "CPU $1 does not become $2"; }
same "CPUs that are online" "$(</sys/devices/system/cpu/online)" 0
bind_device 0
load_start 0 pattern=mixed threads=6 seconds=600 stuck_ms=$((20000 * scale))
load_goes_on 0 20
for _ in 1 2; do
	for n in 1 2 3; do
		cpu $n 1
		load_goes_on 0 20
	done
	for n in 3 2 1; do
		cpu $n 0
		load_goes_on 0 20
	done
done
for n in 1 2 3; do cpu $n 1; done
load_goes_on 0 100
load_stop 0
settle 0 30 'pass' ""
for n in 1 2 3; do
	check "operations on CPU $n" "$(load_value 0 cpu${n}_ok)" -gt 0
done
