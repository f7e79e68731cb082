#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: one request that the device never answers (in-tree: polls for ever, or is disabled for good)
# compare: one request that is never answered
# boot: own in-tree
# append: irqaffinity=0 isolcpus=managed_irq,domain,1
# limit: 90
# splats: polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
load_run 0 30 pattern=mixed count=20
load_clean 0
fault 0 '{}' '{"never_complete": true}' '{"after": 20, "count": 1}'

case $kernel/$driver in
6.12/in-tree)
	load_start 0 pattern=mixed count=200 cpus=1 stuck_ms=$((4000 * scale))
	wait_for 60 "the request is stuck" load_is 0 state stuck
	check "threads that still poll" "$(load_value 0 live)" -eq 1
	check "requests that ended" $(($(load_value 0 comp_ok) + $(load_value 0 decomp_ok))) -le 20
	weakness "hangs" "one lost completion, and the CPU polls for ever"
	;;
7.3/in-tree)
	load_run 0 60 pattern=mixed count=200 cpus=1
	timed_out=$(($(load_value 0 comp_errno_110) + $(load_value 0 decomp_errno_110)))
	check "requests that timed out" $timed_out -eq 1
	check "requests that failed after it" $(($(load_value 0 comp_errno_19) + $(load_value 0 decomp_errno_19))) -ge 100
	step "the device is well again"
	load_run 0 60 pattern=mixed count=20
	check "requests that failed all the same" "$(load_value 0 comp_errno_19)" -eq 20
	weakness "off for good" "one lost completion, and the driver is off until it is loaded anew"
	;;
*)
	load_run 0 90 pattern=mixed count=200 cpus=1
	load_clean 0
	check "requests" $(($(load_value 0 comp_ok) + $(load_value 0 decomp_ok))) -eq 400
	check "descriptors that were never completed" $(($(counter 0 accepted) - $(counter 0 completed))) -eq 1
	load_run 0 60 pattern=mixed threads=2 count=50
	load_clean 0
	;;
esac
