// SPDX-License-Identifier: GPL-2.0
// Decoding of good streams: other encoders', and the options of the decoder.
#include "deflate/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "deflate/encoder.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using test::Bytes;
using test::StreamBuilder;

struct Decoded {
    DecodeResult result;
    Bytes output;
    DecoderState state;
};

Decoded decode(const BitSpan& input, std::size_t room, const DecodeOptions& options = {},
               const DecoderState& from = {}) {
    Decoder decoder;
    Decoded decoded;
    decoded.state = from;
    decoded.output.resize(room);
    decoded.result = decoder.decode(decoded.state, input, decoded.output, options);
    decoded.output.resize(static_cast<std::size_t>(decoded.result.output_size));
    return decoded;
}

void expect_decodes(Decoder& decoder, const Bytes& stream, const Bytes& input) {
    DecoderState state;
    Bytes output(input.size());
    const DecodeResult result =
        decoder.decode(state, BitSpan::of(stream), output, {.check_for_eob = true});
    if (result.error == ErrorCode::kWrongLlCount || result.error == ErrorCode::kFirstDCode16) {
        EXPECT_TRUE(test::run_spans_trees(stream, result.bits_consumed));
        return;
    }
    EXPECT_EQ(result.stop, StopReason::kEndOfStream) << describe(result.error);
    EXPECT_EQ(result.output_size, input.size());
    EXPECT_LT(stream.size() * 8 - result.bits_consumed, 8U);
    EXPECT_TRUE(output == input);
}

TEST(Decoder, ZlibsStreamsOfAllKinds) {
    Decoder decoder;
    for (const std::size_t size : test::interesting_sizes()) {
        for (const test::Pattern& pattern : test::patterns(size)) {
            SCOPED_TRACE(testing::Message() << pattern.name << " " << size);
            for (const int level : {0, 1, 6, 9}) {
                for (const test::Strategy strategy :
                     {test::Strategy::kDefault, test::Strategy::kFixed,
                      test::Strategy::kHuffmanOnly, test::Strategy::kRle}) {
                    expect_decodes(decoder, test::zlib_deflate(pattern.bytes, level, strategy),
                                   pattern.bytes);
                }
            }
        }
    }
}

TEST(Decoder, LibdeflatesAndIsalsStreams) {
    Decoder decoder;
    for (const std::size_t size : test::interesting_sizes()) {
        for (const test::Pattern& pattern : test::patterns(size)) {
            SCOPED_TRACE(testing::Message() << pattern.name << " " << size);
            if (size <= kWindow) {
                for (const int level : {0, 1, 6, 12}) {
                    expect_decodes(decoder, test::libdeflate_deflate(pattern.bytes, level),
                                   pattern.bytes);
                }
            }
            for (const unsigned level : {0U, 1U}) {
                expect_decodes(decoder, test::isal_deflate(pattern.bytes, level), pattern.bytes);
            }
        }
    }
}

TEST(Decoder, SamplePagesOfAllEncoders) {
    Decoder decoder;
    for (const Bytes& page : test::sample_pages(9)) {
        expect_decodes(decoder, test::zlib_deflate(page, 6, test::Strategy::kDefault), page);
        expect_decodes(decoder, test::libdeflate_deflate(page, 6), page);
        expect_decodes(decoder, test::isal_deflate(page, 1), page);
    }
}

// The check above must not let everything through as a run over both trees.
TEST(Decoder, MostForeignStreamsAreTaken) {
    Decoder decoder;
    unsigned refused = 0;
    unsigned all = 0;
    for (const Bytes& page : test::sample_pages(9)) {
        const Bytes stream = test::libdeflate_deflate(page, 6);
        DecoderState state;
        Bytes output(page.size());
        const DecodeResult result = decoder.decode(state, BitSpan::of(stream), output, {});
        refused += result.stop == StopReason::kError ? 1U : 0U;
        ++all;
    }
    EXPECT_LT(refused * 2, all);
}

