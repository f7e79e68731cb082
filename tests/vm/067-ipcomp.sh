#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: IPCOMP with deflate while the WQ is full (in-tree on 7.3: gets the hardware, and sleeps in a softirq)
# compare: IPCOMP with deflate, the WQ full
# boot: own in-tree
# set: full 6.12/in-tree 7.3/in-tree 6.12/ours
# limit: 90
# splats: sleeps-where-it-may-not
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
requires ip module:ipcomp module:veth
# secure NETNS LOCAL REMOTE: the one side compresses what it sends to the other.
secure() {
	local each in="src $3 dst $2" out="src $2 dst $3"
	for each in "$in" "$out"; do
		# shellcheck disable=SC2086
		must ip -n "$1" xfrm state add $each proto comp spi 0x1234 mode transport comp deflate
	done
	# shellcheck disable=SC2086
	must ip -n "$1" xfrm policy add $out dir out tmpl $out proto comp mode transport
	# shellcheck disable=SC2086
	must ip -n "$1" xfrm policy add $in dir in tmpl $in proto comp mode transport level use
}
set_attribute verify_compress 0
bind_device 0 size=1
trap 'ip netns del here; ip netns del there' EXIT
must ip netns add here
must ip netns add there
must ip -n here link add v0 type veth peer name v1 netns there
must ip -n here addr add 10.9.0.1/24 dev v0
must ip -n there addr add 10.9.0.2/24 dev v1
must ip -n here link set v0 up
must ip -n there link set v1 up
secure here 10.9.0.1 10.9.0.2
secure there 10.9.0.2 10.9.0.1
ping() { must ip netns exec here busybox ping -c "$1" -i 0.05 -W 5 -s 1400 10.9.0.2; }

step "while the WQ is idle"
before=$(compressions 0)
ping 5
used=$(($(compressions 0) - before))
check "packets that were compressed on their way" \
	"$(ip -n there -s xfrm state | grep -cE '^[[:space:]]*[1-9][0-9]*\(bytes\)')" -eq 2

step "while it is full"
fault 0 '{}' '{"delay_ms": 5}'
load_start 0 pattern=mixed threads=2 cpus=0-1 seconds=600 stuck_ms=$((20000 * scale))
for ((i = 0; i < 10; i++)); do
	warned || ping 5
done
load_stop 0
settle 0 60 'kernel warning|pass' "deflate for packets is the hardware's, which sleeps where packets are handled"
[[ $driver == in-tree ]] || check "packets that the device compressed" $used -eq 0
