// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "unit/ops/guest.h"
#include "unit/ops/zlib_peer.h"

namespace iaa::device::test {
namespace {

constexpr Capabilities kGeneration2{
    .version = 0x200, .header_generation = true, .decompress_aecs_format2 = true};

/// One COMPRESS with everything that it may write to.
struct Compressed {
    Outcome outcome;
    Bytes output;       ///< as long as the record says
    CompressAecs aecs;  ///< as written back
    Bytes aecs_image;   ///< both areas afterwards
};

struct Options {
    std::uint32_t flags = kLinuxCompress;
    std::uint16_t codec = kLinuxCompressFlags;
    std::uint32_t codec2 = 0;
    std::size_t room = 8192;
    Capabilities capabilities{};
};

Compressed run(const Bytes& data, const CompressAecs& aecs, const Options& options) {
    GuestMemory memory;
    auto& source = memory.map(data, 1);
    auto& destination = memory.map(Bytes(options.room, 0xa5), 3);
    Bytes areas = image_of(aecs);
    if ((options.codec & compress_flag::kHeaderGeneration) != 0) {
        // Tables are made, and none are looked at.
        std::fill(areas.begin() + kCompressStateSize, areas.end(), std::uint8_t{0xff});
    }
    const bool second = (options.flags & op_flag::kAecsToggle) != 0;
    areas.insert(second ? areas.begin() : areas.end(), kCompressAecsSize, 0x5a);
    auto& area = memory.map(areas);
    Descriptor d = compress_descriptor(source, destination, area);
    d.flags_opcode = flags_opcode(options.flags, Opcode::kCompress);
    d.op_flags = options.codec;
    d.filter_flags = options.codec2;
    const bool with_aecs = (options.flags & (op_flag::kReadSource2 | op_flag::kWriteSource2)) != 0;
    if (!with_aecs) {
        d.src2_addr = 0;
        d.src2_size = 0;
    }
    if (options.room == 0) {
        d.dst_addr = 0;
    }
    Compressed result;
    result.outcome = execute(d, memory, options.capabilities);
    const std::size_t size = result.outcome.record.output_size;
    EXPECT_LE(size, options.room);
    // Nothing behind the output is touched.
    EXPECT_TRUE(std::all_of(destination.bytes.begin() + static_cast<std::ptrdiff_t>(size),
                            destination.bytes.end(),
                            [](std::uint8_t byte) { return byte == 0xa5; }));
    result.output.assign(destination.bytes.begin(),
                         destination.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    result.aecs_image = area.bytes;
    const auto written =
        std::span(area.bytes).subspan(second ? 0 : kCompressAecsSize).first<kCompressAecsSize>();
    if ((options.flags & op_flag::kWriteAecs) != 0 && result.outcome.status() == Status::kSuccess) {
        const bool tables = (options.codec2 & compress2_flag::kWriteTables) != 0;
        EXPECT_EQ(tables ? load(written, result.aecs)
                         : load_state(written.first<kCompressStateSize>(), result.aecs),
                  "");
        EXPECT_EQ(std::ranges::all_of(written.subspan(kCompressStateSize),
                                      [](std::uint8_t byte) { return byte == 0x5a; }),
                  !tables);
    }
    return result;
}

/// What is compressed where nothing else is said.
const Bytes& text() {
    static const Bytes bytes =
        bytes_of("Join us now and share the software Join us now and share the software ");
    return bytes;
}

TEST(Compress, EndsOfBlock) {
    // Not final: only the appended final stored block ends the stream.
    const Compressed final_stored = run(text(), fixed_aecs(false), {.codec = 0xe});
    ASSERT_EQ(final_stored.outcome.status(), Status::kSuccess) << final_stored.outcome.rule;
    EXPECT_EQ(zlib_inflate(final_stored.output, text().size()), text());
    EXPECT_EQ(final_stored.outcome.record.output_bits, 0);

    // A stored block that is not final, then a whole stream behind it.
    const Compressed stored = run(text(), fixed_aecs(false), {.codec = 0xa});
    ASSERT_EQ(stored.outcome.status(), Status::kSuccess);
    EXPECT_EQ(stored.outcome.record.output_bits, 0);
    Bytes joined = stored.output;
    const Bytes tail = compress_fixed(text());
    joined.insert(joined.end(), tail.begin(), tail.end());
    Bytes twice = text();
    twice.insert(twice.end(), text().begin(), text().end());
    EXPECT_EQ(zlib_inflate(joined, twice.size()), twice);

    // End of block: the known stream, and its last byte's bits.
    const Compressed eob = run(text(), fixed_aecs(), {});
    EXPECT_EQ(zlib_inflate(eob.output, text().size()), text());

    // None: the same bits less the 7 of the end of block.
    const Compressed none = run(text(), fixed_aecs(), {.codec = 0x2});
    const auto bits = [](const Compressed& r) {
        const unsigned last = r.outcome.record.output_bits;
        return r.output.size() * 8 - (last == 0 ? 0 : 8 - last);
    };
    EXPECT_EQ(bits(none) + 7, bits(eob));
    EXPECT_TRUE(std::equal(none.output.begin(), none.output.end(), eob.output.begin()));
}

TEST(Compress, AccumulatorGoesFirst) {
    // 21 bits in front: the header's 3 come behind them.
    CompressAecs aecs;
    aecs.tables = deflate::fixed_tables();
    ASSERT_TRUE(aecs.accumulator.append(0x12345, 21));
    ASSERT_TRUE(deflate::write_fixed_header(true, aecs.accumulator));
    const Compressed result = run(text(), aecs, {});
    ASSERT_EQ(result.outcome.status(), Status::kSuccess);
    EXPECT_EQ(result.output[0], 0x45);
    EXPECT_EQ(result.output[1], 0x23);
    EXPECT_EQ(result.output[2], 0x01 | 3 << 5);
    const Bytes plain = compress_fixed(text());
    // The rest is the ordinary stream, 21 bits later.
    std::uint32_t previous = plain[0];
    for (std::size_t i = 1; i + 3 < result.output.size(); ++i) {
        const std::uint32_t pair = previous | static_cast<std::uint32_t>(plain[i]) << 8;
        EXPECT_EQ(result.output[i + 2], static_cast<std::uint8_t>(pair >> 3)) << i;
        previous = plain[i];
    }

    // No header at all, 2048 bits of it, and an empty source.
    CompressAecs full;
    full.tables = deflate::fixed_tables();
    full.accumulator.bits = 2048;
    std::ranges::fill(full.accumulator.bytes, std::uint8_t{0x77});
    const Compressed empty = run({}, full, {.codec = 0x2});
    ASSERT_EQ(empty.outcome.status(), Status::kSuccess);
    EXPECT_EQ(empty.output, Bytes(256, 0x77));
    EXPECT_EQ(empty.outcome.record.crc, 0U);
}

TEST(Compress, LiteralsOnly) {
    const Compressed result = run(text(), fixed_aecs(), {.codec = 0x16});
    ASSERT_EQ(result.outcome.status(), Status::kSuccess);
    // 3 bits of header, 8 for each character, 7 for the end.
    EXPECT_EQ(result.output.size(), (3 + 8 * text().size() + 7 + 7) / 8);
    EXPECT_EQ(zlib_inflate(result.output, text().size()), text());
}

TEST(Compress, Checksums) {
    CompressAecs aecs = fixed_aecs();
    const Compressed plain = run(text(), aecs, {});
    EXPECT_EQ(plain.outcome.record.crc, zlib_crc(text()));
    const std::uint16_t expected = xor_of(text());
    EXPECT_EQ(plain.outcome.record.xor_checksum, expected);

    // Seeds: those of what went before.
    const Bytes before = bytes_of("what went before");
    aecs.crc = zlib_crc(before);
    aecs.xor_sum = 0x5a5a;
    const Compressed seeded = run(text(), aecs, {});
    Bytes both = before;
    both.insert(both.end(), text().begin(), text().end());
    EXPECT_EQ(seeded.outcome.record.crc, zlib_crc(both));
    EXPECT_EQ(seeded.outcome.record.xor_checksum, expected ^ 0x5a5a);

    // CRC-32C's check value, and an odd number of bytes.
    const Compressed crc32c =
        run(bytes_of("123456789"), fixed_aecs(), {.flags = kLinuxCompress | op_flag::kCrc32c});
    EXPECT_EQ(crc32c.outcome.record.crc, 0xe3069283U);
    EXPECT_EQ(crc32c.outcome.record.xor_checksum,
              ('1' ^ '3' ^ '5' ^ '7' ^ '9') | ('2' ^ '4' ^ '6' ^ '8') << 8);
}

TEST(Compress, SymbolWithoutCode) {
    CompressAecs aecs = fixed_aecs();
    aecs.tables.ll['w'] = 0;
    const Compressed result = run(text(), aecs, {.flags = kLinuxCompress | op_flag::kWriteAecs});
    EXPECT_EQ(result.outcome.status(), Status::kAnalyticsError);
    EXPECT_EQ(result.outcome.record.error_code, 0x1e);
    EXPECT_EQ(result.outcome.rule, "symbol-has-code: symbol 119");
    EXPECT_EQ(result.outcome.record.output_size, 0U);
    // Nothing is written back either.
    EXPECT_TRUE(std::all_of(result.aecs_image.begin() + kCompressAecsSize, result.aecs_image.end(),
                            [](std::uint8_t byte) { return byte == 0x5a; }));

    aecs = fixed_aecs();
    aecs.tables.ll[256] = 0;
    EXPECT_EQ(run(text(), aecs, {}).outcome.rule, "symbol-has-code: symbol 256");
    EXPECT_EQ(run(text(), aecs, {.codec = 0x2}).outcome.status(), Status::kSuccess);
}

TEST(Compress, RoomToTheByte) {
    const std::size_t size = compress_fixed(text()).size();
    EXPECT_EQ(run(text(), fixed_aecs(), {.room = size}).outcome.status(), Status::kSuccess);
    for (const std::size_t room : {std::size_t{1}, size / 2, size - 1}) {
        const Compressed result = run(text(), fixed_aecs(), {.room = room});
        EXPECT_EQ(result.outcome.status(), Status::kAnalyticsError);
        EXPECT_EQ(result.outcome.record.error_code, 0x19);
    }
}

/// A stream made by several descriptors: the AECS areas change roles each time.
TEST(Compress, StreamOverSeveralDescriptors) {
    auto random = seeded(3);
    const Bytes data = text_like(random, 5001);
    const auto run_pieces = [&data](std::size_t piece, std::uint32_t crc_flag) {
        GuestMemory memory;
        auto& source = memory.map(data);
        auto& destination = memory.map(std::size_t{1} << 16);
        Bytes areas = image_of(fixed_aecs());
        // The tables are the driver's: the device writes none of them back here.
        areas.insert(areas.end(), areas.begin(), areas.begin() + kCompressAecsSize);
        auto& area = memory.map(areas);
        Bytes stream;
        bool toggle = false;
        for (std::size_t at = 0; at < data.size(); at += piece) {
            const std::size_t size = std::min(piece, data.size() - at);
            const bool last = at + size == data.size();
            Descriptor d = compress_descriptor(source, destination, area);
            set_flags(d, crc_flag | (last ? 0 : op_flag::kWriteAecs) |
                             (toggle ? op_flag::kAecsToggle : 0));
            d.op_flags = last ? kLinuxCompressFlags : 0;
            d.src1_addr += at;
            d.src1_size = static_cast<std::uint32_t>(size);
            const Outcome outcome = execute(d, memory, {});
            ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
            if (!last) {
                EXPECT_EQ(outcome.record.output_size % 32, 0U);
                EXPECT_EQ(outcome.record.output_bits, 0);
            } else {
                EXPECT_EQ(outcome.record.crc, crc_flag != 0 ? crc32c(data) : zlib_crc(data));
                EXPECT_EQ(outcome.record.xor_checksum, xor_of(data));
            }
            stream.insert(stream.end(), destination.bytes.begin(),
                          destination.bytes.begin() + outcome.record.output_size);
            toggle = !toggle;
        }
        EXPECT_EQ(zlib_inflate(stream, data.size()), data) << piece;
    };
    for (const std::size_t piece : {1U, 2U, 7U, 33U, 100U, 1024U, 2501U, 4096U}) {
        run_pieces(piece, 0);
        run_pieces(piece, op_flag::kCrc32c);
    }
}

TEST(Compress, WriteBack) {
    const Compressed result =
        run(text(), fixed_aecs(), {.flags = kLinuxCompress | op_flag::kWriteAecs, .codec = 0x2});
    ASSERT_EQ(result.outcome.status(), Status::kSuccess);
    EXPECT_EQ(result.aecs.accumulator.bits, 0U);
    EXPECT_EQ(result.aecs.crc, zlib_crc(text()));
    // The first area stays, and so do the tables of the second.
    const Bytes before = image_of(fixed_aecs());
    EXPECT_TRUE(std::equal(before.begin(), before.end(), result.aecs_image.begin()));
    EXPECT_EQ(result.aecs_image[kCompressAecsSize + kCompressStateSize], 0x5a);
    EXPECT_EQ(result.aecs_image.back(), 0x5a);

    // With toggle the areas are the other way round.
    const Compressed toggled =
        run(text(), fixed_aecs(),
            {.flags = kLinuxCompress | op_flag::kWriteAecs | op_flag::kAecsToggle, .codec = 0x0});
    ASSERT_EQ(toggled.outcome.status(), Status::kSuccess);
    EXPECT_TRUE(
        std::equal(before.begin(), before.end(), toggled.aecs_image.begin() + kCompressAecsSize));
    EXPECT_EQ(toggled.output.size(), 32U);
    EXPECT_GT(toggled.aecs.accumulator.bits, 0U);

    // Tables too, where asked for.
    const Compressed tables = run(text(), fixed_aecs(),
                                  {.flags = kLinuxCompress | op_flag::kWriteAecs,
                                   .codec = 0x6,
                                   .codec2 = compress2_flag::kWriteTables,
                                   .capabilities = kGeneration2});
    ASSERT_EQ(tables.outcome.status(), Status::kSuccess);
    EXPECT_EQ(tables.aecs.tables, deflate::fixed_tables());
}

TEST(Statistics, HistogramOfTheSymbols) {
    const Compressed result = run(text(), {}, {.flags = 0x10c, .codec = 0x5});
    ASSERT_EQ(result.outcome.status(), Status::kSuccess) << result.outcome.rule;
    ASSERT_EQ(result.output.size(), kHistogramSize);
    EXPECT_EQ(result.outcome.record.crc, zlib_crc(text()));
    EXPECT_EQ(result.outcome.record.bytes_completed, text().size());
    const auto count = [&](std::size_t index) {
        std::uint32_t value = 0;
        std::memcpy(&value, result.output.data() + 4 * index, 4);
        return value;
    };
    deflate::Encoder encoder;
    const deflate::Histogram expected = encoder.count(text(), {.end = deflate::EndOfBlock::kEob});
    std::uint32_t matches = 0;
    for (std::size_t i = 0; i < 286; ++i) {
        EXPECT_EQ(count(i), expected.ll[i]) << i;
        matches += i > 256 ? expected.ll[i] : 0;
    }
    EXPECT_EQ(count(256), 1U);
    EXPECT_GT(matches, 0U);
    EXPECT_EQ(count(286) + count(287) + count(318) + count(319), 0U);
    for (std::size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(count(288 + i), expected.d[i]) << i;
    }

    // Without an end of block, and with literals only.
    const Compressed literals = run(bytes_of("aaaaaaaaaab"), {}, {.flags = 0x10c, .codec = 0x11});
    std::uint32_t a = 0;
    std::memcpy(&a, literals.output.data() + std::size_t{4} * 'a', 4);
    EXPECT_EQ(a, 10U);
    std::uint32_t eob = 1;
    std::memcpy(&eob, literals.output.data() + std::size_t{4} * 256, 4);
    EXPECT_EQ(eob, 0U);
}

TEST(HeaderGeneration, OnePass) {
    auto random = seeded(9);
    for (const std::size_t size : {1U, 2U, 70U, 1000U, 4096U}) {
        const Bytes data = text_like(random, size);
        const Compressed final_block =
            run(data, {}, {.flags = 0x10c, .codec = 0x3006, .capabilities = kGeneration2});
        ASSERT_EQ(final_block.outcome.status(), Status::kSuccess) << final_block.outcome.rule;
        EXPECT_EQ(zlib_inflate(final_block.output, size), data);
        EXPECT_EQ(final_block.output[0] & 7, 5);
        EXPECT_EQ(final_block.outcome.record.crc, zlib_crc(data));

        // Not final: a stored block behind it ends the stream.
        const Compressed open =
            run(data, {}, {.flags = 0x10c, .codec = 0x200e, .capabilities = kGeneration2});
        ASSERT_EQ(open.outcome.status(), Status::kSuccess);
        EXPECT_EQ(open.output[0] & 7, 4);
        EXPECT_EQ(zlib_inflate(open.output, size), data);
    }
}

/// Two blocks of one stream, each with a header of its own.
TEST(HeaderGeneration, OnePassStream) {
    const Compressed first =
        run(text(), {},
            {.flags = 0x4010c | op_flag::kReadAecs, .codec = 0x2004, .capabilities = kGeneration2});
    ASSERT_EQ(first.outcome.status(), Status::kSuccess) << first.outcome.rule;
    const Compressed second =
        run(text(), first.aecs,
            {.flags = kLinuxCompress, .codec = 0x3006, .capabilities = kGeneration2});
    ASSERT_EQ(second.outcome.status(), Status::kSuccess) << second.outcome.rule;
    Bytes stream = first.output;
    stream.insert(stream.end(), second.output.begin(), second.output.end());
    Bytes twice = text();
    twice.insert(twice.end(), text().begin(), text().end());
    EXPECT_EQ(zlib_inflate(stream, twice.size()), twice);
    EXPECT_EQ(second.outcome.record.crc, zlib_crc(twice));
}

/// A stream of several blocks in areas that never held tables: what is written back without them
/// is taken as it is, in one pass and by the first of two.
TEST(HeaderGeneration, GoesOnFromWhatWasWrittenWithoutTables) {
    for (const bool two_passes : {false, true}) {
        GuestMemory memory;
        auto& source = memory.map(text());
        auto& destination = memory.map(1000);
        Bytes start(std::size_t{2} * kCompressAecsSize, 0xff);
        std::fill_n(start.begin(), kCompressStateSize, std::uint8_t{0});
        auto& areas = memory.map(start);
        Bytes stream;
        const auto add_output = [&](const Outcome& outcome) {
            ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
            stream.insert(stream.end(), destination.bytes.begin(),
                          destination.bytes.begin() + outcome.record.output_size);
        };
        Descriptor d = compress_descriptor(source, destination, areas);
        d.flags_opcode =
            flags_opcode(kLinuxCompress | op_flag::kWriteAecs, Opcode::kCompress);  // to the second
        d.op_flags = 0x2004;
        add_output(execute(d, memory, kGeneration2));
        set_flags(d, op_flag::kAecsToggle);  // and back
        if (two_passes) {
            Descriptor first = d;
            first.op_flags = 0x7004;
            first.filter_flags = compress2_flag::kWriteTables;
            first.dst_addr = 0;
            first.max_dst_size = 0;
            const Outcome tables = execute(first, memory, kGeneration2);
            ASSERT_EQ(tables.status(), Status::kSuccess) << tables.rule;
            d.flags_opcode = flags_opcode(kLinuxCompress, Opcode::kCompress);
            d.op_flags = kLinuxCompressFlags;
        } else {
            d.op_flags = 0x3006;
        }
        add_output(execute(d, memory, kGeneration2));
        Bytes twice = text();
        twice.insert(twice.end(), text().begin(), text().end());
        EXPECT_EQ(zlib_inflate(stream, twice.size()), twice);
    }
}

TEST(HeaderGeneration, TwoPasses) {
    auto random = seeded(4);
    for (const std::size_t size : {70U, 5000U, 100000U}) {
        const Bytes data = text_like(random, size);
        const Compressed first = run(data, {},
                                     {.flags = 0x4010c,
                                      .codec = 0x7006,
                                      .codec2 = compress2_flag::kWriteTables,
                                      .room = 0,
                                      .capabilities = kGeneration2});
        ASSERT_EQ(first.outcome.status(), Status::kSuccess) << first.outcome.rule;
        EXPECT_EQ(first.outcome.record.output_size, 0U);
        EXPECT_EQ(first.outcome.record.crc, zlib_crc(data));
        EXPECT_GT(first.aecs.accumulator.bits, 17U);
        EXPECT_EQ(first.aecs.crc, 0U);

        const Compressed second =
            run(data, first.aecs, {.room = std::size_t{1} << 17, .capabilities = kGeneration2});
        ASSERT_EQ(second.outcome.status(), Status::kSuccess) << second.outcome.rule;
        EXPECT_EQ(second.outcome.record.crc, zlib_crc(data));
        EXPECT_EQ(zlib_inflate(second.output, size), data);

        // One pass gives the same.
        if (size <= 4096) {
            const Compressed once =
                run(data, {}, {.flags = 0x10c, .codec = 0x3006, .capabilities = kGeneration2});
            EXPECT_EQ(once.output, second.output);
        }
    }
}

TEST(HeaderGeneration, HeaderThatDoesNotFitTheAccumulator) {
    auto random = seeded(8);
    Bytes data(4096);
    std::ranges::generate(data, [&] { return static_cast<std::uint8_t>(random()); });
    CompressAecs aecs;
    aecs.accumulator.bits = 2040;
    const Compressed result = run(data, aecs,
                                  {.flags = 0x5010c,
                                   .codec = 0x7004,
                                   .codec2 = compress2_flag::kWriteTables,
                                   .room = 0,
                                   .capabilities = kGeneration2});
    EXPECT_EQ(result.outcome.status(), Status::kAnalyticsError);
    EXPECT_EQ(result.outcome.record.error_code, 0x19);
    EXPECT_TRUE(result.outcome.rule.starts_with("header-fits: ")) << result.outcome.rule;

    // In one pass too, whatever room there is; and a destination that is too small is told apart.
    const Compressed once =
        run(data, aecs, {.flags = kLinuxCompress, .codec = 0x3006, .capabilities = kGeneration2});
    EXPECT_EQ(once.outcome.record.error_code, 0x19);
    EXPECT_TRUE(once.outcome.rule.starts_with("header-fits: ")) << once.outcome.rule;
    const Compressed small =
        run(data, {},
            {.flags = kLinuxCompress, .codec = 0x3006, .room = 9, .capabilities = kGeneration2});
    EXPECT_EQ(small.outcome.record.error_code, 0x19);
    EXPECT_TRUE(small.outcome.rule.starts_with("output-fits: ")) << small.outcome.rule;
}

/// What a public test program sends: write-back of the AECS, a final stored block, no cache
/// control, seeds in the AECS.
TEST(Compress, WriteBackAndFinalStoredBlock) {
    CompressAecs aecs = fixed_aecs(false);
    aecs.crc = 0x12345678;
    aecs.xor_sum = 0xabcd;
    const Compressed result = run(text(), aecs, {.flags = 0x5000c, .codec = 0xe});
    ASSERT_EQ(result.outcome.status(), Status::kSuccess) << result.outcome.rule;
    EXPECT_EQ(zlib_inflate(result.output, text().size()), text());
    EXPECT_EQ(result.outcome.record.output_bits, 0);
    EXPECT_EQ(result.outcome.record.bytes_completed, text().size());
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0x12345678, text().data(), static_cast<unsigned>(text().size())));
    EXPECT_EQ(result.outcome.record.crc, crc);
    EXPECT_EQ(result.outcome.record.xor_checksum, 0xabcd ^ xor_of(text()));
    // Written back: the sums, and an accumulator with nothing in it.
    CompressAecs expected;
    expected.crc = crc;
    expected.xor_sum = static_cast<std::uint16_t>(0xabcd ^ xor_of(text()));
    EXPECT_EQ(result.aecs, expected);
}

}  // namespace
}  // namespace iaa::device::test
