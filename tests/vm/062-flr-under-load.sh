#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a function level reset while a request is in flight (in-tree: polls for ever, or fails from then on)
# compare: a function level reset under load
# boot: own
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 90
# splats: request-freed-with-its-work-queue polls-for-ever
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
sys=/sys/bus/pci/devices/$(pci_devices | head -n 1)
echo flr >"$sys/reset_method" || fail "FLR cannot be chosen"
load_start 0 pattern=mixed cpus=1 seconds=600 stuck_ms=$((8000 * scale))
load_goes_on 0 10
# So one is in flight.
fault 0 '{}' '{"delay_ms": 100}'
reset() { echo 1 >"$sys/reset"; }
must within 30 reset
ctl 0 fault-clear >/dev/null
load_goes_on 0 100
load_stop 0
settle 0 60 'oops|hangs|-E*' "requests that a function level reset takes are not given up, and later ones fail"
