// SPDX-License-Identifier: GPL-2.0
// One kind of broken stream after the other, each told by the device's error code, and zlib's
// opinion of it as a control.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using test::Bytes;
using test::ClToken;
using test::flat_cl_lengths;
using test::flat_lengths;
using test::plain_tokens;
using test::StreamBuilder;

enum class Zlib : std::uint8_t {
    kRefuses,
    kTakes,  ///< right by RFC 1951; the device is narrower
    kWaits,  ///< wants more input
};

struct Broken {
    std::string name;
    ErrorCode error;
    Zlib zlib;
    Bytes stream;
    std::size_t good_bytes;  ///< output before the fault

    Broken(std::string of, ErrorCode code, Zlib control, Bytes bytes, std::size_t before)
        : name(std::move(of)),
          error(code),
          zlib(control),
          stream(std::move(bytes)),
          good_bytes(before) {}

    friend std::ostream& operator<<(std::ostream& out, const Broken& broken) {
        return out << broken.name;
    }
};

constexpr unsigned kRepeat = 16;
constexpr unsigned kZeros = 17;
constexpr unsigned kManyZeros = 18;

void append(std::vector<ClToken>& tokens, const std::vector<ClToken>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
}

std::vector<ClToken> ll_tokens(const CodeLengths& lengths) {
    return plain_tokens(std::span(lengths.ll).first<kLlSymbols>());
}

// A good block in front, so that errors are not only found at the start.
StreamBuilder behind_a_block() {
    StreamBuilder builder;
    builder.block(false, 1).literals({'g', 'o', 'o', 'd'}).end_of_block();
    return builder;
}

StreamBuilder& finish(StreamBuilder& builder) {
    for (int filler = 0; filler < 64; ++filler) {
        builder.bits(0x5a, 8);
    }
    return builder;
}

// ---- code-length code

Broken oversubscribed_cl_tree() {
    std::array<std::uint8_t, 19> wrong = flat_cl_lengths();
    --wrong[0];
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, wrong, flat_cl_lengths(), ll_tokens(flat_lengths(286, 30)));
    return {"oversubscribed_cl_tree", ErrorCode::kOversubscribedCl, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

Broken undefined_cl_code() {
    // The header leaves symbol 15 out, and then its code comes.
    std::array<std::uint8_t, 19> coded{};
    std::fill_n(coded.begin(), 16, std::uint8_t{4});
    std::array<std::uint8_t, 19> said = coded;
    said[15] = 0;
    CodeLengths lengths = flat_lengths(286, 30);
    lengths.ll[100] = 15;
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, said, coded, ll_tokens(lengths));
    return {"undefined_cl_code", ErrorCode::kUndefinedClCode, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

Broken no_cl_code() {
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, std::array<std::uint8_t, 19>{}, {});
    return {"no_cl_code", ErrorCode::kUndefinedClCode, Zlib::kRefuses, finish(builder).stream(), 4};
}

// ---- lists of code lengths

Broken first_ll_16_code() {
    std::vector<ClToken> tokens = {{kRepeat, 0}};
    append(tokens, plain_tokens(Bytes(300, 8)));
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, flat_cl_lengths(), tokens);
    return {"first_ll_16_code", ErrorCode::kFirstLlCode16, Zlib::kRefuses, finish(builder).stream(),
            4};
}

// By RFC 1951 the last literal/length length is what is repeated.
Broken first_d_16_code() {
    CodeLengths lengths;
    std::fill_n(lengths.ll.begin(), 128, std::uint8_t{8});
    lengths.ll[255] = lengths.ll[256] = 2;
    std::fill_n(lengths.d.begin(), 4, std::uint8_t{2});
    std::vector<ClToken> tokens = plain_tokens(std::span(lengths.ll).first(257));
    tokens.emplace_back(kRepeat, 4 - 3);
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 257, 4, flat_cl_lengths(), tokens);
    builder.use(lengths).literal('x').end_of_block();
    return {"first_d_16_code", ErrorCode::kFirstDCode16, Zlib::kTakes, builder.stream(), 4};
}

