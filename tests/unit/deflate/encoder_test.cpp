// SPDX-License-Identifier: GPL-2.0
#include "deflate/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "deflate/decoder.h"
#include "deflate/matcher.h"
#include "deflate/symbols.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using test::Bytes;
using test::Inflated;

std::size_t bound(std::size_t size) {
    return size * 2 + 1024;
}

// A fixed block that is the whole stream.
Bytes encode_fixed(Encoder& encoder, std::span<const std::uint8_t> input) {
    Accumulator accumulator;
    EXPECT_TRUE(write_fixed_header(true, accumulator));
    Bytes output(bound(input.size()));
    const EncodeResult result = encoder.encode(input, fixed_tables(), accumulator, {}, output);
    EXPECT_EQ(result.error, ErrorCode::kNone);
    EXPECT_EQ(accumulator, Accumulator{});
    output.resize(result.output_size);
    return output;
}

Bytes encode_dynamic(Encoder& encoder, std::span<const std::uint8_t> input) {
    Accumulator accumulator;
    Bytes output(bound(input.size()));
    const EncodeResult result = encoder.encode_dynamic(input, true, accumulator, {}, output);
    EXPECT_EQ(result.error, ErrorCode::kNone);
    output.resize(result.output_size);
    return output;
}

void expect_inflates_everywhere(const Bytes& stream, const Bytes& input) {
    for (const auto& inflate : {test::zlib_inflate, test::libdeflate_inflate, test::isal_inflate}) {
        const Inflated inflated = inflate(stream, input.size());
        EXPECT_TRUE(inflated.complete);
        EXPECT_EQ(inflated.used, stream.size());
        EXPECT_TRUE(inflated.output == input);
    }
    Decoder decoder;
    DecoderState state;
    Bytes output(input.size());
    const DecodeResult result =
        decoder.decode(state, BitSpan::of(stream), output, {.check_for_eob = true});
    EXPECT_EQ(result.stop, StopReason::kEndOfStream);
    EXPECT_EQ(result.output_size, input.size());
    EXPECT_LT(stream.size() * 8 - result.bits_consumed, 8U);
    EXPECT_TRUE(output == input);
}

TEST(Encoder, EveryPatternAndSizeRoundTrips) {
    Encoder encoder;
    for (const std::size_t size : test::interesting_sizes()) {
        for (const test::Pattern& pattern : test::patterns(size)) {
            SCOPED_TRACE(testing::Message() << pattern.name << " " << size);
            expect_inflates_everywhere(encode_fixed(encoder, pattern.bytes), pattern.bytes);
            expect_inflates_everywhere(encode_dynamic(encoder, pattern.bytes), pattern.bytes);
        }
    }
}

TEST(Encoder, SamplePagesRoundTrip) {
    Encoder encoder;
    for (const Bytes& page : test::sample_pages(7)) {
        expect_inflates_everywhere(encode_fixed(encoder, page), page);
        expect_inflates_everywhere(encode_dynamic(encoder, page), page);
    }
}

TEST(Encoder, MoreThanTwoMegabytes) {
    Encoder encoder;
    Bytes input;
    for (const Bytes& page : test::sample_pages(3)) {
        input.insert(input.end(), page.begin(), page.end());
    }
    ASSERT_GT(input.size(), std::size_t{2} << 20);
    expect_inflates_everywhere(encode_fixed(encoder, input), input);
    expect_inflates_everywhere(encode_dynamic(encoder, input), input);
}

TEST(Encoder, RatioIsThatOfZlibsFastestLevel) {
    Encoder encoder;
    std::size_t fixed = 0;
    std::size_t dynamic = 0;
    std::size_t zlib_fixed = 0;
    std::size_t zlib_dynamic = 0;
    for (const Bytes& page : test::sample_pages(10)) {
        fixed += encode_fixed(encoder, page).size();
        dynamic += encode_dynamic(encoder, page).size();
        zlib_fixed += test::zlib_deflate(page, 1, test::Strategy::kFixed).size();
        zlib_dynamic += test::zlib_deflate(page, 1, test::Strategy::kDefault).size();
    }
    EXPECT_LT(fixed * 100, zlib_fixed * 105);
    EXPECT_LT(dynamic * 100, zlib_dynamic * 105);
}

