#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: attributes at any time; callers that may sleep and that may not, virtual addresses, no destination
# drivers: ours
# set: full 6.12/ours
# lanes: slub swiotlb iommu
# limit: 120
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# refused FILE VALUE WHY: it does not take the value, for that reason.
refused() {
	local said
	said=$( (echo "$2" >"$1") 2>&1) && fail "$1 takes $2"
	[[ $said == *"$3"* ]] || fail "$1 refuses $2, and not with '$3': $said"
	echo "   $(basename "$1") refuses $2: $3"
}

begin
timeout=/sys/module/iaa_crypto/parameters/timeout_ms
same timeout_ms "$(<$timeout)" 1000
echo $((1000 * scale)) >$timeout
bind_device 0

step "attributes, with a WQ bound"
same compression_mode "$(<$crypto_driver/compression_mode)" fixed
set_attribute compression_mode fixed
refused $crypto_driver/compression_mode dynamic "Invalid argument"
for mode in async async_irq sync; do
	set_attribute sync_mode $mode
done
refused $crypto_driver/sync_mode other "Invalid argument"
for verify in 0 1; do
	set_attribute verify_compress $verify
	before=$(decompressions 0)
	load_run 0 30 mode=compress count=10 pattern=text >/dev/null
	load_clean 0
	check "decompressions to verify" $(($(decompressions 0) - before)) -eq $((verify * 10))
done
refused $timeout 0 "Invalid argument"
refused $timeout 60001 "Invalid argument"

run() { # WORDS...: by the device and in software
	local before
	before=$(compressions 0)
	load_run 0 60 "alg=deflate-iaa-generic $*" >/dev/null
	load_clean 0
	check "software, $*: compressions by the device" $(($(compressions 0) - before)) -eq 0
	load_run 0 60 "alg=deflate-iaa $*" >/dev/null
	load_clean 0
	check "device, $*: compressions by the device" $(($(compressions 0) - before)) -gt 0
}
step "callers that may sleep, and such that may not"
for size in 4096 100000; do
	run sleep=1 pattern=mixed size=$size threads=2 count=5
	run atomic=1 pattern=mixed size=$size threads=2 count=5
	run sleep=1 pattern=mixed size=$size src_nents=3 dst_nents=2 src_uneven=1 count=5
done

if [[ $kernel == 6.12 ]]; then
	step "no destination: one is allocated"
	run no_dst=1 pattern=mixed size=1-9000 count=20
	step "and none is left where the request fails"
	load_run 0 30 no_dst=1 mode=compress pattern=random room=2000 count=10 >/dev/null
	check "requests that ended with -ENOSPC" "$(load_value 0 comp_errno_28)" -eq 10
else
	step "virtual addresses"
	run virt=dma pattern=mixed size=1-9000 count=20
	load_run 0 30 virt=nondma pattern=mixed size=1-9000 count=20 >/dev/null
	load_clean 0
	step "no destination: refused"
	load_run 0 30 no_dst=1 mode=compress pattern=text count=10 >/dev/null
	check "requests that ended with -EINVAL" "$(load_value 0 comp_errno_22)" -eq 10
fi

step "the longest time limit, and a caller that may not sleep"
echo 60000 >$timeout || fail "timeout_ms does not take 60000"
fault 0 '{}' '{"never_complete": true}' '{"count": 1}'
load_run 0 60 mode=compress pattern=text count=1
load_clean 0
check "us that it took" "$(load_value 0 max_us)" -ge 4900000
check "us that it took" "$(load_value 0 max_us)" -lt $((15000000 * scale))
