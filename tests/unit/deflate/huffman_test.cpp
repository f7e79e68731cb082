// SPDX-License-Identifier: GPL-2.0
// Huffman codes and block headers.
#include "deflate/huffman.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "deflate/symbols.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using test::StreamBuilder;

std::uint64_t cost(std::span<const std::uint32_t> counts, std::span<const std::uint8_t> lengths) {
    return std::inner_product(counts.begin(), counts.end(), lengths.begin(), std::uint64_t{0});
}

// The least cost of any code with at most `limit` bits, by trying all.
std::uint64_t least_cost(std::span<const std::uint32_t> counts, unsigned limit) {
    std::vector<std::uint8_t> lengths(counts.size(), 1);
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    while (true) {
        if (kraft_sum(lengths) <= 1U << kMaxCodeLength) {
            least = std::min(least, cost(counts, lengths));
        }
        std::size_t at = 0;
        while (at < lengths.size() && lengths[at] == limit) {
            lengths[at++] = 1;
        }
        if (at == lengths.size()) {
            return least;
        }
        ++lengths[at];
    }
}

TEST(Huffman, FixedTablesAreTheStandardOnes) {
    const CodeTables& tables = fixed_tables();
    EXPECT_EQ(tables.ll[0], 0x40030U);
    EXPECT_EQ(tables.ll[143], 0x400bfU);
    EXPECT_EQ(tables.ll[144], 0x48190U);
    EXPECT_EQ(tables.ll[255], 0x481ffU);
    EXPECT_EQ(tables.ll[256], 0x38000U);
    EXPECT_EQ(tables.ll[279], 0x38017U);
    EXPECT_EQ(tables.ll[280], 0x400c0U);
    EXPECT_EQ(tables.ll[285], 0x400c5U);
    EXPECT_EQ(tables.d[0], 0x28000U);
    EXPECT_EQ(tables.d[29], 0x2801dU);
    EXPECT_EQ(lengths_of(tables), fixed_lengths());
}

TEST(Huffman, CanonicalCodesOfTheStandardsExample) {
    // RFC 1951 3.2.2: ABCDEFGH with these lengths.
    const std::vector<std::uint8_t> lengths = {3, 3, 3, 3, 3, 2, 4, 4};
    std::vector<std::uint32_t> entries(lengths.size());
    ASSERT_TRUE(canonical_codes(lengths, entries));
    const std::vector<std::uint32_t> codes = {2, 3, 4, 5, 6, 0, 14, 15};
    for (std::size_t symbol = 0; symbol < codes.size(); ++symbol) {
        EXPECT_EQ(entry_code(entries[symbol]), codes[symbol]);
        EXPECT_EQ(entry_length(entries[symbol]), lengths[symbol]);
    }
}

TEST(Huffman, OversubscribedCodesAreRefused) {
    std::vector<std::uint32_t> entries(3);
    EXPECT_FALSE(canonical_codes(std::vector<std::uint8_t>{1, 1, 15}, entries));
    EXPECT_FALSE(canonical_codes(std::vector<std::uint8_t>{1, 1, 1}, entries));
    EXPECT_TRUE(canonical_codes(std::vector<std::uint8_t>{1, 2, 15}, entries));
    CodeTables tables;
    CodeLengths lengths = test::flat_lengths(286, 30);
    EXPECT_EQ(make_tables(lengths, tables), ErrorCode::kNone);
    lengths.d[0] = 1;
    EXPECT_EQ(make_tables(lengths, tables), ErrorCode::kOversubscribedD);
    lengths.ll[0] = 1;
    EXPECT_EQ(make_tables(lengths, tables), ErrorCode::kOversubscribedLl);
}

TEST(Huffman, LengthsAreOptimalForSmallAlphabets) {
    test::Random random(3);
    for (int round = 0; round < 300; ++round) {
        const std::size_t size = 2 + random() % 5;
        const unsigned limit = 3 + random() % 2;
        std::vector<std::uint32_t> counts(size);
        for (std::uint32_t& count : counts) {
            count = 1 + (random() >> (random() % 30 + 2));
        }
        std::vector<std::uint8_t> lengths(size);
        limited_lengths(counts, limit, lengths);
        EXPECT_LE(std::ranges::max(lengths), limit);
        EXPECT_EQ(kraft_sum(lengths), 1U << kMaxCodeLength);
        EXPECT_EQ(cost(counts, lengths), least_cost(counts, limit));
    }
}

