#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: both generations of the device: version 1, and version 2 with its capabilities
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires device:2
spr=$(iax_of 0)
gnr=$(iax_of 1)
same "the first device's version" "$(<$dsa/devices/"$spr"/version)" 0x100
same "the second device's version" "$(<$dsa/devices/"$gnr"/version)" 0x200
same "the first device's profile" "$(device_state 0 .profile)" spr
same "the second device's profile" "$(device_state 1 .profile)" gnr
if [[ -e $dsa/devices/$gnr/iaa_cap ]]; then
	check "header generation in the second device's iaa_cap" $((0x$(sed 's/^0x//' $dsa/devices/"$gnr"/iaa_cap) >> 8 & 1)) -eq 1
fi
step "the second generation works alone"
bind_device 1
load_run 0 60 pattern=mixed threads=2 count=50
load_clean 0
check "compressions by the second device" "$(compressions 1)" -ge 100
check "compressions by the first device" "$(compressions 0)" -eq 0
