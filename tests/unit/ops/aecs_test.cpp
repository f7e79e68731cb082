// SPDX-License-Identifier: GPL-2.0
#include "device/ops/aecs.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "unit/ops/guest.h"

namespace iaa::device::test {
namespace {

template <typename Word>
Word word_at(const Bytes& image, std::size_t offset) {
    Word value = 0;
    std::memcpy(&value, image.data() + offset, sizeof value);
    return value;
}

template <typename Word>
void set_word(Bytes& image, std::size_t offset, Word value) {
    std::memcpy(image.data() + offset, &value, sizeof value);
}

std::string load_compress(const Bytes& image, CompressAecs& aecs) {
    return load(std::span(image).first<kCompressAecsSize>(), aecs);
}

TEST(CompressAecs, Layout) {
    CompressAecs aecs = fixed_aecs();
    aecs.crc = 0x12345678;
    aecs.xor_sum = 0xabcd;
    const Bytes image = image_of(aecs);
    EXPECT_EQ(word_at<std::uint32_t>(image, 0), 0x12345678U);
    EXPECT_EQ(word_at<std::uint32_t>(image, 4), 0xabcdU);
    EXPECT_EQ(word_at<std::uint32_t>(image, 28), 3U);
    EXPECT_EQ(image[32], 3);
    EXPECT_EQ(word_at<std::uint32_t>(image, 288), 0x40030U);            // literal 0
    EXPECT_EQ(word_at<std::uint32_t>(image, 288 + 4 * 144), 0x48190U);  // literal 144
    EXPECT_EQ(word_at<std::uint32_t>(image, 288 + 4 * 256), 0x38000U);  // end of block
    EXPECT_EQ(word_at<std::uint32_t>(image, 1440), 0x28000U);           // distance 1
    CompressAecs again;
    EXPECT_EQ(load_compress(image, again), "");
    EXPECT_EQ(again, aecs);
}

/// Behind the state nothing is looked at where no tables are read, and none are given.
TEST(CompressAecs, StateAlone) {
    CompressAecs aecs = fixed_aecs();
    aecs.crc = 0x12345678;
    aecs.xor_sum = 0xabcd;
    aecs.odd = true;
    const Bytes image = image_of(aecs);
    CompressAecs again;
    EXPECT_EQ(load_state(std::span(image).first<kCompressStateSize>(), again), "");
    aecs.tables = {};
    EXPECT_EQ(again, aecs);
}

TEST(CompressAecs, BitsAboveTheAccumulatorAreNotLookedAt) {
    Bytes image = image_of(fixed_aecs());
    for (std::size_t i = 33; i < 288; ++i) {
        image[i] = 0xff;
    }
    image[32] = 0xfb;
    CompressAecs aecs;
    EXPECT_EQ(load_compress(image, aecs), "");
    EXPECT_EQ(aecs, fixed_aecs());
}

TEST(CompressAecs, InvalidContents) {
    const std::vector<std::function<void(Bytes&)>> harms{
        [](Bytes& image) { set_word<std::uint32_t>(image, 4, 0x10000); },
        [](Bytes& image) { image[8] = 2; },
        [](Bytes& image) { image[8] = 3; },
        [](Bytes& image) { image[9] = 1; },
        [](Bytes& image) { image[27] = 1; },
        [](Bytes& image) { set_word<std::uint32_t>(image, 28, 2049); },
        [](Bytes& image) { set_word<std::uint32_t>(image, 28, ~0U); },
        [](Bytes& image) { set_word<std::uint32_t>(image, 288, 16U << 15); },
        [](Bytes& image) { set_word<std::uint32_t>(image, 288, 8U << 15 | 256); },
        [](Bytes& image) { set_word<std::uint32_t>(image, 288, 1); },
        [](Bytes& image) { image[1432] = 1; },
        [](Bytes& image) { image[1439] = 1; },
        [](Bytes& image) { set_word<std::uint32_t>(image, 1556, ~0U); },
        [](Bytes& image) { image[1560] = 1; },
        [](Bytes& image) { image[1567] = 1; },
    };
    for (std::size_t i = 0; i < harms.size(); ++i) {
        Bytes image = image_of(fixed_aecs());
        harms[i](image);
        CompressAecs aecs;
        EXPECT_NE(load_compress(image, aecs), "") << i;

        GuestMemory memory;
        auto& source = memory.map(100);
        auto& destination = memory.map(1000);
        auto& area = memory.map(image);
        const Outcome outcome = execute(compress_descriptor(source, destination, area), memory, {});
        EXPECT_EQ(outcome.status(), Status::kAnalyticsError);
        EXPECT_EQ(outcome.record.error_code, 22);
        EXPECT_TRUE(outcome.rule.starts_with("compress-aecs: ")) << outcome.rule;
        EXPECT_EQ(destination.bytes, Bytes(1000));
    }
    Bytes image = image_of(fixed_aecs());
    set_word<std::uint32_t>(image, 28, 2048);
    CompressAecs aecs;
    EXPECT_EQ(load_compress(image, aecs), "");
}

/// A state in the middle of a block, with everything in it.
DecompressAecs busy_state(const deflate::CodeLengths& lengths) {
    DecompressAecs aecs;
    aecs.crc = 0xcafef00d;
    aecs.xor_sum = 0x1234;
    aecs.odd = true;
    for (unsigned i = 0; i < 77; ++i) {
        (void)aecs.input.append(0x9e3779b9 * i, 23);
    }
    aecs.held = {1, 2, 3, 4, 5};
    aecs.held_size = 5;
    aecs.state = deflate::DecoderState::preset(lengths, true);
    Bytes past(5000);
    for (std::size_t i = 0; i < past.size(); ++i) {
        past[i] = static_cast<std::uint8_t>(i * 7);
    }
    aecs.state.history.append(std::span(past).first(3000));
    aecs.state.history.append(std::span(past).subspan(3000));
    aecs.state.match_left = 200;
    aecs.state.match_distance = 4096;
    return aecs;
}

void expect_same(const DecompressAecs& a, const DecompressAecs& b) {
    EXPECT_EQ(a.crc, b.crc);
    EXPECT_EQ(a.xor_sum, b.xor_sum);
    EXPECT_EQ(a.odd, b.odd);
    EXPECT_EQ(a.input, b.input);
    EXPECT_EQ(a.held, b.held);
    EXPECT_EQ(a.held_size, b.held_size);
    EXPECT_EQ(a.state, b.state);
}

std::vector<deflate::CodeLengths> some_lengths() {
    std::vector<deflate::CodeLengths> all{deflate::fixed_lengths()};
    auto random = seeded(5);
    for (unsigned round = 0; round < 20; ++round) {
        deflate::Histogram histogram;
        for (auto& count : histogram.ll) {
            count = random() % 3 == 0 ? 1U << random() % 20 : 0;
        }
        for (auto& count : histogram.d) {
            count = random() % 3 == 0 ? 1U << random() % 20 : 0;
        }
        histogram.ll[256] = round % 2;
        all.push_back(deflate::lengths_from(histogram));
    }
    // A chain: one code of each length, so that every packed field is used.
    deflate::CodeLengths chain;
    for (unsigned length = 1; length <= 15; ++length) {
        chain.ll[length % 2 == 0 ? 250 + length : length] = static_cast<std::uint8_t>(length);
        chain.d[length] = static_cast<std::uint8_t>(length);
    }
    all.push_back(chain);
    // All literals, nothing else: Huffman-only.
    deflate::CodeLengths literals;
    std::fill_n(literals.ll.begin(), 256, std::uint8_t{8});
    all.push_back(literals);
    all.emplace_back();
    return all;
}

TEST(DecompressAecs, WhatIsStoredIsLoaded) {
    for (const bool format2 : {false, true}) {
        for (const deflate::CodeLengths& lengths : some_lengths()) {
            const DecompressAecs aecs = busy_state(lengths);
            Bytes image(kDecompressAecsSize);
            store(aecs, format2, image);
            DecompressAecs again;
            ASSERT_EQ(load(image, format2, again), "");
            expect_same(again, aecs);
            EXPECT_NE(load(image, !format2, again), "");
        }
    }
}

TEST(DecompressAecs, WithoutHistory) {
    for (const std::uint32_t size : {kAecsSizeFormat1, kAecsSizeWithoutHistory}) {
        const bool format2 = size == kAecsSizeWithoutHistory;
        DecompressAecs aecs;
        aecs.state = deflate::DecoderState::preset(deflate::fixed_lengths(), false);
        Bytes image(size);
        store(aecs, format2, image);
        DecompressAecs again;
        ASSERT_EQ(load(image, format2, again), "");
        expect_same(again, aecs);
    }
}

TEST(DecompressAecs, Layout) {
    DecompressAecs aecs = busy_state(deflate::fixed_lengths());
    Bytes image(kDecompressAecsSize, 0xee);
    std::fill(image.begin() + 20, image.end(), std::uint8_t{0});
    store(aecs, false, image);
    EXPECT_EQ(word_at<std::uint32_t>(image, 0), 0xcafef00dU);
    EXPECT_EQ(word_at<std::uint32_t>(image, 4), 0x1234U);
    EXPECT_EQ(word_at<std::uint32_t>(image, 8), 0xeeeeeeeeU);  // not its own
    EXPECT_EQ(word_at<std::uint32_t>(image, 176), 40U);
    EXPECT_EQ(image[440], 64);
    EXPECT_EQ(image[440 + 27], 77 * 23 - 27 * 64);
    EXPECT_EQ(image[440 + 28], 0);
    EXPECT_EQ(image[477], 0);
    // Fixed code: 24 codes of 7 bits from 0 on (of which 9 are here), 152 of 8 bits from 0x30 on
    // (144 here), 112 of 9 bits from 0x190 on. Field 7 is the low part of word 1, 8 follows.
    EXPECT_EQ(word_at<std::uint32_t>(image, 504), 9U | 144U << 8 | 112U << 17);
    EXPECT_EQ(word_at<std::uint32_t>(image, 524), 0U | 0x30U << 8 | 0x190U << 17);
    EXPECT_EQ(word_at<std::uint32_t>(image, 484), 0U | 9U << 8 | 153U << 17);
    // The 7-bit codes are all of symbols above 255; no others are.
    EXPECT_EQ(word_at<std::uint32_t>(image, 544), 0U | 0x1ffU << 8 | 0x3ffU << 17);
    EXPECT_EQ(word_at<std::uint32_t>(image, 540), 0x07ffffffU);
    EXPECT_EQ(word_at<std::uint32_t>(image, 548), 0x007fffffU);
    EXPECT_EQ(word_at<std::uint32_t>(image, 552), 0x07ffffffU);
    EXPECT_EQ(word_at<std::uint32_t>(image, 556), 0x7fffffffU);
    EXPECT_EQ(image[808], 0);      // symbol 256
    EXPECT_EQ(image[808 + 9], 0);  // literal 0
    EXPECT_EQ(image[808 + 153], 144);
    EXPECT_EQ(word_at<std::uint16_t>(image, 1076), 4);
    EXPECT_EQ(word_at<std::uint16_t>(image, 1252), 0x8000 | (5000 - 4096));
    EXPECT_EQ(aecs.state.history.write_offset(), 904U);
    EXPECT_EQ(image[1256 + 903], aecs.state.history.ring()[903]);

    store(aecs, true, image);
    EXPECT_EQ(word_at<std::uint32_t>(image, 176), 41U);
    EXPECT_EQ(image[477], 1);
    // The map: symbol 0 in 4 bits, 1 in 5, 2 and 3 in 6: lengths 8, and their number.
    EXPECT_EQ(word_at<std::uint64_t>(image, 832) & 0x1fffff,
              8ULL | (8ULL | 1 << 4) << 4 | (8ULL | 2 << 4) << 9 | (8ULL | 3 << 4) << 15);
}

/// A table for Huffman-only decompression, made as a library makes it: nothing but literals, no
/// entries for end of block, lengths and distances, parser state 0.
TEST(DecompressAecs, HuffmanOnlyTableFromOutside) {
    for (const bool format2 : {false, true}) {
        Bytes image(kAecsSizeWithoutHistory);
        // Codes: 'a' 0, 'b' 10, 'c' 11.
        set_word<std::uint32_t>(image, 500, 1U | 2U << 2);
        set_word<std::uint32_t>(image, 520, 0U | 2U << 2);
        set_word<std::uint32_t>(image, 540, 0x07ffffff);
        set_word<std::uint32_t>(image, 544, 0x07ffffff);
        set_word<std::uint32_t>(image, 548, 0x007fffff);
        set_word<std::uint32_t>(image, 552, 0x07ffffff);
        set_word<std::uint32_t>(image, 556, 0x7fffffff);
        if (format2) {
            set_word<std::uint32_t>(image, 176, 1);
            image[477] = 1;
            // Symbols 64 to 127 take 11 bits each, behind 4 + 5 + 2*6 + 4*7 + 8*8 + 16*9 + 32*10.
            const std::size_t base = 577;
            const auto put = [&](unsigned symbol, unsigned value) {
                for (unsigned bit = 0; bit < 11; ++bit) {
                    const std::size_t at = base + std::size_t{symbol - 64} * 11 + bit;
                    image[832 + at / 8] = static_cast<std::uint8_t>(image[832 + at / 8] |
                                                                    (value >> bit & 1) << at % 8);
                }
            };
            put('a', 1);
            put('b', 2);
            put('c', 2 | 1 << 4);
        } else {
            set_word<std::uint32_t>(image, 480, 0U | 1U << 2);
            image[808] = 'a';
            image[809] = 'b';
            image[810] = 'c';
        }
        GuestMemory memory;
        // a b c a: 0 10 11 0, first bit lowest.
        auto& source = memory.map(Bytes{0b00'0'11'01'0});
        auto& destination = memory.map(10);
        auto& aecs = memory.map(image);
        Descriptor d = decompress_descriptor(source, destination);
        set_flags(d, op_flag::kReadAecs);
        d.op_flags = decompress_flag::kEnable | decompress_flag::kFlush | 2 << 6;
        d.src2_addr = aecs.address;
        d.src2_size = kAecsSizeWithoutHistory;
        const Capabilities capabilities{.decompress_aecs_format2 = format2};
        const Outcome outcome = execute(d, memory, capabilities);
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        ASSERT_EQ(outcome.record.output_size, 4U);
        EXPECT_EQ(std::string(destination.bytes.begin(), destination.bytes.begin() + 4), "abca");
    }
}

TEST(DecompressAecs, InvalidContents) {
    struct Harm {
        Harm(const char* what, std::function<void(Bytes&)> how)
            : name(what), apply(std::move(how)) {}

        const char* name;
        std::function<void(Bytes&)> apply;
    };
    const auto word = [](std::size_t offset, std::uint32_t value) {
        return [offset, value](Bytes& image) { set_word(image, offset, value); };
    };
    const auto half = [](std::size_t offset, std::uint16_t value) {
        return [offset, value](Bytes& image) { set_word(image, offset, value); };
    };
    const auto byte = [](std::size_t offset, std::uint8_t value) {
        return [offset, value](Bytes& image) { image[offset] = value; };
    };
    const std::vector<Harm> harms{
        {"XOR", word(4, 0x10000)},
        {"drop bytes", word(20, 1)},
        {"held bits not bytes", word(176, 12)},
        {"held bits too many", word(176, 64)},
        {"held bits wild", word(176, ~1U)},
        {"format bit", word(176, 41)},
        {"format byte", byte(477, 1)},
        {"format unknown", byte(477, 2)},
        {"drop bits", byte(476, 1)},
        {"input entry too large", byte(440, 65)},
        {"input entry behind an empty one", byte(440 + 31, 1)},
        {"too many codes of a length", word(500, 3)},
        {"first code too large", word(524, 0xffU << 8)},
        {"first index too large", word(484, 0x3ffU << 17)},
        {"symbol too large", byte(808, 9)},
        {"symbol twice", byte(808 + 10, 0)},
        {"length code entry of 16 bits", word(560, 16U << 15)},
        {"length code entry not canonical", word(560, 7U << 15 | 1)},
        {"length code missing", word(560, 0)},
        {"distance entry wild", word(644, ~0U)},
        {"distance entry not canonical", word(644, 5U << 15 | 3)},
        {"match too long", half(768, 259)},
        {"match without distance", half(770, 0)},
        {"match distance without length", half(768, 0)},
        {"match distance too far", half(770, 4097)},
        {"parser state 3", half(1076, 3)},
        {"parser state 5", half(1076, 5)},
        {"parser state 16", half(1076, 16)},
        {"ended", half(1076, 8)},
        {"parity neither 0 nor 1", byte(772, 2)},
        {"behind an end of block neither 0 nor 1", byte(773, 2)},
        {"stored, nothing left", half(1076, 2)},
        {"history offset", half(1252, 4097)},
        {"history offset, wrapped", half(1252, 0x8000 | 4097)},
        {"history offset wild", half(1252, 0xffff)},
    };
    for (const Harm& harm : harms) {
        Bytes image(kDecompressAecsSize);
        store(busy_state(deflate::fixed_lengths()), false, image);
        harm.apply(image);
        DecompressAecs aecs;
        EXPECT_NE(load(image, false, aecs), "") << harm.name;

        GuestMemory memory;
        auto& source = memory.map(100);
        auto& destination = memory.map(1000);
        auto& area = memory.map(image);
        Descriptor d = decompress_descriptor(source, destination);
        set_flags(d, op_flag::kReadAecs);
        d.src2_addr = area.address;
        d.src2_size = kDecompressAecsSize;
        const Outcome outcome = execute(d, memory, {});
        EXPECT_EQ(outcome.status(), Status::kAnalyticsError) << harm.name;
        EXPECT_EQ(outcome.record.error_code, 22) << harm.name;
        EXPECT_TRUE(outcome.rule.starts_with("decompress-aecs: ")) << outcome.rule;
        EXPECT_EQ(destination.bytes, Bytes(1000));
    }
}

/// Every reserved byte, in either format; the bytes that are the driver's are left as they are.
TEST(DecompressAecs, ReservedBytesAreZero) {
    struct Field {
        Field(std::size_t from, std::size_t to) : begin(from), end(to) {}

        std::size_t begin;
        std::size_t end;
    };
    for (const bool format2 : {false, true}) {
        std::vector<Field> reserved{{24, 168},    {478, 480},   {764, 768},   {774, 808},
                                    {1078, 1080}, {1082, 1088}, {1254, 1256}, {5352, 5376}};
        if (format2) {
            reserved.insert(reserved.end(), {{480, 500}, {808, 832}, {1056, 1076}, {1232, 1252}});
        } else {
            reserved.emplace_back(1088, 1252);
        }
        DecompressAecs state = busy_state(deflate::fixed_lengths());
        state.state.match_left = 0;  // a short image has no history for it
        state.state.match_distance = 0;
        Bytes image(kDecompressAecsSize);
        store(state, format2, image);
        std::fill_n(image.begin() + 8, 12, std::uint8_t{0xee});
        std::fill_n(image.begin() + 180, 4, std::uint8_t{0xee});
        DecompressAecs aecs;
        ASSERT_EQ(load(image, format2, aecs), "");
        for (const Field& field : reserved) {
            for (std::size_t at = field.begin; at < field.end; ++at) {
                image[at] = 0x80;
                EXPECT_EQ(load(image, format2, aecs),
                          "reserved byte " + std::to_string(at) + " is 0x80, must be zero");
                // Where the image ends before it, it does not count.
                if (at >= kAecsSizeWithoutHistory) {
                    EXPECT_EQ(load(std::span(image).first(kAecsSizeWithoutHistory), format2, aecs),
                              "");
                }
                image[at] = 0;
            }
        }
    }
}

/// Bits of a stored block's byte that "ignore end bits" has cut.
TEST(DecompressAecs, StoredBlockCutInsideAByte) {
    for (const bool final_block : {false, true}) {
        DecompressAecs aecs = busy_state({});
        aecs.state = {};
        aecs.state.final_block = final_block;
        aecs.state.parser = deflate::ParserState::kStored;
        aecs.state.stored_left = 100;
        ASSERT_NE(aecs.input.bits % 8, 0U);
        Bytes image(kDecompressAecsSize);
        store(aecs, false, image);
        DecompressAecs again;
        ASSERT_EQ(load(image, false, again), "");
        expect_same(again, aecs);
    }
}

/// Any bytes at all: an error or a state, and never more than that.
TEST(DecompressAecs, RandomContents) {
    auto random = seeded(11);
    Bytes base(kDecompressAecsSize);
    const auto lengths = some_lengths();
    for (unsigned round = 0; round < 4000; ++round) {
        const bool format2 = round % 2 != 0;
        store(busy_state(lengths[random() % lengths.size()]), format2, base);
        Bytes image = base;
        const unsigned changes = 1U + static_cast<unsigned>(random() % 8);
        for (unsigned i = 0; i < changes; ++i) {
            const std::size_t limit = random() % 4 == 0 ? 1256 : 1100;
            image[random() % limit] = static_cast<std::uint8_t>(random());
        }
        GuestMemory memory;
        Bytes input(200);
        std::ranges::generate(input, [&] { return static_cast<std::uint8_t>(random()); });
        auto& source = memory.map(input);
        auto& destination = memory.map(300);
        image.resize(kTwoAreas);
        auto& area = memory.map(image);
        Descriptor d = decompress_descriptor(source, destination);
        set_flags(d, op_flag::kReadAecs | op_flag::kWriteAecs);
        d.op_flags = decompress_flag::kEnable | decompress_flag::kFlush;
        d.src2_addr = area.address;
        d.src2_size = kDecompressAecsSize;
        const Outcome outcome = execute(d, memory, {.decompress_aecs_format2 = format2});
        EXPECT_TRUE(outcome.status() == Status::kSuccess ||
                    outcome.status() == Status::kAnalyticsError ||
                    outcome.status() == Status::kOutputOverflow);
        EXPECT_LE(outcome.record.output_size, 300U);
        EXPECT_LE(outcome.record.bytes_completed, 200U);
        if (outcome.status() != Status::kAnalyticsError) {
            // What the device wrote, the device takes.
            DecompressAecs next;
            const std::string error =
                load(std::span(area.bytes).subspan(kDecompressAecsSize), format2, next);
            EXPECT_TRUE(error.empty() || error == "the stream has ended") << error;
        }
    }
}

}  // namespace
}  // namespace iaa::device::test
