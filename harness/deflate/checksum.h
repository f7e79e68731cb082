// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <span>

namespace iaa::deflate {

enum class CrcKind : std::uint8_t {
    kCrc32,   ///< polynomial 0x04C11DB7, as zlib's and gzip's
    kCrc32c,  ///< polynomial 0x1EDC6F41 (the operation flag CRC_RFC3720)
};

/// The checksums of uncompressed data that a completion record carries. Start values come from the
/// AECS, where the device keeps them as the record reports them (0 and 0 for a new stream).
class Checksums {
  public:
    explicit Checksums(CrcKind kind = CrcKind::kCrc32, std::uint32_t crc = 0,
                       std::uint16_t xor_sum = 0)
        : kind_(kind), crc_(crc), xor_(xor_sum) {}

    void update(std::span<const std::uint8_t> bytes);

    [[nodiscard]] std::uint32_t crc() const { return crc_; }

    /// XOR of the data's 16-bit little-endian words; an odd last byte counts as a word with a high
    /// byte of 0. Words are counted from the object's first byte.
    [[nodiscard]] std::uint16_t xor_sum() const { return xor_; }

  private:
    CrcKind kind_;
    std::uint32_t crc_;
    std::uint16_t xor_;
    bool odd_ = false;  ///< an odd number of bytes so far
};

}  // namespace iaa::deflate