// A run that begins in the one tree and ends in the other: of two-bit lengths, two of them literal
// and four distance ones.
Broken cl_codes_span_both_trees_16() {
    CodeLengths lengths;
    std::fill_n(lengths.ll.begin(), 64, std::uint8_t{8});
    lengths.ll[254] = lengths.ll[255] = lengths.ll[256] = 2;
    std::fill_n(lengths.d.begin(), 4, std::uint8_t{2});
    std::vector<ClToken> tokens = plain_tokens(std::span(lengths.ll).first(255));
    tokens.emplace_back(kRepeat, 6 - 3);
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 257, 4, flat_cl_lengths(), tokens);
    builder.use(lengths).literal('x').end_of_block();
    return {"cl_codes_span_both_trees_16", ErrorCode::kWrongLlCount, Zlib::kTakes, builder.stream(),
            4};
}

// The same of zeros: 29 literal/length codes and 28 distance codes have none.
Broken cl_codes_span_both_trees(unsigned symbol) {
    CodeLengths lengths;
    std::fill_n(lengths.ll.begin(), 256, std::uint8_t{9});
    lengths.ll[256] = 1;
    lengths.d[28] = lengths.d[29] = 1;
    std::vector<ClToken> tokens = plain_tokens(std::span(lengths.ll).first(257));
    if (symbol == kManyZeros) {
        tokens.emplace_back(kManyZeros, 29 + 28 - 11);
    } else {
        append(tokens, plain_tokens(Bytes(27)));
        tokens.emplace_back(kZeros, 2 + 8 - 3);
        append(tokens, plain_tokens(Bytes(20)));
    }
    append(tokens, {{1}, {1}});
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, flat_cl_lengths(), tokens);
    builder.use(lengths).literal('x').end_of_block();
    return {"cl_codes_span_both_trees_" + std::to_string(symbol), ErrorCode::kWrongLlCount,
            Zlib::kTakes, builder.stream(), 4};
}

Broken big_repeat_count_ll_codes() {
    std::vector<ClToken> tokens = plain_tokens(Bytes(280, 9));
    tokens.emplace_back(kManyZeros, 127);
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, flat_cl_lengths(), tokens);
    return {"big_repeat_count_ll_codes", ErrorCode::kWrongLlCount, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

Broken big_repeat_count_d_codes() {
    std::vector<ClToken> tokens = ll_tokens(flat_lengths(286, 30));
    append(tokens, plain_tokens(Bytes(28, 9)));
    tokens.emplace_back(kRepeat, 0);  // 31 distance codes
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, flat_cl_lengths(), tokens);
    return {"big_repeat_count_d_codes", ErrorCode::kWrongDCount, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

// The header announces fewer distance codes than follow.
Broken many_distance_codes() {
    std::vector<ClToken> tokens = ll_tokens(flat_lengths(286, 30));
    append(tokens, plain_tokens(Bytes(8, 5)));
    tokens.emplace_back(kZeros, 7);  // ten, two of which were announced
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 10, flat_cl_lengths(), tokens);
    return {"many_distance_codes", ErrorCode::kWrongDCount, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

Broken many_distance_codes_declared(unsigned count) {
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, count, flat_cl_lengths(), ll_tokens(flat_lengths(286, 30)));
    return {"many_distance_codes_declared_" + std::to_string(count), ErrorCode::kTooManyDCodes,
            Zlib::kRefuses, finish(builder).stream(), 4};
}

Broken many_ll_codes(unsigned count) {
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, count, 30, flat_cl_lengths(), ll_tokens(flat_lengths(286, 30)));
    return {"many_ll_codes_" + std::to_string(count), ErrorCode::kTooManyLlCodes, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

// ---- trees

Broken all_zero_literal_length_codes() {
    CodeLengths lengths = flat_lengths(286, 30);
    lengths.ll.fill(0);
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, lengths);
    return {"all_zero_literal_length_codes", ErrorCode::kNoLlCode, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

// Codes of literals are used that the header does not define.
Broken no_literal_length_code() {
    CodeLengths coded;
    std::fill_n(coded.ll.begin(), 257, std::uint8_t{15});
    for (unsigned symbol = 257; symbol < kLlSymbols; ++symbol) {
        coded.ll[symbol] = 6;
    }
    coded.d = flat_lengths(286, 30).d;
    CodeLengths said = coded;
    std::fill_n(said.ll.begin(), 257, std::uint8_t{0});
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, said).use(coded).match(3, 2).literal('x').end_of_block();
    return {"no_literal_length_code", ErrorCode::kBadLlCode, Zlib::kRefuses,
            finish(builder).stream(), 4 + 3};
}

Broken oversubscribed_ll_tree() {
    CodeLengths lengths = flat_lengths(286, 30);
    --lengths.ll[77];
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, lengths);
    return {"oversubscribed_ll_tree", ErrorCode::kOversubscribedLl, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

Broken oversubscribed_d_tree() {
    CodeLengths lengths = flat_lengths(286, 30);
    --lengths.d[9];
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, lengths);
    return {"oversubscribed_d_tree", ErrorCode::kOversubscribedD, Zlib::kRefuses,
            finish(builder).stream(), 4};
}

// The device takes incomplete trees, and objects to a code that is not there.
Broken incomplete_ll_tree() {
    const CodeLengths coded = flat_lengths(286, 30);
    CodeLengths said = coded;
    said.ll[285] = 0;
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, said).use(coded).literals({'a', 'b', 'c'}).match(258, 1);
    return {"incomplete_ll_tree", ErrorCode::kBadLlCode, Zlib::kRefuses, finish(builder).stream(),
            4 + 3};
}

Broken incomplete_d_tree() {
    CodeLengths coded = flat_lengths(286, 30);
    CodeLengths said = coded;
    said.d[29] = 0;
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, said).use(coded).literals({'a', 'b', 'c'}).match(10, 32768);
    return {"incomplete_d_tree", ErrorCode::kBadDCode, Zlib::kRefuses, finish(builder).stream(),
            4 + 3};
}

// One distance code of one bit is a tree that everybody takes; its other bit is nobody's.
Broken other_half_of_a_single_distance_code() {
    CodeLengths coded = flat_lengths(286, 2);
    CodeLengths said = coded;
    said.d[1] = 0;
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, said).use(coded).literal('a').match(3, 1).match(3, 2);
    return {"other_half_of_a_single_distance_code", ErrorCode::kBadDCode, Zlib::kRefuses,
            finish(builder).stream(), 4 + 1 + 3};
}

