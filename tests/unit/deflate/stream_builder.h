// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "deflate/huffman.h"
#include "unit/deflate/patterns.h"

/// Writes DEFLATE streams symbol by symbol, right ones and wrong ones. Checks nothing.
namespace iaa::test {

/// One symbol of the code-length code, with its extra bits' value.
struct ClToken {
    unsigned symbol;
    unsigned extra;

    ClToken(unsigned of, unsigned value = 0) : symbol(of), extra(value) {}  // NOLINT: not explicit
};

class StreamBuilder {
  public:
    /// The next `count` bits, least significant first.
    StreamBuilder& bits(std::uint32_t value, unsigned count);

    /// A Huffman code: `length << 15 | code`, most significant bit first.
    StreamBuilder& code(std::uint32_t entry);

    /// BFINAL and BTYPE.
    StreamBuilder& block(bool final, unsigned type) { return bits(final ? 1 : 0, 1).bits(type, 2); }

    StreamBuilder& align();

    /// A whole stored block.
    StreamBuilder& stored(bool final, const Bytes& bytes);

    /// A dynamic block's header with the counts, the lengths of the code-length code (all 19 are
    /// listed) and the symbols given. Symbols use the canonical code of cl_lengths, or of
    /// `coded_with` where that differs from what the header is to say.
    StreamBuilder& dynamic(bool final, unsigned ll_count, unsigned d_count,
                           const std::array<std::uint8_t, 19>& cl_lengths,
                           const std::vector<ClToken>& tokens);
    StreamBuilder& dynamic(bool final, unsigned ll_count, unsigned d_count,
                           const std::array<std::uint8_t, 19>& cl_lengths,
                           const std::array<std::uint8_t, 19>& coded_with,
                           const std::vector<ClToken>& tokens);

    /// A dynamic block's header for these lengths, every one written out.
    StreamBuilder& dynamic(bool final, const deflate::CodeLengths& lengths);

    /// Codes for the symbols that follow. Fixed ones at the start.
    StreamBuilder& use(const deflate::CodeLengths& lengths);

    StreamBuilder& literal(unsigned byte) { return code(tables_.ll[byte]); }
    StreamBuilder& literals(const Bytes& bytes);
    StreamBuilder& end_of_block() { return code(tables_.ll[deflate::kEobSymbol]); }
    StreamBuilder& match(unsigned length, unsigned distance);

    [[nodiscard]] std::uint64_t size_in_bits() const { return count_; }
    [[nodiscard]] const Bytes& stream() const { return bytes_; }

  private:
    Bytes bytes_;
    std::uint64_t count_ = 0;
    deflate::CodeTables tables_ = deflate::fixed_tables();
};

/// One bit of a stream.
inline std::uint32_t bit_of(std::span<const std::uint8_t> bytes, std::uint64_t bit) {
    return static_cast<std::uint32_t>(bytes[static_cast<std::size_t>(bit / 8)]) >> (bit % 8) & 1U;
}

/// A complete code-length code that has every symbol.
std::array<std::uint8_t, 19> flat_cl_lengths();

/// One token a length.
std::vector<ClToken> plain_tokens(std::span<const std::uint8_t> lengths);

/// A complete code of `used` symbols out of 30 or 286, all lengths as equal as can be.
deflate::CodeLengths flat_lengths(unsigned ll_used, unsigned d_used);

}  // namespace iaa::test
