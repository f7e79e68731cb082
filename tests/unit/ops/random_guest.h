// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/ops/rules.h"
#include "unit/ops/guest.h"

namespace iaa::device::test {

/// A descriptor and the memory that it names, made of random numbers: mostly near what is correct,
/// so that many get far, with any field wrong now and then. For property tests and for fuzzing: the
/// numbers may also come from a fuzzer's input.
class RandomGuest {
  public:
    /// `next` gives 64 random bits.
    template <typename Next>
    explicit RandomGuest(Next next) {
        const auto below = [&next](std::uint64_t limit) { return next() % limit; };
        const auto rarely = [&below](std::uint64_t times) { return below(times) == 0; };

        const bool generation2 = below(2) == 0;
        capabilities_.version = generation2 ? 0x200 : 0x100;
        capabilities_.header_generation = generation2;
        capabilities_.decompress_aecs_format2 = generation2;
        capabilities_.block_on_fault = below(2) == 0;
        capabilities_.pasid_enabled = rarely(4);
        capabilities_.privileged = below(2) == 0;
        capabilities_.max_transfer_size = rarely(8) ? 256 : 1U << 21;

        const Opcode opcode = pick_opcode(below(16));
        const std::size_t source_size = rarely(12) ? 0 : 1 + below(rarely(8) ? 5000 : 400);
        Bytes source_bytes(source_size);
        for (auto& byte : source_bytes) {
            byte = static_cast<std::uint8_t>(rarely(2) ? 'a' + below(4) : next());
        }
        if (opcode == Opcode::kDecompress && !rarely(4) && source_size != 0) {
            source_bytes = compress_fixed(source_bytes);
            if (rarely(3) && !source_bytes.empty()) {
                source_bytes[below(source_bytes.size())] ^=
                    static_cast<std::uint8_t>(1U << below(8));
            }
        }
        source_ = &memory_.map(source_bytes, below(64));
        destination_ = &memory_.map(rarely(16) ? 0 : 1 + below(rarely(4) ? 6000 : 500), below(64));
        aecs_ = &memory_.map(make_aecs(opcode, generation2, next), rarely(16) ? below(64) : 0);
        record_ = &memory_.map(64);
        for (auto* buffer : {source_, destination_, aecs_}) {
            buffer->readable = !rarely(32);
            buffer->writable = !rarely(32);
        }

        descriptor_.flags_opcode = flags_opcode(pick_flags(opcode, next), opcode);
        descriptor_.completion_addr = record_->address;
        descriptor_.op_flags = pick_codec_flags(opcode, generation2, next);
        if (opcode != Opcode::kNoop && opcode != Opcode::kDrain) {
            descriptor_.src1_addr = source_->address;
            descriptor_.src1_size = static_cast<std::uint32_t>(source_->bytes.size());
        }
        if (opcode == Opcode::kCompress || opcode == Opcode::kDecompress) {
            descriptor_.dst_addr = destination_->address;
            descriptor_.max_dst_size = static_cast<std::uint32_t>(destination_->bytes.size());
            const Request request(descriptor_, capabilities_);
            if (request.reads_aecs() || request.writes_aecs()) {
                descriptor_.src2_addr = aecs_->address;
                descriptor_.src2_size = static_cast<std::uint32_t>(aecs_->bytes.size() / 2);
            }
            if (opcode == Opcode::kCompress && request.two_pass() && !rarely(4)) {
                descriptor_.dst_addr = 0;
                descriptor_.max_dst_size = 0;
                descriptor_.filter_flags = compress2_flag::kWriteTables;
            }
        }
        for (unsigned harms = rarely(3) ? 1 : 0; harms != 0; --harms) {
            harm(next);
        }
    }