TEST(Encoder, WorstPageOfTheFixedCode) {
    // Nine bits a byte, three of header and seven of end of block.
    Encoder encoder;
    EXPECT_EQ(encode_fixed(encoder, test::unmatchable(4096, 144)).size(), 4610U);
}

TEST(Encoder, FindsMatchesUpToTheWindowAndNoFarther) {
    Encoder encoder;
    for (const std::size_t distance : {3U, 100U, 2049U, 4095U, 4096U, 4097U, 5000U}) {
        const Bytes input = test::match_at_distance(distance);
        const Histogram counts = encoder.count(input, {});
        unsigned matches = 0;
        for (std::size_t symbol = 0; symbol < kDSymbols; ++symbol) {
            matches += counts.d[symbol];
        }
        EXPECT_EQ(matches, distance <= kWindow ? 1U : 0U) << "distance " << distance;
        expect_inflates_everywhere(encode_fixed(encoder, input), input);
    }
}

TEST(Encoder, LongestMatchesAreUsed) {
    Encoder encoder;
    const Histogram counts = encoder.count(Bytes(1 + 258 * 3), {});
    EXPECT_EQ(counts.ll[0], 1U);
    EXPECT_EQ(counts.ll[285], 3U);
    EXPECT_EQ(counts.d[0], 3U);
    EXPECT_EQ(counts.ll[kEobSymbol], 1U);
}

TEST(Encoder, ThreeBytesAtTheVeryEndAreAMatch) {
    Encoder encoder;
    const std::string text = "abcXYabc";
    const Histogram counts = encoder.count(Bytes(text.begin(), text.end()), {});
    EXPECT_EQ(counts.ll[257], 1U);
    EXPECT_EQ(counts.ll['a'], 1U);
}

TEST(Encoder, SameInputSameBitsWhateverCameBefore) {
    Encoder used;
    const std::vector<Bytes> pages = test::sample_pages(50);
    for (const Bytes& page : pages) {
        Encoder fresh;
        EXPECT_EQ(encode_fixed(used, page), encode_fixed(fresh, page));
        EXPECT_EQ(encode_dynamic(used, page), encode_dynamic(fresh, page));
        // One that moves the numbering of positions on by a lot.
        (void)used.count(Bytes(300000), {});
    }
}

struct Tokens {
    std::vector<Match> list;

    bool literal(unsigned byte) {
        list.emplace_back(0, byte);
        return true;
    }
    bool match(unsigned length, unsigned distance) {
        list.emplace_back(length, distance);
        return true;
    }
};

std::vector<Match> tokens_of(MatchFinder& finder, const Bytes& page) {
    const auto any = [](const Match& match) { return match; };
    return finder.run(page, 0, any, Tokens{}).list;
}

TEST(Encoder, PositionNumbersWrapUnseen) {
    const Bytes page = test::sample_pages(600).front();
    MatchFinder fresh;
    const std::vector<Match> expected = tokens_of(fresh, page);
    for (std::uint32_t left = 0; left < 40000; left += 2741) {
        MatchFinder finder(std::numeric_limits<std::uint32_t>::max() - left);
        for (int round = 0; round < 6; ++round) {
            ASSERT_EQ(tokens_of(finder, page), expected) << left << " left, round " << round;
        }
    }
}

TEST(Encoder, StatisticsAreWhatTheEncoderEmits) {
    Encoder encoder;
    for (const Bytes& page : test::sample_pages(60)) {
        const Histogram counts = encoder.count(page, {});
        std::uint64_t bits = 3;
        for (std::size_t symbol = 0; symbol < kLlSymbols; ++symbol) {
            const unsigned extra =
                symbol > kEobSymbol ? kLengthRanges[symbol - kFirstLengthSymbol].extra : 0U;
            bits += std::uint64_t{counts.ll[symbol]} * (fixed_lengths().ll[symbol] + extra);
        }
        for (std::size_t symbol = 0; symbol < kDSymbols; ++symbol) {
            bits += std::uint64_t{counts.d[symbol]} * (5U + kDistanceRanges[symbol].extra);
        }
        EXPECT_EQ(encode_fixed(encoder, page).size(), (bits + 7) / 8);
    }
    EXPECT_EQ(encoder.count({}, {}).ll[kEobSymbol], 1U);
    EXPECT_EQ(encoder.count({}, {.end = EndOfBlock::kNone}).ll[kEobSymbol], 0U);
    EXPECT_EQ(encoder.count({}, {.end = EndOfBlock::kEobFinalStored}).ll[kEobSymbol], 1U);
}

