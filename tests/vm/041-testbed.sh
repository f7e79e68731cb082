#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the testbed passes streams and exit status on byte for byte, and ends what hangs
# drivers: none
# boot: host
# limit: 150
# shellcheck source=tests/vm/host.sh
. "$(dirname "$0")/host.sh"

guest() { "$project/scripts/testbed/run" --kernel "$kernel" --driver none --name "041-$$" "$@"; }

step "a megabyte of noise there and back, an exit status, and what is left running"
head -c 1000000 /dev/urandom >"$logs/in"
guest --timeout $((60 * scale)) --env 'WORDS=two words' -- \
	bash -c 'cat; printenv WORDS >&2; sleep 1000 & exit 7' <"$logs/in" >"$logs/out" 2>"$logs/err"
status=$?
cat "$logs/err"
same "exit status" $status 7
cmp "$logs/in" "$logs/out" || fail "the output is not the input"
same "standard error" "$(<"$logs/err")" "two words"

step "a command that does not end, the project's sources out of its reach"
guest --timeout $((20 * scale)) -- sh -c 'touch /project/README.md && echo touched; sleep 1000' \
	</dev/null >"$logs/out" 2>"$logs/err"
status=$?
cat "$logs/err"
same "exit status at the deadline" $status 124
same "output" "$(<"$logs/out")" ""
grep -q "deadline of $((20 * scale)) s passed" "$logs/err" || fail "the testbed does not say why"

step "a signal to the testbed"
"$project/scripts/testbed/run" --kernel "$kernel" --driver none --name "041-$$" -- \
	sh -c 'echo up; sleep 1000' </dev/null >"$logs/out" 2>"$logs/err" &
guest_pid=$!
# shellcheck disable=SC2317  # called by wait_for
up() { grep -q up "$logs/out"; }
wait_for 60 "the guest is up" up
qemu=$(child_of "$guest_pid" qemu-system-x86) || fail "there is no QEMU below the testbed"
kill -TERM "$guest_pid"
wait "$guest_pid"
status=$?
guest_pid=''
same "exit status" $status 143
kill -0 "$qemu" 2>/dev/null && fail "QEMU still runs"

step "what cannot be"
for words in "--kernel 5.10" "--smp 0" "--node speed=1" "--allow-splat nothing" "--bogus"; do
	# shellcheck disable=SC2086
	guest $words -- true </dev/null >"$logs/out" 2>&1
	same "exit status of $words" $? 125
done
exit 0