Broken match_without_any_distance_code() {
    CodeLengths lengths = flat_lengths(286, 30);
    lengths.d.fill(0);
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, lengths).use(lengths).literal('a');
    builder.match(3, 1);
    return {"match_without_any_distance_code", ErrorCode::kBadDCode, Zlib::kRefuses,
            finish(builder).stream(), 4 + 1};
}

// ---- blocks

Broken invalid_block() {
    StreamBuilder builder = behind_a_block();
    builder.block(true, 3);
    return {"invalid_block", ErrorCode::kBadBlockType, Zlib::kRefuses, finish(builder).stream(), 4};
}

Broken bad_stored_length(unsigned flipped) {
    StreamBuilder builder = behind_a_block();
    builder.block(true, 0).align().bits(5, 16).bits(~5U ^ 1U << flipped, 16);
    return {"bad_stored_length_" + std::to_string(flipped), ErrorCode::kBadStoredLength,
            Zlib::kRefuses, finish(builder).stream(), 4};
}

Broken unallowable_ll_code(unsigned symbol) {
    StreamBuilder builder = behind_a_block();
    builder.block(true, 1).literal('a');
    // Symbols 286 and 287 follow 280, which is 11000000.
    builder.code(8U << kEntryLengthShift | (0xc0 + symbol - 280));
    return {"unallowable_ll_code_" + std::to_string(symbol), ErrorCode::kBadLlCode, Zlib::kRefuses,
            finish(builder).stream(), 4 + 1};
}

Broken unallowable_d_code(unsigned symbol) {
    StreamBuilder builder = behind_a_block();
    builder.block(true, 1).literal('a').code(fixed_tables().ll[257]);
    builder.code(5U << kEntryLengthShift | symbol);
    return {"unallowable_d_code_" + std::to_string(symbol), ErrorCode::kBadDCode, Zlib::kRefuses,
            finish(builder).stream(), 4 + 1};
}

Broken bad_distance(unsigned distance) {
    StreamBuilder builder = behind_a_block();
    const Bytes text = test::random_bytes(33000, 4);
    builder.block(true, 1).literals(text).match(20, distance).end_of_block();
    return {"bad_distance_" + std::to_string(distance), ErrorCode::kBadDistance, Zlib::kTakes,
            builder.stream(), 4 + text.size()};
}

