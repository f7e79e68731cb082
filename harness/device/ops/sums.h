// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

#include "deflate/checksum.h"

namespace iaa::device {

/// Checksums that go on from an AECS. The XOR is over 16-bit words of the whole stream, so that the
/// pieces of a stream give what the whole would, also where one has an odd number of bytes.
class Sums {
  public:
    Sums(deflate::CrcKind kind, std::uint32_t crc, std::uint16_t xor_sum, bool odd)
        : before_(xor_sum), odd_before_(odd), piece_(kind, crc) {}

    /// For the piece at hand: give it the bytes.
    [[nodiscard]] deflate::Checksums& piece() { return piece_; }

    [[nodiscard]] std::uint32_t crc() const { return piece_.crc(); }

    [[nodiscard]] std::uint16_t xor_sum() const {
        const unsigned sum = piece_.xor_sum();
        const unsigned swapped = (sum << 8U | sum >> 8U) & 0xffffU;
        return static_cast<std::uint16_t>(before_ ^ (odd_before_ ? swapped : sum));
    }

    /// Whether the stream has an odd number of bytes, `size` of them in this piece.
    [[nodiscard]] bool odd(std::uint64_t size) const { return odd_before_ != (size % 2 != 0); }

  private:
    std::uint16_t before_;
    bool odd_before_;
    deflate::Checksums piece_;
};

}  // namespace iaa::device
