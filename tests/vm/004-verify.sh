#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: verify_compress on and off: one more descriptor for each compression, or none
# set: full 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
for verify in 1 0; do
	step "verify_compress $verify"
	set_attribute verify_compress $verify
	bind_device 0
	ctl 0 counters-reset >/dev/null
	load_run 0 30 mode=compress pattern=text threads=2 count=50
	load_clean 0
	check "compressions" "$(compressions 0)" -eq 100
	check "decompressions to verify them" "$(decompressions 0)" -eq $((verify * 100))
	load_run 0 30 pattern=mixed threads=2 count=50
	load_clean 0
	unbind
	if [[ $driver == in-tree ]]; then
		# It cannot be bound a second time (021-bind-again).
		reload_modules
	fi
done
