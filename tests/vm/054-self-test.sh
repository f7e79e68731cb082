#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a WQ comes and goes while the self-test runs (in-tree: it fails, and the algorithm is not used)
# compare: a WQ comes and goes during the self-test
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 60
# splats: self-test-while-binding
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

self_test_failed() { dmesg | grep 'self-tests for deflate.* failed'; }
tested() { selftest_passed || self_test_failed >/dev/null; }

begin
n=$(iax_of 0 | tr -dc 0-9)
bind_device 0 wqs=2 enable=0
enable_device "iax$n"
# So the self-test lasts a while.
fault 0 '{}' '{"delay_ms": 5}'
bind_wq() { echo "wq$n.$1" >$crypto_driver/bind || fail "WQ $1 is not bound"; }
bind_wq 0
for ((round = 0; round < 12; round++)); do
	bind_wq 1
	unbind_wq "iax$n" 1
	# As name_wq, which takes too long here.
	for each in mode:dedicated priority:10 type:kernel name:iaa_crypto driver_name:crypto; do
		echo "${each#*:}" >"$dsa/devices/wq$n.1/${each%:*}" || fail "WQ 1 does not take its $each"
	done
done
wait_for 60 "the self-test ends" tested
if [[ $driver == in-tree ]] && self_test_failed; then
	weakness "self-test fails" "as a WQ goes the self-test's requests fail, and the algorithm is not used"
	exit 0
fi
ctl 0 fault-clear >/dev/null
device_serves
