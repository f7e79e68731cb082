#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: every status that a completion can carry (in-tree: only one is rescued in software)
# compare: every status that a record can carry
# set: full 6.12/ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
statuses=(02 03 04 05 08 0a 0b 10 11 13 16 1a 1c 20 24 30 ff)
# sweep OP OPCODE JOB: one request for each status, as STATUS=ERRNO in the order of the statuses; 0
# where the request succeeded all the same. Each rule serves for one descriptor, in their order.
sweep() {
	local status errno rules=()
	for status in "${statuses[@]}"; do
		rules+=("{\"command\": \"fault-add\", \"match\": {\"opcode\": \"$2\"}, \"when\": {\"count\": 1},
			\"fault\": {\"status\": \"0x$status\", \"error_code\": 13}}")
	done
	ctl 0 fault-clear "${rules[@]}" >/dev/null
	for status in "${statuses[@]}"; do
		load_run 0 30 "$3 count=1" >/dev/null
		load_is 0 mismatches 0 || fail "status $status: wrong data$(load_errnos 0)"
		errno=$(sed -n "s/^$1_errno_\([0-9]*\)=1/\1/p" "$load_dir/0/result")
		printf '%s=%s ' "$status" "${errno:-0}"
	done
}
decompression=$(sweep decomp decompress "mode=decompress comp=zlib decomp=deflate-iaa streams=1 pattern=text") || exit 1
compression=$(sweep comp compress "mode=compress pattern=text") || exit 1
check "faults carried out" "$(counter 0 faults)" -eq 34

case $driver in
in-tree)
	same "decompression" "$decompression" \
		"02=22 03=22 04=22 05=22 08=22 0a=0 0b=75 10=22 11=22 13=22 16=22 1a=22 1c=22 20=22 24=110 30=22 ff=22 "
	same "compression" "$compression" \
		"02=22 03=22 04=22 05=22 08=22 0a=22 0b=75 10=22 11=22 13=22 16=22 1a=22 1c=22 20=22 24=110 30=22 ff=22 "
	weakness "errors" "of 17 statuses software rescues one in decompression and none in compression"
	;;
*)
	# Software has the last word, on what does not fit as well.
	same "decompression" "$decompression" \
		"02=0 03=0 04=0 05=0 08=0 0a=0 0b=0 10=0 11=0 13=0 16=0 1a=0 1c=0 20=0 24=0 30=0 ff=0 "
	same "compression" "$compression" \
		"02=0 03=0 04=0 05=0 08=0 0a=0 0b=0 10=0 11=0 13=0 16=0 1a=0 1c=0 20=0 24=0 30=0 ff=0 "
	;;
esac