    [[nodiscard]] const Descriptor& descriptor() const { return descriptor_; }
    [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
    [[nodiscard]] GuestMemory& memory() { return memory_; }

    /// What is wrong with an outcome and with what was done to the memory; empty where nothing is.
    [[nodiscard]] std::string complaint(const Outcome& outcome,
                                        const std::vector<Bytes>& before) const {
        const CompletionRecord& record = outcome.record;
        const Request request(descriptor_, capabilities_);
        if (describe(outcome.status()) == "unknown status" || record.status == 0) {
            return "status";
        }
        const bool success =
            outcome.status() == Status::kSuccess || outcome.status() == Status::kOutputOverflow;
        if (success != outcome.rule.empty()) {
            return "rule";
        }
        if ((record.error_code != 0) != (outcome.status() == Status::kAnalyticsError)) {
            return "error code";
        }
        if ((record.invalid_flags != 0) != (outcome.status() == Status::kInvalidFlags)) {
            return "invalid flags";
        }
        if ((record.reserved0 | record.reserved1 | record.reserved2) != 0 ||
            record.reserved3 != std::array<std::uint64_t, 2>{}) {
            return "reserved fields";
        }
        if (record.output_size > descriptor_.max_dst_size ||
            record.bytes_completed > descriptor_.src1_size || record.output_bits > 7) {
            return "sizes";
        }
        if (memory_.completion_written()) {
            return "completion record written";
        }
        for (const auto& access : memory_.accesses()) {
            if (!allowed(access, request, record.output_size)) {
                return "access outside the descriptor's buffers";
            }
        }
        return untouched(before, record.output_size, request);
    }

  private:
    static Opcode pick_opcode(std::uint64_t number) {
        if (number < 6) {
            return Opcode::kCompress;
        }
        if (number < 12) {
            return Opcode::kDecompress;
        }
        constexpr std::array<Opcode, 4> kOthers{Opcode::kCrc64, Opcode::kNoop, Opcode::kDrain,
                                                Opcode::kCrc64};
        return kOthers[number - 12];
    }

    template <typename Next>
    static std::uint32_t pick_flags(Opcode opcode, Next& next) {
        std::uint32_t flags = op_flag::kCompletionAddressValid | op_flag::kRequestCompletionRecord;
        if (opcode != Opcode::kCompress && opcode != Opcode::kDecompress) {
            return flags;
        }
        const std::uint64_t bits = next();
        flags |= op_flag::kCacheControl;
        flags |= (bits & 3) != 0 || opcode == Opcode::kCompress ? op_flag::kReadAecs : 0;
        flags |= (bits & 4) != 0 ? op_flag::kWriteAecs : 0;
        flags |=
            (bits & 8) != 0 && (flags & op_flag::kWriteAecs) == 0 && opcode == Opcode::kDecompress
                ? op_flag::kWriteAecsOnOverflow
                : 0;
        flags |= (bits & 16) != 0 && (flags & (op_flag::kReadAecs | op_flag::kWriteSource2)) != 0
                     ? op_flag::kAecsToggle
                     : 0;
        flags |= (bits & 32) != 0 ? op_flag::kCrc32c : 0;
        return flags;
    }

    template <typename Next>
    static std::uint16_t pick_codec_flags(Opcode opcode, bool generation2, Next& next) {
        const std::uint64_t bits = next();
        unsigned flags = 0;
        if (opcode == Opcode::kCompress) {
            flags = ((bits & 3) != 0 ? compress_flag::kFlush : 0U) |
                    (bits & compress_flag::kEndAppend) | (bits & compress_flag::kLiteralsOnly);
            flags |= (bits & 0x700) == 0 ? compress_flag::kStatistics : 0;
            constexpr std::array<unsigned, 4> kModes{2, 3, 6, 7};
            flags |= generation2 && (bits & 0x1800) == 0 ? kModes[bits >> 13 & 3] << 12U : 0;
        } else if (opcode == Opcode::kDecompress) {
            flags = decompress_flag::kEnable | ((bits & 3) != 0 ? decompress_flag::kFlush : 0U) |
                    (bits & 0x1c);
            flags |= (bits & 0x700) == 0 ? bits & decompress_flag::kIgnoreEndBits : 0;
            flags |= (bits & 0x1800) == 0 ? decompress_flag::kSuppressOutput : 0;
        } else if (opcode == Opcode::kCrc64) {
            flags = bits & 0xc000;
        }
        return static_cast<std::uint16_t>(flags);
    }

    template <typename Next>
    static Bytes make_aecs(Opcode opcode, bool format2, Next& next) {
        const auto below = [&next](std::uint64_t limit) { return next() % limit; };
        Bytes image;
        if (opcode == Opcode::kCompress) {
            CompressAecs aecs = fixed_aecs(below(2) == 0);
            if (below(8) == 0) {
                aecs.tables.ll[below(286)] = 0;
            }
            aecs.accumulator.bits =
                static_cast<std::uint32_t>(below(8) == 0 ? below(2049) : aecs.accumulator.bits);
            image = image_of(aecs);
        } else {
            DecompressAecs aecs;
            aecs.state.history.append(bytes_of("some history abcabcabcabc"));
            constexpr std::array<std::uint32_t, 4> kSizes{kDecompressAecsSize, kDecompressAecsSize,
                                                          kAecsSizeWithoutHistory,
                                                          kAecsSizeFormat1};
            image.resize(kSizes[below(format2 ? 3 : 4)]);
            if (below(3) == 0) {
                aecs.state = deflate::DecoderState::preset(deflate::fixed_lengths(), below(2) == 0);
            }
            store(aecs, format2, image);
        }
        if (below(8) == 0) {
            image[below(image.size())] = static_cast<std::uint8_t>(next());
        }
        const std::size_t size = image.size();
        image.resize(2 * size);
        std::copy_n(image.begin(), size, image.begin() + static_cast<std::ptrdiff_t>(size));
        return image;
    }

    /// Any bit of the descriptor, or a buffer's place.
    template <typename Next>
    void harm(Next& next) {
        const std::uint64_t choice = next() % 12;
        const std::uint64_t value = next();
        const std::array<std::uint64_t, 4> places{source_->address, destination_->address,
                                                  aecs_->address, record_->address};
        if (choice < 6) {
            auto* bytes = reinterpret_cast<std::uint8_t*>(&descriptor_);
            bytes[value % 64] ^= static_cast<std::uint8_t>(1U << (value >> 8 & 7));
        } else if (choice == 6) {
            descriptor_.dst_addr = places[value & 3] + (value >> 8) % 100;
        } else if (choice == 7) {
            descriptor_.src1_addr = places[value & 3] + (value >> 8) % 100;
        } else if (choice == 8) {
            descriptor_.src2_addr = places[value & 3] + ((value >> 8) % 4) * 32;
        } else if (choice == 9) {
            descriptor_.src1_size = static_cast<std::uint32_t>((value >> 8) % 10000);
        } else if (choice == 10) {
            descriptor_.max_dst_size = static_cast<std::uint32_t>((value >> 8) % 10000);
        } else {
            descriptor_.pasid_priv = 1U << 31U;
        }
    }

    [[nodiscard]] static bool inside(const Range& range, const Range& outer) {
        return range.address - outer.address <= outer.size &&
               range.size <= outer.size - (range.address - outer.address);
    }

    [[nodiscard]] bool allowed(const GuestMemory::Access& access, const Request& request,
                               std::uint32_t output_size) const {
        const Range output{descriptor_.dst_addr,
                           std::max<std::uint64_t>(output_size, access.ok ? 0 : access.range.size)};
        if (access.write) {
            return (request.writes_aecs() && inside(access.range, request.aecs_write())) ||
                   inside(access.range, output);
        }
        return inside(access.range, request.source()) ||
               (request.reads_aecs() && inside(access.range, request.aecs_read()));
    }

    /// Bytes that are neither output nor the AECS to be written are as they were.
    [[nodiscard]] std::string untouched(const std::vector<Bytes>& before, std::uint32_t output_size,
                                        const Request& request) const {
        std::size_t index = 0;
        for (const auto* buffer : {source_, destination_, aecs_, record_}) {
            for (std::size_t i = 0; i < buffer->bytes.size(); ++i) {
                const Range byte{buffer->address + i, 1};
                if (buffer->bytes[i] != before[index][i] &&
                    !byte.overlaps({descriptor_.dst_addr, output_size}) &&
                    !(request.writes_aecs() && byte.overlaps(request.aecs_write()))) {
                    return "a byte changed that is not output";
                }
            }
            ++index;
        }
        return {};
    }

    Capabilities capabilities_;
    Descriptor descriptor_{};
    GuestMemory memory_;
    GuestMemory::Buffer* source_ = nullptr;
    GuestMemory::Buffer* destination_ = nullptr;
    GuestMemory::Buffer* aecs_ = nullptr;
    GuestMemory::Buffer* record_ = nullptr;
};

}  // namespace iaa::device::test
