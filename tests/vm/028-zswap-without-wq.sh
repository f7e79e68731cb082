#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the WQ is disabled while zswap holds pages (in-tree: they are lost, 6.12 dies of it)
# compare: the WQ disabled while zswap holds pages
# boot: own in-tree
# limit: 120
# splats: zswap-bug-on-failed-decompression
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
bind_device 0
set_zswap deflate-iaa
mapfile -t files < <(sample_files)
coproc HOG { memhog --mb 16 --page-out --pause --data "${files[@]}" 2>&1; }
hog=$HOG_PID
exec 3<&"${HOG[0]}" 4>&"${HOG[1]}"
while read -r -t $((60 * scale)) line <&3; do
	echo "   $line"
	[[ $line != state=out ]] || break
done
[[ $line == state=out ]] || fail "memhog did not get its pages out"
check "pages in zswap" "$(zswap_stat stored_pages)" -ge 3500

disable_wq "$(iax_of 0)" 0
echo >&4
zswap_bug() { dmesg | grep -q 'kernel BUG at mm/zswap.c'; }
case $kernel/$driver in
6.12/in-tree)
	wait_for 60 "the kernel's BUG in zswap" zswap_bug
	weakness "kernel BUG" "a WQ disabled while zswap holds pages: kernel BUG"
	;;
*)
	cat <&3 | tee /tmp/hog
	wait "$hog"
	status=$?
	if [[ $driver == in-tree ]]; then
		check "signal that memhog died of" $status -eq $((128 + $(kill -l BUS)))
		dmesg | grep -q 'Decompression error from zswap' || fail "the kernel does not tell of the error"
		weakness "pages lost" "a WQ disabled while zswap holds pages: the pages are lost"
	else
		check "memhog's exit status" $status -eq 0
		check "pages compared" "$(value compared </tmp/hog)" -eq 4096
		check "pages that were wrong" "$(value bad </tmp/hog)" -eq 0
	fi
	;;
esac
