// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include "unit/ops/guest.h"

/// zlib as the other side: raw DEFLATE with a window of 4 KB.
namespace iaa::device::test {

inline std::uint32_t zlib_crc(const Bytes& data) {
    return static_cast<std::uint32_t>(::crc32(0, data.data(), static_cast<unsigned>(data.size())));
}

/// CRC-32C, which zlib does not have: a bit at a time, as it is defined.
inline std::uint32_t crc32c(const Bytes& data) {
    std::uint32_t crc = ~0U;
    for (const std::uint8_t byte : data) {
        crc ^= byte;
        for (unsigned bit = 0; bit < 8; ++bit) {
            crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
        }
    }
    return ~crc;
}

/// XOR of the 16-bit words; a last byte alone is the low one of its word.
inline std::uint16_t xor_of(const Bytes& data) {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < data.size(); ++at) {
        sum ^= std::uint32_t{data[at]} << 8 * (at % 2);
    }
    return static_cast<std::uint16_t>(sum);
}

inline Bytes zlib_inflate(const Bytes& stream, std::size_t size) {
    z_stream z{};
    EXPECT_EQ(inflateInit2(&z, -12), Z_OK);
    Bytes out(size + 1);
    Bytes in = stream;
    z.next_in = in.data();
    z.avail_in = static_cast<unsigned>(in.size());
    z.next_out = out.data();
    z.avail_out = static_cast<unsigned>(out.size());
    EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
    EXPECT_EQ(z.avail_in, 0U);
    out.resize(z.total_out);
    inflateEnd(&z);
    return out;
}

/// level 0 makes stored blocks. flush_every: a full block boundary after so many bytes.
inline Bytes zlib_deflate(const Bytes& data, int level, int strategy = Z_DEFAULT_STRATEGY,
                          std::size_t flush_every = 0) {
    z_stream z{};
    EXPECT_EQ(deflateInit2(&z, level, Z_DEFLATED, -12, 9, strategy), Z_OK);
    Bytes in = data;
    Bytes out(2 * data.size() + 65536);
    z.next_in = in.data();
    z.next_out = out.data();
    z.avail_out = static_cast<unsigned>(out.size());
    std::size_t left = in.size();
    while (flush_every != 0 && left > flush_every) {
        z.avail_in = static_cast<unsigned>(flush_every);
        left -= flush_every;
        EXPECT_EQ(::deflate(&z, Z_BLOCK), Z_OK);
    }
    z.avail_in = static_cast<unsigned>(left);
    EXPECT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

}  // namespace iaa::device::test
