#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the runner tells passed, skipped, failed, warned, hung and dead tests apart, and goes on
# drivers: 7.3/none
# boot: host
# limit: 600
# set: full
# shellcheck source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

IAA_VM_TESTS=tests/vm/meta "$project/tests/vm/run" >"$logs/tap"
status=$?
cat "$logs/tap"
same "the runner's exit status" $status 1
same "its last line" "$(tail -n 1 "$logs/tap")" "2 passed, 5 failed, 1 skipped"
expect() { grep -qE "$1" "$logs/tap" || fail "the runner does not say: $1"; }
expect '^1\.\.8$'
expect '^ok 1 - vm/901-passes \(7.3, none\) # [0-9]+ s, test 1 of 8$'
expect '^ok 2 - vm/902-skips .* # SKIP there is no reason to run$'
expect '^not ok 3 - vm/903-fails'
expect '^#   one is not two$'
expect '^#   kernel report: WARNING: CPU: 0 PID: 1 at meta.c:1'
expect '^  vm/905-hangs .*: not done within its time limit$'
expect '^  vm/906-dies .*: the guest ended in the middle of the test'
expect '^  vm/907-panics .*: the guest ended in the middle of the test'
expect '^ok 8 - vm/908-passes-too'
