// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>

namespace iaa::deflate {

/// The device's output accumulator: up to 2048 bits that go out before anything else, and that take
/// the bits which do not fill a byte at the end of an operation without flush. Bit 0 of byte 0 is
/// first, as in RFC 1951. Bits at and above `bits` are zero.
struct Accumulator {
    static constexpr std::uint32_t kMaxBits = 2048;

    std::array<std::uint8_t, kMaxBits / 8> bytes{};
    std::uint32_t bits = 0;

    /// Appends the low `count` (0 to 32) bits of value, least significant first. False, and nothing
    /// changed, where they do not fit.
    [[nodiscard]] bool append(std::uint32_t value, unsigned count);

    bool operator==(const Accumulator&) const = default;
};

}  // namespace iaa::deflate
