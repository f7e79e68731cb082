#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's half of scripts/bench: carries out the plan in the file IAA_BENCH_PLAN, a line at a time.
#
#   mode SYNC_MODE VERIFY       binds a WQ with these attributes
#   case NAME WORD=VALUE...     measures, with the words of tests/vm/modules/acomp_count
#   symbols FILE                keeps the kernel's symbols as they are now
#
# It says, among what else is printed:
#
#   @@bench mode SYNC_MODE VERIFY [refused WHY]
#   @@bench case NAME KEY=VALUE... error=TEXT
#   @@bench done
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

plan=${IAA_BENCH_PLAN:?the file with the plan}
count_dir=/sys/kernel/debug/acomp_count

say() { printf '@@bench %s\n' "$*"; }

# The software that stands beside; of the two names of deflate, each kernel has one.
load_software() {
	must modprobe -a deflate lz4 lzo-rle zstd
	deflate=$(awk '/^driver/ && ($3 == "deflate-scomp" || $3 == "deflate-generic") {name = $3}
		/^type/ && ($3 == "scomp" || $3 == "acomp") && name {print name; exit}
		/^$/ {name = ""}' /proc/crypto)
	[[ $deflate ]] || fail "the kernel has no deflate of its own in /proc/crypto"
}

# The in-tree driver takes its attributes only while nothing is bound, and on 6.12 binds only once.
enter_mode() { # SYNC_MODE VERIFY
	local why
	ctl 0 fault-clear >/dev/null
	unbind
	remove_module iaa_crypto
	load_driver
	set_attribute verify_compress "$2"
	if ! why=$({ echo "$1" >"$crypto_driver/sync_mode"; } 2>&1); then
		say "mode $1 $2 refused ${why##*: }"
		return
	fi
	same "sync_mode" "$(<"$crypto_driver/sync_mode")" "$1"
	bind_device 0
	# The interrupt is to find the CPU asleep, as it does where a device takes its time. What is read
	# back both drivers poll for.
	[[ $1 != async_irq ]] || fault 0 '{"verify": false}' '{"late_ms": 1}'
	# The console is to have said all it has to.
	nap 0.5
	say "mode $1 $2"
}

measure() { # NAME WORD=VALUE...
	local name=$1 lines
	shift
	printf '%s\n' "${*/#alg=deflate-software/alg=$deflate}" >$count_dir/control 2>/dev/null || true
	mapfile -t lines <$count_dir/result
	say "case $name ${lines[*]}"
}

load_idxd
load_software
must insmod "$project/build/modules/$(uname -r)/test/acomp_count/acomp_count.ko"
gzip -dc "$project/tests/data/silesia7-sample.pages.gz" |
	dd of=$count_dir/pages bs=1M iflag=fullblock status=none || fail "the module takes no pages"

while read -r -a words <&3; do
	case ${words[0]} in
	mode) enter_mode "${words[@]:1}" ;;
	case) measure "${words[@]:1}" ;;
	symbols) cat /proc/kallsyms >"${words[1]}" || fail "no symbols in ${words[1]}" ;;
	*) fail "the plan asks for '${words[*]}'" ;;
	esac
done 3<"$plan" || fail "$plan cannot be read"
say "done"
