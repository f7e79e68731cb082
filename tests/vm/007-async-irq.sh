#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: async_irq with two WQs: each request ends by an interrupt, the data is right
# set: full 6.12/ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
set_attribute sync_mode async_irq
set_attribute verify_compress 0
bind_device 0 wqs=2
ctl 0 counters-reset >/dev/null
load_run 0 90 pattern=mixed threads=6 count=50
load_clean 0
check "descriptors" "$(counter 0 completed)" -eq 600
check "interrupts" "$(counter 0 interrupts)" -eq 600
for wq in 0 1; do
	check "descriptors of WQ $wq" "$(counter 0 wq.$wq.completed)" -ge 100
	check "interrupts of WQ $wq" "$(counter 0 wq.$wq.interrupts)" -eq "$(counter 0 wq.$wq.completed)"
done
check "interrupts that the kernel took for them" \
	"$(awk '/idxd-portal/ {for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i} END {print n + 0}' /proc/interrupts)" -ge 1

if [[ $driver == ours ]]; then
	step "with verification: the compression tells of its end, and so does what reads it back"
	set_attribute verify_compress 1
	ctl 0 counters-reset >/dev/null
	load_run 0 90 pattern=mixed threads=6 count=50
	load_clean 0
	check "descriptors" "$(counter 0 completed)" -eq 900
	check "interrupts" "$(counter 0 interrupts)" -eq 900
fi
