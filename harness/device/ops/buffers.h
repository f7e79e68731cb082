// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "device/ops/operation.h"

/// Guest memory as an operation uses it: whole buffers, and an outcome where one is not there.
namespace iaa::device {

/// A run of guest memory.
struct Range {
    constexpr Range() = default;
    constexpr Range(std::uint64_t start, std::uint64_t bytes) : address(start), size(bytes) {}

    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< bytes

    /// True where the two share a byte. Ranges may wrap around the end of the address space.
    [[nodiscard]] bool overlaps(const Range& other) const {
        return size != 0 && other.size != 0 &&
               (other.address - address < size || address - other.address < other.size);
    }
};

/// The memory and what is needed to report a fault in it.
class Buffers {
  public:
    Buffers(DmaMemory& memory, const Capabilities& capabilities)
        : memory_(memory), capabilities_(capabilities) {}

    /// Nothing where every byte of the range is mapped so, else the page fault. `what` names the
    /// buffer in the rule's text. A range of 0 bytes is mapped.
    [[nodiscard]] std::optional<Outcome> check(const Range& range, bool write,
                                               std::string_view what);

    /// Copies in from, or out to, guest memory. The page fault where that does not work.
    [[nodiscard]] std::optional<Outcome> read(std::uint64_t address, std::span<std::uint8_t> out,
                                              std::string_view what);
    [[nodiscard]] std::optional<Outcome> write(std::uint64_t address,
                                               std::span<const std::uint8_t> in,
                                               std::string_view what);

  private:
    [[nodiscard]] Outcome fault(const Range& range, bool write, std::string_view what);

    DmaMemory& memory_;
    const Capabilities& capabilities_;
};

}  // namespace iaa::device
