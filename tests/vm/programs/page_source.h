// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace memhog {

constexpr std::size_t kPageSize = 4096;
using Page = std::array<std::byte, kPageSize>;

/// Pages that can be made again at any time: page number and seed say what is in them. Most hold a
/// piece of the sample files, the rest text, runs, matches from far back, one byte repeated, and a
/// few bytes in a hundred that do not compress. All but the repeated ones carry their number, so
/// that a page in another's place is noticed.
class PageSource {
  public:
    /// `files`: read whole; must hold at least one page together, unless the list is empty.
    /// `random_percent`: pages in a hundred that do not compress.
    /// Throws std::runtime_error, which says what is wrong with which file.
    PageSource(std::uint64_t seed, const std::vector<std::string>& files, unsigned random_percent);

    void fill(std::uint64_t number, std::span<std::byte, kPageSize> page) const;

  private:
    std::uint64_t seed_;
    unsigned random_percent_;
    std::vector<std::byte> sample_;
};

}  // namespace memhog
