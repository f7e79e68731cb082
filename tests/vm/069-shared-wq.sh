#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a shared WQ, which takes an IOMMU that this guest lacks, is refused with a reason, and nothing stays of it
# compare: a shared WQ without an IOMMU
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
wq=$iax/wq${iax#iax}.0
bind_device 0 enable=0
must accel-config config-wq "$wq" --mode=shared --threshold=8
if accel-config enable-device "$iax" 2>/dev/null && accel-config enable-wq "$wq" 2>/dev/null; then
	fail "the shared WQ is enabled"
fi
dmesg | grep -q 'No shared wq support' || fail "the kernel does not say why"
same "the WQ" "$(<"$dsa/devices/${wq#*/}/state")" disabled
step "the same WQ as a dedicated one"
[[ $(<"$dsa/devices/$iax/state") != enabled ]] || disable_device "$iax"
bind_device 0
device_serves
