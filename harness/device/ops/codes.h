// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string_view>

/// The numbers that descriptors and completion records carry. Sources: include/uapi/linux/idxd.h,
/// and the public headers of core-iaa (hw_iaa_flags.h, own_hw_definitions.h, hw_status.h).
namespace iaa::device {

enum class Opcode : std::uint8_t {
    kNoop = 0x00,
    kDrain = 0x02,
    kDecompress = 0x42,
    kCompress = 0x43,
    kCrc64 = 0x44,
};

/// Operation flags: bits 23:0 of a descriptor's second word.
namespace op_flag {
inline constexpr std::uint32_t kFence = 0x000001;
inline constexpr std::uint32_t kBlockOnFault = 0x000002;
inline constexpr std::uint32_t kCompletionAddressValid = 0x000004;   ///< CRAV
inline constexpr std::uint32_t kRequestCompletionRecord = 0x000008;  ///< RCR
inline constexpr std::uint32_t kRequestInterrupt = 0x000010;         ///< RCI
inline constexpr std::uint32_t kSteeringTagCompletion = 0x000020;    ///< CRSTS
inline constexpr std::uint32_t kCheckResult = 0x000080;              ///< CR; of DSA only
inline constexpr std::uint32_t kCacheControl = 0x000100;             ///< CC
inline constexpr std::uint32_t kTrafficClasses = 0x001e00;           ///< TCS of 3 addresses, record
inline constexpr std::uint32_t kStrictOrdering = 0x002000;
inline constexpr std::uint32_t kDestinationReadback = 0x004000;
inline constexpr std::uint32_t kSteeringTagDestination = 0x008000;
inline constexpr std::uint32_t kReadSource2 = 0x030000;          ///< field: see below
inline constexpr std::uint32_t kReadAecs = 0x010000;             ///< source 2 is an AECS
inline constexpr std::uint32_t kReadSecondInput = 0x020000;      ///< source 2 is data
inline constexpr std::uint32_t kWriteSource2 = 0x0c0000;         ///< field: see below
inline constexpr std::uint32_t kWriteAecs = 0x040000;            ///< write it on completion
inline constexpr std::uint32_t kWriteAecsOnOverflow = 0x080000;  ///< only on output overflow
inline constexpr std::uint32_t kSource2SteeringTag = 0x100000;
inline constexpr std::uint32_t kCrc32c = 0x200000;      ///< CRC_RFC3720
inline constexpr std::uint32_t kAecsToggle = 0x400000;  ///< read the second area, write the first
}  // namespace op_flag

/// Bits of Descriptor::op_flags for COMPRESS.
namespace compress_flag {
inline constexpr std::uint16_t kStatistics = 0x0001;
inline constexpr std::uint16_t kFlush = 0x0002;
inline constexpr std::uint16_t kEndAppend =
    0x000c;  ///< 0 none, 1 EOB, 2 + stored, 3 + final stored
inline constexpr unsigned kEndAppendShift = 2;
inline constexpr std::uint16_t kLiteralsOnly = 0x0010;
inline constexpr std::uint16_t kBigEndian = 0x0020;
inline constexpr std::uint16_t kIndexMode = 0x01c0;
inline constexpr std::uint16_t kReserved = 0x8200;
inline constexpr std::uint16_t kLoadDictionary = 0x0c00;
inline constexpr std::uint16_t kHeaderGeneration = 0x7000;  ///< 2, 3 one pass; 6, 7 two passes
inline constexpr unsigned kHeaderGenerationShift = 12;
}  // namespace compress_flag

/// Bits of Descriptor::filter_flags for COMPRESS.
namespace compress2_flag {
inline constexpr std::uint32_t kWriteTables = 0x00000002;  ///< the AECS written has the tables
}  // namespace compress2_flag

/// Bits of Descriptor::op_flags for DECOMPRESS.
namespace decompress_flag {
inline constexpr std::uint16_t kEnable = 0x0001;
inline constexpr std::uint16_t kFlush = 0x0002;
inline constexpr std::uint16_t kStopOnEob = 0x0004;
inline constexpr std::uint16_t kCheckForEob = 0x0008;
inline constexpr std::uint16_t kOnlyFinalEob = 0x0010;
inline constexpr std::uint16_t kBigEndian = 0x0020;
inline constexpr std::uint16_t kIgnoreEndBits = 0x01c0;
inline constexpr unsigned kIgnoreEndBitsShift = 6;
inline constexpr std::uint16_t kSuppressOutput = 0x0200;
inline constexpr std::uint16_t kIndexMode = 0x1c00;
inline constexpr std::uint16_t kIgnoreEndBitsHigh = 0x4000;  ///< fourth bit of the count
inline constexpr std::uint16_t kReserved = 0xa000;
}  // namespace decompress_flag

/// Bits of Descriptor::op_flags for CRC64.
namespace crc64_flag {
inline constexpr std::uint16_t kInvert = 0x4000;    ///< start and end value inverted
inline constexpr std::uint16_t kBitOrder = 0x8000;  ///< least significant bit first
inline constexpr std::uint16_t kReserved = 0x3fff;
}  // namespace crc64_flag

/// CompletionRecord::status.
enum class Status : std::uint8_t {
    kNone = 0x00,
    kSuccess = 0x01,
    kPageFault = 0x03,       ///< reading; fault_addr says where
    kPageFaultWrite = 0x83,  ///< writing
    kAnalyticsError = 0x0a,  ///< see error_code
    kOutputOverflow = 0x0b,
    kBadOpcode = 0x10,
    kInvalidFlags = 0x11,  ///< see invalid_flags
    kReservedField = 0x12,
    kInvalidSize = 0x13,
    kOverlap = 0x16,
    kInterruptHandle = 0x19,
    kCompletionTranslation = 0x1a,
    kCompletionAlignment = 0x1b,
    kAddressAlignment = 0x1c,
    kPrivilege = 0x1d,
    kTrafficClass = 0x1e,
    kReadbackFault = 0x1f,
    kHardwareError = 0x20,
    kHardwareErrorReadback = 0x21,
    kTranslation = 0x22,
    kPageRequestTimeout = 0x23,
    kWatchdog = 0x24,
    kInvalidCodecFlags = 0x30,  ///< compress, decompress or CRC64 flags
    kInvalidFilterFlags = 0x31,
    kInvalidInputSize = 0x32,
    kInvalidElementCount = 0x33,
    kInvalidSource1Width = 0x34,
    kInvalidInvert = 0x35,
};

/// A short name for a log line; "unknown status" for a number that is not listed.
[[nodiscard]] std::string_view describe(Status status);

}  // namespace iaa::device
