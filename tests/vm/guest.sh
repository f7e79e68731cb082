#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs tests one after the other inside a guest, for tests/vm/run, which reads the lines beginning
# with @@vm from its output:
#
#   @@vm ready                   the guest is up
#   @@vm begin NAME              everything behind it, to the end line, is NAME's output
#   @@vm end NAME STATUS         0 passed, 77 skipped, 124 out of time, else failed
#   @@vm again NAME              NAME found the guest unfit, and wants one of its own
#   @@vm unfit NAME              the same behind the last test, NAME: it left what cannot be cleared away
#   @@vm stop                    the guest is not fit for another test
#
# guest.sh NAME:SECONDS...
set -uo pipefail
here=$(dirname "$(realpath "$0")")
tests=$(realpath "$here/../../${IAA_VM_TESTS:-tests/vm}")

# On a line of its own, however the test's output ends.
say() { printf '\n@@vm %s\n' "$*"; }

# The test's part of the kernel's log lies between two marks, which also reach the console.
mark() { printf '<5>iaa-test: %s\n' "$*" >/dev/kmsg; }
log_since() { dmesg | awk -v mark="iaa-test: begin $1" 'index($0, mark) {text = ""} {text = text $0 "\n"} END {printf "%s", text}'; }

# run_test FILE, in a session of its own, so that whatever it leaves in the background ends with it.
run_test() {
	IAA_TEST=$name setsid timeout -k 15 "$limit" bash "$@" </dev/null 2>&1 &
	local pid=$!
	wait "$pid"
	status=$?
	# 137: it took a second signal to end it, so that it says nothing of its own.
	((status != 137)) || status=124
	# By its group: looking for processes by name would hang at one that the kernel has broken.
	kill -KILL -- "-$pid" 2>/dev/null
}
in_lane() { [[ ! ${IAA_VM_LANE:-} ]] || run_test "$here/lane.sh" "$1"; }

say ready
ran=0
for each; do
	name=${each%:*} limit=${each##*:}
	say "begin $name"
	mark "begin $name"
	status=0
	# A lane is looked at beside the tests in it.
	((ran)) || in_lane begin
	if ((status == 0)); then
		run_test "$tests/$name.sh"
		((status)) || in_lane end
	fi
	if ((status != 0 && status != 77)); then
		echo "---- the kernel's log since the test began ----"
		log_since "$name" | tail -n 120
	fi
	mark "end $name"
	if ((status == 99 && ran)); then
		say "again $name"
		break
	fi
	ran=1
	say "end $name $status"
	# What is still at work, and a kernel that has oopsed or warned, is not to judge the next test by.
	if ((status == 124 || $(</proc/sys/kernel/tainted) & 0x280)); then
		say stop
		exit 0
	fi
done
# What no test comes after to find.
if [[ ${IAA_VM_LEAVE_CLEAN:-} && $ran == 1 ]]; then
	# shellcheck disable=SC2031  # what lib.sh calls so stays in the subshell
	(
		# shellcheck source=tests/vm/lib.sh disable=SC2034
		. "$here/lib.sh"
		own_failure=1
		clean_slate
	) || say "unfit $name"
fi
exit 0