TEST(Encoder, OnePassAndTwoPassesAgree) {
    Encoder encoder;
    for (const Bytes& page : test::sample_pages(60)) {
        Accumulator accumulator;
        CodeTables tables;
        ASSERT_TRUE(prepare_dynamic(encoder.count(page, {}), true, accumulator, tables));
        Bytes output(bound(page.size()));
        const EncodeResult two = encoder.encode(page, tables, accumulator, {}, output);
        ASSERT_EQ(two.error, ErrorCode::kNone);
        output.resize(two.output_size);

        Bytes one(bound(page.size()));
        CodeTables used;
        Accumulator empty;
        const EncodeResult result = encoder.encode_dynamic(page, true, empty, {}, one, &used);
        ASSERT_EQ(result.error, ErrorCode::kNone);
        one.resize(result.output_size);
        EXPECT_EQ(one, output);
        EXPECT_EQ(used, tables);
    }
}

TEST(Encoder, OutputOfExactlyTheSizeFitsAndOneByteLessDoesNot) {
    Encoder encoder;
    for (const std::size_t size : {0U, 1U, 5U, 100U, 4096U}) {
        for (const test::Pattern& pattern : test::patterns(size)) {
            for (const bool dynamic : {false, true}) {
                SCOPED_TRACE(testing::Message() << pattern.name << " " << size);
                const Bytes expected = dynamic ? encode_dynamic(encoder, pattern.bytes)
                                               : encode_fixed(encoder, pattern.bytes);
                for (const std::size_t less : {0U, 1U, 2U, 7U, 8U, 9U}) {
                    if (less > expected.size()) {
                        continue;
                    }
                    Bytes output(expected.size() - less);
                    Accumulator accumulator;
                    if (!dynamic) {
                        ASSERT_TRUE(write_fixed_header(true, accumulator));
                    }
                    const Accumulator before = accumulator;
                    const EncodeResult result =
                        dynamic
                            ? encoder.encode_dynamic(pattern.bytes, true, accumulator, {}, output)
                            : encoder.encode(pattern.bytes, fixed_tables(), accumulator, {},
                                             output);
                    if (less == 0) {
                        EXPECT_EQ(result.error, ErrorCode::kNone);
                        EXPECT_EQ(output, expected);
                    } else {
                        EXPECT_EQ(result.error, ErrorCode::kOutputOverflow);
                        EXPECT_EQ(result.output_size, 0U);
                        EXPECT_EQ(accumulator, before);
                    }
                }
            }
        }
    }
}

TEST(Encoder, ValidBitsOfTheLastByte) {
    Encoder encoder;
    Bytes output(16);
    for (unsigned literals = 0; literals < 9; ++literals) {
        // Nine bits a literal and seven for the end.
        Accumulator accumulator;
        const EncodeResult result = encoder.encode(test::unmatchable(literals, 144), fixed_tables(),
                                                   accumulator, {}, output);
        const unsigned bits = literals * 9 + 7;
        EXPECT_EQ(result.output_size, (bits + 7) / 8);
        EXPECT_EQ(result.last_bits, bits % 8 == 0 ? 8 : bits % 8);
    }
    Accumulator accumulator;
    const EncodeResult result =
        encoder.encode({}, fixed_tables(), accumulator, {.end = EndOfBlock::kNone}, output);
    EXPECT_EQ(result.output_size, 0U);
    EXPECT_EQ(result.last_bits, 0U);
}

