// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "device/ops/aecs.h"
#include "device/ops/operations.h"
#include "device/ops/sums.h"

namespace iaa::device {
namespace {

using deflate::Accumulator;
using deflate::ErrorCode;
using deflate::StopReason;

/// Without flush the engine writes whole units of this many bytes and keeps the rest in the AECS,
/// unless the stream has ended.
constexpr std::size_t kWriteUnit = 8;

/// One DECOMPRESS, from the AECS to the record.
class Decompression {
  public:
    Decompression(const Request& request, Buffers& buffers, Workspace& workspace)
        : request_(request),
          descriptor_(request.descriptor()),
          buffers_(buffers),
          workspace_(workspace) {}

    Outcome run() {
        if (auto failed = load_aecs()) {
            return *std::move(failed);
        }
        if (auto fault = check_memory()) {
            return *std::move(fault);
        }
        if (auto fault = load_input()) {
            return *std::move(fault);
        }
        Sums sums(request_.flag(op_flag::kCrc32c) != 0 ? deflate::CrcKind::kCrc32c
                                                       : deflate::CrcKind::kCrc32,
                  aecs_.crc, aecs_.xor_sum, aecs_.odd);
        if (request_.suppressed()) {
            decode_suppressed(sums);
        } else {
            decode(sums);
        }
        if (auto fault = write_output()) {
            return *std::move(fault);
        }
        if (auto fault = write_aecs(sums)) {
            return *std::move(fault);
        }
        return finish(sums);
    }

  private:
    std::optional<Outcome> load_aecs() {
        const bool format2 = request_.capabilities().decompress_aecs_format2;
        image_.resize(request_.reads_aecs() || request_.writes_aecs() ? descriptor_.src2_size : 0);
        if (!request_.reads_aecs()) {
            return std::nullopt;
        }
        const Range area = request_.aecs_read();
        if (auto fault = buffers_.check(area, false, "aecs-read")) {
            return fault;
        }
        if (auto fault = buffers_.read(area.address, image_, "aecs-read")) {
            return fault;
        }
        if (const std::string error = load(image_, format2, aecs_); !error.empty()) {
            return analytics_error(ErrorCode::kAecs, "decompress-aecs", error);
        }
        return std::nullopt;
    }

    std::optional<Outcome> check_memory() {
        if (auto fault = buffers_.check(request_.source(), false, "source")) {
            return fault;
        }
        if (!request_.suppressed()) {
            const Range destination{descriptor_.dst_addr, descriptor_.max_dst_size};
            if (auto fault = buffers_.check(destination, true, "destination")) {
                return fault;
            }
        }
        if (!request_.writes_aecs()) {
            return std::nullopt;
        }
        return buffers_.check(request_.aecs_write(), true, "aecs-write");
    }

    /// The accumulator's bits and the source as one run: the bits end where the source begins, so
    /// that stored blocks find the byte boundaries of the source.
    std::optional<Outcome> load_input() {
        const std::size_t front = (aecs_.input.bits + 7) / 8;
        input_.resize(front + descriptor_.src1_size);
        const auto source = std::span(input_).subspan(front);
        if (auto fault = buffers_.read(descriptor_.src1_addr, source, "source")) {
            return fault;
        }
        const std::size_t start = 8 * front - aecs_.input.bits;
        for (std::size_t bit = 0; bit < aecs_.input.bits; ++bit) {
            const std::uint32_t value = std::uint32_t{aecs_.input.bytes[bit / 8]} >> bit % 8 & 1U;
            const std::size_t at = start + bit;
            input_[at / 8] = static_cast<std::uint8_t>(input_[at / 8] | value << at % 8);
        }
        bits_.bytes = input_;
        bits_.start = start;
        bits_.count = aecs_.input.bits + std::uint64_t{descriptor_.src1_size} * 8 -
                      request_.ignored_end_bits();
        return std::nullopt;
    }

    [[nodiscard]] deflate::DecodeOptions options() const {
        return {.stop_on_eob = request_.codec_flag(decompress_flag::kStopOnEob) != 0,
                .only_final_eob = request_.codec_flag(decompress_flag::kOnlyFinalEob) != 0,
                .check_for_eob = request_.codec_flag(decompress_flag::kCheckForEob) != 0};
    }

    void decode_suppressed(Sums& sums) {
        result_ = workspace_.decoder.decode_suppressed(
            aecs_.state, bits_, std::numeric_limits<std::uint64_t>::max(), options(), sums.piece());
    }

