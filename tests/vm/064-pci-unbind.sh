#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the PCI function taken from idxd while a request is in flight (in-tree: fails)
# compare: the PCI function unbound under load
# boot: own
# append: irqaffinity=0 isolcpus=managed_irq,domain,1 page_poison=1
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# splats: request-freed-with-its-work-queue polls-for-ever idxd-removed-while-enabled
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
load_start 0 pattern=mixed cpus=1 count=2000 stuck_ms=$((8000 * scale))
load_goes_on 0 10
address=$(pci_devices | head -n 1)
unbind_function() { echo "$address" >/sys/bus/pci/drivers/idxd/unbind; }
# idxd of 7.3 oopses here, whatever the driver is, and who does it dies of it.
within 30 unbind_function || oopsed || fail "the function is not unbound"
wait_for 60 "the load ends" load_ended 0
settle 0 60 'oops|-E*' "without its device requests fail"
! oopsed || did "idxd oopses"
