// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "device/ops/aecs.h"
#include "device/ops/operations.h"
#include "device/ops/sums.h"

namespace iaa::device {
namespace {

using deflate::ErrorCode;

/// Without flush the engine writes whole units of this many bytes and keeps the rest in the AECS.
constexpr std::size_t kWriteUnit = 32;

deflate::EncodeOptions options_of(const Request& request) {
    deflate::EncodeOptions options;
    options.end = static_cast<deflate::EndOfBlock>(request.codec_flag(compress_flag::kEndAppend) >>
                                                   compress_flag::kEndAppendShift);
    options.flush = request.codec_flag(compress_flag::kFlush) != 0;
    options.literals_only = request.codec_flag(compress_flag::kLiteralsOnly) != 0;
    return options;
}

/// The bytes behind the last whole unit go back in front of the accumulator's bits. Returns how
/// many bytes are left to write.
std::size_t hold_back(std::span<const std::uint8_t> output, deflate::Accumulator& accumulator) {
    const std::size_t held = output.size() % kWriteUnit;
    const deflate::Accumulator bits = accumulator;
    accumulator = {};
    std::ranges::copy(output.last(held), accumulator.bytes.begin());
    accumulator.bits = static_cast<std::uint32_t>(8 * held);
    // Fewer than 8 bits behind fewer than 32 bytes: they fit.
    (void)accumulator.append(bits.bytes[0], bits.bits);
    return output.size() - held;
}

/// One COMPRESS, from the AECS to the record.
class Compression {
  public:
    Compression(const Request& request, Buffers& buffers, Workspace& workspace)
        : request_(request), buffers_(buffers), workspace_(workspace) {}

    Outcome run() {
        if (auto failed = load_aecs()) {
            return *std::move(failed);
        }
        if (auto fault = check_memory()) {
            return *std::move(fault);
        }
        source_.resize(request_.descriptor().src1_size);
        if (auto fault = buffers_.read(request_.descriptor().src1_addr, source_, "source")) {
            return *std::move(fault);
        }
        if (request_.statistics()) {
            return count();
        }
        return request_.two_pass() ? first_pass() : encode();
    }

  private:
    std::optional<Outcome> load_aecs() {
        if (!request_.reads_aecs()) {
            return std::nullopt;
        }
        const Range area = request_.aecs_read();
        if (auto fault = buffers_.check(area, false, "aecs-read")) {
            return fault;
        }
        std::array<std::uint8_t, kCompressAecsSize> image{};
        // With a header made here the tables are made too. Those in the AECS are not used, and may
        // be what a write-back has left out.
        const bool with_tables = request_.header_generation() == 0;
        const auto part = std::span(image).first(with_tables ? image.size() : kCompressStateSize);
        if (auto fault = buffers_.read(area.address, part, "aecs-read")) {
            return fault;
        }
        const std::string error =
            with_tables ? load(image, aecs_)
                        : load_state(std::span(image).first<kCompressStateSize>(), aecs_);
        if (!error.empty()) {
            return analytics_error(ErrorCode::kAecs, "compress-aecs", error);
        }
        return std::nullopt;
    }

    std::optional<Outcome> check_memory() {
        const Descriptor& d = request_.descriptor();
        if (auto fault = buffers_.check(request_.source(), false, "source")) {
            return fault;
        }
        const Range destination{d.dst_addr,
                                request_.statistics() ? kHistogramSize : d.max_dst_size};
        if (auto fault = buffers_.check(destination, true, "destination")) {
            return fault;
        }
        if (!request_.writes_aecs()) {
            return std::nullopt;
        }
        return buffers_.check(request_.aecs_write(), true, "aecs-write");
    }

    Outcome count() {
        const deflate::Histogram histogram =
            workspace_.encoder.count(source_, options_of(request_));
        std::array<std::uint8_t, kHistogramSize> image{};
        std::size_t at = 0;
        const auto put = [&](std::uint32_t value) {
            for (unsigned byte = 0; byte < 4; ++byte) {
                image[at++] = static_cast<std::uint8_t>(value >> 8 * byte);
            }
        };
        std::ranges::for_each(histogram.ll, put);
        at += 8;
        std::ranges::for_each(histogram.d, put);
        if (auto fault = buffers_.write(request_.descriptor().dst_addr, image, "destination")) {
            return *std::move(fault);
        }
        Outcome outcome = finish(sums());
        outcome.record.output_size = kHistogramSize;
        return outcome;
    }