TEST(Huffman, FibonacciCountsNeedTheLimit) {
    // Without a limit these make a code as deep as it has symbols.
    std::vector<std::uint32_t> counts = {1, 1};
    while (counts.size() < 30) {
        counts.push_back(counts[counts.size() - 1] + counts[counts.size() - 2]);
    }
    std::vector<std::uint8_t> unlimited(counts.size());
    limited_lengths(counts, 30, unlimited);
    EXPECT_EQ(std::ranges::max(unlimited), 29);
    std::uint64_t before = cost(counts, unlimited);
    for (unsigned limit = 29; limit >= 5; --limit) {
        std::vector<std::uint8_t> lengths(counts.size());
        limited_lengths(counts, limit, lengths);
        EXPECT_LE(std::ranges::max(lengths), limit);
        if (limit <= kMaxCodeLength) {
            EXPECT_EQ(kraft_sum(lengths), 1U << kMaxCodeLength);
        }
        EXPECT_GE(cost(counts, lengths), before) << "a tighter limit cannot cost less";
        before = cost(counts, lengths);
    }
}

TEST(Huffman, FewSymbols) {
    std::vector<std::uint8_t> lengths(4, 9);
    limited_lengths(std::vector<std::uint32_t>{0, 0, 0, 0}, 15, lengths);
    EXPECT_EQ(lengths, (std::vector<std::uint8_t>{0, 0, 0, 0}));
    limited_lengths(std::vector<std::uint32_t>{0, 0, 5, 0}, 15, lengths);
    EXPECT_EQ(lengths, (std::vector<std::uint8_t>{0, 0, 1, 0}));
    limited_lengths(std::vector<std::uint32_t>{0, 1, 5, 0}, 15, lengths);
    EXPECT_EQ(lengths, (std::vector<std::uint8_t>{0, 1, 1, 0}));
}

TEST(Huffman, CodesForABlockAreAlwaysComplete) {
    Histogram histogram;
    const auto expect_complete = [&] {
        const CodeLengths lengths = lengths_from(histogram);
        EXPECT_EQ(kraft_sum(lengths.ll), 1U << kMaxCodeLength);
        EXPECT_EQ(kraft_sum(lengths.d), 1U << kMaxCodeLength);
        for (std::size_t symbol = 0; symbol < kLlSymbols; ++symbol) {
            EXPECT_TRUE(histogram.ll[symbol] == 0 || lengths.ll[symbol] != 0);
        }
    };
    expect_complete();
    histogram.ll[kEobSymbol] = 1;
    expect_complete();
    histogram.d[29] = 1;
    histogram.ll[0] = std::numeric_limits<std::uint32_t>::max();
    expect_complete();
    histogram.ll.fill(1);
    histogram.d.fill(7);
    expect_complete();
    for (std::uint32_t symbol = 0; symbol < 40; ++symbol) {
        histogram.ll[symbol] = 1U << std::min(symbol, 31U);
    }
    expect_complete();
}

// Every length, distance and symbol fits the ranges of the standard.
TEST(Huffman, SymbolsCoverAllLengthsAndDistances) {
    for (unsigned length = 3; length <= 258; ++length) {
        const SymbolRange range = kLengthRanges[length_symbol(length) - kFirstLengthSymbol];
        EXPECT_GE(length, range.base);
        EXPECT_LT(length - range.base, 1U << range.extra);
    }
    EXPECT_EQ(length_symbol(257), 284U);
    EXPECT_EQ(length_symbol(258), 285U);
    for (unsigned distance = 1; distance <= 32768; ++distance) {
        const SymbolRange range = kDistanceRanges[distance_symbol(distance)];
        EXPECT_GE(distance, range.base);
        EXPECT_LT(distance - range.base, 1U << range.extra);
    }
}

CodeLengths random_lengths(test::Random& random) {
    Histogram histogram;
    const unsigned density = 1 + random() % 40;
    for (std::uint32_t& count : histogram.ll) {
        count = random() % density == 0 ? 1 + (random() >> (random() % 32)) : 0;
    }
    for (std::uint32_t& count : histogram.d) {
        count = random() % density == 0 ? 1 + (random() >> (random() % 32)) : 0;
    }
    histogram.ll[kEobSymbol] = 1;
    return lengths_from(histogram);
}

// A stream of the header and an end of block.
test::Bytes empty_block(const Accumulator& header, const CodeLengths& lengths) {
    StreamBuilder builder;
    for (std::uint32_t bit = 0; bit < header.bits; ++bit) {
        builder.bits(test::bit_of(header.bytes, bit), 1);
    }
    return builder.use(lengths).end_of_block().stream();
}

TEST(Header, WrittenOnesReadBackAndEveryDecoderTakesThem) {
    test::Random random(17);
    for (int round = 0; round < 300; ++round) {
        const CodeLengths lengths = random_lengths(random);
        Accumulator accumulator;
        const bool final = round % 2 == 0;
        ASSERT_TRUE(write_dynamic_header(lengths, final, accumulator));
        EXPECT_LE(accumulator.bits, 1700U);
        const HeaderResult parsed = parse_block_header({accumulator.bytes, 0, accumulator.bits});
        ASSERT_EQ(parsed.status, HeaderStatus::kOk);
        EXPECT_EQ(parsed.bits, accumulator.bits);
        EXPECT_EQ(parsed.header.type, BlockType::kDynamic);
        EXPECT_EQ(parsed.header.final, final);
        EXPECT_EQ(parsed.header.lengths, lengths);
        if (final) {
            const test::Bytes stream = empty_block(accumulator, lengths);
            EXPECT_TRUE(test::zlib_inflate(stream, 0).complete);
            EXPECT_TRUE(test::libdeflate_inflate(stream, 0).complete);
            EXPECT_TRUE(test::isal_inflate(stream, 0).complete);
        }
    }
}

