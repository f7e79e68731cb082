# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What guest tests share. A test sources it, and begins with `begin`: everything is then as after a
# boot, whatever the test before left. Functions end the test where something goes wrong; every wait
# has a limit.
set -uo pipefail

vm_dir=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
project=$(realpath "$vm_dir/../..")
kernel=${IAA_KERNEL:-$(uname -r | cut -d. -f1,2)}
driver=${IAA_DRIVER:-in-tree}
scale=${IAA_SCALE:-1}
dsa=/sys/bus/dsa
crypto_driver=$dsa/drivers/crypto
load_dir=/sys/kernel/debug/acomp_load
build=$project/${IAA_BUILD:-build/harness}
export PATH=$build/device:$build/tests/vm/programs:$PATH

# Starting a process takes an emulated CPU a tenth of a second: what tests do often needs none.
exec {never}<> <(:)
nap() { read -rt "$1" -u "$never" _ || true; }

# ---- verdicts ----

# Where a verdict goes, however a function's own output is redirected.
exec {verdicts}>&1
trap 'exit 1' USR1

# Ends the test, in a subshell as well: a $(...) that fails must not leave the command around it to go
# on with nothing.
fail() {
	printf '# FAIL %s\n' "$*" >&"$verdicts"
	[[ $BASHPID == "$$" || ${own_failure:-} ]] || kill -USR1 $$
	exit 1
}

skip() {
	printf '# SKIP %s\n' "$*"
	exit 77
}

# note TEXT: is shown beside the test's result.
note() { printf '# NOTE %s\n' "$*"; }

# did WORDS: what the driver did in this scenario, for the table of `make compare`; without it: pass.
did() { printf '# DID %s\n' "$*"; }

# weakness WORDS TEXT: what was just seen is a weak point of the in-tree driver, and known.
weakness() {
	did "$1"
	note "weak point of the in-tree driver: $2"
}

# step TEXT: what comes now, for whoever reads the log.
step() { printf -- '-- %s\n' "$*"; }

# must CMD...: fails the test where the command does.
must() {
	"$@" || fail "$* (exit status $?)"
}

# check WHAT A OP B: compares numbers, such as: check "pages" "$n" -eq 4096
check() {
	[[ $2 =~ ^-?[0-9]+$ ]] || fail "$1: '$2' is not a number"
	test "$2" "$3" "$4" || fail "$1: $2 is not $3 $4"
	printf '   %s: %s\n' "$1" "$2"
}

# same WHAT GOT WANT: compares text.
same() {
	[[ $2 == "$3" ]] || fail "$1: got '$2', expected '$3'"
	printf '   %s: %s\n' "$1" "$2"
}

