// SPDX-License-Identifier: GPL-2.0
// Decodes anything: at once, in pieces, and from states that nobody should have written; and where
// zlib has a say, both must say the same.
//   fuzz_decode -seed=1 -max_total_time=30 NEW_DIR tests/corpus/deflate/fuzz_decode
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <span>
#include <vector>

#include "deflate/decoder.h"
#include "fuzz/deflate/require.h"
#include "unit/deflate/foreign.h"

namespace {

using iaa::deflate::BitSpan;
using iaa::deflate::Checksums;
using iaa::deflate::DecodeOptions;
using iaa::deflate::Decoder;
using iaa::deflate::DecodeResult;
using iaa::deflate::DecoderState;
using iaa::deflate::ErrorCode;
using iaa::deflate::ParserState;
using iaa::deflate::StopReason;
using iaa::test::Bytes;
using iaa::test::require;

constexpr std::size_t kRoom = std::size_t{1} << 14;

struct Outcome {
    DecodeResult result;
    DecoderState state;
    Bytes output;
};

Outcome at_once(Decoder& decoder, const DecoderState& from, const Bytes& stream,
                const DecodeOptions& options) {
    Outcome outcome{.result = {}, .state = from, .output = Bytes(kRoom)};
    outcome.result = decoder.decode(outcome.state, BitSpan::of(stream), outcome.output, options);
    require(outcome.result.output_size <= kRoom, "output within its room");
    require(outcome.result.bits_consumed <= stream.size() * 8, "input within its size");
    outcome.output.resize(static_cast<std::size_t>(outcome.result.output_size));
    return outcome;
}

// Pieces whose sizes come from the fuzzer; when it has no more of them, all the rest in one.
Outcome in_pieces(Decoder& decoder, const DecoderState& from, const Bytes& stream,
                  FuzzedDataProvider& sizes) {
    Outcome outcome{.result = {}, .state = from, .output = {}};
    Bytes room;
    std::uint64_t at = 0;
    std::uint64_t end = 0;
    while (true) {
        const bool last = sizes.remaining_bytes() == 0;
        const std::size_t left = kRoom - outcome.output.size();
        room.resize(last ? left
                         : std::min(sizes.ConsumeIntegralInRange<std::size_t>(0, 600), left));
        outcome.result = decoder.decode(outcome.state, {stream, at, end - at}, room, {});
        at += outcome.result.bits_consumed;
        outcome.output.insert(
            outcome.output.end(), room.begin(),
            room.begin() + static_cast<std::ptrdiff_t>(outcome.result.output_size));
        const bool more_input =
            outcome.result.stop == StopReason::kInputEnd && end < stream.size() * 8;
        const bool more_room =
            outcome.result.stop == StopReason::kOutputFull && outcome.output.size() < kRoom;
        if (!more_input && !more_room) {
            outcome.result.bits_consumed = at;
            return outcome;
        }
        if (more_input) {
            end = last ? stream.size() * 8
                       : std::min<std::uint64_t>(
                             end + sizes.ConsumeIntegralInRange<std::uint64_t>(0, 999),
                             stream.size() * 8);
        }
    }
}

void require_same(const Outcome& pieces, const Outcome& whole) {
    // A header that is too large is only told when enough of it has come.
    if (pieces.result.error == ErrorCode::kHeaderTooLarge ||
        whole.result.error == ErrorCode::kHeaderTooLarge) {
        return;
    }
    require(pieces.result.stop == whole.result.stop, "pieces stop for the same reason");
    require(pieces.result.error == whole.result.error, "pieces end with the same error");
    require(pieces.result.bits_consumed == whole.result.bits_consumed, "pieces use the same bits");
    require(pieces.output == whole.output, "pieces give the same output");
    require(pieces.state == whole.state, "pieces leave the same state");
}

// The two bits of a block's type, where they are there.
bool says_dynamic(const BitSpan& input) {
    const auto bit = [&](std::uint64_t at) { return input.bytes[at / 8] >> at % 8 & 1; };
    return input.count >= 3 && bit(input.start + 1) == 0 && bit(input.start + 2) == 1;
}

// Whether a block is a dynamic one, or was going to be.
bool has_dynamic_block(Decoder& decoder, const Bytes& stream) {
    DecoderState state;
    BitSpan input = BitSpan::of(stream);
    Bytes output(kRoom);
    while (!says_dynamic(input)) {
        const DecodeResult result = decoder.decode(state, input, output, {.stop_on_eob = true});
        if (result.stop != StopReason::kEndOfBlock) {
            return false;
        }
        input.start += result.bits_consumed;
        input.count -= result.bits_consumed;
    }
    return true;
}

void require_zlibs_opinion(Decoder& decoder, const Bytes& stream, const Outcome& own) {
    const iaa::test::Inflated zlib = iaa::test::zlib_inflate(stream, kRoom - 1);
    const ErrorCode error = own.result.error;
    if (own.result.stop == StopReason::kEndOfStream && zlib.complete) {
        require(own.output == zlib.output, "zlib's output");
        require((own.result.bits_consumed + 7) / 8 == zlib.used, "zlib's use of the input");
    } else if (zlib.complete) {
        require(error == ErrorCode::kBadDistance || error == ErrorCode::kWrongLlCount ||
                    error == ErrorCode::kFirstDCode16,
                "refuses of zlib's streams only what the device does not take");
    } else if (own.result.stop == StopReason::kEndOfStream && own.output.size() < kRoom) {
        require(zlib.malformed, "does not end where zlib waits");
        require(has_dynamic_block(decoder, stream), "takes more than zlib only of dynamic trees");
    } else if (zlib.malformed && error == ErrorCode::kNone) {
        // zlib refuses incomplete trees at once, and the device only what is missing.
        require(has_dynamic_block(decoder, stream) || own.result.stop != StopReason::kInputEnd,
                "finds what zlib finds");
    }
}

DecoderState hostile_state(FuzzedDataProvider& data) {
    DecoderState state;
    state.parser = data.PickValueInArray({ParserState::kBlockHeader, ParserState::kSymbols,
                                          ParserState::kStored, ParserState::kEnded});
    state.final_block = data.ConsumeBool();
    state.behind_eob = data.ConsumeBool();
    state.stored_left = data.ConsumeIntegral<std::uint16_t>();
    const unsigned highest = data.ConsumeBool() ? 15 : 255;
    for (std::uint8_t& length : state.lengths.ll) {
        length = data.ConsumeIntegralInRange<std::uint8_t>(data.ConsumeBool() ? 0 : 7,
                                                           static_cast<std::uint8_t>(highest));
    }
    for (std::uint8_t& length : state.lengths.d) {
        length = data.ConsumeIntegralInRange<std::uint8_t>(0, static_cast<std::uint8_t>(highest));
    }
    state.history.append(data.ConsumeBytes<std::uint8_t>(5000));
    if (data.ConsumeBool()) {
        state.match_left = data.ConsumeIntegral<std::uint16_t>();
        state.match_distance = data.ConsumeIntegral<std::uint16_t>();
    }
    return state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static Decoder decoder;
    FuzzedDataProvider data(bytes, size);
    const bool hostile = data.ConsumeIntegral<std::uint8_t>() > 192;
    const DecodeOptions options{.stop_on_eob = data.ConsumeBool(),
                                .only_final_eob = data.ConsumeBool(),
                                .check_for_eob = data.ConsumeBool()};
    const Bytes sizes_bytes = [&] {
        const auto count = data.ConsumeIntegral<std::uint8_t>();
        Bytes taken;
        for (unsigned index = 0; index < count && data.remaining_bytes() != 0; ++index) {
            taken.push_back(data.ConsumeIntegral<std::uint8_t>());
        }
        return taken;
    }();
    FuzzedDataProvider sizes(sizes_bytes.data(), sizes_bytes.size());
    const DecoderState from = hostile ? hostile_state(data) : DecoderState{};
    const auto stream = data.ConsumeRemainingBytes<std::uint8_t>();

    const Outcome whole = at_once(decoder, from, stream, {});
    (void)at_once(decoder, from, stream, options);
    require_same(in_pieces(decoder, from, stream, sizes), whole);
    DecoderState suppressed = from;
    Checksums sums;
    const DecodeResult counted =
        decoder.decode_suppressed(suppressed, BitSpan::of(stream), kRoom, {}, sums);
    Checksums expected;
    expected.update(whole.output);
    require(counted.output_size == whole.result.output_size, "suppressed output is counted");
    require(sums.crc() == expected.crc(), "suppressed output is summed");
    require(suppressed == whole.state, "suppressed output is remembered");
    if (!hostile) {
        require_zlibs_opinion(decoder, stream, whole);
    }
    return 0;
}
