// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "deflate/encoder.h"
#include "unit/ops/guest.h"
#include "unit/ops/zlib_peer.h"

/// A stream over several descriptors: whatever the pieces of input and output, they add up to what
/// one descriptor gives.
namespace iaa::device::test {
namespace {

/// Decompresses piece by piece, as a driver would: the state is in one of two adjacent AECS areas,
/// and moves to the other one with every descriptor.
class Stream {
  public:
    Stream(const Bytes& stream, const Capabilities& capabilities, std::uint32_t crc_flag = 0)
        : capabilities_(capabilities),
          crc_flag_(crc_flag),
          source_(memory_.map(stream)),
          areas_(memory_.map(kTwoAreas)) {}

    /// The bytes [from, to) of the stream, with this much room for each descriptor's output.
    /// Returns the last outcome.
    Outcome piece(std::size_t from, std::size_t to, std::size_t room, std::uint16_t codec,
                  bool keep_state) {
        while (true) {
            auto& destination = memory_.map(Bytes(room, 0xa5));
            Descriptor d = decompress_descriptor(source_, destination);
            d.src1_addr += from;
            d.src1_size = static_cast<std::uint32_t>(to - from);
            d.op_flags = codec;
            d.src2_addr = areas_.address;
            d.src2_size = kDecompressAecsSize;
            set_flags(
                d, crc_flag_ | (keep_state ? op_flag::kWriteAecs : op_flag::kWriteAecsOnOverflow) |
                       (started_ ? op_flag::kReadAecs : 0) | (second_ ? op_flag::kAecsToggle : 0));
            const Outcome outcome = execute(d, memory_, capabilities_);
            const std::size_t size = outcome.record.output_size;
            EXPECT_LE(size, room);
            EXPECT_TRUE(std::all_of(destination.bytes.begin() + static_cast<std::ptrdiff_t>(size),
                                    destination.bytes.end(),
                                    [](std::uint8_t byte) { return byte == 0xa5; }));
            output.insert(output.end(), destination.bytes.begin(),
                          destination.bytes.begin() + static_cast<std::ptrdiff_t>(size));
            ++descriptors;
            if (outcome.status() == Status::kAnalyticsError) {
                return outcome;
            }
            // The next one reads what this one wrote.
            started_ = true;
            second_ = !second_;
            if (outcome.status() != Status::kOutputOverflow) {
                return outcome;
            }
            EXPECT_GT(size, 0U);
            from += outcome.record.bytes_completed;
            EXPECT_LE(from, to);
            if (size == 0 || from > to) {
                return outcome;
            }
        }
    }

    /// The AECS that the last piece wrote.
    [[nodiscard]] Bytes state() const {
        const auto begin = areas_.bytes.begin() + (second_ ? kDecompressAecsSize : 0);
        return {begin, begin + kDecompressAecsSize};
    }

    Bytes output;
    unsigned descriptors = 0;

