#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a configuration saved by accel-config comes back from its JSON file, and works
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
iax=$(iax_of 0)
n=${iax#iax}
must accel-config config-engine "$iax/engine$n.0" --group-id=0
must accel-config config-engine "$iax/engine$n.1" --group-id=1
config_wq "$iax" 0 24 0 10
config_wq "$iax" 1 40 1 7
enable_device "$iax"
enable_wq "$iax" 0
enable_wq "$iax" 1
must accel-config save-config -s /tmp/saved.json
check "WQs in the file" "$(jq '[.. | objects | select(has("dev")) | .dev | select(startswith("wq"))] | length' \
	/tmp/saved.json)" -ge 2

step "all configuration is lost with the modules, and comes back from the file"
unbind
reload_modules
same "state and size of WQ 1 after loading idxd anew" \
	"$(<$dsa/devices/wq"$n".1/state) $(<$dsa/devices/wq"$n".1/size)" "disabled 0"
ctl 0 counters-reset >/dev/null
bind_json /tmp/saved.json
for wq in 0:24:10 1:40:7; do
	IFS=: read -r id size priority <<<"$wq"
	dir=$dsa/devices/wq$n.$id
	same "WQ $id" "$(<"$dir/state") $(<"$dir/size") $(<"$dir/priority") $(<"$dir/driver_name")" \
		"enabled $size $priority crypto"
	same "WQ $id's group" "$(<"$dir/group_id")" "$id"
done
must accel-config save-config -s /tmp/again.json
cmp /tmp/saved.json /tmp/again.json || fail "saved again, the configuration is another one: $(diff /tmp/saved.json /tmp/again.json)"

load_run 0 60 pattern=mixed threads=2 count=40
load_clean 0
check "descriptors of WQ 0" "$(counter 0 wq.0.completed)" -ge 20
check "descriptors of WQ 1" "$(counter 0 wq.1.completed)" -ge 20