Broken distance_before_start(unsigned distance) {
    StreamBuilder builder = behind_a_block();
    builder.block(true, 1).literals({'a', 'b', 'c'}).match(20, distance).end_of_block();
    return {"distance_before_start_" + std::to_string(distance), ErrorCode::kReferenceBeforeStart,
            Zlib::kRefuses, finish(builder).stream(), 4 + 3};
}

// A header of more than the 2048 bits that the input buffers hold, of which the end is missing. All
// symbols are 7 bits long: 286 + 30 of them make 2286 bits.
StreamBuilder large_header_block() {
    std::array<std::uint8_t, 19> cl_lengths{};
    cl_lengths[16] = 1;
    cl_lengths[17] = 2;
    cl_lengths[18] = 3;
    cl_lengths[0] = 4;
    cl_lengths[1] = 5;
    cl_lengths[8] = 7;
    cl_lengths[9] = 7;
    cl_lengths[5] = 7;
    cl_lengths[4] = 7;
    CodeLengths lengths = flat_lengths(286, 30);
    std::vector<ClToken> tokens = ll_tokens(lengths);
    append(tokens, plain_tokens(lengths.d));
    StreamBuilder builder = behind_a_block();
    builder.dynamic(true, 286, 30, cl_lengths, tokens);
    return builder;
}

Broken large_header() {
    StreamBuilder builder = large_header_block();
    Bytes stream = builder.stream();
    stream.resize(stream.size() - 4);
    return {"large_header", ErrorCode::kHeaderTooLarge, Zlib::kWaits, stream, 4};
}

std::vector<Broken> all_broken() {
    std::vector<Broken> all = {
        oversubscribed_cl_tree(),
        undefined_cl_code(),
        no_cl_code(),
        first_ll_16_code(),
        first_d_16_code(),
        cl_codes_span_both_trees_16(),
        cl_codes_span_both_trees(kZeros),
        cl_codes_span_both_trees(kManyZeros),
        big_repeat_count_ll_codes(),
        big_repeat_count_d_codes(),
        many_distance_codes(),
        many_distance_codes_declared(31),
        many_distance_codes_declared(32),
        many_ll_codes(287),
        many_ll_codes(288),
        all_zero_literal_length_codes(),
        no_literal_length_code(),
        oversubscribed_ll_tree(),
        oversubscribed_d_tree(),
        incomplete_ll_tree(),
        incomplete_d_tree(),
        other_half_of_a_single_distance_code(),
        match_without_any_distance_code(),
        invalid_block(),
        unallowable_ll_code(286),
        unallowable_ll_code(287),
        unallowable_d_code(30),
        unallowable_d_code(31),
        bad_distance(4097),
        bad_distance(8192),
        bad_distance(32768),
        distance_before_start(8),
        distance_before_start(100),
        distance_before_start(4096),
        large_header(),
    };
    for (unsigned bit = 0; bit < 16; ++bit) {
        all.push_back(bad_stored_length(bit));
    }
    return all;
}

class BrokenStream : public testing::TestWithParam<Broken> {};

TEST_P(BrokenStream, HasItsErrorCode) {
    const Broken& broken = GetParam();
    Decoder decoder;
    DecoderState state;
    Bytes output(1U << 16);
    const DecodeResult result = decoder.decode(state, BitSpan::of(broken.stream), output, {});
    EXPECT_EQ(result.stop, StopReason::kError);
    EXPECT_EQ(result.error, broken.error) << describe(result.error);
    EXPECT_EQ(result.output_size, broken.good_bytes);
    EXPECT_EQ(std::string(output.begin(), output.begin() + 4), "good");

    // Nor is there room without which it would not be seen.
    DecoderState tight_state;
    const DecodeResult tight = decoder.decode(tight_state, BitSpan::of(broken.stream),
                                              std::span(output).first(broken.good_bytes), {});
    EXPECT_EQ(tight.error, broken.error);
}

TEST_P(BrokenStream, IsControlledByZlib) {
    const Broken& broken = GetParam();
    const test::Inflated inflated = test::zlib_inflate(broken.stream, 1U << 16);
    EXPECT_EQ(inflated.malformed, broken.zlib == Zlib::kRefuses);
    EXPECT_EQ(inflated.complete, broken.zlib == Zlib::kTakes);
}

class BrokenStreamInBits : public BrokenStream {};

