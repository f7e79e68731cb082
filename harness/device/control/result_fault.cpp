// SPDX-License-Identifier: GPL-2.0
#include <array>

#include "device/control/faults.h"

namespace iaa::device::control {
namespace {

constexpr std::uint8_t kOpcodeDecompress = 0x42;
constexpr std::uint8_t kOpcodeCompress = 0x43;
constexpr std::uint16_t kSuppressOutput = 1U << 9;
constexpr std::uint32_t kCrcCastagnoli = 0x200000;  ///< operation flag: CRC-32C

constexpr std::uint32_t kPolynomial = 0xedb88320;            ///< CRC-32, reflected
constexpr std::uint32_t kPolynomialCastagnoli = 0x82f63b78;  ///< CRC-32C, reflected

/// What a CRC changes by when a byte of its input is XORed with flip and `behind` bytes follow it.
/// A CRC is linear, so that neither the rest of the data nor its seed matters.
std::uint32_t crc_difference(std::uint8_t flip, std::uint64_t behind, std::uint32_t polynomial) {
    const auto step = [polynomial](std::uint32_t value) {
        for (int bit = 0; bit < 8; ++bit)
            value = (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
        return value;
    };
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) table[i] = step(i);
    std::uint32_t value = table[flip];
    for (; behind != 0; --behind) value = (value >> 8) ^ table[value & 0xff];
    return value;
}

void corrupt(const Corruption& how, std::uint64_t random, const Descriptor& descriptor,
             DmaMemory& memory, CompletionRecord& record) {
    const std::uint8_t opcode = descriptor.opcode();
    const bool decompresses = opcode == kOpcodeDecompress;
    if ((!decompresses && opcode != kOpcodeCompress) || record.output_size == 0) return;
    const std::uint32_t offset =
        how.offset.value_or(static_cast<std::uint32_t>(random)) % record.output_size;
    const bool written = !decompresses || (descriptor.op_flags & kSuppressOutput) == 0;
    if (written) {
        std::array<std::byte, 1> byte{};
        const std::uint64_t address = descriptor.dst_addr + offset;
        // The guest may have taken the memory away meanwhile: then there is nothing to corrupt.
        if (!memory.read(address, byte)) return;
        byte[0] ^= std::byte{how.flip};
        if (!memory.write(address, byte)) return;
    }
    // Compression's checksums are those of its input, which nobody has touched.
    if (how.crc != CrcFault::kMatching || !decompresses) return;
    const bool castagnoli = (descriptor.flags() & kCrcCastagnoli) != 0;
    record.crc ^= crc_difference(how.flip, record.output_size - offset - 1,
                                 castagnoli ? kPolynomialCastagnoli : kPolynomial);
    record.xor_checksum = static_cast<std::uint16_t>(
        record.xor_checksum ^ (std::uint32_t{how.flip} << (offset % 2 == 0 ? 0 : 8)));
}

}  // namespace

void apply_to_result(const Decision& decision, const Descriptor& descriptor, DmaMemory& memory,
                     CompletionRecord& record) {
    const FaultActions& actions = decision.actions;
    if (actions.corrupt) corrupt(*actions.corrupt, decision.random, descriptor, memory, record);
    if (actions.output_size) record.output_size = *actions.output_size;
    if (actions.status) {
        record.status = actions.status->status;
        record.error_code = actions.status->error_code;
    }
}

}  // namespace iaa::device::control