  private:
    Capabilities capabilities_;
    std::uint32_t crc_flag_;
    GuestMemory memory_;
    GuestMemory::Buffer& source_;
    GuestMemory::Buffer& areas_;
    bool started_ = false;
    bool second_ = false;
};

constexpr std::uint16_t kStop = decompress_flag::kStopOnEob | decompress_flag::kOnlyFinalEob;
constexpr std::uint16_t kMiddle = decompress_flag::kEnable | kStop;
constexpr std::uint16_t kMiddleFlushed = kMiddle | decompress_flag::kFlush;
constexpr std::uint16_t kLast = kMiddleFlushed | decompress_flag::kCheckForEob;

struct Sample {
    const char* name;
    Bytes stream;
    Bytes data;
};

const std::vector<Sample>& samples() {
    static const std::vector<Sample> all_samples = [] {
        auto random = seeded(21);
        std::vector<Sample> all;
        const auto add = [&all](const char* name, const Bytes& data, Bytes stream) {
            EXPECT_EQ(zlib_inflate(stream, data.size()), data) << name;
            all.push_back({.name = name, .stream = std::move(stream), .data = data});
        };
        const Bytes text = text_like(random, 300);
        add("fixed", text, compress_fixed(text));
        add("dynamic", text, zlib_deflate(text, 9));
        add("stored", text, zlib_deflate(text, 0));
        add("several blocks", text, zlib_deflate(text, 6, Z_DEFAULT_STRATEGY, 77));
        add("several fixed blocks", text, zlib_deflate(text, 6, Z_FIXED, 50));
        add("long matches", Bytes(2000, 'x'), zlib_deflate(Bytes(2000, 'x'), 9));
        Bytes noise(200);
        std::ranges::generate(noise, [&] { return static_cast<std::uint8_t>(random()); });
        Bytes mixed = text;
        mixed.insert(mixed.end(), noise.begin(), noise.end());
        add("text and noise", mixed, zlib_deflate(mixed, 9, Z_DEFAULT_STRATEGY, 300));
        return all;
    }();
    return all_samples;
}

void expect_whole(const Sample& sample, const Stream& stream, const Outcome& last) {
    ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
    ASSERT_EQ(stream.output, sample.data);
    EXPECT_EQ(last.record.crc, zlib_crc(sample.data));
    EXPECT_EQ(last.record.xor_checksum, xor_of(sample.data));
}

class Resume : public ::testing::TestWithParam<std::size_t> {
  protected:
    [[nodiscard]] static const Sample& sample() { return samples()[GetParam()]; }
};

/// The input cut at every byte; the output in pieces of many sizes.
TEST_P(Resume, EverySplit) {
    struct Way {
        bool format2;
        std::size_t room;
        std::size_t step;
    };
    for (const Way& way :
         {Way{.format2 = false, .room = 1, .step = 37}, Way{.format2 = false, .room = 7, .step = 5},
          Way{.format2 = true, .room = 8, .step = 1}, Way{.format2 = true, .room = 64, .step = 7},
          Way{.format2 = false, .room = 5000, .step = 1}}) {
        const Capabilities capabilities{.decompress_aecs_format2 = way.format2};
        for (std::size_t cut = 0; cut <= sample().stream.size(); cut += way.step) {
            for (const std::uint16_t codec : {kMiddle, kMiddleFlushed}) {
                SCOPED_TRACE(testing::Message()
                             << sample().name << " format2 " << way.format2 << " room " << way.room
                             << " cut " << cut << " codec " << codec);
                Stream stream(sample().stream, capabilities);
                if (cut != 0) {
                    const Outcome first = stream.piece(0, cut, way.room, codec, true);
                    ASSERT_EQ(first.status(), Status::kSuccess) << first.rule;
                    if (cut == sample().stream.size()) {
                        // That was all of it, with or without flush.
                        expect_whole(sample(), stream, first);
                    }
                }
                const Outcome last =
                    stream.piece(cut, sample().stream.size(), way.room, kLast, false);
                if (cut == sample().stream.size()) {
                    // And the state says so.
                    EXPECT_EQ(last.record.error_code, 22);
                } else {
                    expect_whole(sample(), stream, last);
                }
            }
        }
    }
}

/// One byte of input and one byte of output at a time; with the last piece marked as such, and by
/// one who does not know which it is.
TEST_P(Resume, ByteByByte) {
    for (const bool marked : {true, false}) {
        const std::uint16_t middle = marked ? kMiddleFlushed : kMiddle;
        Stream stream(sample().stream, {}, op_flag::kCrc32c);
        Outcome last;
        for (std::size_t at = 0; at < sample().stream.size(); ++at) {
            const bool final_piece = marked && at + 1 == sample().stream.size();
            last = stream.piece(at, at + 1, 1, final_piece ? kLast : middle, !final_piece);
            ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
        }
        EXPECT_EQ(stream.output, sample().data);
        EXPECT_EQ(last.record.crc, crc32c(sample().data));
        EXPECT_EQ(last.record.xor_checksum, xor_of(sample().data));
        EXPECT_GE(stream.descriptors, sample().stream.size());
    }
}

/// The same with the output suppressed: nothing but the sums, and those in every piece.
TEST_P(Resume, Suppressed) {
    constexpr std::uint16_t kSuppressed = decompress_flag::kSuppressOutput;
    for (const std::size_t step : {1U, 7U, 50U}) {
        for (const bool format2 : {false, true}) {
            Stream stream(sample().stream, {.decompress_aecs_format2 = format2}, op_flag::kCrc32c);
            Outcome last;
            for (std::size_t at = 0; at < sample().stream.size(); at += step) {
                const std::size_t end = std::min(at + step, sample().stream.size());
                const bool final_piece = end == sample().stream.size();
                last = stream.piece(
                    at, end, 1,
                    static_cast<std::uint16_t>(kSuppressed | (final_piece ? kLast : kMiddle)),
                    !final_piece);
                ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
                ASSERT_EQ(last.record.output_size, 0U);
            }
            EXPECT_EQ(last.record.crc, crc32c(sample().data));
            EXPECT_EQ(last.record.xor_checksum, xor_of(sample().data));
        }
    }
}

TEST_P(Resume, RandomPieces) {
    auto random = seeded(GetParam() + 100);
    for (unsigned round = 0; round < 200; ++round) {
        Stream stream(sample().stream, {.decompress_aecs_format2 = round % 2 == 0});
        std::size_t at = 0;
        Outcome last;
        while (at < sample().stream.size()) {
            const std::size_t size =
                std::min<std::size_t>(1 + random() % 40, sample().stream.size() - at);
            const bool final_piece = at + size == sample().stream.size();
            const std::uint16_t middle = random() % 2 == 0 ? kMiddle : kMiddleFlushed;
            last = stream.piece(at, at + size, 1 + random() % 100, final_piece ? kLast : middle,
                                !final_piece);
            ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
            at += size;
        }
        expect_whole(sample(), stream, last);
    }
}

INSTANTIATE_TEST_SUITE_P(Samples, Resume, ::testing::Range<std::size_t>(0, 7),
                         [](const auto& param) {
                             std::string name = samples()[param.param].name;
                             std::ranges::replace(name, ' ', '_');
                             return name;
                         });

/// A stream that ends with a block which is not the final one: wherever it is cut, behind that
/// block's end as well, "check for EOB" with the last piece says what it says of the whole.
TEST(ResumeEndOfBlock, NotFinal) {
    constexpr std::uint16_t kPlain = decompress_flag::kEnable;
    constexpr std::uint16_t kCheck =
        kPlain | decompress_flag::kFlush | decompress_flag::kCheckForEob;
    const Bytes data = bytes_of("a block that is not the last one, a block that is not");
    GuestMemory memory;
    auto& source = memory.map(data);
    auto& destination = memory.map(1000);
    auto& aecs = memory.map(image_of(fixed_aecs(false)));
    const Outcome compressed = execute(compress_descriptor(source, destination, aecs), memory, {});
    ASSERT_EQ(compressed.status(), Status::kSuccess);
    const Bytes stream(destination.bytes.begin(),
                       destination.bytes.begin() + compressed.record.output_size);
    for (const bool format2 : {false, true}) {
        for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
            for (std::size_t end = stream.size() - 1; end <= stream.size(); ++end) {
                if (cut > end) {
                    continue;
                }
                Stream pieces(stream, {.decompress_aecs_format2 = format2});
                ASSERT_EQ(pieces.piece(0, cut, 100, kPlain, true).status(), Status::kSuccess);
                const Outcome last = pieces.piece(cut, end, 100, kCheck, false);
                EXPECT_EQ(last.record.error_code, end == stream.size() ? 0 : 15)
                    << "cut at " << cut << " of " << end << ": " << last.rule;
                if (end == stream.size()) {
                    EXPECT_EQ(pieces.output, data);
                }
            }
        }
    }
}

/// The pieces may also end inside a byte: the bits behind are another piece's.
TEST(ResumeBits, IgnoredEndBits) {
    // One of Huffman codes, and one whose stored bytes are cut.
    for (const std::size_t number : {1U, 2U}) {
        const Sample& sample = samples()[number];
        for (unsigned ignored = 1; ignored < 8; ++ignored) {
            GuestMemory memory;
            // The stream again, with the middle byte given twice: first its low bits, then the rest
            // in front of the others.
            const std::size_t cut = sample.stream.size() / 2;
            auto& front = memory.map(Bytes(
                sample.stream.begin(), sample.stream.begin() + static_cast<std::ptrdiff_t>(cut)));
            Bytes rest;
            std::uint32_t bits = static_cast<std::uint32_t>(front.bytes[cut - 1]) >> (8 - ignored);
            for (std::size_t i = cut; i < sample.stream.size(); ++i) {
                bits |= static_cast<std::uint32_t>(sample.stream[i]) << ignored;
                rest.push_back(static_cast<std::uint8_t>(bits));
                bits >>= 8;
            }
            rest.push_back(static_cast<std::uint8_t>(bits));
            auto& back = memory.map(rest);
            auto& areas = memory.map(kTwoAreas);
            auto& output1 = memory.map(sample.data.size());
            auto& output2 = memory.map(sample.data.size());

            Descriptor d = decompress_descriptor(front, output1);
            set_flags(d, op_flag::kWriteAecs);
            d.op_flags = static_cast<std::uint16_t>(kMiddleFlushed | ignored << 6);
            d.src2_addr = areas.address;
            d.src2_size = kDecompressAecsSize;
            const Outcome first = execute(d, memory, {});
            ASSERT_EQ(first.status(), Status::kSuccess) << first.rule;

            Descriptor e = decompress_descriptor(back, output2);
            set_flags(e, op_flag::kReadAecs | op_flag::kAecsToggle);
            e.src2_addr = areas.address;
            e.src2_size = kDecompressAecsSize;
            e.op_flags = kLast;
            const Outcome second = execute(e, memory, {});
            ASSERT_EQ(second.status(), Status::kSuccess) << second.rule;
            output1.bytes.resize(first.record.output_size);
            output1.bytes.insert(output1.bytes.end(), output2.bytes.begin(),
                                 output2.bytes.begin() + second.record.output_size);
            EXPECT_EQ(output1.bytes, sample.data);
        }
    }
}

/// An overflow is gone on from with a larger buffer, also where all input was taken.
TEST(ResumeOverflow, WithAnEmptySource) {
    const Bytes data(100, 'z');
    const Bytes stream = compress_fixed(data);
    GuestMemory memory;
    auto& source = memory.map(stream);
    auto& small = memory.map(10);
    auto& large = memory.map(100);
    auto& areas = memory.map(kTwoAreas);
    Descriptor d = decompress_descriptor(source, small);
    set_flags(d, op_flag::kWriteAecsOnOverflow);
    d.src2_addr = areas.address;
    d.src2_size = kDecompressAecsSize;
    const Outcome first = execute(d, memory, {});
    ASSERT_EQ(first.status(), Status::kOutputOverflow);
    EXPECT_EQ(first.record.output_size, 10U);
    EXPECT_EQ(first.record.crc, zlib_crc(Bytes(10, 'z')));

    Descriptor e = decompress_descriptor(source, large);
    set_flags(e, op_flag::kReadAecs | op_flag::kAecsToggle);
    e.src1_addr += first.record.bytes_completed;
    e.src1_size -= first.record.bytes_completed;
    e.src2_addr = areas.address;
    e.src2_size = kDecompressAecsSize;
    const Outcome second = execute(e, memory, {});
    ASSERT_EQ(second.status(), Status::kSuccess) << second.rule;
    EXPECT_EQ(second.record.output_size, 90U);
    EXPECT_EQ(second.record.crc, zlib_crc(data));
}

/// The same flags again, also where less of the source is left than the bits that it ends with.
TEST(ResumeOverflow, WithIgnoredEndBits) {
    for (const std::size_t size : {10U, 21U, 41U, 81U}) {
        // A literal, a match, and no end of block; what follows would be literals.
        const Bytes data(size, 'a');
        deflate::Accumulator bits;
        ASSERT_TRUE(deflate::write_fixed_header(false, bits));
        deflate::Encoder encoder;
        Bytes stream(100);
        const auto encoded =
            encoder.encode(data, deflate::fixed_tables(), bits,
                           {.end = deflate::EndOfBlock::kNone, .flush = false}, stream);
        ASSERT_EQ(encoded.error, deflate::ErrorCode::kNone);
        stream.resize(encoded.output_size);
        const unsigned behind = 8 - bits.bits;
        stream.push_back(static_cast<std::uint8_t>(bits.bytes[0] | 0xffU << bits.bits));
        for (const unsigned ignored : {behind, behind + 8}) {
            if (ignored > behind) {
                stream.push_back(0xff);
            }
            for (std::size_t room = 1; room <= size; ++room) {
                Stream pieces(stream, {.decompress_aecs_format2 = true});
                const auto codec = static_cast<std::uint16_t>(
                    kMiddleFlushed | (ignored & 7U) << decompress_flag::kIgnoreEndBitsShift |
                    (ignored > 7 ? decompress_flag::kIgnoreEndBitsHigh : 0U));
                const Outcome last = pieces.piece(0, stream.size(), room, codec, false);
                EXPECT_EQ(last.status(), Status::kSuccess) << last.rule;
                EXPECT_EQ(pieces.output, data) << ignored << " bits, room " << room;
            }
        }
    }
}

/// A final dynamic block with the longest code lengths that its header can be made to take, each
/// in 7 bits, and what they decode to.
struct LongHeader {
    Bytes stream;
    std::size_t header_bits = 0;
    Bytes data;
};

LongHeader long_header() {
    // Complete codes: 226 of 8 bits and 60 of 9; 2 of 4 bits and 28 of 5.
    deflate::CodeLengths lengths;
    std::fill_n(lengths.ll.begin(), deflate::kLlSymbols, std::uint8_t{8});
    std::fill_n(lengths.ll.begin(), 60, std::uint8_t{9});
    std::ranges::fill(lengths.d, std::uint8_t{5});
    std::fill_n(lengths.d.begin(), 2, std::uint8_t{4});
    // The code-length code: 1 to 4 bits for what does not occur.
    constexpr std::array<std::uint8_t, 19> kClLengths{0, 0, 0, 0, 5, 6, 0, 0, 7, 7,
                                                      1, 2, 3, 4, 0, 0, 0, 0, 0};
    constexpr std::array<unsigned, 19> kOrder{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                              11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<std::uint32_t, 19> cl_codes{};
    EXPECT_TRUE(deflate::canonical_codes(kClLengths, cl_codes));

    LongHeader made;
    std::uint32_t held = 0;
    unsigned held_bits = 0;
    const auto put = [&](std::uint32_t value, unsigned count) {
        held |= value << held_bits;
        made.header_bits += count;
        for (held_bits += count; held_bits >= 8; held_bits -= 8, held >>= 8U) {
            made.stream.push_back(static_cast<std::uint8_t>(held));
        }
    };
    put(1 | 2 << 1, 3);
    put(deflate::kLlSymbols - 257, 5);
    put(deflate::kDSymbols - 1, 5);
    put(19 - 4, 4);
    for (const unsigned symbol : kOrder) {
        put(kClLengths[symbol], 3);
    }
    const auto put_lengths = [&](std::span<const std::uint8_t> list) {
        for (const std::uint8_t length : list) {
            const std::uint32_t entry = cl_codes[length];
            for (unsigned bit = deflate::entry_length(entry); bit-- > 0;) {
                put(deflate::entry_code(entry) >> bit & 1U, 1);
            }
        }
    };
    put_lengths(std::span(lengths.ll).first(deflate::kLlSymbols));
    put_lengths(lengths.d);

    deflate::CodeTables tables;
    EXPECT_EQ(deflate::make_tables(lengths, tables), deflate::ErrorCode::kNone);
    deflate::Accumulator behind;
    EXPECT_TRUE(behind.append(held, held_bits));
    auto random = seeded(31);
    made.data = text_like(random, 500);
    Bytes body(2000);
    deflate::Encoder encoder;
    const auto encoded = encoder.encode(made.data, tables, behind, {}, body);
    EXPECT_EQ(encoded.error, deflate::ErrorCode::kNone);
    made.stream.insert(made.stream.end(), body.begin(),
                       body.begin() + static_cast<std::ptrdiff_t>(encoded.output_size));
    return made;
}

/// A header that is longer than the input accumulator, in one piece and cut at every byte.
TEST(ResumeHeader, LongerThanTheAccumulator) {
    const LongHeader made = long_header();
    ASSERT_GT(made.header_bits, deflate::Accumulator::kMaxBits);
    ASSERT_EQ(zlib_inflate(made.stream, made.data.size()), made.data);
    for (const bool format2 : {false, true}) {
        for (std::size_t cut = 0; cut < made.stream.size(); ++cut) {
            SCOPED_TRACE(cut);
            Stream stream(made.stream, {.decompress_aecs_format2 = format2});
            if (cut != 0) {
                const Outcome first = stream.piece(0, cut, 1000, kMiddle, true);
                if (8 * cut > deflate::Accumulator::kMaxBits && 8 * cut < made.header_bits) {
                    // More than the accumulator takes, and not yet a header.
                    EXPECT_EQ(first.status(), Status::kAnalyticsError);
                    EXPECT_EQ(first.record.error_code, 1) << first.rule;
                    continue;
                }
                ASSERT_EQ(first.status(), Status::kSuccess) << first.rule;
            }
            const Outcome last = stream.piece(cut, made.stream.size(), 1000, kLast, false);
            ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
            EXPECT_EQ(stream.output, made.data);
            EXPECT_EQ(last.record.crc, zlib_crc(made.data));
        }
    }
}

/// The accumulator filled to its last bit, by pieces of one byte.
TEST(ResumeHeader, FillsTheAccumulator) {
    const LongHeader made = long_header();
    constexpr std::size_t kFull = deflate::Accumulator::kMaxBits / 8;
    Stream stream(made.stream, {});
    for (std::size_t at = 0; at < kFull; ++at) {
        const Outcome outcome = stream.piece(at, at + 1, 1000, kMiddle, true);
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
    }
    const Bytes image = stream.state();
    EXPECT_TRUE(std::all_of(image.begin() + 440, image.begin() + 472,
                            [](std::uint8_t bits) { return bits == 64; }));
    EXPECT_TRUE(std::equal(made.stream.begin(), made.stream.begin() + kFull, image.begin() + 184));
    const Outcome last = stream.piece(kFull, made.stream.size(), 1000, kLast, false);
    ASSERT_EQ(last.status(), Status::kSuccess) << last.rule;
    EXPECT_EQ(stream.output, made.data);
}

}  // namespace
}  // namespace iaa::device::test
