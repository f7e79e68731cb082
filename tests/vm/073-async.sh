#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: sync_mode async: the self-test passes and zswap works (in-tree: reads back as sync, and is that)
# compare: sync_mode async
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
echo async >$crypto_driver/sync_mode || fail "sync_mode does not take async"
mode=$(<$crypto_driver/sync_mode)
bind_device 0
set_zswap deflate-iaa
mapfile -t files < <(sample_files)
must memhog --mb 4 --page-out --data "${files[@]}"
check "compressions by the device" "$(compressions 0)" -ge 900
must swapoff /dev/ram0
if [[ $driver == in-tree ]]; then
	same sync_mode "$mode" sync
	weakness "is sync" "async is taken, and means sync"
else
	same sync_mode "$mode" async
fi