TEST(Encoder, WithoutFlushTheRestStaysInTheAccumulator) {
    Encoder encoder;
    const Bytes input = test::unmatchable(3, 144);
    Accumulator accumulator;
    ASSERT_TRUE(write_fixed_header(true, accumulator));
    Bytes output(16);
    const EncodeResult result = encoder.encode(input, fixed_tables(), accumulator,
                                               {.end = EndOfBlock::kNone, .flush = false}, output);
    EXPECT_EQ(result.error, ErrorCode::kNone);
    EXPECT_EQ(result.output_size, 3U);  // of 30 bits
    EXPECT_EQ(result.last_bits, 8U);
    EXPECT_EQ(accumulator.bits, 6U);

    Bytes rest(16);
    const EncodeResult end = encoder.encode({}, fixed_tables(), accumulator, {}, rest);
    output.resize(result.output_size);
    output.insert(output.end(), rest.begin(),
                  rest.begin() + static_cast<std::ptrdiff_t>(end.output_size));
    EXPECT_EQ(output, encode_fixed(encoder, input));
}

// One block fed in pieces, each with the accumulator that the one before has left.
TEST(Encoder, PiecesMakeOneStream) {
    Encoder encoder;
    const Bytes page = test::sample_pages(900).front();
    for (const std::size_t piece : {1U, 7U, 100U, 1000U, 4095U}) {
        Bytes stream;
        Accumulator accumulator;
        ASSERT_TRUE(write_fixed_header(true, accumulator));
        for (std::size_t at = 0; at < page.size(); at += piece) {
            const std::span now = std::span(page).subspan(at, std::min(piece, page.size() - at));
            const bool last = at + piece >= page.size();
            Bytes output(bound(piece));
            const EncodeResult result =
                encoder.encode(now, fixed_tables(), accumulator,
                               {.end = last ? EndOfBlock::kEob : EndOfBlock::kNone,
                                .flush = last,
                                .history = std::span(page).first(at)},
                               output);
            ASSERT_EQ(result.error, ErrorCode::kNone);
            stream.insert(stream.end(), output.begin(),
                          output.begin() + static_cast<std::ptrdiff_t>(result.output_size));
        }
        expect_inflates_everywhere(stream, page);
        // History gives what a single call would have found, but for matches cut by the pieces.
        if (piece >= 1000) {
            EXPECT_LT(stream.size(), encode_fixed(encoder, page).size() + 32);
        }
    }
}

TEST(Encoder, HistoryIsMatchedUpToTheWindow) {
    Encoder encoder;
    const Bytes text = test::unmatchable(5000, 0);
    const std::span history = std::span(text);
    const auto matches_at = [&](std::size_t back) {
        const std::span input = history.subspan(history.size() - back, 16);
        const Histogram counts = encoder.count(input, {.history = history});
        return counts.d[distance_symbol(static_cast<unsigned>(back))];
    };
    EXPECT_EQ(matches_at(16), 1U);
    EXPECT_EQ(matches_at(4096), 1U);
    EXPECT_EQ(matches_at(4097), 0U);
}

TEST(Encoder, EndsOfABlock) {
    Encoder encoder;
    const Bytes input = {'a', 'b', 'c'};
    const auto encode = [&](EndOfBlock end, bool final) {
        Accumulator accumulator;
        EXPECT_TRUE(write_fixed_header(final, accumulator));
        Bytes output(64);
        const EncodeResult result =
            encoder.encode(input, fixed_tables(), accumulator, {.end = end}, output);
        EXPECT_EQ(result.error, ErrorCode::kNone);
        output.resize(result.output_size);
        return output;
    };
    const Bytes none = encode(EndOfBlock::kNone, true);
    EXPECT_EQ(none, test::StreamBuilder().block(true, 1).literals(input).stream());
    const Bytes eob = encode(EndOfBlock::kEob, true);
    EXPECT_EQ(eob, test::StreamBuilder().block(true, 1).literals(input).end_of_block().stream());
    const Bytes stored = encode(EndOfBlock::kEobStored, false);
    EXPECT_EQ(stored, test::StreamBuilder()
                          .block(false, 1)
                          .literals(input)
                          .end_of_block()
                          .stored(false, {})
                          .stream());
    const Bytes final_stored = encode(EndOfBlock::kEobFinalStored, false);
    EXPECT_EQ(final_stored, test::StreamBuilder()
                                .block(false, 1)
                                .literals(input)
                                .end_of_block()
                                .stored(true, {})
                                .stream());
    expect_inflates_everywhere(eob, input);
    expect_inflates_everywhere(final_stored, input);
}

