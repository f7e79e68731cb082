// SPDX-License-Identifier: GPL-2.0
#include <string>

#include "fuzz/deflate/require.h"
#include "fuzz/ops/numbers.h"
#include "unit/ops/random_guest.h"

/// Any descriptor, with any memory behind it: only what it names is touched, and the record is one
/// that a device may write.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace iaa::device;
    test::RandomGuest guest{test::Numbers({data, size})};
    const auto before = guest.memory().contents();
    const Outcome outcome = execute(guest.descriptor(), guest.memory(), guest.capabilities());
    const std::string complaint = guest.complaint(outcome, before);
    iaa::test::require(complaint.empty(), complaint.c_str());
    return 0;
}
