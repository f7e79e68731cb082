// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "page_source.h"

namespace memhog {

/// Private anonymous memory in small pages.
class Region {
  public:
    /// Throws std::system_error where the memory cannot be had.
    explicit Region(std::size_t pages);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    Region(Region&&) = delete;
    Region& operator=(Region&&) = delete;

    [[nodiscard]] std::size_t pages() const { return memory_.size() / kPageSize; }
    [[nodiscard]] std::span<std::byte, kPageSize> page(std::size_t number) const;

    /// Asks the kernel to reclaim pages [first, first + count). Throws std::system_error.
    void page_out(std::size_t first, std::size_t count) const;

    /// Pages that are swapped out now, by /proc/self/pagemap. Throws std::system_error.
    [[nodiscard]] std::size_t swapped() const;

  private:
    std::span<std::byte> memory_;
};

}  // namespace memhog