TEST(Decoder, DistancesBeyondTheWindowAreRefused) {
    const Bytes input = test::match_at_distance(5000);
    const Bytes stream = test::libdeflate_deflate(input, 12);
    ASSERT_LT(stream.size(), input.size());
    ASSERT_TRUE(test::zlib_inflate(stream, input.size()).complete);
    const Decoded decoded = decode(BitSpan::of(stream), input.size());
    EXPECT_EQ(decoded.result.stop, StopReason::kError);
    EXPECT_EQ(decoded.result.error, ErrorCode::kBadDistance);
    // Up to where libdeflate has put its match.
    EXPECT_GT(decoded.output.size(), 4990U);
    EXPECT_TRUE(std::equal(decoded.output.begin(), decoded.output.end(), input.begin()));
}

TEST(Decoder, DistanceOf4096AndNotOf4097) {
    const Bytes text = test::unmatchable(4097, 0);
    for (const unsigned distance : {4096U, 4097U}) {
        StreamBuilder builder;
        builder.block(true, 1).literals(text).match(258, distance).end_of_block();
        const Decoded decoded = decode(BitSpan::of(builder.stream()), 8192);
        if (distance == 4096) {
            EXPECT_EQ(decoded.result.stop, StopReason::kEndOfStream);
            EXPECT_EQ(decoded.output.size(), 4097U + 258U);
            EXPECT_EQ(decoded.output, test::zlib_inflate(builder.stream(), 8192).output);
        } else {
            EXPECT_EQ(decoded.result.error, ErrorCode::kBadDistance);
        }
    }
}

TEST(Decoder, EveryLengthAtEveryShortDistance) {
    Decoder decoder;
    for (unsigned distance = 1; distance <= 40; ++distance) {
        StreamBuilder builder;
        const Bytes text = test::unmatchable(distance, 0);
        builder.block(true, 1).literals(text);
        Bytes expected = text;
        for (unsigned length = 3; length <= 258; ++length) {
            builder.match(length, distance);
            for (unsigned index = 0; index < length; ++index) {
                expected.push_back(expected[expected.size() - distance]);
            }
        }
        builder.end_of_block();
        expect_decodes(decoder, builder.stream(), expected);
    }
}

TEST(Decoder, TrailingBytesAreLeftAndCounted) {
    const Bytes input = {'t', 'a', 'i', 'l'};
    StreamBuilder builder;
    builder.block(true, 1).literals(input).end_of_block();
    const std::uint64_t bits = builder.size_in_bits();
    for (const std::size_t trailing : {0U, 1U, 8U, 100U}) {
        Bytes stream = builder.stream();
        stream.resize(stream.size() + trailing, 0xff);
        const Decoded decoded = decode(BitSpan::of(stream), 64, {.check_for_eob = true});
        EXPECT_EQ(decoded.result.stop, StopReason::kEndOfStream);
        EXPECT_EQ(decoded.result.bits_consumed, bits);
        EXPECT_EQ(decoded.output, input);
        // And nothing more comes out of a stream that has ended.
        DecoderState state = decoded.state;
        Bytes more(8);
        Decoder decoder;
        const DecodeResult again = decoder.decode(state, BitSpan::of(stream), more, {});
        EXPECT_EQ(again.stop, StopReason::kEndOfStream);
        EXPECT_EQ(again.bits_consumed, 0U);
        EXPECT_EQ(again.output_size, 0U);
    }
}

Bytes three_blocks() {
    StreamBuilder builder;
    builder.block(false, 1).literals({'a', 'b'}).end_of_block();
    builder.stored(false, {'c', 'd', 'e'});
    builder.block(true, 1).match(4, 2).end_of_block();
    return builder.stream();
}

TEST(Decoder, StopsAtBlocksWhenAsked) {
    const Bytes stream = three_blocks();
    Decoder decoder;
    DecoderState state;
    BitSpan input = BitSpan::of(stream);
    Bytes output(64);
    std::string all;
    std::vector<StopReason> stops;
    do {
        const DecodeResult result =
            decoder.decode(state, input, output, {.stop_on_eob = true, .check_for_eob = true});
        ASSERT_NE(result.stop, StopReason::kError);
        all.append(output.begin(),
                   output.begin() + static_cast<std::ptrdiff_t>(result.output_size));
        input.start += result.bits_consumed;
        input.count -= result.bits_consumed;
        stops.push_back(result.stop);
    } while (stops.back() == StopReason::kEndOfBlock && stops.size() < 10);
    EXPECT_EQ(all, "abcdedede");
    EXPECT_EQ(stops, (std::vector<StopReason>{StopReason::kEndOfBlock, StopReason::kEndOfBlock,
                                              StopReason::kEndOfStream}));

    const Decoded final_only =
        decode(BitSpan::of(stream), 64, {.stop_on_eob = true, .only_final_eob = true});
    EXPECT_EQ(final_only.result.stop, StopReason::kEndOfStream);
    EXPECT_EQ(final_only.output.size(), 9U);
}

