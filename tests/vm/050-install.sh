#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: make install and uninstall: modprobe, depmod and udev end with ours, then with the kernel's own
# drivers: none
# device: --profile spr
# set: full 6.12/none
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

release=$(uname -r)
tree=$(realpath "/lib/modules/$release")
ours=$project/build/modules/$release/iaa_crypto.ko

# Ours has a version, the kernel's own none.
is_ours() { [[ -e /sys/module/iaa_crypto/srcversion && $(</sys/module/iaa_crypto/srcversion) == "$srcversion" ]]; }
is_theirs() { [[ -e /sys/module/iaa_crypto && ! -e /sys/module/iaa_crypto/srcversion ]]; }
loaded_is() { # ours|theirs
	"is_$1" || fail "loaded is $(modinfo -n iaa_crypto), version '$(cat /sys/module/iaa_crypto/version)'"
	echo "   loaded is $1"
}
modprobe_takes() { same "what modprobe takes" "$(realpath "$(modinfo -n iaa_crypto)")" "$tree/$1"; }
# run_make SAYS WORD...
run_make() {
	make -C "$project" -s "${@:2}" >/tmp/make 2>&1
	local status=$?
	sed 's/^/   | /' /tmp/make
	grep -q "$1" /tmp/make || fail "make ${*:2} does not say '$1'"
	return $status
}
# change_over: the commands that make has said.
change_over() {
	sed -n 's/^    //p' /tmp/make >/tmp/commands
	must grep -qx 'rmmod iaa_crypto && modprobe iaa_crypto' /tmp/commands
	must bash -e /tmp/commands
}
# serves: device 0, with its WQ bound.
serves() {
	local before
	before=$(compressions 0)
	load_run 0 30 alg=deflate-iaa pattern=mixed count=20 >/dev/null
	load_clean 0
	check "compressions by the device" $(($(compressions 0) - before)) -ge 20
}
enabled() { [[ $(<"$dsa/devices/iax0/state") == enabled && -e $crypto_driver/wq0.0 ]]; }
# by_udev WHOSE: idxd and the driver are not loaded; udev is told of the device, as when a machine boots.
by_udev() {
	unbind
	for each in acomp_load iaa_crypto idxd idxd_bus; do remove_module $each; done
	udevadm control --reload
	must udevadm trigger --action=add "/sys/bus/pci/devices/$(pci_devices | head -n 1)"
	wait_for 30 "udev has iaa_crypto loaded" test -e /sys/module/iaa_crypto/initstate
	wait_for 30 "iaa_crypto is ready" grep -q live /sys/module/iaa_crypto/initstate
	loaded_is "$1"
	# idxd has configured it, since nobody else has.
	wait_for 30 "the device is enabled and its WQ bound" enabled
	load_acomp_load
}

begin
srcversion=$(modinfo -F srcversion "$ours") || fail "there is no $ours"
[[ $srcversion ]] || fail "$ours has no srcversion"

# depmod of all modules takes an emulated CPU a minute.
step "the kernel's tree of modules, with fewer modules"
small=/run/modules
mkdir -p $small/kernel
cp "$tree"/modules.{order,builtin,builtin.modinfo} $small
for each in arch block crypto drivers/dma drivers/crypto/intel lib; do
	mkdir -p "$small/kernel/$each"
	cp -r "$tree/kernel/$each/." "$small/kernel/$each"
done
must mount --bind $small "$tree"
trap 'udevadm control --exit; umount -l "$tree"' EXIT
must depmod
theirs=$(modinfo -n iaa_crypto)
theirs=${theirs#*"$release"/}
[[ $theirs == kernel/* ]] || fail "the kernel's own is $theirs"

step "installed while the kernel's own serves a WQ"
must modprobe iaa_crypto
loaded_is theirs
bind_device 0
run_make "Loaded is the kernel's own" install || fail "make install: exit status $?"
modprobe_takes updates/iaa_crypto.ko
same "the kernel's own module is still there" "$(ls "$tree/$theirs")" "$tree/$theirs"
must depmod
modprobe_takes updates/iaa_crypto.ko

step "what it says to do: ours serves"
unbind
change_over
loaded_is ours
bind_device 0
serves

step "installed again"
run_make "It is loaded" install || fail "make install: exit status $?"

step "by udev"
must /usr/lib/systemd/systemd-udevd --daemon
by_udev ours
serves

step "what cannot be"
run_make "make modules KVER=1.2" install KVER=1.2 && fail "a kernel that nothing is built for: make install goes well"
run_make "not a kernel release" install KVER=../x && fail "no kernel release: make install goes well"

step "a root of its own"
run_make "depmod $release" install DESTDIR=/tmp/destdir || fail "make install: exit status $?"
cmp "$ours" "/tmp/destdir/lib/modules/$release/updates/iaa_crypto.ko" || fail "it is not what was built"
run_make "removed" uninstall DESTDIR=/tmp/destdir || fail "make uninstall: exit status $?"
same "files in it" "$(find /tmp/destdir -type f)" ""

step "removed while ours serves"
run_make "Loaded is another one from updates/" uninstall || fail "make uninstall: exit status $?"
modprobe_takes "$theirs"
[[ ! -e $tree/updates ]] || fail "updates/ is left, and was not there before"
unbind
change_over
loaded_is theirs
bind_device 0
serves

step "by udev"
by_udev theirs
serves
run_make "nothing of ours" uninstall || fail "make uninstall: exit status $?"
