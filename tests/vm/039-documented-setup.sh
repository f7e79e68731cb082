#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the commands in Documentation/iaa-crypto.rst do what it says, word for word
# drivers: ours
# set: full 6.12/ours
# limit: 90
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

rst=$project/Documentation/iaa-crypto.rst
# documented N: the commands of the document's Nth literal block with a shell's lines, with this
# guest's names in them.
documented() {
	awk -v want="$1" '
		block && /^[^ ]/ {block = armed = 0}
		!block && /::$/ {armed = 1; next}
		armed && /^    / {if (!block) {block = 1; n++}}
		block && n == want {print substr($0, 5)}' "$rst" |
		sed "s/iax1/$iax/g; s/wq1\.0/wq$n.0/g; s/engine1\.0/engine$n.0/g"
}
run_documented() {
	documented "$1" >/tmp/documented
	sed 's/^/   | /' /tmp/documented
	grep -q "$2" /tmp/documented || fail "block $1 of the document is not about $2"
	bash -e /tmp/documented || fail "the commands fail"
}
served() {
	wait_for 60 "the self-test of deflate-iaa passes" selftest_passed
	device_serves
}

begin
iax=$(iax_of 0)
n=${iax#iax}
step "with accel-config, from unloaded modules"
remove_module acomp_load
remove_module iaa_crypto
remove_module idxd
run_documented 1 'modprobe'
echo $((1000 * scale)) >/sys/module/iaa_crypto/parameters/timeout_ms
load_acomp_load
served

step "with sysfs alone"
unbind
run_documented 2 'drivers/crypto/bind'
served

step "disabled and enabled again"
run_documented 3 'disable-wq'
served

step "zswap"
run_documented 4 'zswap'
same "zswap's compressor" "$(</sys/module/zswap/parameters/compressor)" deflate-iaa
same "zswap is enabled" "$(</sys/module/zswap/parameters/enabled)" Y
echo never >/sys/kernel/mm/transparent_hugepage/enabled
must modprobe brd rd_nr=1 rd_size=65536
must mkswap /dev/ram0 >/dev/null
must swapon /dev/ram0
before=$(compressions 0)
out=$(vmstat zswpout)
mapfile -t files < <(sample_files)
memhog --mb 8 --threads 1 --data "${files[@]}" --cgroup /sys/fs/cgroup/memhog --limit-mb 6 --page-out ||
	fail "memhog: exit status $?"
check "pages into zswap" $(($(vmstat zswpout) - out)) -gt 0
check "compressions by the device" $(($(compressions 0) - before)) -gt 0