# requires WHAT...: skips the test where a command or module:NAME is missing; fails it where the guest
# lacks what the test's header orders: device:N for at least N devices; cpus:N.
requires() {
	local each
	for each; do
		case $each in
		module:*)
			modinfo "${each#*:}" >/dev/null 2>&1 || skip "kernel $kernel has no module ${each#*:}"
			;;
		device:*)
			(($(pci_devices | wc -l) >= ${each#*:})) || fail "the guest has less than ${each#*:} devices"
			;;
		cpus:*)
			(($(nproc) >= ${each#*:})) || fail "the guest has less than ${each#*:} CPUs"
			;;
		*) command -v "$each" >/dev/null || skip "$each is not installed" ;;
		esac
	done
}

# wait_for SECONDS WHAT CMD...: until the command succeeds; the limit grows with the machine's load.
wait_for() {
	local limit=$(($1 * scale)) what=$2 start=$SECONDS
	shift 2
	until "$@"; do
		((SECONDS - start < limit)) || fail "$what: not within $limit s"
		nap 0.2
	done
}

# within SECONDS CMD...: true where the command ends in time and well. It may be a function. What
# hangs in the kernel cannot be killed, and is left behind.
within() {
	local limit=$(($1 * scale)) start=$SECONDS pid
	shift
	"$@" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS - start >= limit)); then
			kill -KILL "$pid" 2>/dev/null
			return 124
		fi
		nap 0.1
	done
	wait "$pid"
}

# ---- modules and devices ----

pci_devices() { # addresses of the model's functions, in their order
	local each
	for each in /sys/bus/pci/devices/*; do
		[[ $(<"$each/vendor") == 0x8086 && $(<"$each/device") == 0x0cfe ]] && basename "$each"
	done
}

iax_devices() { # iax0, iax1, ...
	local each
	for each in "$dsa"/devices/iax*; do
		[[ -e $each ]] && basename "$each"
	done | sort -V
}

# iax_of N: the iax name of the Nth device (from 0) in PCI order, which is that of the control ports.
iax_of() {
	local address
	address=$(pci_devices | sed -n "$(($1 + 1))p")
	[[ $address ]] || fail "there is no device $1"
	basename "$(echo /sys/bus/pci/devices/"$address"/iax*)"
}

modules_loaded() { [[ -d /sys/module/$1 ]]; }

remove_module() {
	modules_loaded "$1" || return 0
	wait_for 20 "removing the module $1 (who uses it: $(grep "^$1 " /proc/modules))" rmmod "$1"
}

load_idxd() {
	must modprobe idxd_bus
	# Else idxd and the driver enable whatever they find as they load.
	echo 0 >$dsa/drivers_autoprobe || fail "cannot set drivers_autoprobe"
	must modprobe idxd
	wait_for 20 "idxd has a device" test -e $dsa/devices/iax0
}

load_driver() {
	[[ $driver != none ]] || return 0
	must modprobe iaa_crypto
	local path
	path=$(modinfo -n iaa_crypto)
	case $driver in
	ours) [[ $path == */updates/* ]] || fail "iaa_crypto is the kernel's own: $path" ;;
	in-tree) [[ $path == */kernel/* ]] || fail "iaa_crypto is not the kernel's own: $path" ;;
	esac
}

load_acomp_load() { must insmod "$project/build/modules/$(uname -r)/test/acomp_load/acomp_load.ko"; }

# reload_modules: the drivers as after a boot; what was configured is lost.
reload_modules() {
	unbind
	remove_module acomp_load
	remove_module iaa_crypto
	remove_module idxd
	load_idxd
	load_driver
	load_acomp_load
}

# zswap and swap off, loads ended, WQs and devices disabled, modules fresh, models without faults.
clean_slate() {
	local each
	swapoff -a
	if [[ -e /sys/module/zswap ]]; then
		echo N >/sys/module/zswap/parameters/enabled
		echo lzo >/sys/module/zswap/parameters/compressor
	fi
	remove_module brd
	for each in "$load_dir"/*/control; do
		[[ ! -e $each ]] || echo stop >"$each" 2>/dev/null || true
	done
	remove_module acomp_load
	for ((each = 0; each < $(control_ports); each++)); do
		ctl "$each" fault-clear >/dev/null
	done
	unbind
	remove_module iaa_crypto
	remove_module idxd
	remove_module idxd_bus
	for ((each = 0; each < $(control_ports); each++)); do
		ctl "$each" counters-reset >/dev/null
	done
}

# begin: every test's first call. What an earlier test left may be more than can be cleared away:
# exit status 99 asks for a guest of one's own.
begin() {
	(
		own_failure=1
		clean_slate
	) || exit 99
	load_idxd
	load_driver
	load_acomp_load
}

# sync_mode and verify_compress can only be set while nothing is bound.
set_attribute() { # NAME VALUE
	echo "$2" >"$crypto_driver/$1" || fail "cannot set $1 to $2"
	[[ $(<"$crypto_driver/$1") == "$2" ]] || fail "$1 reads back as $(<"$crypto_driver/$1"), not $2"
}

# bind_device N [KEY=VALUE...]: configures the Nth device by hand, enables it and waits for the
# kernel's self-test.
#   wqs=1        WQs, which share the entries
#   size=        entries of one WQ (default: an equal share)
#   engines=     engines (default: all), all in group 0
#   enable=1     0: configure only
bind_device() {
	local iax wqs=1 size='' engines='' enable=1 total i
	iax=$(iax_of "$1") || exit 1
	shift
	(($#)) && local "$@"
	total=$(<$dsa/devices/"$iax"/max_work_queues_size)
	size=${size:-$((total / wqs))}
	engines=${engines:-$(<$dsa/devices/"$iax"/max_engines)}
	for ((i = 0; i < engines; i++)); do
		echo 0 >"$dsa/devices/engine${iax#iax}.$i/group_id" || fail "engine $i of $iax takes no group"
	done
	for ((i = 0; i < wqs; i++)); do
		config_wq "$iax" "$i" "$size" 0
	done
	((enable)) || return 0
	enable_device "$iax"
	for ((i = 0; i < wqs; i++)); do enable_wq "$iax" "$i"; done
	# A fault that is meant for the test would else meet with the self-test.
	wait_for 60 "the self-test of deflate-iaa passes" selftest_passed
}

config_wq() { # IAX WQ SIZE GROUP [PRIORITY]
	name_wq "$1" "$2" "${5:-10}" --group-id="$4" --wq-size="$3"
}

# name_wq IAX WQ [PRIORITY [OPTION...]]: whom the WQ is for, and how. idxd forgets it as a WQ is disabled;
# size and group stay, and cannot change under an enabled device.
name_wq() {
	must accel-config config-wq "$1/wq${1#iax}.$2" --priority="${3:-10}" --type=kernel --name=iaa_crypto \
		--driver-name=crypto --mode=dedicated "${@:4}"
}

enable_device() { must accel-config enable-device "$1" >/dev/null; }
enable_wq() { must accel-config enable-wq "$1/wq${1#iax}.$2" >/dev/null; }
disable_wq() { must accel-config disable-wq "$1/wq${1#iax}.$2" >/dev/null; }
# accel-config does not disable a WQ that requests use; the kernel does.
unbind_wq() { echo "wq${1#iax}.$2" >"$crypto_driver/unbind" || fail "WQ $2 of $1 is not unbound"; }
disable_device() { must accel-config disable-device "$1" >/dev/null; }

# unbind: all WQs and devices are disabled.
unbind() {
	local iax wq
	for iax in $(iax_devices); do
		[[ $(<$dsa/devices/"$iax"/state) == enabled ]] || continue
		for wq in "$dsa"/devices/wq"${iax#iax}".*; do
			[[ $(<"$wq/state") == enabled ]] || continue
			must accel-config disable-wq "$iax/$(basename "$wq")" >/dev/null
		done
		disable_device "$iax"
	done
}

# bind_json FILE: as accel-config saved it.
bind_json() { must accel-config load-config -c "$1" -e; }

# algorithm NAME FIELD: what /proc/crypto says of the algorithm that users get by this name.
algorithm() {
	awk -F' *: *' -v name="$1" -v field="$2" '
		function look() {
			# A "larval" stands for one whose self-test still runs.
			if ((a["name"] == name || a["driver"] == name) && a["type"] != "larval" &&
			    a["priority"] > best) {
				best = a["priority"] + 0
				value = a[field]
			}
			split("", a)
		}
		/^$/ {look()}
		/:/ {a[$1] = $2}
		END {look(); print value}' /proc/crypto
}

# The hardware's algorithm is there and has passed: software of the same name ranks below it.
selftest_passed() {
	[[ $(algorithm deflate-iaa selftest) == passed ]] && (($(algorithm deflate-iaa priority) >= 300))
}

# ---- the model ----

control_ports() {
	local n=0
	while [[ -e /dev/virtio-ports/iaa.ctl.$n ]]; do n=$((n + 1)); done
	echo "$n"
}

# ctl N REQUEST...: to the Nth device's control socket, each a JSON object or a command without
# arguments (Documentation/device-control.rst); prints the replies.
ctl() {
	local n=$1 port request id line
	shift
	exec {port}<>"/dev/virtio-ports/iaa.ctl.$n" || fail "device $n has no control port"
	for request; do
		[[ $request == \{* ]] || request="{\"command\": \"$request\"}"
		# Replies that an earlier request did not wait for are told apart by their number.
		id=$BASHPID$SRANDOM
		request=${request//$'\n'/ }
		printf '{"id": %s, %s\n' "$id" "${request#\{}" >&"$port"
		while :; do
			IFS= read -r -t $((20 * scale)) -u "$port" line || fail "device $n does not answer to $request"
			[[ ! $line =~ \"id\":${id}[^0-9] ]] || break
		done
		[[ $line == *'"ok":true'* ]] || fail "device $n refuses $request: $line"
		printf '%s\n' "$line"
	done
	exec {port}>&-
}

# counter N NAME: one of the Nth model's counters: completed, dropped, wq.0.accepted, opcode.0x43,
# status.0x0a, command.0x01 and so on.
counter() {
	local all table key=${2##*.}
	all=$(ctl "$1" counters) || exit 1
	case $2 in
	opcode.*) table=opcodes ;;
	status.*) table=statuses ;;
	command.*) table=commands ;;
	wq.*)
		local wqs=${all#*'"wqs":['} n=${2#wq.}
		for ((n = ${n%.*}; n > 0; n--)); do wqs=${wqs#*\}}; done
		all="\"wq\":${wqs%%\}*}}"
		table=wq
		;;
	*) table=total ;;
	esac
	all=${all#*"\"$table\":"}
	all=${all%%\}*}
	BASH_REMATCH=()
	[[ $all =~ \"$key\":([0-9]+) ]] || { [[ $table != total && $table != wq ]] || fail "there is no counter $2"; }
	echo "${BASH_REMATCH[1]:-0}"
}

# device_state N FILTER: of what the Nth model says of itself, by jq.
device_state() { ctl "$1" state | jq -r ".device | $2"; }

# fault N MATCH FAULT [WHEN]: adds a fault rule, JSON objects as Documentation/device-control.rst
# has them.
fault() {
	local when=${4:-}
	ctl "$1" "{\"command\":\"fault-add\",\"match\":$2,\"fault\":$3,\"when\":${when:-"{}"}}" >/dev/null
}

compressions() { counter "$1" opcode.0x43; }
decompressions() { counter "$1" opcode.0x42; }

# ---- load ----

# load_start SLOT WORD=VALUE...: see tests/vm/modules/acomp_load/settings.c for the words.
load_start() {
	local slot=$1
	shift
	echo "start $*" >"$load_dir/$slot/control" ||
		fail "load $*: $(sed -n 's/^error=//p' "$load_dir/$slot/result")"
}

load_go() { echo go >"$load_dir/$1/control" || fail "load $1: cannot go on"; }
load_stop() { echo stop >"$load_dir/$1/control" || fail "load $1: cannot stop"; }

# load_value SLOT KEY: one of the result's values; 0 where it is not there.
load_value() {
	local key value found=0
	while IFS='=' read -r key value; do
		[[ $key != "$2" ]] || found=$value
	done <"$load_dir/$1/result"
	printf '%s\n' "$found"
}

load_is() {
	local key value
	while IFS='=' read -r key value; do
		[[ $key != "$2" ]] || break
	done <"$load_dir/$1/result"
	[[ $key == "$2" && $value == "$3" ]]
}
load_ended() { load_is "$1" state "done" || load_is "$1" state stuck; }

# load_wait SLOT SECONDS: until all threads have ended or are stuck; shows the result.
load_wait() {
	wait_for "$2" "load $1 ends" load_ended "$1"
	local line
	while IFS= read -r line; do echo "   $line"; done <"$load_dir/$1/result"
	load_is "$1" setup_errno 0 ||
		fail "load $1 could not be set up: errno $(load_value "$1" setup_errno)"
}

# load_prepared SLOT: until all threads of a job with hold=1 are ready.
load_prepared() {
	local threads
	threads=$(load_value "$1" threads)
	wait_for 30 "load $1 is prepared" load_is "$1" ready "$threads"
}

# load_run SLOT SECONDS WORD=VALUE...: from start to end.
load_run() {
	local slot=$1 seconds=$2
	shift 2
	load_start "$slot" "$@"
	load_wait "$slot" "$seconds"
}

# load_clean SLOT: it ended, every operation succeeded, every byte was right, and there were some.
load_clean() {
	local key
	load_is "$1" state "done" || fail "load $1 is $(load_value "$1" state)"
	for key in comp_failed decomp_failed mismatches overruns; do
		load_is "$1" "$key" 0 || fail "load $1: $key is $(load_value "$1" "$key")$(load_errnos "$1")"
	done
	(($(load_value "$1" comp_ok) + $(load_value "$1" decomp_ok) > 0)) || fail "load $1 did nothing"
}

has_worked() { (($(counter "$1" completed) > $2)); } # N COMPLETED

# wait_for_work SECONDS N COUNT: until the Nth device has completed more than COUNT further descriptors.
wait_for_work() {
	local before
	before=$(counter "$2" completed)
	wait_for "$1" "the load runs" has_worked "$2" $((before + $3))
}

# load_goes_on SLOT COUNT: until it has come so many rounds further, however these ended; with the in-tree
# driver, until it never will.
load_goes_on() {
	local rounds
	rounds=$(load_value "$1" rounds)
	# shellcheck disable=SC2317  # called by wait_for
	further() {
		(($(load_value "$1" rounds) >= $2)) ||
			[[ $driver == in-tree && $(outcome "$1") == @(oops|hangs) ]]
	}
	wait_for 30 "load $1 goes on" further "$1" $((rounds + $2))
}

# device_serves: a load that device 0 carries out.
device_serves() {
	local before
	before=$(compressions 0)
	load_run 0 30 pattern=mixed count=20 >/dev/null
	load_clean 0
	check "compressions by the device" $(($(compressions 0) - before)) -ge 20
}

load_errnos() { grep -E '_errno_|first_mismatch' "$load_dir/$1/result" | tr '\n' ' ' | sed 's/^/: /'; }

# ---- scenarios ----

errno_name() {
	case $1 in
	5) echo -EIO ;;
	6) echo -ENXIO ;;
	7) echo -E2BIG ;;
	11) echo -EAGAIN ;;
	19) echo -ENODEV ;;
	22) echo -EINVAL ;;
	28) echo -ENOSPC ;;
	75) echo -EOVERFLOW ;;
	110) echo -ETIMEDOUT ;;
	*) echo "-errno $1" ;;
	esac
}

