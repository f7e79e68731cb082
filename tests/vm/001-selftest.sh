#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: the kernel's own self-tests of deflate-iaa pass on the model, and ran there
# limit: 60
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

begin
same "completed before" "$(counter 0 completed)" 0
bind_device 0
same "self-test" "$(algorithm deflate-iaa selftest)" passed
same "module" "$(algorithm deflate-iaa module)" iaa_crypto
same "kind" "$(algorithm deflate-iaa type)" acomp

# Two vectors are compressed and decompressed again, two more are decompressed.
check "descriptors that compressed" "$(compressions 0)" -ge 2
check "descriptors that decompressed" "$(decompressions 0)" -ge 4
check "descriptors that succeeded" "$(counter 0 status.0x01)" -eq "$(counter 0 completed)"
check "descriptors that were lost" "$(counter 0 dropped)" -eq 0
