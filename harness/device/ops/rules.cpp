// SPDX-License-Identifier: GPL-2.0
#include "device/ops/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "deflate/encoder.h"
#include "device/ops/aecs.h"

namespace iaa::device {
namespace {

using Result = std::optional<Breach>;

// Which operations a rule is for.
bool any(Opcode) {
    return true;
}
bool codec(Opcode opcode) {
    return opcode == Opcode::kCompress || opcode == Opcode::kDecompress;
}
bool compress(Opcode opcode) {
    return opcode == Opcode::kCompress;
}
bool decompress(Opcode opcode) {
    return opcode == Opcode::kDecompress;
}
bool crc(Opcode opcode) {
    return opcode == Opcode::kCrc64;
}
bool compress_or_crc(Opcode opcode) {
    return compress(opcode) || crc(opcode);
}
bool with_source(Opcode opcode) {
    return codec(opcode) || crc(opcode);
}
bool without_data(Opcode opcode) {
    return opcode == Opcode::kNoop || opcode == Opcode::kDrain;
}

/// Operation flags that an opcode takes. Traffic class bits are taken and have no effect.
std::uint32_t known_flags(Opcode opcode) {
    std::uint32_t flags = op_flag::kBlockOnFault | op_flag::kCompletionAddressValid |
                          op_flag::kRequestCompletionRecord | op_flag::kRequestInterrupt |
                          op_flag::kTrafficClasses;
    if (codec(opcode)) {
        flags |= op_flag::kCacheControl | op_flag::kReadSource2 | op_flag::kWriteSource2 |
                 op_flag::kCrc32c | op_flag::kAecsToggle;
    }
    return flags;
}

/// The breach where there is one. The text is a string, or makes one: most descriptors break
/// nothing, and pay for no text.
template <typename Text>
Result when(bool broken, const Text& text, std::uint32_t flags = 0) {
    if (!broken) {
        return std::nullopt;
    }
    if constexpr (std::is_invocable_v<Text>) {
        return Breach(text(), flags);
    } else {
        return Breach(text, flags);
    }
}

/// For rules about bits that must be zero.
Result zero_bits(std::uint64_t bits, std::string_view what) {
    return bits == 0 ? std::nullopt : Result(Breach(fmt::format("{} {:#x}", what, bits)));
}

Result bad_flags(std::uint32_t flags) {
    return flags == 0 ? std::nullopt : Result(Breach(fmt::format("flags {:#x}", flags), flags));
}

bool is_known(Opcode opcode) {
    return without_data(opcode) || with_source(opcode);
}

Result opcode_known(const Request& r) {
    const unsigned number = r.descriptor().opcode();
    const bool enabled = (r.capabilities().opcodes[number / 64] >> (number % 64) & 1U) != 0;
    return when(!enabled || !is_known(r.opcode()),
                [&] { return fmt::format("opcode {:#04x}", number); });
}

Result flags_known(const Request& r) {
    return bad_flags(r.descriptor().flags() & ~known_flags(r.opcode()));
}

Result block_on_fault(const Request& r) {
    return r.capabilities().block_on_fault ? std::nullopt
                                           : bad_flags(r.flag(op_flag::kBlockOnFault));
}

Result record_address_valid(const Request& r) {
    return r.flag(op_flag::kCompletionAddressValid) != 0
               ? std::nullopt
               : bad_flags(r.flag(op_flag::kRequestCompletionRecord));
}

Result source2_read(const Request& r) {
    const std::uint32_t field = r.flag(op_flag::kReadSource2);
    return field == 0 || field == op_flag::kReadAecs ? std::nullopt : bad_flags(field);
}

Result source2_write(const Request& r) {
    const std::uint32_t field = r.flag(op_flag::kWriteSource2);
    return field == op_flag::kWriteSource2 ? bad_flags(field) : std::nullopt;
}

Result overflow_write(const Request& r) {
    return bad_flags(r.flag(op_flag::kWriteAecsOnOverflow));
}

Result toggle_used(const Request& r) {
    return r.reads_aecs() || r.writes_aecs() ? std::nullopt
                                             : bad_flags(r.flag(op_flag::kAecsToggle));
}

Result statistics_alone(const Request& r) {
    return r.statistics() ? bad_flags(r.flag(op_flag::kReadSource2 | op_flag::kWriteSource2))
                          : std::nullopt;
}

Result tables_given(const Request& r) {
    return when(!r.statistics() && r.header_generation() == 0 && !r.reads_aecs(),
                "no AECS read, so no Huffman tables", op_flag::kReadAecs);
}

Result word0_reserved(const Request& r) {
    return zero_bits(r.descriptor().pasid_priv & 0x7ff00000U, "bits 30:20 are");
}

Result record_address_unused(const Request& r) {
    return r.flag(op_flag::kCompletionAddressValid) != 0
               ? std::nullopt
               : zero_bits(r.descriptor().completion_addr, "not valid, but");
}

Result handle_unused(const Request& r) {
    return r.flag(op_flag::kRequestInterrupt) != 0
               ? std::nullopt
               : zero_bits(r.descriptor().int_handle, "no interrupt asked for, but");
}

Result no_data_fields(const Request& r) {
    const Descriptor& d = r.descriptor();
    return when((d.src1_addr | d.dst_addr | d.src2_addr) != 0 ||
                    (d.src1_size | d.max_dst_size | d.src2_size | d.filter_flags | d.num_inputs |
                     d.op_flags) != 0,
                "a field of bytes 16-35 or 38-63 is not zero");
}

Result crc64_fields(const Request& r) {
    const Descriptor& d = r.descriptor();
    return when((d.dst_addr | d.src2_addr) != 0 || (d.max_dst_size | d.src2_size) != 0,
                "destination or bytes 40-55 are not zero");
}

Result inputs_unused(const Request& r) {
    return zero_bits(r.descriptor().num_inputs, "number of inputs is");
}

Result compress2_reserved(const Request& r) {
    const std::uint32_t known =
        r.capabilities().header_generation ? compress2_flag::kWriteTables : 0;
    return zero_bits(r.descriptor().filter_flags & ~known, "second compress flags");
}

Result source2_unused(const Request& r) {
    return when(!r.reads_aecs() && !r.writes_aecs() &&
                    (r.descriptor().src2_addr != 0 || r.descriptor().src2_size != 0),
                "neither read nor written, but given");
}

Result two_pass_destination(const Request& r) {
    return when(r.capabilities().header_generation && r.two_pass() &&
                    (r.descriptor().dst_addr != 0 || r.descriptor().max_dst_size != 0),
                "the first of two passes has no destination, but one is given");
}

Result privilege(const Request& r) {
    return when(r.capabilities().pasid_enabled && !r.capabilities().privileged &&
                    (r.descriptor().pasid_priv >> 31U) != 0,
                "privileged descriptor in an unprivileged work queue");
}

Result record_alignment(const Request& r) {
    return when(
        r.flag(op_flag::kCompletionAddressValid) != 0 && r.descriptor().completion_addr % 64 != 0,
        [&] { return fmt::format("address {:#x}", r.descriptor().completion_addr); });
}

Result compress_reserved(const Request& r) {
    return zero_bits(r.codec_flag(compress_flag::kReserved), "compress flags");
}
Result compress_big_endian(const Request& r) {
    return zero_bits(r.codec_flag(compress_flag::kBigEndian), "compress flags");
}
Result compress_index(const Request& r) {
    return zero_bits(r.codec_flag(compress_flag::kIndexMode), "compress flags");
}
Result compress_dictionary(const Request& r) {
    return zero_bits(r.codec_flag(compress_flag::kLoadDictionary), "compress flags");
}

Result header_generation(const Request& r) {
    const unsigned mode = r.header_generation();
    return when(
        mode != 0 && (!r.capabilities().header_generation || !(r.one_pass() || r.two_pass()) ||
                      r.statistics()),
        [&] { return fmt::format("mode {}{}", mode, r.statistics() ? " with statistics" : ""); });
}

Result two_pass_write(const Request& r) {
    return when(r.two_pass() && (!r.writes_aecs() ||
                                 (r.descriptor().filter_flags & compress2_flag::kWriteTables) == 0),
                "the first of two passes keeps neither tables nor header");
}

Result tables_write(const Request& r) {
    return when(
        (r.descriptor().filter_flags & compress2_flag::kWriteTables) != 0 && !r.writes_aecs(),
        "tables are to be written, but the AECS is not");
}

Result compress_flush(const Request& r) {
    return when(!r.statistics() && !r.two_pass() && !r.writes_aecs() &&
                    r.codec_flag(compress_flag::kFlush) == 0,
                "without flush and AECS write the last bits are lost");
}

Result decompress_enable(const Request& r) {
    return when(r.codec_flag(decompress_flag::kEnable) == 0, "bit 0 is clear");
}
Result decompress_reserved(const Request& r) {
    return zero_bits(r.codec_flag(decompress_flag::kReserved), "decompress flags");
}
Result decompress_big_endian(const Request& r) {
    return zero_bits(r.codec_flag(decompress_flag::kBigEndian), "decompress flags");
}
Result decompress_index(const Request& r) {
    return zero_bits(r.codec_flag(decompress_flag::kIndexMode), "decompress flags");
}

Result ignore_end_bits_high(const Request& r) {
    return r.capabilities().decompress_aecs_format2
               ? std::nullopt
               : zero_bits(r.codec_flag(decompress_flag::kIgnoreEndBitsHigh), "decompress flags");
}

Result ignore_end_bits(const Request& r) {
    // Behind an overflow the rest of the source may be shorter than the bits that it ends with.
    return when(!r.reads_aecs() && r.end_bits() > r.ignored_end_bits(), [&] {
        return fmt::format("{} bits of a source of {} bytes", r.end_bits(),
                           r.descriptor().src1_size);
    });
}

Result decompress_flush(const Request& r) {
    return when(!r.suppressed() && r.flag(op_flag::kWriteSource2) != op_flag::kWriteAecs &&
                    r.codec_flag(decompress_flag::kFlush) == 0,
                "without flush and AECS write the last bytes are lost");
}

Result crc64_flags(const Request& r) {
    return zero_bits(r.codec_flag(crc64_flag::kReserved), "CRC64 flags");
}

Result filter_unused(const Request& r) {
    return zero_bits(r.descriptor().filter_flags, "filter flags");
}

/// Bytes. The encoder's own limit holds whatever the registers, or a trace, say.
std::uint64_t transfer_limit(const Request& r) {
    return std::min<std::uint64_t>(r.capabilities().max_transfer_size, deflate::kMaxInput);
}

Result within_limit(const Request& r, std::uint32_t size) {
    return when(size > transfer_limit(r),
                [&] { return fmt::format("{} bytes, the limit is {}", size, transfer_limit(r)); });
}

Result source_limit(const Request& r) {
    return within_limit(r, r.descriptor().src1_size);
}
Result destination_limit(const Request& r) {
    return within_limit(r, r.descriptor().max_dst_size);
}

Result source_empty(const Request& r) {
    // With an AECS there may be bits in its accumulator to write.
    return when(r.descriptor().src1_size == 0 && !r.reads_aecs(), "source of 0 bytes");
}

Result all_empty(const Request& r) {
    return when(r.descriptor().src1_size == 0 && r.descriptor().max_dst_size == 0,
                "source and destination of 0 bytes");
}

Result compress_destination(const Request& r) {
    return when(!r.two_pass() && r.descriptor().max_dst_size == 0, "destination of 0 bytes");
}

Result statistics_destination(const Request& r) {
    return when(r.statistics() && r.descriptor().max_dst_size < kHistogramSize, [&] {
        return fmt::format("destination of {} bytes, the histogram has {}",
                           r.descriptor().max_dst_size, kHistogramSize);
    });
}

Result decompress_destination(const Request& r) {
    return when(!r.suppressed() && r.descriptor().max_dst_size == 0, "destination of 0 bytes");
}

Result one_pass_limit(const Request& r) {
    return when(r.one_pass() && r.descriptor().src1_size > kOnePassLimit, [&] {
        return fmt::format("{} bytes, one-pass header generation takes {}",
                           r.descriptor().src1_size, kOnePassLimit);
    });
}

Result aecs_alignment(const Request& r) {
    const Descriptor& d = r.descriptor();
    return when((r.reads_aecs() || r.writes_aecs()) &&
                    (d.src2_addr % kAecsAlignment != 0 || d.src2_size % kAecsAlignment != 0),
                [&] {
                    return fmt::format("{} bytes at {:#x}, both must be multiples of {}",
                                       d.src2_size, d.src2_addr, kAecsAlignment);
                });
}

Result compress_aecs_size(const Request& r) {
    return when(
        (r.reads_aecs() || r.writes_aecs()) && r.descriptor().src2_size != kCompressAecsSize, [&] {
            return fmt::format("{} bytes, must be {}", r.descriptor().src2_size, kCompressAecsSize);
        });
}

Result decompress_aecs_size(const Request& r) {
    const bool format2 = r.capabilities().decompress_aecs_format2;
    return when((r.reads_aecs() || r.writes_aecs()) &&
                    !is_decompress_aecs_size(r.descriptor().src2_size, format2),
                [&] {
                    return fmt::format("{} bytes, must be {}{} or {}", r.descriptor().src2_size,
                                       format2 ? "" : "1088, ", kAecsSizeWithoutHistory,
                                       kDecompressAecsSize);
                });
}

Result overlap(const Request& r) {
    struct Buffer {
        Buffer(std::string_view what, const Range& where, bool output)
            : name(what), range(where), written(output) {}

        std::string_view name;
        Range range;
        bool written;
    };
    const Descriptor& d = r.descriptor();
    const Opcode opcode = r.opcode();
    // A destination that nothing is written to is not looked at: drivers verify with the address of
    // the data in it.
    const bool output = compress(opcode) ? !r.two_pass() : decompress(opcode) && !r.suppressed();
    const std::uint64_t output_size =
        r.statistics() && compress(opcode) ? kHistogramSize : d.max_dst_size;
    const std::array<Buffer, 5> buffers{{
        {"source", r.source(), false},
        {"destination", Range(d.dst_addr, output ? output_size : 0), true},
        {"AECS read", codec(opcode) && r.reads_aecs() ? r.aecs_read() : Range{}, false},
        {"AECS write", codec(opcode) && r.writes_aecs() ? r.aecs_write() : Range{}, true},
        {"completion record",
         r.flag(op_flag::kCompletionAddressValid) != 0
             ? Range(d.completion_addr, sizeof(CompletionRecord))
             : Range{},
         true},
    }};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        for (std::size_t j = i + 1; j < buffers.size(); ++j) {
            if ((buffers[i].written || buffers[j].written) &&
                buffers[i].range.overlaps(buffers[j].range)) {
                return Breach(fmt::format("{} ({} bytes at {:#x}) and {} ({} bytes at {:#x})",
                                          buffers[i].name, buffers[i].range.size,
                                          buffers[i].range.address, buffers[j].name,
                                          buffers[j].range.size, buffers[j].range.address));
            }
        }
    }
    return std::nullopt;
}

constexpr auto kRules = std::to_array<Rule>({
    // First: what is wrong besides cannot be told in a record that has no place.
    {"completion-alignment", Status::kCompletionAlignment, any, record_alignment},

    {"opcode-supported", Status::kBadOpcode, any, opcode_known},

    {"flags-known", Status::kInvalidFlags, any, flags_known},
    {"block-on-fault-enabled", Status::kInvalidFlags, any, block_on_fault},
    {"record-request-with-address", Status::kInvalidFlags, any, record_address_valid},
    {"source2-read-mode", Status::kInvalidFlags, codec, source2_read},
    {"source2-write-mode", Status::kInvalidFlags, codec, source2_write},
    {"compress-overflow-write", Status::kInvalidFlags, compress, overflow_write},
    {"aecs-toggle-used", Status::kInvalidFlags, codec, toggle_used},
    {"statistics-without-aecs", Status::kInvalidFlags, compress, statistics_alone},
    {"compress-tables", Status::kInvalidFlags, compress, tables_given},

    {"descriptor-reserved", Status::kReservedField, any, word0_reserved},
    {"completion-address-unused", Status::kReservedField, any, record_address_unused},
    {"interrupt-handle-unused", Status::kReservedField, any, handle_unused},
    {"fields-unused", Status::kReservedField, without_data, no_data_fields},
    {"crc64-fields-unused", Status::kReservedField, crc, crc64_fields},
    {"inputs-unused", Status::kReservedField, codec, inputs_unused},
    {"compress2-flags-known", Status::kReservedField, compress, compress2_reserved},
    {"source2-unused", Status::kReservedField, codec, source2_unused},
    {"two-pass-destination-unused", Status::kReservedField, compress, two_pass_destination},

    {"privilege", Status::kPrivilege, any, privilege},

    {"compress-flags-known", Status::kInvalidCodecFlags, compress, compress_reserved},
    {"compress-big-endian", Status::kInvalidCodecFlags, compress, compress_big_endian},
    {"compress-index-mode", Status::kInvalidCodecFlags, compress, compress_index},
    {"compress-dictionary", Status::kInvalidCodecFlags, compress, compress_dictionary},
    {"header-generation", Status::kInvalidCodecFlags, compress, header_generation},
    {"two-pass-write", Status::kInvalidCodecFlags, compress, two_pass_write},
    {"tables-write", Status::kInvalidCodecFlags, compress, tables_write},
    {"compress-flush", Status::kInvalidCodecFlags, compress, compress_flush},
    {"decompress-enabled", Status::kInvalidCodecFlags, decompress, decompress_enable},
    {"decompress-flags-known", Status::kInvalidCodecFlags, decompress, decompress_reserved},
    {"decompress-big-endian", Status::kInvalidCodecFlags, decompress, decompress_big_endian},
    {"decompress-index-mode", Status::kInvalidCodecFlags, decompress, decompress_index},
    {"ignore-end-bits-high", Status::kInvalidCodecFlags, decompress, ignore_end_bits_high},
    {"ignore-end-bits", Status::kInvalidCodecFlags, decompress, ignore_end_bits},
    {"decompress-flush", Status::kInvalidCodecFlags, decompress, decompress_flush},
    {"crc64-flags-known", Status::kInvalidCodecFlags, crc, crc64_flags},
    {"filter-flags-unused", Status::kInvalidFilterFlags, decompress, filter_unused},

    {"source-limit", Status::kInvalidSize, with_source, source_limit},
    {"destination-limit", Status::kInvalidSize, codec, destination_limit},
    {"source-empty", Status::kInvalidSize, compress_or_crc, source_empty},
    {"buffers-empty", Status::kInvalidSize, codec, all_empty},
    {"compress-destination-empty", Status::kInvalidSize, compress, compress_destination},
    {"statistics-destination", Status::kInvalidSize, compress, statistics_destination},
    {"decompress-destination-empty", Status::kInvalidSize, decompress, decompress_destination},
    {"one-pass-limit", Status::kInvalidInputSize, compress, one_pass_limit},

    {"aecs-alignment", Status::kAddressAlignment, codec, aecs_alignment},
    {"compress-aecs-size", Status::kInvalidSize, compress, compress_aecs_size},
    {"decompress-aecs-size", Status::kInvalidSize, decompress, decompress_aecs_size},

    {"overlap", Status::kOverlap, any, overlap},
});

}  // namespace

std::span<const Rule> rules() {
    return kRules;
}

std::optional<Outcome> check_rules(const Request& request) {
    for (const Rule& rule : kRules) {
        if (!rule.applies(request.opcode())) {
            continue;
        }
        if (const Result breach = rule.check(request)) {
            Outcome outcome;
            outcome.record.status = static_cast<std::uint8_t>(rule.status);
            outcome.record.invalid_flags = breach->flags;
            outcome.rule = fmt::format("{}: {}", rule.name, breach->text);
            return outcome;
        }
    }
    return std::nullopt;
}

}  // namespace iaa::device
