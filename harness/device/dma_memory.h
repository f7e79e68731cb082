// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iaa::device {

/// Guest memory as the device sees it. Addresses are the IOVAs that descriptors carry; a range may
/// span several mappings. Safe to call from any thread.
class DmaMemory {
  public:
    virtual ~DmaMemory() = default;

    /// Copies out.size() bytes from iova. False, with out unspecified, where a byte is not mapped
    /// for reading.
    [[nodiscard]] virtual bool read(std::uint64_t iova, std::span<std::byte> out) = 0;

    /// Copies in to iova. False, with nothing written, where a byte is not mapped for writing.
    [[nodiscard]] virtual bool write(std::uint64_t iova, std::span<const std::byte> in) = 0;

    /// Writes a 64-byte completion record: bytes 1 to 63 first, then the status byte with release
    /// order, so that a poller that sees the status sees the rest.
    [[nodiscard]] virtual bool write_completion(std::uint64_t iova,
                                                std::span<const std::byte, 64> record) = 0;

    /// True where every byte of the range is mapped with the asked access.
    [[nodiscard]] virtual bool mapped(std::uint64_t iova, std::uint64_t size, bool write) = 0;

  protected:
    DmaMemory() = default;
    DmaMemory(const DmaMemory&) = default;
    DmaMemory& operator=(const DmaMemory&) = default;
    DmaMemory(DmaMemory&&) = default;
    DmaMemory& operator=(DmaMemory&&) = default;
};

}  // namespace iaa::device
