// SPDX-License-Identifier: GPL-2.0
// Decoding that stops anywhere and goes on: always the same as in one call.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using test::Bytes;
using test::StreamBuilder;

struct Whole {
    DecodeResult result;
    Bytes output;
    DecoderState state;
};

Whole decode_whole(const Bytes& stream) {
    Decoder decoder;
    Whole whole;
    whole.output.resize(1U << 17);
    whole.result = decoder.decode(whole.state, BitSpan::of(stream), whole.output, {});
    whole.output.resize(static_cast<std::size_t>(whole.result.output_size));
    return whole;
}

struct Stream {
    std::string name;
    Bytes bytes;

    Stream(std::string of, Bytes content) : name(std::move(of)), bytes(std::move(content)) {}
};

// All block types, matches of all kinds, and an error.
std::vector<Stream> streams() {
    Bytes mixed_input;
    for (const test::Pattern& pattern : test::patterns(150)) {
        mixed_input.insert(mixed_input.end(), pattern.bytes.begin(), pattern.bytes.end());
    }
    StreamBuilder mixed;
    CodeLengths lengths = test::flat_lengths(286, 30);
    mixed.block(false, 1).literals(test::unmatchable(300, 0)).match(258, 299).match(100, 1);
    mixed.end_of_block();
    mixed.stored(false, test::random_bytes(70, 2));
    mixed.dynamic(false, lengths).use(lengths).literals({1, 2, 3}).match(258, 3).match(77, 600);
    mixed.end_of_block();
    mixed.stored(false, {});
    mixed.use(fixed_lengths()).block(true, 1).match(258, 900).end_of_block();

    StreamBuilder broken;
    broken.block(false, 1).literals({'x', 'y', 'z'}).match(50, 2).end_of_block();
    broken.block(true, 1).literal('q').match(3, 200);

    return {
        {"mixed blocks", mixed.stream()},
        {"broken", broken.stream()},
        {"zlib dynamic", test::zlib_deflate(mixed_input, 9, test::Strategy::kDefault)},
        {"zlib fixed", test::zlib_deflate(mixed_input, 1, test::Strategy::kFixed)},
        {"zlib stored", test::zlib_deflate(mixed_input, 0, test::Strategy::kDefault)},
    };
}

// Decodes with pieces of input and of room of the sizes that the two functions give.
template <typename NextBits, typename NextRoom>
void expect_pieces(const Bytes& stream, const Whole& whole, NextBits next_bits,
                   NextRoom next_room) {
    Decoder decoder;
    DecoderState state;
    Bytes output;
    std::uint64_t at = 0;   // consumed
    std::uint64_t end = 0;  // given
    DecodeResult result;
    for (int round = 0;; ++round) {
        ASSERT_LT(round, 1000000);
        Bytes room(next_room());
        result = decoder.decode(state, {stream, at, end - at}, room, {});
        at += result.bits_consumed;
        output.insert(output.end(), room.begin(),
                      room.begin() + static_cast<std::ptrdiff_t>(result.output_size));
        // The state is all there is: a copy of it goes on as well as itself.
        const DecoderState copy = state;
        state = copy;
        if (result.stop == StopReason::kInputEnd && end < stream.size() * 8) {
            end = std::min<std::uint64_t>(end + next_bits(), stream.size() * 8);
        } else if (result.stop != StopReason::kOutputFull) {
            break;
        }
    }
    EXPECT_EQ(result.stop, whole.result.stop);
    EXPECT_EQ(result.error, whole.result.error);
    EXPECT_EQ(at, whole.result.bits_consumed);
    EXPECT_TRUE(output == whole.output);
    EXPECT_EQ(state, whole.state);
}

TEST(Resume, AtEverySplitOfTheInput) {
    for (const Stream& stream : streams()) {
        SCOPED_TRACE(stream.name);
        const Whole whole = decode_whole(stream.bytes);
        for (std::uint64_t split = 0; split <= stream.bytes.size() * 8; ++split) {
            SCOPED_TRACE(split);
            std::uint64_t next = split;
            expect_pieces(
                stream.bytes, whole, [&] { return std::exchange(next, stream.bytes.size() * 8); },
                [] { return 1U << 16; });
            if (testing::Test::HasFailure()) {
                return;
            }
        }
    }
}

