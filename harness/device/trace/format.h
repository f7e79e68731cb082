// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/trace/trace.h"

/// The bytes of a trace file, as trace.h describes them.
namespace iaa::device::trace_format {

inline constexpr std::size_t kFileHeaderSize = 32;
inline constexpr std::size_t kRecordHeaderSize = 16;
inline constexpr std::size_t kBodyFixedSize = 280;
inline constexpr std::size_t kAccessFixedSize = 24;

/// CRC-32, as in headers and of bodies.
[[nodiscard]] std::uint32_t checksum(std::span<const std::byte> bytes);

[[nodiscard]] std::vector<std::byte> make_file_header();

/// Throws TraceError (offsets from 0).
void check_file_header(std::span<const std::byte, kFileHeaderSize> header);

/// The whole record, with its header.
[[nodiscard]] std::vector<std::byte> make_record(const TraceRecord& record);

struct RecordHeader {
    std::uint32_t body_size = 0;
    std::uint32_t body_crc = 0;
};

/// Throws TraceError; `offset` is the header's in the file.
[[nodiscard]] RecordHeader parse_record_header(std::span<const std::byte, kRecordHeaderSize> header,
                                               std::uint64_t offset);

/// Throws TraceError; `offset` is the body's in the file.
[[nodiscard]] TraceRecord parse_body(std::span<const std::byte> body, const RecordHeader& header,
                                     std::uint64_t offset);

}  // namespace iaa::device::trace_format
