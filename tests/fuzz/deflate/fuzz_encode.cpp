// SPDX-License-Identifier: GPL-2.0
// Encodes anything with any tables and options, and decodes it again with our decoder and zlib.
//   fuzz_encode -seed=1 -max_total_time=30 NEW_DIR tests/corpus/deflate/fuzz_encode
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <span>
#include <vector>

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "fuzz/deflate/require.h"
#include "unit/deflate/foreign.h"

namespace {

using iaa::deflate::Accumulator;
using iaa::deflate::BitSpan;
using iaa::deflate::CodeLengths;
using iaa::deflate::CodeTables;
using iaa::deflate::Decoder;
using iaa::deflate::DecodeResult;
using iaa::deflate::DecoderState;
using iaa::deflate::EncodeOptions;
using iaa::deflate::Encoder;
using iaa::deflate::EncodeResult;
using iaa::deflate::EndOfBlock;
using iaa::deflate::ErrorCode;
using iaa::deflate::Histogram;
using iaa::deflate::StopReason;
using iaa::test::Bytes;
using iaa::test::require;

enum class Mode : std::uint8_t { kFixed, kDynamic, kOwnTables, kWildTables };

struct Encoded {
    EncodeResult result;
    Bytes stream;
    Accumulator rest;
};

Encoded encode(Encoder& encoder, Mode mode, const Bytes& input, const CodeTables& tables,
               const EncodeOptions& options, std::size_t room) {
    Encoded encoded;
    encoded.stream.resize(room);
    if (mode == Mode::kDynamic) {
        encoded.result = encoder.encode_dynamic(input, true, encoded.rest, options, encoded.stream);
    } else {
        if (mode == Mode::kFixed) {
            require(iaa::deflate::write_fixed_header(true, encoded.rest), "room for three bits");
        }
        encoded.result = encoder.encode(input, tables, encoded.rest, options, encoded.stream);
    }
    require(encoded.result.output_size <= room, "output within its room");
    encoded.stream.resize(encoded.result.output_size);
    // What has not been flushed goes behind, so that one stream can be looked at.
    if (encoded.result.error == ErrorCode::kNone && encoded.rest.bits != 0) {
        encoded.stream.push_back(encoded.rest.bytes[0]);
    }
    return encoded;
}

CodeLengths own_lengths(FuzzedDataProvider& data) {
    Histogram histogram;
    for (std::uint32_t& count : histogram.ll) {
        count = data.ConsumeIntegral<std::uint8_t>();
    }
    for (std::uint32_t& count : histogram.d) {
        count = data.ConsumeIntegral<std::uint8_t>();
    }
    histogram.ll[iaa::deflate::kEobSymbol] = 1;
    return iaa::deflate::lengths_from(histogram);
}

CodeTables wild_tables(FuzzedDataProvider& data) {
    CodeTables tables;
    for (std::uint32_t& entry : tables.ll) {
        entry = data.ConsumeIntegral<std::uint32_t>();
    }
    for (std::uint32_t& entry : tables.d) {
        entry = data.ConsumeIntegral<std::uint32_t>();
    }
    return tables;
}

void require_round_trip(Mode mode, const Bytes& stream, const Bytes& input,
                        const CodeLengths& lengths, const EncodeOptions& options) {
    static Decoder decoder;
    DecoderState state;
    if (mode == Mode::kOwnTables) {
        state = DecoderState::preset(lengths, options.end == EndOfBlock::kEob);
    } else if (options.end >= EndOfBlock::kEobStored) {
        return;  // the first block said that it was the last
    }
    state.history.append(options.history);
    Bytes output(input.size() + 1);
    const DecodeResult result = decoder.decode(state, BitSpan::of(stream), output, {});
    output.resize(static_cast<std::size_t>(result.output_size));
    if (options.end == EndOfBlock::kNone) {
        // Padding bits may look like a symbol, which is the caller's to know.
        require(output.size() >= input.size(), "all output");
        require(std::equal(input.begin(), input.end(), output.begin()), "the output");
        return;
    }
    require(output == input, "the output");
    require(result.error == ErrorCode::kNone, "no error");
    if (options.end != EndOfBlock::kEobStored) {
        require(result.stop == StopReason::kEndOfStream, "the end of the stream");
        require(stream.size() * 8 - result.bits_consumed < 8, "all input");
    }
    if (mode != Mode::kOwnTables && options.history.empty()) {
        const iaa::test::Inflated zlib = iaa::test::zlib_inflate(stream, input.size());
        require(zlib.complete && zlib.output == input, "zlib's round trip");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static Encoder encoder;
    FuzzedDataProvider data(bytes, size);
    const Mode mode =
        data.PickValueInArray({Mode::kFixed, Mode::kDynamic, Mode::kOwnTables, Mode::kWildTables});
    EncodeOptions options{
        .end = data.PickValueInArray({EndOfBlock::kEob, EndOfBlock::kNone, EndOfBlock::kEobStored,
                                      EndOfBlock::kEobFinalStored}),
        .flush = data.ConsumeBool(),
        .literals_only = data.ConsumeIntegral<std::uint8_t>() > 230};
    const bool with_history = data.ConsumeIntegral<std::uint8_t>() > 200;
    const auto cut = data.ConsumeIntegral<std::uint8_t>();
    CodeTables tables = iaa::deflate::fixed_tables();
    CodeLengths lengths = iaa::deflate::fixed_lengths();
    if (mode == Mode::kOwnTables) {
        lengths = own_lengths(data);
        require(make_tables(lengths, tables) == ErrorCode::kNone, "codes for the lengths");
    } else if (mode == Mode::kWildTables) {
        tables = wild_tables(data);
    }
    Bytes history;
    if (with_history) {
        history =
            data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 5000));
        options.history = history;
    }
    const auto input = data.ConsumeRemainingBytes<std::uint8_t>();

    const Encoded whole = encode(encoder, mode, input, tables, options, input.size() * 4 + 1024);
    if (whole.result.error == ErrorCode::kNoHuffmanCode) {
        const unsigned symbol = whole.result.bad_symbol;
        require(symbol <= iaa::deflate::kEobSymbol, "only literals and the end can be missing");
        const unsigned length = iaa::deflate::entry_length(tables.ll[symbol]);
        require(length == 0 || length > iaa::deflate::kMaxCodeLength, "a symbol without a code");
        return 0;
    }
    require(whole.result.error == ErrorCode::kNone, "no other error with room enough");
    if (mode != Mode::kWildTables) {
        require_round_trip(mode, whole.stream, input, lengths, options);
    }
    // The same again, whatever was done before; and with less room an error.
    const Encoded again = encode(encoder, mode, input, tables, options, whole.result.output_size);
    require(again.result.error == ErrorCode::kNone, "exactly enough room");
    require(again.stream == whole.stream && again.rest == whole.rest, "the same bits again");
    if (cut != 0 && cut <= whole.result.output_size) {
        const Encoded less =
            encode(encoder, mode, input, tables, options, whole.result.output_size - cut);
        require(less.result.error == ErrorCode::kOutputOverflow, "too little room is told");
    }
    return 0;
}
