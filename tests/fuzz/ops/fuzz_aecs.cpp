// SPDX-License-Identifier: GPL-2.0
#include <algorithm>
#include <array>
#include <span>

#include "fuzz/deflate/require.h"
#include "unit/ops/guest.h"

namespace {

using namespace iaa::device;

/// A state in the middle of a stream, of one of several kinds.
DecompressAecs base_state(unsigned kind) {
    DecompressAecs aecs;
    aecs.state.history.append(test::bytes_of("a history to refer to, to refer to, to refer to"));
    if (kind % 2 == 0) {
        aecs.state = iaa::deflate::DecoderState::preset(iaa::deflate::fixed_lengths(), kind == 0);
    }
    if (kind == 3) {
        aecs.state.parser = iaa::deflate::ParserState::kStored;
        aecs.state.stored_left = 100;
    }
    return aecs;
}

/// Whether the descriptor itself was taken, whatever came of it.
bool taken(const Outcome& outcome) {
    return outcome.status() == Status::kSuccess || outcome.status() == Status::kOutputOverflow ||
           outcome.status() == Status::kAnalyticsError;
}

}  // namespace

/// Hostile AECS contents: changes to a state that was valid, and then a stream that goes on from it
/// over two descriptors. Input: what to begin with, how many changes, room for output, ignored end
/// bits and flush, the changes (place u16, value), the stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 5) {
        return 0;
    }
    const bool format2 = (data[0] & 1U) != 0;
    constexpr std::array<std::uint32_t, 4> kSizes{kDecompressAecsSize, kAecsSizeWithoutHistory,
                                                  kDecompressAecsSize, kAecsSizeFormat1};
    const std::uint32_t aecs_size = kSizes[(data[0] >> 1U & 3U) % (format2 ? 3 : 4)];
    const std::size_t changes = data[1] % 16;
    const std::uint32_t room = 1U + data[2];
    const unsigned codec = decompress_flag::kEnable |
                           (data[3] & 7U) << decompress_flag::kIgnoreEndBitsShift |
                           ((data[3] & 8U) == 0 ? decompress_flag::kFlush : 0U);
    std::span<const std::uint8_t> rest(data + 4, size - 4);

    test::Bytes image(aecs_size);
    store(base_state(data[0] >> 3U & 3U), format2, image);
    for (std::size_t i = 0; i < changes && rest.size() >= 3; ++i) {
        image[(rest[0] | static_cast<std::size_t>(rest[1]) << 8U) % aecs_size] = rest[2];
        rest = rest.subspan(3);
    }

    test::GuestMemory memory;
    auto& source = memory.map(test::Bytes(rest.begin(), rest.end()));
    auto& destination = memory.map(room);
    image.resize(std::size_t{2} * aecs_size);
    auto& areas = memory.map(image);
    Descriptor d = test::decompress_descriptor(source, destination);
    d.flags_opcode |= op_flag::kReadAecs | op_flag::kWriteAecs;
    d.op_flags = static_cast<std::uint16_t>(codec);
    d.src2_addr = areas.address;
    d.src2_size = aecs_size;
    const Capabilities capabilities{.decompress_aecs_format2 = format2};
    const Outcome first = execute(d, memory, capabilities);
    iaa::test::require(taken(first), "no rule is broken");
    iaa::test::require(first.record.output_size <= room, "output within its limit");
    iaa::test::require(first.record.bytes_completed <= source.bytes.size(), "bytes completed");
    if (first.status() == Status::kSuccess || first.status() == Status::kOutputOverflow) {
        d.flags_opcode |= op_flag::kAecsToggle;
        d.src1_addr += first.record.bytes_completed;
        d.src1_size -= first.record.bytes_completed;
        const Outcome second = execute(d, memory, capabilities);
        iaa::test::require(taken(second), "no rule is broken by going on");
        const bool refused = second.rule.starts_with("decompress-aecs: ");
        // A short AECS keeps no history, so that a cut match in it has nothing to refer to.
        iaa::test::require(!refused || aecs_size < kDecompressAecsSize ||
                               second.rule == "decompress-aecs: the stream has ended",
                           "what the device writes, the device takes");
    }

    // The same bytes as a compression AECS.
    test::Bytes compress_image(kCompressAecsSize);
    std::copy_n(rest.begin(), std::min<std::size_t>(rest.size(), kCompressAecsSize),
                compress_image.begin());
    CompressAecs aecs;
    if (load(std::span(compress_image).first<kCompressAecsSize>(), aecs).empty()) {
        auto& tables = memory.map(compress_image);
        auto& text = memory.map(test::bytes_of("text text text"));
        const Outcome compressed =
            execute(test::compress_descriptor(text, destination, tables), memory, {});
        iaa::test::require(compressed.record.output_size <= room, "output within its limit");
    }
    return 0;
}