TEST(Decoder, InputThatEndsElsewhereThanAtAnEndOfBlock) {
    const Bytes stream = three_blocks();
    const std::uint64_t first_end = 3 + 2 * 8 + 7;
    const std::uint64_t all_bits = decode(BitSpan::of(stream), 64).result.bits_consumed;
    for (std::uint64_t bits = 0; bits <= all_bits; ++bits) {
        SCOPED_TRACE(bits);
        const Decoded unchecked = decode({stream, 0, bits}, 64);
        EXPECT_EQ(unchecked.result.error, ErrorCode::kNone);
        EXPECT_EQ(unchecked.result.stop,
                  bits == all_bits ? StopReason::kEndOfStream : StopReason::kInputEnd);

        // Less than a byte behind an end of block is padding.
        const std::uint64_t second_end = (first_end + 3 + 7) / 8 * 8 + 32 + 24;
        const bool behind_eob = (bits >= first_end && bits < first_end + 8) ||
                                (bits >= second_end && bits < second_end + 3) || bits == all_bits;
        const Decoded any = decode({stream, 0, bits}, 64, {.check_for_eob = true});
        EXPECT_EQ(any.result.error, behind_eob ? ErrorCode::kNone : ErrorCode::kBadEndOfFile);
        const Decoded final_only =
            decode({stream, 0, bits}, 64, {.only_final_eob = true, .check_for_eob = true});
        EXPECT_EQ(final_only.result.error,
                  bits == all_bits ? ErrorCode::kNone : ErrorCode::kBadEndOfFile);
    }
}

TEST(Decoder, IgnoredEndBits) {
    StreamBuilder builder;
    builder.block(true, 1).literals({1, 2, 3});
    const std::uint64_t bits = builder.size_in_bits();
    Bytes stream = builder.stream();
    const auto ignored = static_cast<unsigned>(stream.size() * 8 - bits);
    ASSERT_NE(ignored, 0U);
    // Were they not ignored, these ones would be the start of a literal.
    stream.back() = static_cast<std::uint8_t>(stream.back() | 0xffU << (8 - ignored));
    const Decoded decoded = decode(BitSpan::of(stream, ignored), 64);
    EXPECT_EQ(decoded.result.stop, StopReason::kInputEnd);
    EXPECT_EQ(decoded.result.bits_consumed, bits);
    EXPECT_EQ(decoded.output, (Bytes{1, 2, 3}));
}

TEST(Decoder, HuffmanOnlyStreamsEndWithTheirInput) {
    // Literals alone have codes, and the input has no end of block.
    CodeLengths lengths;
    std::fill_n(lengths.ll.begin(), 256, std::uint8_t{8});
    lengths.ll[0] = 7;
    lengths.ll[1] = 9;
    lengths.ll[2] = 0;
    lengths.ll[3] = 9;
    lengths.ll[4] = 0;
    CodeTables tables;
    ASSERT_EQ(make_tables(lengths, tables), ErrorCode::kNone);
    const Bytes input = [] {
        Bytes bytes = test::random_bytes(3000, 8);
        std::ranges::replace_if(bytes, [](std::uint8_t byte) { return byte == 2 || byte == 4; }, 9);
        return bytes;
    }();
    Encoder encoder;
    Accumulator accumulator;
    Bytes stream(8000);
    const EncodeResult encoded = encoder.encode(
        input, tables, accumulator, {.end = EndOfBlock::kNone, .literals_only = true}, stream);
    ASSERT_EQ(encoded.error, ErrorCode::kNone);
    stream.resize(encoded.output_size);
    const Decoded decoded = decode(BitSpan::of(stream, 8 - encoded.last_bits), 8000, {},
                                   DecoderState::preset(lengths, false));
    EXPECT_EQ(decoded.result.stop, StopReason::kInputEnd);
    EXPECT_EQ(decoded.result.bits_consumed, stream.size() * 8 - (8 - encoded.last_bits));
    EXPECT_TRUE(decoded.output == input);
}

