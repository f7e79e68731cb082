#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: streams and exit status byte for byte, a terminal; what hangs is ended, what warns fails
# drivers: 7.3/none
# boot: host
# limit: 150
# shellcheck disable=SC2016 source=tests/vm/host.sh
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
guest --timeout $((15 * scale)) -- sh -c 'touch /project/README.md && echo touched; sleep 1000' \
	</dev/null >"$logs/out" 2>"$logs/err"
status=$?
cat "$logs/err"
same "exit status at the deadline" $status 124
same "output" "$(<"$logs/out")" ""
grep -q "deadline of $((15 * scale)) s passed" "$logs/err" || fail "the testbed does not say why"

step "a warning of the kernel fails the run, whatever the command says; --log keeps the log"
rm -f "$logs/kernel"
guest --log "$logs/kernel" -- sh -c 'printf "<4>WARNING: CPU: 0 PID: 1 at here.c:1 it+0x1/0x2\n" >/dev/kmsg' \
	</dev/null >"$logs/out" 2>"$logs/err"
same "exit status" $? 123
grep -q 'WARNING: CPU: 0 PID: 1 at here.c:1' "$logs/err" || fail "the testbed does not show the warning"
grep -q 'WARNING: CPU: 0 PID: 1 at here.c:1' "$logs/kernel" || fail "the log that was asked for lacks the warning"

step "an interactive guest"
"$vm_dir/type-into" $((120 * scale)) 'testbed:/project# ' 'tty; echo $((6 * 7)) CPUs=$(nproc)' 'exit 5' -- \
	"$project/scripts/testbed/shell" --kernel "$kernel" --driver none --name "041-$$" >"$logs/typescript" 2>&1
status=$?
tail -n 12 "$logs/typescript"
same "exit status" $status 5
grep -q '42 CPUs=2' "$logs/typescript" || fail "the guest's shell does not answer"
grep -q '/dev/hvc0' "$logs/typescript" || fail "the guest's shell has no terminal"

step "what cannot be"
for words in "--kernel 5.10" "--smp 0" "--node speed=1" "--allow-splat nothing" "--bogus"; do
	# shellcheck disable=SC2086
	guest $words -- true </dev/null >"$logs/out" 2>&1
	same "exit status of $words" $? 125
done
exit 0
