#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: WQs are enabled while somebody else disables their device, under load: one of them wins, no request is lost
# drivers: ours
# set: full
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
n=${iax#iax}
bind_device 0 wqs=2
load_start 0 pattern=mixed threads=2 seconds=600 stuck_ms=$((20000 * scale))
load_goes_on 0 20
# What fails here is refused: the other one was faster.
enabling() {
	local i wq
	for ((i = 0; i < 20; i++)); do
		echo 0 >"$dsa/devices/engine$n.0/group_id"
		for wq in 0 1; do
			accel-config config-wq "$iax/wq$n.$wq" --group-id=0 --wq-size=16 --priority=10 --type=kernel \
				--name=iaa_crypto --driver-name=crypto --mode=dedicated
		done
		accel-config enable-device "$iax"
		for wq in 0 1; do accel-config enable-wq "$iax/wq$n.$wq"; done
	done
}
disabling() {
	local i
	for ((i = 0; i < 60; i++)); do
		echo "$iax" >$dsa/drivers/idxd/unbind
		nap 0.0$((RANDOM % 10))
	done
}
enabling >/tmp/enabling 2>&1 &
enabling=$!
disabling >/dev/null 2>&1 &
disabling=$!
wait $enabling $disabling
grep -c 'enabled 1 wq' /tmp/enabling
load_goes_on 0 20
load_stop 0
load_wait 0 30
load_clean 0
unbind
bind_device 0 wqs=2
device_serves