// Canned streams of the two kinds that are easy to get wrong: a table of all symbols with codes of
// all lengths, and many short blocks.
TEST(Decoder, CannedLargeLlTable) {
    CodeLengths lengths;
    // 1, 2, 3, ... bits for the first symbols, and all others as long as it gets.
    for (unsigned symbol = 0; symbol < 6; ++symbol) {
        lengths.ll[symbol] = static_cast<std::uint8_t>(symbol + 1);
    }
    for (unsigned symbol = 6; symbol < kLlSymbols; ++symbol) {
        lengths.ll[symbol] = 15;
    }
    for (unsigned symbol = 0; symbol < 15; ++symbol) {
        lengths.d[symbol] = static_cast<std::uint8_t>(symbol + 1);
    }
    for (unsigned symbol = 15; symbol < 24; ++symbol) {
        lengths.d[symbol] = 0;
    }
    StreamBuilder builder;
    builder.use(lengths);
    Bytes expected;
    for (unsigned byte = 0; byte < 256; ++byte) {
        builder.literal(byte);
        expected.push_back(static_cast<std::uint8_t>(byte));
    }
    for (unsigned length = 3; length <= 258; ++length) {
        const unsigned distance = 1 + length % 192;
        builder.match(length, distance);
        for (unsigned index = 0; index < length; ++index) {
            expected.push_back(expected[expected.size() - distance]);
        }
    }
    builder.end_of_block();
    const Decoded decoded = decode(BitSpan::of(builder.stream()), expected.size(),
                                   {.check_for_eob = true}, DecoderState::preset(lengths, true));
    EXPECT_EQ(decoded.result.stop, StopReason::kEndOfStream) << describe(decoded.result.error);
    EXPECT_TRUE(decoded.output == expected);
}

TEST(Decoder, CannedSmallBlocks) {
    const CodeLengths lengths = test::flat_lengths(286, 24);
    Decoder decoder;
    const Bytes page = test::sample_pages(800).front();
    Encoder encoder;
    CodeTables tables;
    ASSERT_EQ(make_tables(lengths, tables), ErrorCode::kNone);
    Bytes all;
    for (std::size_t at = 0; at < page.size(); at += 64) {
        Bytes stream(256);
        Accumulator accumulator;
        const std::span now = std::span(page).subspan(at, 64);
        const EncodeResult encoded = encoder.encode(now, tables, accumulator, {}, stream);
        ASSERT_EQ(encoded.error, ErrorCode::kNone);
        stream.resize(encoded.output_size);
        DecoderState state = DecoderState::preset(lengths, true);
        Bytes output(64);
        const DecodeResult result =
            decoder.decode(state, BitSpan::of(stream), output, {.check_for_eob = true});
        ASSERT_EQ(result.stop, StopReason::kEndOfStream);
        all.insert(all.end(), output.begin(), output.end());
    }
    EXPECT_TRUE(all == page);
}

TEST(Decoder, SuppressedOutputIsCountedSummedAndRemembered) {
    const Bytes input = [] {
        Bytes bytes;
        for (const Bytes& page : test::sample_pages(100)) {
            bytes.insert(bytes.end(), page.begin(), page.end());
        }
        bytes.push_back(7);
        return bytes;
    }();
    const Bytes stream = test::zlib_deflate(input, 6, test::Strategy::kDefault);
    Decoder decoder;
    for (const std::size_t limit : {input.size(), input.size() - 1, std::size_t{0}, std::size_t{1},
                                    std::size_t{16384}, std::size_t{16385}}) {
        DecoderState state;
        Checksums sums;
        const DecodeResult result =
            decoder.decode_suppressed(state, BitSpan::of(stream), limit, {}, sums);
        const Decoded plain = decode(BitSpan::of(stream), limit);
        Checksums plain_sums;
        plain_sums.update(plain.output);
        EXPECT_EQ(result.stop, plain.result.stop);
        EXPECT_EQ(result.output_size, plain.result.output_size);
        EXPECT_EQ(result.bits_consumed, plain.result.bits_consumed);
        EXPECT_EQ(sums.crc(), plain_sums.crc());
        EXPECT_EQ(sums.xor_sum(), plain_sums.xor_sum());
        EXPECT_EQ(state, plain.state);
    }
}