TEST(Resume, AtEveryOutputSize) {
    for (const Stream& stream : streams()) {
        SCOPED_TRACE(stream.name);
        const Whole whole = decode_whole(stream.bytes);
        for (std::size_t size = 0; size <= whole.output.size(); ++size) {
            SCOPED_TRACE(size);
            std::size_t next = size;
            expect_pieces(
                stream.bytes, whole, [] { return ~0U; },
                [&] { return std::exchange(next, std::size_t{1} << 16); });
            if (testing::Test::HasFailure()) {
                return;
            }
        }
    }
}

TEST(Resume, InPiecesOfEverySmallSize) {
    for (const Stream& stream : streams()) {
        SCOPED_TRACE(stream.name);
        const Whole whole = decode_whole(stream.bytes);
        for (const unsigned bits : {1U, 2U, 3U, 7U, 8U, 9U, 13U, 64U, 65U, 1000U}) {
            for (const std::size_t room : {1U, 2U, 3U, 4U, 5U, 17U, 257U, 258U, 259U, 5000U}) {
                SCOPED_TRACE(testing::Message() << bits << " bits, room " << room);
                expect_pieces(stream.bytes, whole, [&] { return bits; }, [&] { return room; });
            }
        }
    }
}

TEST(Resume, InRandomPieces) {
    test::Random random(77);
    Bytes input;
    for (const Bytes& page : test::sample_pages(200)) {
        input.insert(input.end(), page.begin(), page.end());
    }
    for (const Bytes& stream : {test::zlib_deflate(input, 6, test::Strategy::kDefault),
                                test::zlib_deflate(input, 1, test::Strategy::kFixed),
                                test::zlib_deflate(input, 0, test::Strategy::kDefault)}) {
        const Whole whole = decode_whole(stream);
        ASSERT_TRUE(whole.output == input);
        for (int round = 0; round < 20; ++round) {
            expect_pieces(
                stream, whole, [&] { return random() >> (random() % 32); },
                [&] { return std::min(random() >> (random() % 32), 100000U); });
        }
    }
}

TEST(Resume, OnlyWholeSymbolsAreTaken) {
    StreamBuilder builder;
    builder.block(true, 1).literals({'a', 'b', 'c'});
    const std::uint64_t before = builder.size_in_bits();
    builder.match(257, 3);
    const std::uint64_t behind = builder.size_in_bits();
    builder.end_of_block();
    Decoder decoder;
    for (std::uint64_t bits = before; bits < behind; ++bits) {
        DecoderState state;
        Bytes output(300);
        const DecodeResult result = decoder.decode(state, {builder.stream(), 0, bits}, output, {});
        EXPECT_EQ(result.stop, StopReason::kInputEnd);
        EXPECT_EQ(result.bits_consumed, before);
        EXPECT_EQ(result.output_size, 3U);
    }
}

TEST(Resume, AStoredBlockGoesOnFromTheMiddleOfAByte) {
    // The first piece ends three bits into a stored byte.
    const Bytes text = test::random_bytes(20, 3);
    StreamBuilder builder;
    builder.stored(true, text);
    const Bytes& stream = builder.stream();
    Decoder decoder;
    DecoderState state;
    Bytes output(20);
    DecodeResult result = decoder.decode(state, {stream, 0, 40 + 8 * 4 + 3}, output, {});
    EXPECT_EQ(result.bits_consumed, 40U + 8 * 4);
    EXPECT_EQ(result.output_size, 4U);
    // The rest moved by three bits, as bits that came before a byte boundary are.
    StreamBuilder moved;
    moved.bits(0, 3);
    for (std::size_t at = 5 + 4; at < stream.size(); ++at) {
        moved.bits(stream[at], 8);
    }
    result = decoder.decode(state, {moved.stream(), 3, moved.size_in_bits() - 3},
                            std::span(output).subspan(4), {});
    EXPECT_EQ(result.stop, StopReason::kEndOfStream);
    EXPECT_EQ(output, text);
}

}  // namespace
}  // namespace iaa::deflate
