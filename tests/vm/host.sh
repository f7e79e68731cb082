# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2317
# For tests that run beside the guest (boot: host). The same file holds the guest's half, behind
# `if in_guest`.

# shellcheck source=tests/vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

in_guest() { [[ -e /run/testbed/config ]]; }

# The rest is for the host.
in_guest && return 0

logs=${IAA_TEST_LOGS:-$project/build/vm-logs/${0##*/}-$kernel-$driver}
rm -rf "$logs"
mkdir -p "$logs"
guest_output=$logs/output
guest_pid='' guest_status='' guest_folder=''
trap 'end_guest' EXIT

# start_guest OPTION...: boots a guest with one device in the background, to run this file.
start_guest() {
	local name
	name=host-$$-$(basename "$0" .sh)
	"$project/scripts/testbed/run" --kernel "$kernel" --driver "$driver" --device "--profile spr" \
		--allow-splat deadline-timer-on-a-starved-cpu \
		--iaa-device "$build/device/iaa-device" --env "IAA_BUILD=${build#"$project"/}" \
		--env "IAA_KERNEL=$kernel" --env "IAA_DRIVER=$driver" --env "IAA_SCALE=$scale" --name "$name" \
		"$@" -- "tests/vm/$(basename "$0")" </dev/null >"$guest_output" 2>&1 &
	guest_pid=$!
	wait_for 60 "the testbed makes its folder" find_guest_folder "$name"
}

find_guest_folder() {
	for guest_folder in "$project/build/vm-logs/$1"-*; do [[ ! -d $guest_folder ]] || return 0; done
	return 1
}

# wait_for_line SECONDS TEXT: until the guest prints it, or has ended.
wait_for_line() {
	line_or_end() { grep -qF "$1" "$guest_output" || ! kill -0 "$guest_pid" 2>/dev/null; }
	wait_for "$1" "the guest says '$2'" line_or_end "$2"
	grep -qF "$2" "$guest_output" || fail "the guest ended before it said '$2': $(tail -n 20 "$guest_output")"
}

# wait_for_guest SECONDS: until it has ended; sets guest_status.
wait_for_guest() {
	ended() { ! kill -0 "$guest_pid" 2>/dev/null; }
	wait_for "$1" "the guest ends" ended
	wait "$guest_pid"
	guest_status=$?
	guest_pid=''
}

end_guest() {
	[[ $guest_pid ]] || return 0
	kill -TERM "$guest_pid" 2>/dev/null
	wait "$guest_pid" 2>/dev/null
}

# child_of PID NAME: the first process of that name among PID's descendants.
child_of() {
	local each
	for each in $(pgrep -P "$1"); do
		if [[ $(<"/proc/$each/comm") == "$2" ]]; then
			echo "$each"
			return 0
		fi
		child_of "$each" "$2" && return 0
	done
	return 1
}
