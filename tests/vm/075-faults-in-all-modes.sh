#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the faults of 074-faults and some more, each in each completion mode
# drivers: ours
# set: full
# limit: 1200
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/vm/faults.sh
. "$(dirname "$0")/faults.sh"

begin_faults
for each in "${cases[@]}"; do
	IFS='|' read -r _ modes _ <<<"$each"
	for mode in $modes; do run_case "$mode" "$each"; done
done
