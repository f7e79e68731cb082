// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Layouts of what crosses the portal and of what comes back. Little-endian, as on the wire.
/// Source of the formats: include/uapi/linux/idxd.h of the kernel, and the IAA architecture
/// specification's public descriptions.
namespace iaa::device {

/// A work descriptor: 64 bytes, written to a portal by MOVDIR64B.
struct Descriptor {
    std::uint32_t pasid_priv;       ///< PASID in 19:0, privileged in 31
    std::uint32_t flags_opcode;     ///< flags in 23:0, opcode in 31:24
    std::uint64_t completion_addr;  ///< 64-byte aligned
    std::uint64_t src1_addr;
    std::uint64_t dst_addr;
    std::uint32_t src1_size;
    std::uint16_t int_handle;
    std::uint16_t op_flags;   ///< compress or decompress flags
    std::uint64_t src2_addr;  ///< AECS
    std::uint32_t max_dst_size;
    std::uint32_t src2_size;
    std::uint32_t filter_flags;  ///< compress: second compress flags; CRC64: polynomial, low half
    std::uint32_t num_inputs;    ///< CRC64: polynomial, high half

    [[nodiscard]] std::uint8_t opcode() const {
        return static_cast<std::uint8_t>(flags_opcode >> 24);
    }
    [[nodiscard]] std::uint32_t flags() const { return flags_opcode & 0xffffffU; }
    bool operator==(const Descriptor&) const = default;
};
static_assert(sizeof(Descriptor) == 64);
static_assert(offsetof(Descriptor, src1_size) == 32);
static_assert(offsetof(Descriptor, src2_addr) == 40);

/// A completion record: 64 bytes, written by the device, status last.
struct CompletionRecord {
    std::uint8_t status;
    std::uint8_t error_code;
    std::uint8_t fault_info;
    std::uint8_t reserved0;
    std::uint32_t bytes_completed;
    std::uint64_t fault_addr;
    std::uint32_t invalid_flags;
    std::uint32_t reserved1;
    std::uint32_t output_size;
    std::uint8_t output_bits;
    std::uint8_t reserved2;
    std::uint16_t xor_checksum;
    std::uint32_t crc;
    std::uint32_t min_first;
    std::uint32_t max_last;
    std::uint32_t sum;
    std::array<std::uint64_t, 2> reserved3;

    /// CRC64's result: its low half lies where other operations report max, its high half at sum.
    [[nodiscard]] std::uint64_t crc64() const {
        return static_cast<std::uint64_t>(sum) << 32U | max_last;
    }
    void set_crc64(std::uint64_t value) {
        max_last = static_cast<std::uint32_t>(value);
        sum = static_cast<std::uint32_t>(value >> 32U);
    }

    bool operator==(const CompletionRecord&) const = default;
};
static_assert(sizeof(CompletionRecord) == 64);
static_assert(offsetof(CompletionRecord, output_size) == 24);
static_assert(offsetof(CompletionRecord, crc) == 32);
static_assert(offsetof(CompletionRecord, max_last) == 40);

}  // namespace iaa::device