# The kernel has oopsed (0x80) or warned (0x200) since it was booted.
oopsed() { (($(</proc/sys/kernel/tainted) & 0x80)); }
warned() { (($(</proc/sys/kernel/tainted) & 0x200)); }

# outcome SLOT: what became of a load, in a word or two.
outcome() {
	local key value wrong=0 most=0 name
	while IFS='=' read -r key value; do
		case $key in
		mismatches | overruns) wrong=$((wrong + value)) ;;
		*_errno_*)
			((value <= most)) || most=$value name=$(errno_name "${key##*_}")
			;;
		esac
	done <"$load_dir/$1/result"
	if oopsed; then
		echo oops
	elif warned; then
		echo "kernel warning"
	elif load_is "$1" state stuck; then
		echo hangs
	elif ((wrong)); then
		echo "wrong data x $wrong"
	elif ((most)); then
		echo "$name x $most"
	else
		echo pass
	fi
}

# settle SLOT SECONDS KNOWN TEXT: a scenario's load ends, with our driver cleanly. With the in-tree driver
# as it may, but in one of the ways that the pattern KNOWN names; what is not to pass is a weak point: TEXT.
settle() {
	local what
	if [[ $driver == ours ]]; then
		load_wait "$1" "$2"
		load_clean "$1"
		return
	fi
	# shellcheck disable=SC2317  # called by wait_for
	settled() { oopsed || load_ended "$1"; }
	wait_for "$2" "load $1 ends or the kernel oopses" settled "$1"
	sed 's/^/   /' "$load_dir/$1/result"
	what=$(outcome "$1")
	# shellcheck disable=SC2053
	[[ $what == @($3) ]] || fail "the in-tree driver: '$what', and what is known of it is '$3'"
	[[ $what == pass ]] || weakness "$what" "$4"
}