TEST(Header, ShortInputAsksForMoreAtEveryBit) {
    test::Random random(18);
    const CodeLengths lengths = random_lengths(random);
    Accumulator accumulator;
    ASSERT_TRUE(write_dynamic_header(lengths, true, accumulator));
    for (std::uint32_t bits = 0; bits < accumulator.bits; ++bits) {
        EXPECT_EQ(parse_block_header({accumulator.bytes, 0, bits}).status, HeaderStatus::kNeedInput)
            << bits << " bits";
    }
}

TEST(Header, StartsAtAnyBit) {
    test::Random random(19);
    const CodeLengths lengths = random_lengths(random);
    for (std::uint32_t start = 0; start < 64; ++start) {
        Accumulator accumulator;
        ASSERT_TRUE(accumulator.append(0xffffffff, std::min(start, 32U)));
        ASSERT_TRUE(accumulator.append(0xffffffff, start - std::min(start, 32U)));
        ASSERT_TRUE(write_dynamic_header(lengths, true, accumulator));
        const HeaderResult parsed =
            parse_block_header({accumulator.bytes, start, accumulator.bits - start});
        ASSERT_EQ(parsed.status, HeaderStatus::kOk);
        EXPECT_EQ(parsed.bits, accumulator.bits - start);
        EXPECT_EQ(parsed.header.lengths, lengths);
    }
}

TEST(Header, ThatDoesNotFitLeavesTheAccumulatorAlone) {
    Accumulator whole;
    const CodeLengths lengths = test::flat_lengths(286, 30);
    ASSERT_TRUE(write_dynamic_header(lengths, true, whole));
    Accumulator accumulator;
    while (accumulator.bits < Accumulator::kMaxBits - whole.bits) {
        ASSERT_TRUE(accumulator.append(1, 1));
    }
    Accumulator one_more = accumulator;
    ASSERT_TRUE(one_more.append(1, 1));
    const Accumulator before = one_more;
    EXPECT_FALSE(write_dynamic_header(lengths, true, one_more));
    EXPECT_EQ(one_more, before);
    EXPECT_TRUE(write_dynamic_header(lengths, true, accumulator));
    EXPECT_EQ(accumulator.bits, Accumulator::kMaxBits);
}

TEST(Header, FixedAndStored) {
    Accumulator accumulator;
    ASSERT_TRUE(write_fixed_header(true, accumulator));
    EXPECT_EQ(accumulator.bits, 3U);
    EXPECT_EQ(accumulator.bytes[0], 3);
    HeaderResult parsed = parse_block_header({accumulator.bytes, 0, 3});
    ASSERT_EQ(parsed.status, HeaderStatus::kOk);
    EXPECT_EQ(parsed.header.type, BlockType::kFixed);
    EXPECT_TRUE(parsed.header.final);
    EXPECT_EQ(parsed.header.lengths, fixed_lengths());

    const test::Bytes stored = StreamBuilder().bits(1, 1).stored(false, {1, 2, 3}).stream();
    parsed = parse_block_header({stored, 1, stored.size() * 8 - 1});
    ASSERT_EQ(parsed.status, HeaderStatus::kOk);
    EXPECT_EQ(parsed.header.type, BlockType::kStored);
    EXPECT_FALSE(parsed.header.final);
    EXPECT_EQ(parsed.header.stored_length, 3U);
    EXPECT_EQ(parsed.bits, 39U);
}

TEST(Accumulator, AppendsBitsInOrder) {
    Accumulator accumulator;
    test::Random random(23);
    std::vector<unsigned> bits;
    while (true) {
        const unsigned count = random() % 33;
        const std::uint32_t value = random();
        if (!accumulator.append(value, count)) {
            EXPECT_GT(bits.size() + count, Accumulator::kMaxBits);
            break;
        }
        for (unsigned index = 0; index < count; ++index) {
            bits.push_back(value >> index & 1);
        }
    }
    ASSERT_EQ(accumulator.bits, bits.size());
    for (std::size_t bit = 0; bit < bits.size(); ++bit) {
        EXPECT_EQ(test::bit_of(accumulator.bytes, bit), bits[bit]);
    }
    EXPECT_FALSE(accumulator.append(0, 33));
}

}  // namespace
}  // namespace iaa::deflate
