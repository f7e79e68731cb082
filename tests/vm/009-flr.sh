#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a function level reset returns the device to its state after power-on, and it works again
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
address=$(pci_devices | head -n 1)
sys=/sys/bus/pci/devices/$address
same "how the function can be reset" "$(tr ' ' '\n' <"$sys/reset_method" | head -n 1)" flr
bind_device 0
load_run 0 30 pattern=text count=20
load_clean 0
unbind

step "a register that the driver sets, which only the reset can clear"
remove_module acomp_load
remove_module iaa_crypto
remove_module idxd
genctrl=$(($(cut -d' ' -f1 "$sys/resource" | head -n 1) + 0x88))
setpci -s "$address" COMMAND=0006
must busybox devmem $genctrl 32 1
same "GENCTRL before" "$(busybox devmem $genctrl 32)" 0x00000001

step "reset"
lspci -s "$address" -vv | grep -q 'FLReset+' || fail "the function does not announce FLR"
echo flr >"$sys/reset_method" || fail "FLR cannot be chosen"
echo 1 >"$sys/reset" || fail "the reset failed"
setpci -s "$address" COMMAND=0006
same "GENCTRL after" "$(busybox devmem $genctrl 32)" 0x00000000

step "idxd finds it again and it works"
remove_module idxd_bus
load_idxd
load_driver
load_acomp_load
before=$(compressions 0)
bind_device 0
load_run 0 30 pattern=mixed threads=2 count=40
load_clean 0
check "compressions after the reset" $(($(compressions 0) - before)) -ge 80