    void decode(Sums& sums) {
        // What an earlier descriptor held back goes out first.
        output_.resize(descriptor_.max_dst_size);
        const std::size_t held = std::min<std::size_t>(aecs_.held_size, output_.size());
        std::ranges::copy(std::span(aecs_.held).first(held), output_.begin());
        std::ranges::fill(std::span(aecs_.held).first(held), std::uint8_t{0});
        std::ranges::rotate(aecs_.held, aecs_.held.begin() + static_cast<std::ptrdiff_t>(held));
        aecs_.held_size -= static_cast<std::uint32_t>(held);
        output_size_ = held;
        if (aecs_.held_size != 0) {
            result_.stop = StopReason::kOutputFull;
            return;
        }
        const auto room = std::span(output_).subspan(held);
        result_ = workspace_.decoder.decode(aecs_.state, bits_, room, options());
        sums.piece().update(room.first(result_.output_size));
        output_size_ += result_.output_size;

        if (request_.codec_flag(decompress_flag::kFlush) == 0 && more_may_come()) {
            const std::size_t keep = output_size_ % kWriteUnit;
            output_size_ -= keep;
            aecs_.held = {};
            std::ranges::copy(std::span(output_).subspan(output_size_, keep), aecs_.held.begin());
            aecs_.held_size = static_cast<std::uint32_t>(keep);
        }
    }

    /// Whether all went well, and the state is one to go on from: nobody else fetches what is held.
    [[nodiscard]] bool more_may_come() const {
        return result_.stop == StopReason::kInputEnd || result_.stop == StopReason::kEndOfBlock;
    }

    std::optional<Outcome> write_output() {
        return buffers_.write(descriptor_.dst_addr, std::span(output_).first(output_size_),
                              "destination");
    }

    /// Source bytes of which at least one bit was taken.
    [[nodiscard]] std::uint32_t bytes_taken() const {
        if (result_.stop == StopReason::kInputEnd) {
            return descriptor_.src1_size;
        }
        if (result_.bits_consumed <= aecs_.input.bits) {
            return 0;
        }
        return static_cast<std::uint32_t>((result_.bits_consumed - aecs_.input.bits + 7) / 8);
    }

    /// Bits of those bytes, and of the accumulator before, that were not taken.
    [[nodiscard]] Accumulator bits_left() const {
        const std::uint64_t taken = result_.bits_consumed;
        const std::uint64_t end =
            std::min(bits_.count, aecs_.input.bits + std::uint64_t{bytes_taken()} * 8);
        Accumulator left;
        for (std::uint64_t bit = taken; bit < end; ++bit) {
            const std::uint64_t at = bits_.start + bit;
            // The decoder has made sure that they fit: kHeaderTooLarge.
            (void)left.append(std::uint32_t{input_[at / 8]} >> at % 8 & 1U, 1);
        }
        return left;
    }

    std::optional<Outcome> write_aecs(const Sums& sums) {
        const std::uint32_t mode = request_.flag(op_flag::kWriteSource2);
        const bool overflow = result_.stop == StopReason::kOutputFull;
        if (result_.stop == StopReason::kError || mode == 0 ||
            (mode == op_flag::kWriteAecsOnOverflow && !overflow)) {
            return std::nullopt;
        }
        DecompressAecs next = aecs_;
        next.input = bits_left();
        next.crc = sums.crc();
        next.xor_sum = sums.xor_sum();
        next.odd = sums.odd(result_.output_size);
        store(next, request_.capabilities().decompress_aecs_format2, image_);
        return buffers_.write(request_.aecs_write().address, image_, "aecs-write");
    }

    [[nodiscard]] Outcome finish(const Sums& sums) const {
        Outcome outcome;
        Status status = Status::kSuccess;
        if (result_.stop == StopReason::kError) {
            outcome = analytics_error(result_.error, "stream-valid",
                                      fmt::format("{} at bit {}", deflate::describe(result_.error),
                                                  result_.bits_consumed));
            status = Status::kAnalyticsError;
        } else if (result_.stop == StopReason::kOutputFull) {
            status = Status::kOutputOverflow;
        }
        outcome.record.status = static_cast<std::uint8_t>(status);
        outcome.record.bytes_completed = bytes_taken();
        outcome.record.output_size = static_cast<std::uint32_t>(output_size_);
        outcome.record.crc = sums.crc();
        outcome.record.xor_checksum = sums.xor_sum();
        return outcome;
    }

    const Request& request_;
    const Descriptor& descriptor_;
    Buffers& buffers_;
    Workspace& workspace_;
    DecompressAecs aecs_{};            ///< as read; the decoder moves its state on
    std::vector<std::uint8_t> image_;  ///< of the AECS
    std::vector<std::uint8_t> input_;
    deflate::BitSpan bits_;  ///< of input_
    std::vector<std::uint8_t> output_;
    std::size_t output_size_ = 0;
    deflate::DecodeResult result_{};
};

}  // namespace

Outcome decompress(const Request& request, Buffers& buffers, Workspace& workspace) {
    return Decompression(request, buffers, workspace).run();
}

}  // namespace iaa::device