TEST(Decoder, SuppressedErrorsAreTold) {
    StreamBuilder builder;
    builder.block(true, 1).literals(Bytes(20000, 'a')).match(3, 5000);
    Decoder decoder;
    DecoderState state;
    Checksums sums;
    const DecodeResult result =
        decoder.decode_suppressed(state, BitSpan::of(builder.stream()), 1U << 20, {}, sums);
    EXPECT_EQ(result.stop, StopReason::kError);
    EXPECT_EQ(result.error, ErrorCode::kBadDistance);
    EXPECT_EQ(result.output_size, 20000U);
}

TEST(Decoder, StatesThatDecodingCannotLeaveAreRefused) {
    const Bytes stream(64, 0x55);
    const auto error_from = [&](const DecoderState& state) {
        return decode(BitSpan::of(stream), 64, {}, state).result.error;
    };
    CodeLengths oversubscribed = test::flat_lengths(286, 30);
    oversubscribed.ll[0] = 1;
    EXPECT_EQ(error_from(DecoderState::preset(oversubscribed, true)), ErrorCode::kAecs);
    CodeLengths too_long = test::flat_lengths(286, 30);
    too_long.d[0] = 16;
    EXPECT_EQ(error_from(DecoderState::preset(too_long, true)), ErrorCode::kAecs);
    too_long.d[0] = 255;
    EXPECT_EQ(error_from(DecoderState::preset(too_long, true)), ErrorCode::kAecs);
    DecoderState match = DecoderState::preset(fixed_lengths(), true);
    match.match_left = 3;
    match.match_distance = 1;
    EXPECT_EQ(error_from(match), ErrorCode::kAecs) << "no history";
    match.history.append(Bytes(10));
    EXPECT_NE(error_from(match), ErrorCode::kAecs);
    match.match_distance = 11;
    EXPECT_EQ(error_from(match), ErrorCode::kAecs);
    match.match_distance = 0;
    EXPECT_EQ(error_from(match), ErrorCode::kAecs);
    match.match_distance = 1;
    match.match_left = 259;
    EXPECT_EQ(error_from(match), ErrorCode::kAecs);
    // No code at all: nothing can be read.
    EXPECT_EQ(error_from(DecoderState::preset({}, true)), ErrorCode::kBadLlCode);
}

TEST(History, KeepsTheLastBytes) {
    const Bytes bytes = test::random_bytes(20000, 12);
    for (const std::size_t piece : {1U, 100U, 4095U, 4096U, 4097U, 10000U}) {
        History history;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            const std::size_t size = std::min<std::size_t>(piece, bytes.size() - at);
            history.append(std::span(bytes).subspan(at, size));
            const std::size_t done = at + size;
            ASSERT_EQ(history.size(), std::min(done, History::kSize));
            EXPECT_EQ(history.before_end(1), bytes[done - 1]);
            EXPECT_EQ(history.before_end(history.size()), bytes[done - history.size()]);
        }
        Bytes last(History::kSize);
        history.copy_to(last);
        EXPECT_TRUE(std::equal(last.begin(), last.end(), bytes.end() - History::kSize));

        History restored;
        restored.restore(history.ring(), history.write_offset(), true);
        EXPECT_EQ(restored, history);
    }
}

TEST(History, RestoredBeforeItWraps) {
    History history;
    history.append(Bytes{1, 2, 3});
    History restored;
    restored.restore(history.ring(), history.write_offset(), false);
    EXPECT_EQ(restored, history);
    EXPECT_EQ(restored.size(), 3U);
    history.append(Bytes{4});
    EXPECT_FALSE(restored == history);
    restored.append(Bytes{5});
    EXPECT_FALSE(restored == history);
}

}  // namespace
}  // namespace iaa::deflate
