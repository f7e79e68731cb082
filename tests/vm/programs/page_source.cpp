// SPDX-License-Identifier: GPL-2.0
#include "page_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace memhog {
namespace {

/// SplitMix64: a few instructions a word, which matters where the CPU is emulated.
class Random {
  public:
    explicit Random(std::uint64_t state) : state_(state) {}

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

    void fill(std::span<std::byte> out) {
        while (!out.empty()) {
            const std::uint64_t word = next();
            const std::size_t n = std::min(out.size(), sizeof(word));
            std::memcpy(out.data(), &word, n);
            out = out.subspan(n);
        }
    }

  private:
    std::uint64_t state_;
};

void fill_text(std::span<std::byte> out, Random& random) {
    constexpr std::array<std::string_view, 12> kWords = {
        "page ",  "swapped ", "out ",    "and ",     "in ",     "again ",
        "queue ", "engine ",  "device ", "number\n", "0x1000 ", "= "};
    while (!out.empty()) {
        const std::string_view word = kWords.at(random.below(kWords.size()));
        const std::size_t n = std::min(word.size(), out.size());
        std::memcpy(out.data(), word.data(), n);
        out = out.subspan(n);
    }
}

/// Bytes that repeat only at one distance of 2 KB to 4 KB.
void fill_far(std::span<std::byte> out, Random& random) {
    const std::size_t distance = 2049 + random.below(1024);
    random.fill(out.first(distance));
    for (std::size_t i = distance; i < out.size(); ++i) {
        out[i] = out[i - distance];
    }
}

void fill_runs(std::span<std::byte> out, Random& random) {
    while (!out.empty()) {
        const std::size_t n = std::min(out.size(), 1 + random.below(300));
        std::fill_n(out.begin(), n, static_cast<std::byte>(random.below(256)));
        out = out.subspan(n);
    }
}

}  // namespace

PageSource::PageSource(std::uint64_t seed, const std::vector<std::string>& files,
                       unsigned random_percent)
    : seed_(seed), random_percent_(random_percent) {
    for (const std::string& name : files) {
        std::ifstream file(name, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        if (!file.good() && !file.eof()) {
            throw std::runtime_error(fmt::format("{}: cannot be read", name));
        }
        const auto view = std::as_bytes(std::span(bytes));
        sample_.insert(sample_.end(), view.begin(), view.end());
    }
    if (!files.empty() && sample_.size() < kPageSize) {
        throw std::runtime_error(
            fmt::format("the sample files hold {} bytes, less than one page", sample_.size()));
    }
}

void PageSource::fill(std::uint64_t number, std::span<std::byte, kPageSize> page) const {
    Random random(seed_ * 0x2545f4914f6cdd1dU + number);
    const std::size_t kind = random.below(100);
    if (kind < random_percent_) {
        random.fill(page);
    } else if (kind >= 99) {
        std::ranges::fill(page, static_cast<std::byte>(number));
        return;
    } else if (kind >= 96) {
        fill_far(page, random);
    } else if (kind >= 92) {
        fill_runs(page, random);
    } else if (kind >= 85 || sample_.empty()) {
        fill_text(page, random);
    } else {
        const std::size_t at = random.below(sample_.size() - kPageSize + 1);
        std::memcpy(page.data(), sample_.data() + at, kPageSize);
    }
    std::memcpy(page.data(), &number, sizeof(number));
}

}  // namespace memhog
