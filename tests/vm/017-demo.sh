#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: what `make demo` runs in its guest, with less data: the whole job, and an account of it
# drivers: 6.12/in-tree 7.3/ours
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
IAA_DEMO_MB=8 bash "$vm_dir/demo.sh" >/tmp/demo
status=$?
cat /tmp/demo
((status == 0)) || fail "the demo ended with exit status $status"
figure() { sed -nE "s/^  $1 +//p" /tmp/demo; }
same "pages that were compared" "$(figure 'compared, byte by byte')" "2,048 pages, 0 of them wrong"
[[ $(figure out) == *" of 2,048 pages in "* ]] || fail "the demo does not say how many pages went out"
[[ $(figure "pages in zswap") =~ [0-9.]+\ to\ 1$ ]] || fail "the demo gives no ratio"
compressions=$(figure compressions | tr -d ,)
check "compressions that the demo tells of" "$compressions" -ge 2000
check "those that the model counted" "$(compressions 0)" -ge "$compressions"
same "descriptors that the demo tells of as lost" "$(figure 'lost or refused')" "0 of them"
