// SPDX-License-Identifier: GPL-2.0
// The fixed mode's tables: whatever is written with them and the header in front is a DEFLATE
// stream that zlib reads.

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "modes/modes.h"
}

namespace {

class FixedMode : public testing::Test {
  protected:
    FixedMode() { iaa_mode_fixed.fill(&aecs_); }

    iaa_aecs_comp aecs_{};
};

unsigned length_of(std::uint32_t entry) {
    return entry >> 15;
}
unsigned code_of(std::uint32_t entry) {
    return entry & 0x7fff;
}

class BitWriter {
  public:
    // Bits that are numbers: the lowest first.
    void put(std::uint32_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            put_bit((value >> i & 1) != 0);
        }
    }

    // A Huffman code: its highest bit first.
    void put_code(std::uint32_t entry) {
        for (unsigned i = length_of(entry); i-- > 0;) {
            put_bit((code_of(entry) >> i & 1) != 0);
        }
    }

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  private:
    void put_bit(bool bit) {
        if (used_ % 8 == 0) {
            bytes_.push_back(0);
        }
        if (bit) {
            bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | 1U << (used_ % 8));
        }
        ++used_;
    }

    std::vector<std::uint8_t> bytes_;
    unsigned used_ = 0;
};

std::string inflate_raw(const std::vector<std::uint8_t>& stream, std::size_t limit) {
    std::string out(limit, '\0');
    z_stream z{};
    EXPECT_EQ(inflateInit2(&z, -12), Z_OK);
    z.next_in = const_cast<Bytef*>(stream.data());
    z.avail_in = static_cast<uInt>(stream.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END) << (z.msg != nullptr ? z.msg : "");
    EXPECT_EQ(z.avail_in, 0U);
    out.resize(z.total_out);
    inflateEnd(&z);
    return out;
}

TEST_F(FixedMode, IsNamed) {
    EXPECT_STREQ(iaa_mode_fixed.name, "fixed");
}

TEST_F(FixedMode, EntriesOfRfc1951) {
    EXPECT_EQ(aecs_.ll_codes[0], 0x40030U);
    EXPECT_EQ(aecs_.ll_codes[143], 0x400bfU);
    EXPECT_EQ(aecs_.ll_codes[144], 0x48190U);
    EXPECT_EQ(aecs_.ll_codes[255], 0x481ffU);
    EXPECT_EQ(aecs_.ll_codes[256], 0x38000U);
    EXPECT_EQ(aecs_.ll_codes[279], 0x38017U);
    EXPECT_EQ(aecs_.ll_codes[280], 0x400c0U);
    EXPECT_EQ(aecs_.ll_codes[285], 0x400c5U);
    EXPECT_EQ(aecs_.d_codes[0], 0x28000U);
    EXPECT_EQ(aecs_.d_codes[29], 0x2801dU);
}

TEST_F(FixedMode, LeavesTheRestZero) {
    EXPECT_EQ(aecs_.crc, 0U);
    EXPECT_EQ(aecs_.xor_checksum, 0U);
    for (const std::uint32_t word : aecs_.reserved0) EXPECT_EQ(word, 0U);
    EXPECT_EQ(aecs_.reserved1, 0U);
    for (std::size_t i = 1; i < sizeof(aecs_.accum); ++i) EXPECT_EQ(aecs_.accum[i], 0U);
    for (const std::uint32_t word : aecs_.reserved2) EXPECT_EQ(word, 0U);
    for (const std::uint32_t word : aecs_.reserved3) EXPECT_EQ(word, 0U);
}

TEST_F(FixedMode, NoCodeBeginsAnother) {
    for (int i = 0; i < IAA_LL_SYMBOLS; ++i) {
        for (int j = 0; j < IAA_LL_SYMBOLS; ++j) {
            const unsigned a = length_of(aecs_.ll_codes[i]);
            const unsigned b = length_of(aecs_.ll_codes[j]);
            if (i != j && a <= b) {
                EXPECT_NE(code_of(aecs_.ll_codes[i]), code_of(aecs_.ll_codes[j]) >> (b - a))
                    << i << " and " << j;
            }
        }
    }
}

TEST_F(FixedMode, ZlibReadsEveryLiteral) {
    BitWriter writer;
    std::string text;
    writer.put(aecs_.accum[0], aecs_.accum_bits);
    for (int i = 0; i < 256; ++i) {
        writer.put_code(aecs_.ll_codes[i]);
        text += static_cast<char>(i);
    }
    writer.put_code(aecs_.ll_codes[256]);
    EXPECT_EQ(inflate_raw(writer.bytes(), 1000), text);
}

TEST_F(FixedMode, ZlibReadsEveryLengthAndDistance) {
    static constexpr std::array<int, 29> kExtraLength = {
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static constexpr std::array<int, 29> kLength = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                    15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                    67, 83, 99, 115, 131, 163, 195, 227, 258};
    BitWriter writer;
    std::string text;
    writer.put(aecs_.accum[0], aecs_.accum_bits);
    // Enough to reach back 4096 bytes: only codes up to 23 may follow.
    for (int i = 0; i < 4096; ++i) {
        const int byte = i * 7 % 251;
        writer.put_code(aecs_.ll_codes[byte]);
        text += static_cast<char>(byte);
    }
    for (std::size_t d = 0, distance = 1; d < 24; ++d) {
        const unsigned extra = d < 4 ? 0 : static_cast<unsigned>(d / 2) - 1;
        for (std::size_t l = 0; l < kLength.size(); ++l) {
            writer.put_code(aecs_.ll_codes[257 + l]);
            writer.put(0, static_cast<unsigned>(kExtraLength[l]));
            writer.put_code(aecs_.d_codes[d]);
            writer.put(0, extra);
            for (int i = 0; i < kLength[l]; ++i) {
                text += text[text.size() - distance];
            }
        }
        distance += std::size_t{1} << extra;
    }
    writer.put_code(aecs_.ll_codes[256]);
    EXPECT_EQ(inflate_raw(writer.bytes(), 100000), text);
}

}  // namespace
