// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unit/deflate/patterns.h"

/// The codecs that ours is held against. Streams are raw DEFLATE.
namespace iaa::test {

enum class Strategy : std::uint8_t { kDefault, kFixed, kHuffmanOnly, kRle };

/// zlib, with a window of 4 KB.
Bytes zlib_deflate(std::span<const std::uint8_t> input, int level, Strategy strategy);

/// libdeflate; its window of 32 KB cannot be changed.
Bytes libdeflate_deflate(std::span<const std::uint8_t> input, int level);

/// ISA-L, level 0 or 1, with a window of 4 KB.
Bytes isal_deflate(std::span<const std::uint8_t> input, unsigned level);

/// What a decoder made of a stream.
struct Inflated {
    bool complete = false;   ///< the stream's end was reached
    bool malformed = false;  ///< the stream was refused
    std::size_t used = 0;    ///< bytes of input, with complete
    Bytes output;            ///< with complete
};

/// zlib with a 32 KB window, so that it takes every valid stream.
Inflated zlib_inflate(std::span<const std::uint8_t> stream, std::size_t room);
Inflated libdeflate_inflate(std::span<const std::uint8_t> stream, std::size_t room);
Inflated isal_inflate(std::span<const std::uint8_t> stream, std::size_t room);

/// Whether the dynamic block at this bit has a run of code lengths that goes on from the
/// literal/length tree into the distance tree: right by RFC 1951, refused by the device.
bool run_spans_trees(std::span<const std::uint8_t> stream, std::uint64_t bit);

}  // namespace iaa::test
