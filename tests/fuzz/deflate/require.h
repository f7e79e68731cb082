// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

namespace iaa::test {

/// Ends the process, which is how a fuzz target tells of a finding, unless the condition holds.
inline void require(bool condition, const char* what) {
    if (!condition) {
        (void)std::fprintf(stderr, "does not hold: %s\n", what);
        std::abort();
    }
}

}  // namespace iaa::test