TEST_P(BrokenStreamInBits, HasTheSameErrorCode) {
    const Broken& broken = GetParam();
    Decoder decoder;
    DecoderState state;
    Bytes output(1U << 16);
    std::uint64_t at = 0;
    std::size_t made = 0;
    for (std::uint64_t end = 0; end <= broken.stream.size() * 8; ++end) {
        const DecodeResult result = decoder.decode(state, {broken.stream, at, end - at},
                                                   std::span(output).subspan(made), {});
        at += result.bits_consumed;
        made += static_cast<std::size_t>(result.output_size);
        if (result.stop == StopReason::kError) {
            EXPECT_EQ(result.error, broken.error) << describe(result.error);
            EXPECT_EQ(made, broken.good_bytes);
            return;
        }
        ASSERT_EQ(result.stop, StopReason::kInputEnd);
    }
    FAIL() << "no error";
}

std::string name_of(const testing::TestParamInfo<Broken>& test) {
    return test.param.name;
}

// Without those that are too long to be worth it, and the one error that only the end of the input
// brings.
std::vector<Broken> broken_at_once() {
    std::vector<Broken> all = all_broken();
    std::erase_if(all, [](const Broken& broken) {
        return broken.error == ErrorCode::kHeaderTooLarge || broken.stream.size() > 2000;
    });
    return all;
}

INSTANTIATE_TEST_SUITE_P(All, BrokenStream, testing::ValuesIn(all_broken()), name_of);
INSTANTIATE_TEST_SUITE_P(All, BrokenStreamInBits, testing::ValuesIn(broken_at_once()), name_of);

TEST(BrokenStreams, AHeaderOf2048BitsIsHeldAndOneOf2049IsNot) {
    const Bytes stream = large_header_block().stream();
    const std::uint64_t start = 3 + 4 * 8 + 7;  // behind the first block
    Decoder decoder;
    for (const std::uint64_t bits : {2047U, 2048U, 2049U}) {
        DecoderState state;
        Bytes output(16);
        const DecodeResult result = decoder.decode(state, {stream, 0, start + bits}, output, {});
        EXPECT_EQ(result.bits_consumed, start);
        if (bits <= 2048) {
            EXPECT_EQ(result.stop, StopReason::kInputEnd);
        } else {
            EXPECT_EQ(result.error, ErrorCode::kHeaderTooLarge);
        }
    }
    // All there, it is a header like any other.
    DecoderState state;
    Bytes output(16);
    const DecodeResult result = decoder.decode(state, BitSpan::of(stream), output, {});
    EXPECT_EQ(result.error, ErrorCode::kNone);
    EXPECT_EQ(state.parser, ParserState::kSymbols);
    EXPECT_EQ(state.lengths, flat_lengths(286, 30));
}

// Flips every bit of good streams: whatever comes out is an error or some output, and where zlib
// takes the stream and no distance is too far, both make the same of it.
TEST(BrokenStreams, FlippedBits) {
    Decoder decoder;
    const Bytes page = test::sample_pages(500).front();
    const Bytes input(page.begin(), page.begin() + 600);
    for (const Bytes& good : {test::zlib_deflate(input, 6, test::Strategy::kDefault),
                              test::zlib_deflate(input, 6, test::Strategy::kFixed),
                              test::zlib_deflate(input, 0, test::Strategy::kDefault)}) {
        for (std::uint64_t bit = 0; bit < good.size() * 8; ++bit) {
            SCOPED_TRACE(bit);
            Bytes stream = good;
            stream[bit / 8] = static_cast<std::uint8_t>(stream[bit / 8] ^ 1U << bit % 8);
            DecoderState state;
            Bytes output(1U << 16);
            const DecodeResult result = decoder.decode(state, BitSpan::of(stream), output, {});
            output.resize(static_cast<std::size_t>(result.output_size));
            const test::Inflated inflated = test::zlib_inflate(stream, 1U << 16);
            if (result.stop == StopReason::kEndOfStream && inflated.complete) {
                EXPECT_TRUE(output == inflated.output);
            } else if (inflated.complete) {
                EXPECT_TRUE(result.error == ErrorCode::kBadDistance ||
                            result.error == ErrorCode::kWrongLlCount ||
                            result.error == ErrorCode::kFirstDCode16)
                    << describe(result.error);
            } else {
                // zlib has no patience with incomplete trees.
                EXPECT_TRUE(result.stop != StopReason::kEndOfStream || inflated.malformed);
            }
        }
    }
}

}  // namespace
}  // namespace iaa::deflate
