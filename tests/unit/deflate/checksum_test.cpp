// SPDX-License-Identifier: GPL-2.0
// Checksums, and the texts of the errors.
#include "deflate/checksum.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <set>
#include <string>
#include <string_view>

#include "deflate/error.h"
#include "unit/deflate/patterns.h"

namespace iaa::deflate {
namespace {

// Bit by bit, from the polynomial.
std::uint32_t slow_crc(std::span<const std::uint8_t> bytes, std::uint32_t reflected_polynomial) {
    std::uint32_t crc = 0xffffffff;
    for (const std::uint8_t byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 1) != 0 ? crc >> 1 ^ reflected_polynomial : crc >> 1;
        }
    }
    return ~crc;
}

std::uint16_t slow_xor(std::span<const std::uint8_t> bytes) {
    unsigned sum = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        sum ^= static_cast<unsigned>(bytes[at]) << (at % 2 * 8);
    }
    return static_cast<std::uint16_t>(sum);
}

TEST(Checksums, CheckValues) {
    // The catalogued check values of both polynomials.
    const std::string digits = "123456789";
    const test::Bytes bytes(digits.begin(), digits.end());
    Checksums crc32(CrcKind::kCrc32);
    crc32.update(bytes);
    EXPECT_EQ(crc32.crc(), 0xcbf43926U);
    Checksums crc32c(CrcKind::kCrc32c);
    crc32c.update(bytes);
    EXPECT_EQ(crc32c.crc(), 0xe3069283U);
    EXPECT_EQ(crc32.xor_sum(), slow_xor(bytes));
}

TEST(Checksums, AgreeWithZlibAndThePolynomialsInAnyPieces) {
    const test::Bytes bytes = test::random_bytes(1000, 4);
    for (std::size_t size = 0; size < bytes.size(); size += 37) {
        const std::span part = std::span(bytes).first(size);
        for (const std::size_t piece :
             {std::size_t{1}, std::size_t{3}, std::size_t{64}, size + 1}) {
            Checksums sums(CrcKind::kCrc32);
            Checksums castagnoli(CrcKind::kCrc32c);
            for (std::size_t at = 0; at < size; at += piece) {
                const std::span now = part.subspan(at, std::min(piece, size - at));
                sums.update(now);
                castagnoli.update(now);
            }
            EXPECT_EQ(sums.crc(), crc32_z(0, part.data(), part.size()));
            EXPECT_EQ(sums.crc(), slow_crc(part, 0xedb88320));
            EXPECT_EQ(castagnoli.crc(), slow_crc(part, 0x82f63b78));
            EXPECT_EQ(sums.xor_sum(), slow_xor(part));
        }
    }
}

TEST(Checksums, GoOnFromAStartValue) {
    const test::Bytes bytes = test::random_bytes(500, 6);
    Checksums whole(CrcKind::kCrc32c);
    whole.update(bytes);
    Checksums first(CrcKind::kCrc32c);
    first.update(std::span(bytes).first(200));
    Checksums second(CrcKind::kCrc32c, first.crc(), first.xor_sum());
    second.update(std::span(bytes).subspan(200));
    EXPECT_EQ(second.crc(), whole.crc());
    EXPECT_EQ(second.xor_sum(), whole.xor_sum());
}

TEST(Errors, EachHasATextOfItsOwn) {
    std::set<std::string_view> texts;
    for (unsigned code = 0; code < kErrorCodes; ++code) {
        texts.insert(describe(static_cast<ErrorCode>(code)));
    }
    EXPECT_EQ(texts.size(), kErrorCodes);
    EXPECT_FALSE(texts.contains(""));
    EXPECT_EQ(describe(static_cast<ErrorCode>(kErrorCodes)), "unknown error");
    EXPECT_EQ(describe(static_cast<ErrorCode>(255)), "unknown error");
}

}  // namespace
}  // namespace iaa::deflate
