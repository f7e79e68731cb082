#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: faults of the device while zswap swaps, each in one completion mode: no page is lost, it serves again
# drivers: ours
# set: full 6.12/ours
# limit: 300
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/vm/faults.sh
. "$(dirname "$0")/faults.sh"

begin_faults
for each in "${cases[@]}"; do
	IFS='|' read -r _ _ mode _ <<<"$each"
	[[ $mode == - ]] || run_case "$mode" "$each"
done