TEST(Encoder, AccumulatorGoesFirstAtEveryBitCount) {
    Encoder encoder;
    const Bytes input = {'x', 'y', 'x', 'y', 'x', 'y', 'x', 'y'};
    for (std::uint32_t bits = 0; bits <= Accumulator::kMaxBits; ++bits) {
        Accumulator accumulator;
        test::StreamBuilder expected;
        while (accumulator.bits < bits) {
            const std::uint32_t bit = accumulator.bits * 7 / 5 & 1;
            ASSERT_TRUE(accumulator.append(bit, 1));
            expected.bits(bit, 1);
        }
        Bytes output(300);
        const EncodeResult result = encoder.encode(input, fixed_tables(), accumulator, {}, output);
        ASSERT_EQ(result.error, ErrorCode::kNone);
        output.resize(result.output_size);
        ASSERT_EQ(output, expected.literal('x').literal('y').match(6, 2).end_of_block().stream());
    }
}

TEST(Encoder, LiteralsOnly) {
    Encoder encoder;
    const Bytes input(1000, 'z');
    const Histogram counts = encoder.count(input, {.literals_only = true});
    EXPECT_EQ(counts.ll['z'], 1000U);
    Accumulator accumulator;
    ASSERT_TRUE(write_fixed_header(true, accumulator));
    Bytes output(bound(input.size()));
    const EncodeResult result =
        encoder.encode(input, fixed_tables(), accumulator, {.literals_only = true}, output);
    EXPECT_EQ(result.output_size, (3 + 8 * 1000 + 7 + 7) / 8U);
    output.resize(result.output_size);
    expect_inflates_everywhere(output, input);
}

TEST(Encoder, LiteralWithoutACodeIsAnError) {
    Encoder encoder;
    CodeTables tables = fixed_tables();
    tables.ll['q'] = 0;
    Accumulator accumulator;
    ASSERT_TRUE(accumulator.append(5, 3));
    const Accumulator before = accumulator;
    Bytes output(64);
    const Bytes input = {'a', 'q', 'b'};
    EncodeResult result = encoder.encode(input, tables, accumulator, {}, output);
    EXPECT_EQ(result.error, ErrorCode::kNoHuffmanCode);
    EXPECT_EQ(result.bad_symbol, static_cast<unsigned>('q'));
    EXPECT_EQ(result.output_size, 0U);
    EXPECT_EQ(accumulator, before);

    tables = fixed_tables();
    tables.ll[kEobSymbol] = 0;
    result = encoder.encode(input, tables, accumulator, {}, output);
    EXPECT_EQ(result.error, ErrorCode::kNoHuffmanCode);
    EXPECT_EQ(result.bad_symbol, kEobSymbol);
    result = encoder.encode(input, tables, accumulator, {.end = EndOfBlock::kNone}, output);
    EXPECT_EQ(result.error, ErrorCode::kNone);
}

// Encodes a page with tables that lack some codes and checks that nothing lacking is used: the
// decoder, which is given the same tables, would meet a bad code.
void expect_only_coded(const CodeLengths& lengths, const Bytes& page) {
    CodeTables tables;
    ASSERT_EQ(make_tables(lengths, tables), ErrorCode::kNone);
    Encoder encoder;
    Accumulator accumulator;
    Bytes output(bound(page.size()) * 2);
    const EncodeResult encoded = encoder.encode(page, tables, accumulator, {}, output);
    ASSERT_EQ(encoded.error, ErrorCode::kNone);
    Decoder decoder;
    DecoderState state = DecoderState::preset(lengths, true);
    Bytes back(page.size());
    const DecodeResult decoded =
        decoder.decode(state, BitSpan::of(std::span(output).first(encoded.output_size)), back, {});
    EXPECT_EQ(decoded.stop, StopReason::kEndOfStream);
    EXPECT_EQ(decoded.error, ErrorCode::kNone);
    EXPECT_TRUE(back == page);
}

