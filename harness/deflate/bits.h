// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "deflate/huffman.h"

/// Loads and bit reading, for this library's own use.
namespace iaa::deflate {

static_assert(std::endian::native == std::endian::little, "loads below assume little endian");

inline std::uint64_t load64(const std::uint8_t* from) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

inline std::uint32_t load32(const std::uint8_t* from) {
    std::uint32_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

inline void store64(std::uint8_t* to, std::uint64_t value) {
    std::memcpy(to, &value, sizeof(value));
}

/// value's low `count` (1 to 16) bits in reverse order; the rest of value is 0.
inline std::uint32_t reverse_bits(std::uint32_t value, unsigned count) {
    value = ((value & 0x5555U) << 1) | ((value >> 1) & 0x5555U);
    value = ((value & 0x3333U) << 2) | ((value >> 2) & 0x3333U);
    value = ((value & 0x0f0fU) << 4) | ((value >> 4) & 0x0f0fU);
    value = ((value & 0x00ffU) << 8) | ((value >> 8) & 0x00ffU);
    return value >> (16 - count);
}

constexpr std::uint64_t low_mask(unsigned count) {
    return (std::uint64_t{1} << count) - 1;
}

/// A position in a BitSpan. Reads nothing outside it.
class BitCursor {
  public:
    static constexpr unsigned kPeekBits = 57;  ///< bits that one peek sees where there are as many

    explicit BitCursor(const BitSpan& span)
        : bytes_(span.bytes.data()),
          size_(span.bytes.size()),
          pos_(span.start),
          end_(span.start + span.count) {}

    [[nodiscard]] std::uint64_t pos() const { return pos_; }
    [[nodiscard]] std::uint64_t left() const { return end_ - pos_; }
    void skip(std::uint64_t bits) { pos_ += bits; }
    void move_to(std::uint64_t pos) { pos_ = pos; }

    /// At least min(left(), 57) bits from the position on; bits beyond the end are 0.
    [[nodiscard]] std::uint64_t peek() const {
        const auto byte = static_cast<std::size_t>(pos_ / 8);
        std::uint64_t value = 0;
        if (byte + 8 <= size_) {
            value = load64(bytes_ + byte);
        } else if (byte < size_) {
            std::memcpy(&value, bytes_ + byte, size_ - byte);
        }
        value >>= pos_ % 8;
        const std::uint64_t rest = left();
        return rest < 64 ? value & low_mask(static_cast<unsigned>(rest)) : value;
    }

  private:
    const std::uint8_t* bytes_;
    std::size_t size_;
    std::uint64_t pos_;
    std::uint64_t end_;
};

}  // namespace iaa::deflate
