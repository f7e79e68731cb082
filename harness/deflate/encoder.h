// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "deflate/accumulator.h"
#include "deflate/error.h"
#include "deflate/huffman.h"

namespace iaa::deflate {

inline constexpr std::size_t kWindow = 4096;                    ///< longest match distance, bytes
inline constexpr std::size_t kMaxInput = std::size_t{1} << 30;  ///< of one call, bytes
inline constexpr unsigned kMinMatch = 3;
inline constexpr unsigned kMaxMatch = 258;

/// What goes out behind the last symbol: the compress flags' bits 3:2, same numbers.
enum class EndOfBlock : std::uint8_t {
    kNone = 0,
    kEob = 1,             ///< the end-of-block symbol
    kEobStored = 2,       ///< and an empty stored block: 3 bits, padding to a byte, 00 00 ff ff
    kEobFinalStored = 3,  ///< the same with BFINAL set, which ends the stream
};

struct EncodeOptions {
    EndOfBlock end = EndOfBlock::kEob;
    /// True: a last byte that is not full is written, padded with zero bits. False: its bits are
    /// given back in the accumulator.
    bool flush = true;
    bool literals_only = false;  ///< no matches
    /// Bytes that precede the input (a dictionary, or earlier input of the same stream): matches
    /// may reach back into the last 4096 of them.
    // With {}, designated initializers may leave it out.
    std::span<const std::uint8_t> history{};  // NOLINT(readability-redundant-member-init)
};

struct EncodeResult {
    /// kOutputOverflow: the output does not fit. kNoHuffmanCode: a literal or the end of block has
    /// no code. The output is unspecified then, and output_size is 0.
    ErrorCode error = ErrorCode::kNone;
    std::size_t output_size = 0;  ///< bytes written, a padded last one included
    unsigned last_bits = 0;       ///< valid bits of the last byte written, 1 to 8; 0: none written
    /// First symbol without a code, with kNoHuffmanCode.
    unsigned bad_symbol = 0;
    /// False, with kOutputOverflow: it is the accumulator that is too small for the block's header,
    /// and no larger output helps.
    bool header_fits = true;
};

/// A deterministic single-pass encoder, as a hardware engine would be: the same input, tables and
/// options give the same bits whatever the object did before. Holds its match finder's memory, so
/// that none is allocated per call: one object a thread. Big-endian output, mini-blocks and indices
/// are not its business.
class Encoder {
  public:
    Encoder();
    ~Encoder();
    Encoder(Encoder&&) noexcept;
    Encoder& operator=(Encoder&&) noexcept;
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;

    /// Encodes input (at most kMaxInput) with the tables: first the accumulator's bits, then
    /// literals and matches (3 to 258 bytes, at most 4096 back), then what options.end says. No
    /// match is made whose length or distance symbol has no code. On success the accumulator holds
    /// what was not written (nothing after a flush); on an error it is as it was. Table entries
    /// must be well-formed: length 0 to 15, code below 2^length (see check_tables).
    [[nodiscard]] EncodeResult encode(std::span<const std::uint8_t> input, const CodeTables& tables,
                                      Accumulator& accumulator, const EncodeOptions& options,
                                      std::span<std::uint8_t> output);

    /// Statistics mode: counts the symbols that encode() would make of the input with tables that
    /// have every code; the end of block once unless options.end is kNone. Of options, end,
    /// literals_only and history count.
    [[nodiscard]] Histogram count(std::span<const std::uint8_t> input,
                                  const EncodeOptions& options);

    /// One-pass header generation: a dynamic block with the best tables for this input, behind the
    /// accumulator's bits. The same output as count(), prepare_dynamic() and encode() one after the
    /// other. `tables`, where not null, gets the tables used. kOutputOverflow also where header and
    /// accumulator exceed 2048 bits; header_fits tells.
    [[nodiscard]] EncodeResult encode_dynamic(std::span<const std::uint8_t> input, bool final,
                                              Accumulator& accumulator,
                                              const EncodeOptions& options,
                                              std::span<std::uint8_t> output,
                                              CodeTables* tables = nullptr);

  private:
    class Matcher;
    std::unique_ptr<Matcher> matcher_;
};

/// Two-pass header generation, the step between count() and encode(): tables for the counts, and
/// the block's header appended to the accumulator. False, and nothing changed, where it does not
/// fit.
[[nodiscard]] bool prepare_dynamic(const Histogram& histogram, bool final, Accumulator& accumulator,
                                   CodeTables& tables);

/// Whether every entry is one that the encoder takes: no bits above 19, code below 2^length.
[[nodiscard]] bool check_tables(const CodeTables& tables);

}  // namespace iaa::deflate