    /// The first of two passes: only the tables and the header, which go into the AECS. Its
    /// checksums stay, since the second pass sees the same bytes again.
    Outcome first_pass() {
        const deflate::Histogram histogram =
            workspace_.encoder.count(source_, options_of(request_));
        if (!deflate::prepare_dynamic(histogram, final_header(), aecs_.accumulator, aecs_.tables)) {
            return header_too_large();
        }
        if (auto fault = write_aecs()) {
            return *std::move(fault);
        }
        return finish(sums());
    }

    [[nodiscard]] Outcome header_too_large() const {
        return analytics_error(ErrorCode::kOutputOverflow, "header-fits",
                               fmt::format("a header behind {} bits of an accumulator of {}",
                                           aecs_.accumulator.bits, deflate::Accumulator::kMaxBits));
    }

    Outcome encode() {
        const Descriptor& d = request_.descriptor();
        const deflate::EncodeOptions options = options_of(request_);
        std::vector<std::uint8_t> output(d.max_dst_size + (options.flush ? 0 : kWriteUnit - 1));
        const deflate::EncodeResult result =
            request_.one_pass()
                ? workspace_.encoder.encode_dynamic(source_, final_header(), aecs_.accumulator,
                                                    options, output, &aecs_.tables)
                : workspace_.encoder.encode(source_, aecs_.tables, aecs_.accumulator, options,
                                            output);
        if (result.error == ErrorCode::kNoHuffmanCode) {
            return analytics_error(result.error, "symbol-has-code",
                                   fmt::format("symbol {}", result.bad_symbol));
        }
        if (!result.header_fits) {
            return header_too_large();
        }
        if (result.error != ErrorCode::kNone) {
            return analytics_error(result.error, "output-fits",
                                   fmt::format("destination of {} bytes", d.max_dst_size));
        }
        std::size_t size = result.output_size;
        if (!options.flush) {
            size = hold_back(std::span(output).first(size), aecs_.accumulator);
            if (size > d.max_dst_size) {
                return analytics_error(ErrorCode::kOutputOverflow, "output-fits",
                                       fmt::format("destination of {} bytes", d.max_dst_size));
            }
        }
        if (auto fault = buffers_.write(d.dst_addr, std::span(output).first(size), "destination")) {
            return *std::move(fault);
        }

        const Sums total = sums();
        aecs_.crc = total.crc();
        aecs_.xor_sum = total.xor_sum();
        aecs_.odd = total.odd(source_.size());
        if (request_.writes_aecs()) {
            if (auto fault = write_aecs()) {
                return *std::move(fault);
            }
        }
        Outcome outcome = finish(total);
        outcome.record.output_size = static_cast<std::uint32_t>(size);
        outcome.record.output_bits =
            static_cast<std::uint8_t>(options.flush ? result.last_bits % 8 : 0);
        return outcome;
    }

    std::optional<Outcome> write_aecs() {
        std::array<std::uint8_t, kCompressAecsSize> image{};
        store(aecs_, image);
        const bool tables =
            (request_.descriptor().filter_flags & compress2_flag::kWriteTables) != 0;
        return buffers_.write(request_.aecs_write().address,
                              std::span(image).first(tables ? image.size() : kCompressStateSize),
                              "aecs-write");
    }

    [[nodiscard]] bool final_header() const { return (request_.header_generation() & 1U) != 0; }

    [[nodiscard]] Sums sums() const {
        Sums sums(request_.flag(op_flag::kCrc32c) != 0 ? deflate::CrcKind::kCrc32c
                                                       : deflate::CrcKind::kCrc32,
                  aecs_.crc, aecs_.xor_sum, aecs_.odd);
        sums.piece().update(source_);
        return sums;
    }

    [[nodiscard]] Outcome finish(const Sums& sums) const {
        Outcome outcome;
        outcome.record.status = static_cast<std::uint8_t>(Status::kSuccess);
        outcome.record.bytes_completed = request_.descriptor().src1_size;
        outcome.record.crc = sums.crc();
        outcome.record.xor_checksum = sums.xor_sum();
        return outcome;
    }

    const Request& request_;
    Buffers& buffers_;
    Workspace& workspace_;
    CompressAecs aecs_{};  ///< as read; what is to be written
    std::vector<std::uint8_t> source_;
};

}  // namespace

Outcome compress(const Request& request, Buffers& buffers, Workspace& workspace) {
    return Compression(request, buffers, workspace).run();
}

}  // namespace iaa::device
