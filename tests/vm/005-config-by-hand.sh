#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: accel-config by hand: engines, groups and several WQs; the model serves each as configured
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
n=${iax#iax}

step "two groups: WQ 0 and 1 with engines 0 and 1, WQ 2 with engine 2; the other engines in none"
for engine in 0:0 1:0 2:1; do
	must accel-config config-engine "$iax/engine$n.${engine%:*}" --group-id="${engine#*:}"
done
config_wq "$iax" 0 16 0 10
config_wq "$iax" 1 32 0 5
config_wq "$iax" 2 8 1 15
enable_device "$iax"
for wq in 0 1 2; do enable_wq "$iax" $wq; done

step "accel-config, the kernel and the model agree"
accel-config list -d "$iax" | sed '/^devices:/d' >/tmp/list.json || fail "accel-config cannot list $iax"
same "WQs that accel-config lists as enabled" \
	"$(jq -r '[.. | objects | select(has("dev") and has("size") and .state == "enabled") |
		.dev + "=" + (.size | tostring)] | sort | join(" ")' /tmp/list.json)" \
	"wq$n.0=16 wq$n.1=32 wq$n.2=8"
same "WQs that the model has enabled" "$(device_state 0 \
	'[.wqs[] | select(.state == "enabled") | "\(.wq)=\(.size)@\(.group)"] | join(" ")')" "0=16@0 1=32@0 2=8@1"
same "the device in the model" "$(device_state 0 .state)" enabled

step "every WQ takes work"
load_run 0 60 pattern=mixed threads=4 count=60
load_clean 0
for wq in 0 1 2; do
	check "descriptors of WQ $wq" "$(counter 0 wq.$wq.completed)" -ge 20
done
check "descriptors that were lost" "$(counter 0 dropped)" -eq 0

step "one WQ disabled, the others go on"
disable_wq "$iax" 1
before=$(counter 0 wq.1.accepted)
load_run 0 60 pattern=mixed threads=2 count=30
load_clean 0
check "descriptors of the disabled WQ" "$(counter 0 wq.1.accepted)" -eq "$before"

step "a group with a WQ and no engine: the device refuses to be enabled, by its own check or the kernel's"
unbind
must accel-config config-engine "$iax/engine$n.2" --group-id=-1
config_wq "$iax" 2 8 1 15
if accel-config enable-device "$iax" >/tmp/refused 2>&1; then
	fail "a device with such a group was enabled"
fi
cat /tmp/refused
grep -qi "fail" /tmp/refused || fail "accel-config gives no reason"
same "the device in the model" "$(device_state 0 .state)" disabled

step "a WQ that is larger than the device"
if accel-config config-wq "$iax/wq$n.3" --group-id=0 --wq-size=4096 --priority=10 --type=kernel \
	--name=iaa_crypto --driver-name=crypto --mode=dedicated >/tmp/refused 2>&1; then
	fail "a WQ larger than the device was accepted"
fi
