// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace iaa::device {

/// PCI config space of the function: a root complex integrated endpoint with FLR, MSI-X and power
/// management. Reads and writes may have any size and offset inside it; each byte has its own write
/// mask, so that a write of part of a register changes that part alone.
class ConfigSpace {
  public:
    static constexpr std::size_t kSize = 4096;

    struct Layout {
        std::uint64_t bar0_size;  ///< a power of two
        std::uint64_t bar2_size;  ///< a power of two
        std::uint32_t msix_vectors;
        std::uint32_t msix_table_offset;  ///< in BAR0
        std::uint32_t msix_pba_offset;    ///< in BAR0
    };

    explicit ConfigSpace(const Layout& layout);

    /// offset + out.size() is at most kSize.
    void read(std::size_t offset, std::span<std::byte> out) const;

    /// True where the write asked for a function level reset.
    [[nodiscard]] bool write(std::size_t offset, std::span<const std::byte> in);

    /// Every writable bit goes back to what it was at the start.
    void reset();

    [[nodiscard]] bool memory_enabled() const;
    [[nodiscard]] bool bus_master() const;
    /// Masks are not looked at: the client keeps them, and what is pending behind them.
    [[nodiscard]] bool msix_enabled() const;
    [[nodiscard]] bool powered() const;  ///< in D0

  private:
    void put8(std::size_t at, std::uint8_t value, std::uint8_t writable = 0);
    void put16(std::size_t at, std::uint16_t value, std::uint16_t writable = 0);
    void put32(std::size_t at, std::uint32_t value, std::uint32_t writable = 0);
    [[nodiscard]] std::uint16_t get16(std::size_t at) const;

    std::array<std::uint8_t, kSize> bytes_{};
    std::array<std::uint8_t, kSize> initial_{};
    std::array<std::uint8_t, kSize> writable_{};
    std::array<std::uint8_t, kSize> write_one_clears_{};
};

}  // namespace iaa::device
