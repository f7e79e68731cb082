// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "deflate/checksum.h"
#include "deflate/error.h"
#include "deflate/huffman.h"

namespace iaa::deflate {

/// The last bytes of output, which matches may refer to.
class History {
  public:
    static constexpr std::size_t kSize = 4096;

    /// Appends output; the last 4096 bytes stay.
    void append(std::span<const std::uint8_t> bytes);

    /// Number of valid bytes, at most 4096.
    [[nodiscard]] std::size_t size() const { return size_; }

    /// The byte `back` (1 to size()) places before the end.
    [[nodiscard]] std::uint8_t before_end(std::size_t back) const {
        return ring_[(next_ + kSize - back) % kSize];
    }

    /// Copies the last size() bytes, oldest first, into out (at least size() bytes).
    void copy_to(std::span<std::uint8_t> out) const;

    /// The ring itself, and the offset of the first byte not yet written (or the oldest one, when
    /// size() is 4096): for writing the state to memory in the device's form.
    [[nodiscard]] const std::array<std::uint8_t, kSize>& ring() const { return ring_; }
    [[nodiscard]] std::size_t write_offset() const { return next_; }

    /// The reverse. size is 4096 where wrapped, else write_offset. write_offset is below 4096.
    void restore(std::span<const std::uint8_t, kSize> ring, std::size_t write_offset, bool wrapped);

    /// The same bytes, wherever they lie in the ring.
    bool operator==(const History& other) const;

  private:
    std::array<std::uint8_t, kSize> ring_{};
    std::size_t next_ = 0;
    std::size_t size_ = 0;
};

/// Where the parser stands.
enum class ParserState : std::uint8_t {
    kBlockHeader,  ///< at the first bit of a block header
    kSymbols,      ///< in a fixed or dynamic (or preset) block, at a literal/length code
    kStored,       ///< in a stored block, `stored_left` bytes to go
    kEnded,        ///< behind the end of the final block
};

/// All that a decompression carries from one piece of input, or of output room, to the next. A
/// plain value: copy it, compare it, write its parts to memory.
struct DecoderState {
    ParserState parser = ParserState::kBlockHeader;
    bool final_block = false;       ///< BFINAL of the current block
    bool behind_eob = false;        ///< the last thing read is an end of block
    std::uint32_t stored_left = 0;  ///< bytes, in kStored
    CodeLengths lengths{};          ///< of the current block, in kSymbols
    /// A match that the output limit has cut: bytes still to copy, and from how far back.
    std::uint16_t match_left = 0;
    std::uint16_t match_distance = 0;
    History history{};

    /// A stream without a block header: symbols of these lengths come first (canned tables), as a
    /// block with this BFINAL. With no code for symbol 256 the stream is Huffman-only: it ends
    /// where its input does.
    [[nodiscard]] static DecoderState preset(const CodeLengths& lengths, bool final_block);

    bool operator==(const DecoderState&) const = default;
};

struct DecodeOptions {
    /// Stop behind an end of block, and leave what follows unread. The end of the final block
    /// always stops.
    bool stop_on_eob = false;
    /// With stop_on_eob and check_for_eob: only the end of the final block counts.
    bool only_final_eob = false;
    /// Where the input ends before decoding stops, it must do so behind an end of block with less
    /// than a byte left over, else kBadEndOfFile. What follows the place where decoding stops is
    /// not looked at. Set it with a stream's last piece of input.
    bool check_for_eob = false;
};

enum class StopReason : std::uint8_t {
    kInputEnd,     ///< the input ended; bits of an unfinished symbol or header are not consumed
    kOutputFull,   ///< the next byte does not fit; go on from the state with more room
    kEndOfBlock,   ///< behind an end of block, as asked for
    kEndOfStream,  ///< behind the end of the final block
    kError,        ///< see error; the state is not to be gone on from
};

struct DecodeResult {
    StopReason stop = StopReason::kInputEnd;
    ErrorCode error = ErrorCode::kNone;  ///< with kError
    /// Bits taken from the input; with kError those before the header or symbol that is at fault.
    /// What is left behind the end of a stream is input.count minus this: trailing data, padding
    /// bits of the last byte included.
    std::uint64_t bits_consumed = 0;
    std::uint64_t output_size = 0;  ///< bytes made, those before an error included
};

/// RFC 1951 decoder with a window of 4 KB. Everything that counts is in the state: an object only
/// keeps the lookup tables of the last code lengths that it met, so that a run of streams with the
/// same ones builds them once. One object a thread.
class Decoder {
  public:
    Decoder();
    ~Decoder();
    Decoder(Decoder&&) noexcept;
    Decoder& operator=(Decoder&&) noexcept;
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    /// Decodes from the state, and leaves it where decoding stopped. Where the input ends inside a
    /// symbol or a block header, their bits are left for the caller to put in front of the next
    /// piece (at most 2048: kHeaderTooLarge where a header needs more); stored blocks align to
    /// bytes counted from bit 0 of input.bytes[0]. Ends of the input and of the output may fall
    /// anywhere: the pieces together give what one call would have given. kAecs where the state is
    /// not one that decoding can leave behind (lengths that make no code, a cut match without its
    /// history). Output behind output_size is unspecified.
    [[nodiscard]] DecodeResult decode(DecoderState& state, const BitSpan& input,
                                      std::span<std::uint8_t> output, const DecodeOptions& options);

    /// The same with the output suppressed: at most `limit` bytes are made, counted and put into
    /// the checksums and the state's history, and written nowhere.
    [[nodiscard]] DecodeResult decode_suppressed(DecoderState& state, const BitSpan& input,
                                                 std::uint64_t limit, const DecodeOptions& options,
                                                 Checksums& checksums);

  private:
    class Tables;
    std::unique_ptr<Tables> tables_;
};

}  // namespace iaa::deflate
