#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a function level reset returns the device to its state after power-on, and it works again
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

step "reset of the idle device"
lspci -s "$address" -vv | grep -q 'FLReset+' || fail "the function does not announce FLR"
echo flr >"$sys/reset_method" || fail "FLR cannot be chosen"
echo 1 >"$sys/reset" || fail "the reset failed"
same "the device in the model" "$(device_state 0 .state)" disabled

step "idxd finds it again and it works"
reload_modules
before=$(compressions 0)
bind_device 0
load_run 0 30 pattern=mixed threads=2 count=40
load_clean 0
check "compressions after the reset" $(($(compressions 0) - before)) -ge 80
