// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "deflate/huffman.h"

/// Lookup tables for decoding, for the decoder's own use.
namespace iaa::deflate {

/// One table entry, a word:
///   7:0    bits to consume: the code and its extra bits
///   11:8   bits of the code alone
///   31     literal; its byte in 23:16
///   15     special: one of the flags below, or, with none of them, no code
///   14     a second table at offset 30:16, indexed by the number of bits in 7:0
///   13     end of block
///   12     a distance that is beyond the window whatever its extra bits are
///   30:16  otherwise: the base of the length or distance
/// An entry of a second table counts bits from behind those that the first was indexed with.
namespace entry {

inline constexpr std::uint32_t kLiteral = 1U << 31;
inline constexpr std::uint32_t kSpecial = 1U << 15;
inline constexpr std::uint32_t kSecond = 1U << 14;
inline constexpr std::uint32_t kEob = 1U << 13;
inline constexpr std::uint32_t kFar = 1U << 12;
inline constexpr unsigned kValueShift = 16;

constexpr unsigned bits(std::uint32_t word) {
    return word & 0xff;
}
constexpr unsigned code_bits(std::uint32_t word) {
    return word >> 8 & 0xf;
}
constexpr unsigned value(std::uint32_t word) {
    return word >> kValueShift & 0x7fff;
}
constexpr std::uint8_t literal(std::uint32_t word) {
    return static_cast<std::uint8_t>(word >> kValueShift);
}

}  // namespace entry

inline constexpr unsigned kLlIndexBits = 10;
inline constexpr unsigned kDIndexBits = 8;

/// The tables of one set of code lengths.
class DecodeTable {
  public:
    /// Builds for the lengths, unless they are those that it was built for last. False, with
    /// nothing usable, where a length is above 15 or a code oversubscribed.
    [[nodiscard]] bool prepare(const CodeLengths& lengths);

    [[nodiscard]] bool built_for(const CodeLengths& lengths) const {
        return valid_ && lengths == lengths_;
    }

    [[nodiscard]] const std::uint32_t* ll() const { return ll_.data(); }
    [[nodiscard]] const std::uint32_t* d() const { return d_.data(); }

  private:
    CodeLengths lengths_{};
    std::vector<std::uint32_t> ll_;
    std::vector<std::uint32_t> d_;
    bool valid_ = false;
};

}  // namespace iaa::deflate