# ---- zswap ----

# set_zswap COMPRESSOR [MIB]: zswap in front of a RAM disk of so many MiB.
set_zswap() {
	# zswap of 6.12 takes no large folios, and the kernel's default is to make them.
	echo never >/sys/kernel/mm/transparent_hugepage/enabled
	must modprobe brd rd_nr=1 rd_size=$((${2:-256} * 1024))
	must mkswap /dev/ram0 >/dev/null
	must swapon /dev/ram0
	echo "$1" >/sys/module/zswap/parameters/compressor || fail "zswap does not take $1"
	# The kernel says nothing where it keeps what it had.
	same "zswap's compressor" "$(</sys/module/zswap/parameters/compressor)" "$1"
	echo 50 >/sys/module/zswap/parameters/max_pool_percent
	echo Y >/sys/module/zswap/parameters/enabled
	same "zswap is enabled" "$(</sys/module/zswap/parameters/enabled)" Y
}

vmstat() { awk -v key="$1" '$1 == key {print $2}' /proc/vmstat; }
zswap_stat() { cat "/sys/kernel/debug/zswap/$1"; }

# value KEY: of the key=value lines on standard input, the last one.
value() { sed -n "s/^$1=//p" | tail -n 1; }

# Files of every Debian system: program code, data and text.
sample_files() {
	ls -d /usr/bin/bash /usr/lib/x86_64-linux-gnu/libc.so.6 /usr/share/common-licenses/GPL-3 \
		/usr/share/perl/5.*/unicore/Name.pl 2>/dev/null
}

# sample_data SLOT: hands the sample files to a load, for pattern=data.
sample_data() {
	local files
	mapfile -t files < <(sample_files)
	head -q -c 1000000 "${files[@]}" |
		dd of="$load_dir/$1/data" bs=4M iflag=fullblock status=none || fail "load $1: takes no sample data"
}