TEST(Encoder, MatchesWithoutACodeAreNeverMade) {
    std::vector<Bytes> pages = test::sample_pages(300);
    for (test::Pattern& pattern : test::patterns(4096)) {
        pages.push_back(std::move(pattern.bytes));
    }
    for (const Bytes& page : pages) {
        // Lengths up to 34 and distances up to 512.
        CodeLengths lengths = test::flat_lengths(273, 18);
        expect_only_coded(lengths, page);
        // No lengths at all, then no distances.
        lengths = test::flat_lengths(257, 30);
        expect_only_coded(lengths, page);
        lengths = test::flat_lengths(286, 30);
        lengths.d.fill(0);
        expect_only_coded(lengths, page);
        // Holes: only some lengths and only some distances.
        lengths = test::flat_lengths(286, 30);
        for (std::size_t symbol = kFirstLengthSymbol; symbol < kLlSymbols; symbol += 2) {
            lengths.ll[symbol] = 0;
        }
        for (std::size_t symbol = 1; symbol < kDSymbols; symbol += 3) {
            lengths.d[symbol] = 0;
        }
        expect_only_coded(lengths, page);
    }
}

TEST(Encoder, LongMatchesAreTrimmedToACode) {
    Encoder encoder;
    const CodeLengths lengths = test::flat_lengths(273, 30);
    CodeTables tables;
    ASSERT_EQ(make_tables(lengths, tables), ErrorCode::kNone);
    Accumulator accumulator;
    Bytes output(1024);
    const EncodeResult result = encoder.encode(Bytes(1 + 34 * 10), tables, accumulator, {}, output);
    ASSERT_EQ(result.error, ErrorCode::kNone);
    output.resize(result.output_size);
    test::StreamBuilder expected;
    expected.use(lengths).literal(0);
    for (int match = 0; match < 10; ++match) {
        expected.match(34, 1);
    }
    EXPECT_EQ(output, expected.end_of_block().stream());
}

TEST(Encoder, MalformedEntriesAreToldAndDoNoHarm) {
    CodeTables tables = fixed_tables();
    EXPECT_TRUE(check_tables(tables));
    tables.ll[7] = 16U << kEntryLengthShift;
    EXPECT_FALSE(check_tables(tables));
    tables.ll[7] = 0xffffffff;
    EXPECT_FALSE(check_tables(tables));
    tables = fixed_tables();
    tables.d[3] = (4U << kEntryLengthShift) | 16;
    EXPECT_FALSE(check_tables(tables));

    Encoder encoder;
    Accumulator accumulator;
    Bytes output(64);
    tables.ll.fill(0xffffffff);
    tables.d.fill(0xffffffff);
    const Bytes input = {1, 2, 3, 1, 2, 3};
    EXPECT_EQ(encoder.encode(input, tables, accumulator, {}, output).error,
              ErrorCode::kNoHuffmanCode);
}

TEST(Encoder, DynamicBlockBehindAFullAccumulatorOverflows) {
    Encoder encoder;
    Accumulator accumulator;
    while (accumulator.bits < Accumulator::kMaxBits) {
        ASSERT_TRUE(accumulator.append(0, 32));
    }
    Bytes output(8192);
    const EncodeResult result =
        encoder.encode_dynamic(Bytes(100, 'a'), true, accumulator, {}, output);
    EXPECT_EQ(result.error, ErrorCode::kOutputOverflow);
    EXPECT_FALSE(result.header_fits);
    EXPECT_EQ(accumulator.bits, Accumulator::kMaxBits);

    // An output without room for the header is another matter.
    accumulator = {};
    const EncodeResult full =
        encoder.encode_dynamic(Bytes(100, 'a'), true, accumulator, {}, std::span(output).first(2));
    EXPECT_EQ(full.error, ErrorCode::kOutputOverflow);
    EXPECT_TRUE(full.header_fits);
}

TEST(Encoder, MovesLikeAValue) {
    Encoder first;
    const Bytes page = test::sample_pages(1000).front();
    const Bytes expected = encode_fixed(first, page);
    Encoder second = std::move(first);
    EXPECT_EQ(encode_fixed(second, page), expected);
}

}  // namespace
}  // namespace iaa::deflate
