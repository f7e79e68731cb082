// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <span>

namespace iaa::device {

struct Crc64Options {
    /// Without its leading term; shorter polynomials lie in the high bits.
    std::uint64_t polynomial = 0;
    bool bit_order = false;  ///< bytes, and the result, least significant bit first
    bool invert = false;     ///< start and end with the CRC's bits inverted
};

/// The CRC64 operation's result. Semantics: the reference in idxd-config's tests.
[[nodiscard]] std::uint64_t crc64(std::span<const std::uint8_t> data, const Crc64Options& options);

}  // namespace iaa::device
