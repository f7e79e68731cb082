// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "deflate/accumulator.h"
#include "deflate/error.h"

/// Huffman codes of RFC 1951, in the form in which the device takes them.
namespace iaa::deflate {

inline constexpr std::size_t kLlSymbols = 286;  ///< literals 0-255, end of block, lengths 257-285
/// Literal/length symbols that have a length: the fixed code has two more, which no stream may use.
inline constexpr std::size_t kLlLengths = 288;
inline constexpr std::size_t kDSymbols = 30;  ///< distances
inline constexpr unsigned kEobSymbol = 256;
inline constexpr unsigned kMaxCodeLength = 15;
inline constexpr unsigned kMaxClCodeLength = 7;
inline constexpr unsigned kEntryLengthShift = 15;

/// Code lengths in bits, 0 to 15; 0: the symbol has no code. The codes themselves follow from them.
/// Symbols 286 and 287 have a length in the fixed code alone, where they hold the place of two
/// codes.
struct CodeLengths {
    std::array<std::uint8_t, kLlLengths> ll{};
    std::array<std::uint8_t, kDSymbols> d{};

    bool operator==(const CodeLengths&) const = default;
};

/// Codes as the compression AECS holds them: `length << 15 | code`, the code canonical and not
/// bit-reversed (the fixed code of literal 0 is 0x40030). 0: the symbol has no code.
struct CodeTables {
    std::array<std::uint32_t, kLlSymbols> ll{};
    std::array<std::uint32_t, kDSymbols> d{};

    bool operator==(const CodeTables&) const = default;
};

/// How often each symbol occurs. The end of a block counts as one symbol 256.
struct Histogram {
    std::array<std::uint32_t, kLlSymbols> ll{};
    std::array<std::uint32_t, kDSymbols> d{};

    bool operator==(const Histogram&) const = default;
};

[[nodiscard]] constexpr unsigned entry_length(std::uint32_t entry) {
    return entry >> kEntryLengthShift;
}
[[nodiscard]] constexpr std::uint32_t entry_code(std::uint32_t entry) {
    return entry & ((1U << kEntryLengthShift) - 1);
}

/// The codes of block type 1 (RFC 1951 3.2.6).
[[nodiscard]] const CodeLengths& fixed_lengths();
[[nodiscard]] const CodeTables& fixed_tables();

/// Kraft sum of the lengths in units of 2^-15: 32768 for a complete code, more where it is
/// oversubscribed, less where it is incomplete.
[[nodiscard]] std::uint32_t kraft_sum(std::span<const std::uint8_t> lengths);

/// Canonical codes (RFC 1951 3.2.2) for the lengths, in the device's form. Both spans have the same
/// size. False, with the entries unspecified, for an oversubscribed set; incomplete sets are fine.
[[nodiscard]] bool canonical_codes(std::span<const std::uint8_t> lengths,
                                   std::span<std::uint32_t> entries);

/// Canonical codes of both alphabets; symbols 286 and 287 get no entry. kOversubscribedLl or
/// kOversubscribedD where there are none.
[[nodiscard]] ErrorCode make_tables(const CodeLengths& lengths, CodeTables& tables);

/// The lengths that the entries name (all 288 for the fixed code). Entries with a length above 15
/// count as having no code. Codes that are not canonical cannot be told by their lengths.
[[nodiscard]] CodeLengths lengths_of(const CodeTables& tables);

/// Optimal code lengths of at most `limit` bits (package-merge) for the symbols with a count above
/// 0. One such symbol gets length 1; none: all lengths 0. counts.size() is at most 2^limit and 288,
/// and lengths has the same size. Deterministic.
void limited_lengths(std::span<const std::uint32_t> counts, unsigned limit,
                     std::span<std::uint8_t> lengths);

/// Code lengths (at most 15) for a block with these counts. Both codes are made complete: symbols
/// with count 0 are added where fewer than two have a code, so that every decoder takes the header.
[[nodiscard]] CodeLengths lengths_from(const Histogram& histogram);

/// Appends the header of a dynamic block (RFC 1951 3.2.7: BFINAL, BTYPE 2, run-length coded code
/// lengths) to the accumulator. Never more than 1700 bits. False, and nothing changed, where it
/// does not fit.
[[nodiscard]] bool write_dynamic_header(const CodeLengths& lengths, bool final,
                                        Accumulator& accumulator);

/// Appends the three header bits of a fixed block.
[[nodiscard]] bool write_fixed_header(bool final, Accumulator& accumulator);

/// A run of bits inside bytes: bit 0 of a byte is its first.
struct BitSpan {
    std::span<const std::uint8_t> bytes;
    std::uint64_t start = 0;  ///< first bit
    std::uint64_t count = 0;  ///< number of valid bits; start + count is at most bytes.size() * 8

    BitSpan() = default;
    BitSpan(std::span<const std::uint8_t> in, std::uint64_t first, std::uint64_t valid)
        : bytes(in), start(first), count(valid) {}

    /// All bits of the bytes, but for `ignored` at the end (the device's "ignore end bits").
    [[nodiscard]] static BitSpan of(std::span<const std::uint8_t> in, unsigned ignored = 0) {
        return {in, 0, in.size() * 8 - ignored};
    }
};

enum class BlockType : std::uint8_t { kStored = 0, kFixed = 1, kDynamic = 2 };

/// What a block header says.
struct BlockHeader {
    bool final = false;
    BlockType type = BlockType::kStored;
    std::uint32_t stored_length = 0;  ///< bytes, of a stored block
    CodeLengths lengths{};            ///< of a fixed or dynamic block
};

enum class HeaderStatus : std::uint8_t { kOk, kNeedInput, kError };

struct HeaderResult {
    HeaderStatus status = HeaderStatus::kOk;
    ErrorCode error = ErrorCode::kNone;  ///< with kError
    std::uint64_t bits = 0;              ///< length of the header, with kOk
    BlockHeader header{};                ///< with kOk
};

/// Reads one block header of any type, from BFINAL to the last bit before the first symbol (or the
/// first stored byte: alignment counts from bit 0 of bytes[0]). Incomplete trees are taken, as the
/// device takes them: a code that is not there is an error when it is met.
[[nodiscard]] HeaderResult parse_block_header(const BitSpan& input);

}  // namespace iaa::deflate
