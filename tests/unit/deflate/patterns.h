// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Inputs for tests.
namespace iaa::test {

using Bytes = std::vector<std::uint8_t>;

/// Reproducible random numbers of 32 bits.
class Random {
  public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}
    std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

  private:
    std::mt19937 engine_;
};

struct Pattern {
    std::string name;
    Bytes bytes;

    Pattern(std::string of, Bytes content) : name(std::move(of)), bytes(std::move(content)) {}
};

/// Kinds of data that matter to a compressor of memory pages, each of the given size.
std::vector<Pattern> patterns(std::size_t size);

/// Sizes at which something changes.
std::vector<std::size_t> interesting_sizes();

/// Reproducible random bytes.
Bytes random_bytes(std::size_t size, std::uint32_t seed);

/// Random bytes of which none has an equal three-byte run: nothing in them is a match.
Bytes unmatchable(std::size_t size, std::uint8_t lowest);

/// Unmatchable bytes of the upper 64 values, and then 16 bytes that equal those `distance` before.
Bytes match_at_distance(std::size_t distance);

/// The sample pages of tests/data, every `step`th of them.
std::vector<Bytes> sample_pages(std::size_t step);

/// The whole of a file of tests/data.
std::string read_data(const std::string& name);

Bytes from_hex(const std::string& hex);

}  // namespace iaa::test
