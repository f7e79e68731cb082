// SPDX-License-Identifier: GPL-2.0
// Streams that the hardware produced, published with the headers of its canned tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "unit/deflate/foreign.h"
#include "unit/deflate/stream_builder.h"

namespace iaa::deflate {
namespace {

using nlohmann::json;
using test::Bytes;

const json& answers() {
    static const json all = json::parse(test::read_data("known-answers.json"));
    return all;
}

struct Canned {
    Bytes header;
    std::uint32_t header_bits = 0;
    CodeLengths lengths;
    CodeTables tables;
};

Canned canned(const std::string& name) {
    const json& entry = answers().at("headers").at(name);
    Canned result;
    result.header = test::from_hex(entry.at("header_hex").get<std::string>());
    result.header_bits = entry.at("header_bits").get<std::uint32_t>();
    const HeaderResult parsed = parse_block_header({result.header, 0, result.header_bits});
    EXPECT_EQ(parsed.status, HeaderStatus::kOk);
    EXPECT_EQ(parsed.bits, result.header_bits);
    result.lengths = parsed.header.lengths;
    EXPECT_EQ(make_tables(result.lengths, result.tables), ErrorCode::kNone);
    return result;
}

// The header with its bits, and then the bits of a stream, as one stream.
Bytes join(const Canned& canned, const Bytes& stream) {
    test::StreamBuilder builder;
    for (std::uint32_t bit = 0; bit < canned.header_bits; ++bit) {
        builder.bits(test::bit_of(canned.header, bit), 1);
    }
    for (const std::uint8_t byte : stream) {
        builder.bits(byte, 8);
    }
    return builder.stream();
}

TEST(KnownAnswers, HeadersGiveThePublishedLengths) {
    for (const auto& [name, entry] : answers().at("headers").items()) {
        SCOPED_TRACE(name);
        const Canned tables = canned(name);
        const auto ll = entry.at("ll_lengths").get<Bytes>();
        const auto d = entry.at("d_lengths").get<Bytes>();
        EXPECT_TRUE(std::ranges::equal(ll, std::span(tables.lengths.ll).first(ll.size())));
        EXPECT_TRUE(std::ranges::equal(d, std::span(tables.lengths.d).first(d.size())));
        EXPECT_EQ(kraft_sum(tables.lengths.ll), 1U << kMaxCodeLength);
        EXPECT_EQ(kraft_sum(tables.lengths.d), 1U << kMaxCodeLength);
        EXPECT_EQ(lengths_of(tables.tables), tables.lengths);
    }
    EXPECT_EQ(canned("canned-2023").tables.ll[kEobSymbol], 0x503ffU);
    EXPECT_EQ(canned("canned-2024").tables.ll[kEobSymbol], 0x503feU);
}

// Our header for the published lengths says the same, and takes no more bits.
TEST(KnownAnswers, HeadersAreWrittenAsCompactly) {
    for (const auto& [name, entry] : answers().at("headers").items()) {
        SCOPED_TRACE(name);
        const Canned tables = canned(name);
        Accumulator accumulator;
        ASSERT_TRUE(write_dynamic_header(tables.lengths, true, accumulator));
        EXPECT_LE(accumulator.bits, tables.header_bits);
        EXPECT_EQ(parse_block_header({accumulator.bytes, 0, accumulator.bits}).header.lengths,
                  tables.lengths);
    }
}

TEST(KnownAnswers, StreamsDecode) {
    Decoder decoder;
    ASSERT_EQ(answers().at("vectors").size(), 4U);
    for (const json& vector : answers().at("vectors")) {
        const Bytes plain = test::from_hex(vector.at("plain_hex").get<std::string>());
        const Bytes stream = test::from_hex(vector.at("stream_hex").get<std::string>());
        DecoderState state;
        Bytes whole = stream;
        if (vector.at("mode") == "canned") {
            const Canned tables = canned(vector.at("header").get<std::string>());
            state = DecoderState::preset(tables.lengths, true);
            whole = join(tables, stream);
        }
        Bytes output(plain.size());
        const DecodeResult result =
            decoder.decode(state, BitSpan::of(stream), output, {.check_for_eob = true});
        EXPECT_EQ(result.stop, StopReason::kEndOfStream);
        EXPECT_EQ(result.output_size, plain.size());
        EXPECT_LT(stream.size() * 8 - result.bits_consumed, 8U);
        EXPECT_EQ(output, plain);

        // With its header in front it is what any inflate reads.
        const test::Inflated inflated = test::zlib_inflate(whole, plain.size());
        EXPECT_TRUE(inflated.complete);
        EXPECT_EQ(inflated.output, plain);
    }
}

// As the kernel primes a device: the header alone is decompressed once, and the state that this
// leaves decodes every stream.
TEST(KnownAnswers, StateFromTheHeaderAloneDecodes) {
    Decoder decoder;
    for (const json& vector : answers().at("vectors")) {
        if (vector.at("mode") != "canned") {
            continue;
        }
        const Canned tables = canned(vector.at("header").get<std::string>());
        DecoderState primed;
        const DecodeResult priming =
            decoder.decode(primed, {tables.header, 0, tables.header_bits}, {}, {});
        EXPECT_EQ(priming.stop, StopReason::kInputEnd);
        EXPECT_EQ(priming.bits_consumed, tables.header_bits);
        EXPECT_EQ(primed, DecoderState::preset(tables.lengths, true));

        const Bytes plain = test::from_hex(vector.at("plain_hex").get<std::string>());
        const Bytes stream = test::from_hex(vector.at("stream_hex").get<std::string>());
        Bytes output(plain.size());
        const DecodeResult result = decoder.decode(primed, BitSpan::of(stream), output, {});
        EXPECT_EQ(result.stop, StopReason::kEndOfStream);
        EXPECT_EQ(output, plain);
    }
}

TEST(KnownAnswers, CannedTablesEncodeAndDecode) {
    Encoder encoder;
    Decoder decoder;
    for (const auto& [name, entry] : answers().at("headers").items()) {
        SCOPED_TRACE(name);
        const Canned tables = canned(name);
        for (const Bytes& page : test::sample_pages(40)) {
            Accumulator accumulator;
            Bytes stream(page.size() * 2);
            const EncodeResult encoded =
                encoder.encode(page, tables.tables, accumulator, {}, stream);
            ASSERT_EQ(encoded.error, ErrorCode::kNone);
            stream.resize(encoded.output_size);
            DecoderState state = DecoderState::preset(tables.lengths, true);
            Bytes output(page.size());
            const DecodeResult result =
                decoder.decode(state, BitSpan::of(stream), output, {.check_for_eob = true});
            EXPECT_EQ(result.stop, StopReason::kEndOfStream);
            EXPECT_TRUE(output == page);
            const test::Inflated inflated = test::zlib_inflate(join(tables, stream), page.size());
            EXPECT_TRUE(inflated.complete);
            EXPECT_TRUE(inflated.output == page);
        }
    }
}

// Our own streams of the published inputs are about as short as the hardware's.
TEST(KnownAnswers, OwnStreamsAreAboutAsShort) {
    Encoder encoder;
    for (const json& vector : answers().at("vectors")) {
        const Bytes plain = test::from_hex(vector.at("plain_hex").get<std::string>());
        const Bytes stream = test::from_hex(vector.at("stream_hex").get<std::string>());
        Accumulator accumulator;
        Bytes output(plain.size() * 2);
        EncodeResult result;
        if (vector.at("mode") == "canned") {
            const Canned tables = canned(vector.at("header").get<std::string>());
            result = encoder.encode(plain, tables.tables, accumulator, {}, output);
        } else {
            result = encoder.encode_dynamic(plain, true, accumulator, {}, output);
        }
        ASSERT_EQ(result.error, ErrorCode::kNone);
        EXPECT_LE(result.output_size * 100, stream.size() * 103);
    }
}

}  // namespace
}  // namespace iaa::deflate
