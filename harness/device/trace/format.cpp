// SPDX-License-Identifier: GPL-2.0
#include "device/trace/format.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

namespace iaa::device {

TraceError::TraceError(const std::string& what, std::uint64_t offset)
    : std::runtime_error(fmt::format("{} (at offset {} of the trace)", what, offset)),
      offset_(offset) {}

namespace trace_format {
namespace {

// Descriptors and records are copied as they are.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "IAATRACE";
constexpr std::uint32_t kRecordMagic = 0x52414149;

// Bits of the capabilities' second word, and of a record's flags.
constexpr std::uint32_t kHeaderGeneration = 1;
constexpr std::uint32_t kFormat2 = 2;
constexpr std::uint32_t kBlockOnFault = 4;
constexpr std::uint32_t kPasidEnabled = 8;
constexpr std::uint32_t kPrivileged = 16;
constexpr std::uint32_t kFaultInjected = 1;
constexpr std::uint32_t kNotExecuted = 2;
constexpr std::uint32_t kCompleted = 4;

class Writer {
  public:
    template <typename Value>
    void put(const Value& value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    void bytes(std::span<const std::byte> bytes) {
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    void reserve(std::size_t size) { out_.reserve(size); }
    [[nodiscard]] std::span<const std::byte> written() const { return out_; }
    [[nodiscard]] std::vector<std::byte> take() { return std::move(out_); }

  private:
    std::vector<std::byte> out_;
};

class Reader {
  public:
    Reader(std::span<const std::byte> bytes, std::uint64_t offset)
        : bytes_(bytes), offset_(offset) {}

    template <typename Value>
    Value get(std::string_view what) {
        Value value{};
        const auto from = take(sizeof(Value), what);
        std::memcpy(&value, from.data(), sizeof(Value));
        return value;
    }

    std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
        if (size > bytes_.size() - at_) {
            throw TraceError(fmt::format("{} needs {} bytes, the record has {} left", what, size,
                                         bytes_.size() - at_),
                             offset());
        }
        const auto part = bytes_.subspan(at_, size);
        at_ += size;
        return part;
    }

    void zero(std::size_t size, std::string_view what) {
        const std::uint64_t from = offset();
        const auto part = take(size, what);
        if (!std::ranges::all_of(part, [](std::byte byte) { return byte == std::byte{0}; })) {
            throw TraceError(fmt::format("{} is not zero", what), from);
        }
    }

    [[nodiscard]] std::uint64_t offset() const { return offset_ + at_; }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  private:
    std::span<const std::byte> bytes_;
    std::uint64_t offset_;
    std::size_t at_ = 0;
};

bool has_bytes(const TraceAccess& access) {
    return access.ok &&
           (access.kind == TraceAccess::Kind::kRead || access.kind == TraceAccess::Kind::kWrite);
}

void put_capabilities(Writer& out, const Capabilities& capabilities) {
    out.put(capabilities.version);
    out.put((capabilities.header_generation ? kHeaderGeneration : 0) |
            (capabilities.decompress_aecs_format2 ? kFormat2 : 0) |
            (capabilities.block_on_fault ? kBlockOnFault : 0) |
            (capabilities.pasid_enabled ? kPasidEnabled : 0) |
            (capabilities.privileged ? kPrivileged : 0));
    out.put(capabilities.max_transfer_size);
    out.put(capabilities.opcodes);
    out.put(std::uint64_t{0});
}

Capabilities get_capabilities(Reader& in) {
    Capabilities capabilities;
    capabilities.version = in.get<std::uint32_t>("version");
    const std::uint64_t flags_at = in.offset();
    const auto flags = in.get<std::uint32_t>("capability flags");
    if ((flags & ~(kHeaderGeneration | kFormat2 | kBlockOnFault | kPasidEnabled | kPrivileged)) !=
        0) {
        throw TraceError(fmt::format("unknown capability flags {:#x}", flags), flags_at);
    }
    capabilities.header_generation = (flags & kHeaderGeneration) != 0;
    capabilities.decompress_aecs_format2 = (flags & kFormat2) != 0;
    capabilities.block_on_fault = (flags & kBlockOnFault) != 0;
    capabilities.pasid_enabled = (flags & kPasidEnabled) != 0;
    capabilities.privileged = (flags & kPrivileged) != 0;
    capabilities.max_transfer_size = in.get<std::uint64_t>("largest transfer");
    capabilities.opcodes = in.get<std::array<std::uint64_t, 4>>("opcodes");
    in.zero(8, "reserved part of the capabilities");
    return capabilities;
}

TraceAccess get_access(Reader& in) {
    TraceAccess access;
    const std::uint64_t from = in.offset();
    const auto kind = in.get<std::uint8_t>("kind of access");
    const auto ok = in.get<std::uint8_t>("result of an access");
    if (kind > static_cast<std::uint8_t>(TraceAccess::Kind::kMappedForWrite) || ok > 1) {
        throw TraceError(fmt::format("access of kind {} with result {}", kind, ok), from);
    }
    access.kind = static_cast<TraceAccess::Kind>(kind);
    access.ok = ok == 1;
    in.zero(6, "reserved part of an access");
    access.iova = in.get<std::uint64_t>("address");
    access.size = in.get<std::uint64_t>("size");
    if (has_bytes(access)) {
        const auto bytes = in.take(access.size, "bytes of an access");
        access.bytes.assign(bytes.begin(), bytes.end());
    }
    return access;
}

}  // namespace

std::uint32_t checksum(std::span<const std::byte> bytes) {
    // ISA-L takes an unsigned char pointer and reads only.
    return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::vector<std::byte> make_file_header() {
    Writer out;
    out.bytes(std::as_bytes(std::span(kMagic)));
    out.put(TraceWriter::kVersion);
    out.put(static_cast<std::uint32_t>(kFileHeaderSize));
    out.put(std::array<std::uint32_t, 3>{});
    out.put(checksum(out.written()));
    return out.take();
}

void check_file_header(std::span<const std::byte, kFileHeaderSize> header) {
    if (!std::ranges::equal(header.first(kMagic.size()), std::as_bytes(std::span(kMagic)))) {
        throw TraceError("not a trace of iaa-device", 0);
    }
    Reader in(header, 0);
    in.take(kMagic.size(), "magic");
    const auto version = in.get<std::uint32_t>("version");
    if (version != TraceWriter::kVersion) {
        throw TraceError(fmt::format("trace format version {}, this program reads version {}",
                                     version, TraceWriter::kVersion),
                         8);
    }
    if (const auto size = in.get<std::uint32_t>("header size"); size != kFileHeaderSize) {
        throw TraceError(fmt::format("file header of {} bytes", size), 12);
    }
    in.zero(12, "reserved part of the file header");
    if (in.get<std::uint32_t>("checksum") != checksum(header.first(28))) {
        throw TraceError("wrong checksum of the file header", 28);
    }
}

std::vector<std::byte> make_record(const TraceRecord& record) {
    Writer body;
    std::size_t size = kBodyFixedSize + record.outcome.rule.size();
    for (const TraceAccess& access : record.accesses) {
        size += kAccessFixedSize + access.bytes.size();
    }
    body.reserve(size);
    body.put(record.number);
    body.put(record.nanoseconds);
    body.put(record.work_queue);
    body.put((record.fault_injected ? kFaultInjected : 0) | (record.executed ? 0 : kNotExecuted) |
             (record.completion ? kCompleted : 0));
    put_capabilities(body, record.capabilities);
    body.put(record.descriptor);
    body.put(record.outcome.record);
    body.put(record.completion.value_or(CompletionRecord{}));
    body.put(static_cast<std::uint32_t>(record.outcome.rule.size()));
    body.put(static_cast<std::uint32_t>(record.accesses.size()));
    body.bytes(std::as_bytes(std::span(record.outcome.rule)));
    for (const TraceAccess& access : record.accesses) {
        body.put(static_cast<std::uint8_t>(access.kind));
        body.put(static_cast<std::uint8_t>(access.ok ? 1 : 0));
        body.put(std::array<std::uint8_t, 6>{});
        body.put(access.iova);
        body.put(access.size);
        if (has_bytes(access)) {
            body.bytes(access.bytes);
        }
    }

    Writer out;
    out.reserve(kRecordHeaderSize + size);
    out.put(kRecordMagic);
    out.put(static_cast<std::uint32_t>(body.written().size()));
    out.put(checksum(body.written()));
    out.put(checksum(out.written()));
    out.bytes(body.written());
    return out.take();
}

RecordHeader parse_record_header(std::span<const std::byte, kRecordHeaderSize> header,
                                 std::uint64_t offset) {
    Reader in(header, offset);
    if (in.get<std::uint32_t>("record mark") != kRecordMagic) {
        throw TraceError("no record begins here", offset);
    }
    RecordHeader result;
    result.body_size = in.get<std::uint32_t>("record size");
    result.body_crc = in.get<std::uint32_t>("record checksum");
    if (in.get<std::uint32_t>("header checksum") != checksum(header.first(12))) {
        throw TraceError("wrong checksum of a record's header", offset);
    }
    if (result.body_size < kBodyFixedSize || result.body_size > TraceWriter::kMaxBody) {
        throw TraceError(fmt::format("record of {} bytes, must be {} to {}", result.body_size,
                                     kBodyFixedSize, TraceWriter::kMaxBody),
                         offset + 4);
    }
    return result;
}

TraceRecord parse_body(std::span<const std::byte> body, const RecordHeader& header,
                       std::uint64_t offset) {
    if (checksum(body) != header.body_crc) {
        throw TraceError("wrong checksum of a record", offset);
    }
    Reader in(body, offset);
    TraceRecord record;
    record.number = in.get<std::uint64_t>("number");
    record.nanoseconds = in.get<std::uint64_t>("time");
    record.work_queue = in.get<std::uint32_t>("work queue");
    const std::uint64_t flags_at = in.offset();
    const auto flags = in.get<std::uint32_t>("flags");
    if ((flags & ~(kFaultInjected | kNotExecuted | kCompleted)) != 0) {
        throw TraceError(fmt::format("unknown record flags {:#x}", flags), flags_at);
    }
    record.fault_injected = (flags & kFaultInjected) != 0;
    record.executed = (flags & kNotExecuted) == 0;
    record.capabilities = get_capabilities(in);
    record.descriptor = in.get<Descriptor>("descriptor");
    record.outcome.record = in.get<CompletionRecord>("completion record");
    if ((flags & kCompleted) != 0) {
        record.completion = in.get<CompletionRecord>("completion record that it ended with");
    } else {
        in.zero(sizeof(CompletionRecord), "completion record of a descriptor without one");
    }
    const auto text_size = in.get<std::uint32_t>("length of the rule");
    const std::uint64_t count_at = in.offset();
    const auto count = in.get<std::uint32_t>("number of accesses");
    const auto text = in.take(text_size, "rule");
    record.outcome.rule.resize(text.size());
    std::memcpy(record.outcome.rule.data(), text.data(), text.size());
    if (count > in.left() / kAccessFixedSize) {
        throw TraceError(fmt::format("{} accesses in {} bytes", count, in.left()), count_at);
    }
    record.accesses.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        record.accesses.push_back(get_access(in));
    }
    if (in.left() != 0) {
        throw TraceError(fmt::format("{} bytes behind the last access", in.left()), in.offset());
    }
    return record;
}

}  // namespace trace_format
}  // namespace iaa::device
