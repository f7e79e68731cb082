// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "unit/ops/guest.h"
#include "unit/ops/zlib_peer.h"

namespace iaa::device::test {
namespace {

/// Bits one behind the other, the first one lowest.
class Bits {
  public:
    Bits& put(std::uint32_t value, unsigned count) {
        EXPECT_TRUE(bits_.append(value, count));
        return *this;
    }
    /// A Huffman code: its highest bit first.
    Bits& code(std::uint32_t value, unsigned count) {
        for (unsigned bit = count; bit-- > 0;) {
            put(value >> bit & 1, 1);
        }
        return *this;
    }
    /// In the fixed code.
    Bits& symbol(unsigned symbol) {
        const std::uint32_t entry = deflate::fixed_tables().ll[symbol];
        return code(deflate::entry_code(entry), deflate::entry_length(entry));
    }
    [[nodiscard]] Bytes bytes() const {
        return {bits_.bytes.begin(), bits_.bytes.begin() + (bits_.bits + 7) / 8};
    }

  private:
    deflate::Accumulator bits_;
};

struct Decompressed {
    Outcome outcome;
    Bytes output;
};

Decompressed run(const Bytes& stream, std::uint16_t codec, std::size_t room = 1000) {
    GuestMemory memory;
    auto& source = memory.map(stream);
    auto& destination = memory.map(room);
    Descriptor d = decompress_descriptor(source, destination);
    d.op_flags = codec;
    Decompressed result;
    result.outcome = execute(d, memory, {});
    result.output.assign(destination.bytes.begin(),
                         destination.bytes.begin() + result.outcome.record.output_size);
    return result;
}

constexpr std::uint16_t kPlain = decompress_flag::kEnable | decompress_flag::kFlush;
constexpr std::uint16_t kStopAny = kPlain | decompress_flag::kStopOnEob;
constexpr std::uint16_t kCheckAny = kPlain | decompress_flag::kCheckForEob;
constexpr std::uint16_t kStopFinal = kStopAny | decompress_flag::kOnlyFinalEob;
constexpr std::uint16_t kCheckFinal = kCheckAny | decompress_flag::kOnlyFinalEob;

// "ab" in a block that is not final, "cd" in one that is.
Bytes two_blocks() {
    return Bits()
        .put(2, 3)
        .symbol('a')
        .symbol('b')
        .symbol(256)
        .put(3, 3)
        .symbol('c')
        .symbol('d')
        .symbol(256)
        .bytes();
}

std::string text(const Bytes& bytes) {
    return {bytes.begin(), bytes.end()};
}

TEST(EndOfBlock, StopAndCheck) {
    const Bytes both = two_blocks();
    // Where to stop.
    EXPECT_EQ(text(run(both, kPlain).output), "abcd");
    EXPECT_EQ(text(run(both, kStopAny).output), "ab");
    EXPECT_EQ(text(run(both, kStopFinal).output), "abcd");
    EXPECT_EQ(text(run(both, kLinuxDecompressFlags).output), "ab");
    EXPECT_EQ(run(both, kStopAny).outcome.record.bytes_completed, 4U);
    EXPECT_EQ(run(both, kPlain).outcome.record.bytes_completed, both.size());

    // What the input has to end with: the first block alone, whole.
    const Bytes first = Bits().put(2, 3).symbol('a').symbol('b').symbol(256).bytes();
    EXPECT_EQ(run(first, kCheckAny | decompress_flag::kStopOnEob).outcome.status(),
              Status::kSuccess);
    EXPECT_EQ(run(first, kPlain).outcome.status(), Status::kSuccess);
    const Decompressed not_final = run(first, kCheckFinal);
    EXPECT_EQ(not_final.outcome.status(), Status::kAnalyticsError);
    EXPECT_EQ(not_final.outcome.record.error_code, 15);
    EXPECT_EQ(text(not_final.output), "ab");

    // Cut before the end of block.
    const Bytes cut = Bits().put(3, 3).symbol('a').symbol('b').bytes();
    EXPECT_EQ(run(cut, kPlain).outcome.status(), Status::kSuccess);
    EXPECT_EQ(text(run(cut, kPlain).output), "ab");
    for (const std::uint16_t codec : {kCheckAny, kCheckFinal, kLinuxDecompressFlags}) {
        const Decompressed result = run(cut, codec);
        EXPECT_EQ(result.outcome.status(), Status::kAnalyticsError);
        EXPECT_EQ(result.outcome.record.error_code, 15);
    }

    // No input at all is none that ends behind an end of block.
    EXPECT_EQ(run(Bytes{}, kPlain).outcome.status(), Status::kSuccess);
    EXPECT_EQ(run(Bytes{}, kCheckAny).outcome.record.error_code, 15);

    // Behind the final block nothing is read.
    Bytes trailing = compress_fixed(bytes_of("abc"));
    const std::size_t size = trailing.size();
    trailing.insert(trailing.end(), 20, 0xff);
    for (const std::uint16_t codec : {kPlain, kStopAny, kStopFinal, kLinuxDecompressFlags}) {
        const Decompressed result = run(trailing, codec);
        EXPECT_EQ(result.outcome.status(), Status::kSuccess) << codec;
        EXPECT_EQ(text(result.output), "abc");
        EXPECT_EQ(result.outcome.record.bytes_completed, size);
    }
}

TEST(EndOfBlock, IgnoredBits) {
    // A cut stream whose padding is not looked at.
    const Bytes stream = Bits().put(3, 3).symbol('a').put(0x1f, 5).bytes();
    EXPECT_EQ(text(run(stream, static_cast<std::uint16_t>(kPlain | 5 << 6)).output), "a");
}

struct Malformed {
    const char* name;
    Bytes stream;
    unsigned error;
};

std::vector<Malformed> malformed() {
    std::vector<Malformed> all;
    const auto add = [&all](const char* name, const Bits& bits, unsigned error) {
        // Bytes behind, so that the error does not come from the end of the input.
        Bytes stream = bits.bytes();
        stream.insert(stream.end(), 8, 0);
        all.push_back({.name = name, .stream = stream, .error = error});
    };
    add("block type 3", Bits().put(7, 3), 13);
    add("stored lengths disagree", Bits().put(1, 8).put(5, 16).put(5, 16), 14);
    add("reference before the start", Bits().put(3, 3).symbol('a').symbol(257).code(1, 5), 18);
    add("distance beyond the window",
        Bits().put(3, 3).symbol('a').symbol(257).code(24, 5).put(0, 11), 17);
    add("distance symbol 30", Bits().put(3, 3).symbol('a').symbol(257).code(30, 5), 12);
    add("length symbol 286", Bits().put(3, 3).symbol('a').code(0xc6, 8), 11);
    add("287 literal/length codes", Bits().put(5, 3).put(30, 5).put(0, 5).put(0, 4), 35);
    add("31 distance codes", Bits().put(5, 3).put(0, 5).put(30, 5).put(0, 4), 36);
    add("code-length tree oversubscribed",
        Bits().put(5, 3).put(0, 5).put(0, 5).put(0, 4).put(1, 3).put(1, 3).put(1, 3).put(0, 3), 8);
    return all;
}

TEST(Malformed, ErrorCodes) {
    for (const auto& test : malformed()) {
        const Decompressed result = run(test.stream, kLinuxDecompressFlags);
        EXPECT_EQ(result.outcome.status(), Status::kAnalyticsError) << test.name;
        EXPECT_EQ(result.outcome.record.error_code, test.error)
            << test.name << ": " << result.outcome.rule;
        EXPECT_TRUE(result.outcome.rule.starts_with("stream-valid: ")) << result.outcome.rule;
    }
}

/// What was made before an error is written, and an AECS is not.
TEST(Malformed, OutputBeforeTheError) {
    GuestMemory memory;
    auto& source = memory.map(
        Bits().put(3, 3).symbol('o').symbol('k').symbol(257).code(2, 5).put(0, 16).bytes());
    auto& destination = memory.map(100);
    auto& areas = memory.map(kTwoAreas);
    Descriptor d = decompress_descriptor(source, destination);
    set_flags(d, op_flag::kWriteAecs);
    d.src2_addr = areas.address;
    d.src2_size = kDecompressAecsSize;
    const Outcome outcome = execute(d, memory, {});
    EXPECT_EQ(outcome.record.error_code, 18);
    ASSERT_EQ(outcome.record.output_size, 2U);
    EXPECT_EQ(destination.bytes[0], 'o');
    EXPECT_EQ(destination.bytes[1], 'k');
    EXPECT_EQ(destination.bytes[2], 0);
    EXPECT_EQ(areas.bytes, Bytes(kTwoAreas));
}

/// Dictionary: a history before the first block.
TEST(History, FromTheAecs) {
    for (const bool format2 : {false, true}) {
        GuestMemory memory;
        // 9 bytes from 9 back, then end.
        auto& source =
            memory.map(Bits().put(3, 3).symbol(263).code(6, 5).put(0, 2).symbol(256).bytes());
        auto& destination = memory.map(100);
        DecompressAecs aecs;
        aecs.state.history.append(bytes_of("before the dictionary"));
        Bytes image(kDecompressAecsSize);
        store(aecs, format2, image);
        auto& area = memory.map(image);
        Descriptor d = decompress_descriptor(source, destination);
        set_flags(d, op_flag::kReadAecs);
        d.src2_addr = area.address;
        d.src2_size = kDecompressAecsSize;
        const Outcome outcome = execute(d, memory, {.decompress_aecs_format2 = format2});
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        EXPECT_EQ(text(Bytes(destination.bytes.begin(),
                             destination.bytes.begin() + outcome.record.output_size)),
                  "ictionary");

        // The same without the history's part of the AECS: there is nothing to refer to.
        d.src2_size = kAecsSizeWithoutHistory;
        EXPECT_EQ(execute(d, memory, {.decompress_aecs_format2 = format2}).record.error_code, 18);
    }
}

/// A state that nothing was kept of but what a generation's short AECS holds.
TEST(History, WriteBackOnlyWhenAskedFor) {
    const Bytes stream = compress_fixed(bytes_of("abcabcabc"));
    GuestMemory memory;
    auto& source = memory.map(stream);
    auto& destination = memory.map(9);
    auto& areas = memory.map(kTwoAreas);
    Descriptor d = decompress_descriptor(source, destination);
    set_flags(d, op_flag::kWriteAecsOnOverflow);
    d.src2_addr = areas.address;
    d.src2_size = kDecompressAecsSize;
    EXPECT_EQ(execute(d, memory, {}).status(), Status::kSuccess);
    EXPECT_EQ(areas.bytes, Bytes(kTwoAreas));
    d.max_dst_size = 4;
    EXPECT_EQ(execute(d, memory, {}).status(), Status::kOutputOverflow);
    EXPECT_NE(areas.bytes, Bytes(kTwoAreas));
    // The second area: no toggle.
    EXPECT_TRUE(std::all_of(areas.bytes.begin(), areas.bytes.begin() + kDecompressAecsSize,
                            [](std::uint8_t byte) { return byte == 0; }));
    EXPECT_TRUE(std::equal(destination.bytes.begin() + 4, destination.bytes.end(),
                           bytes_of("bcabc").begin()));
}

TEST(Suppressed, NeedsNoRoomAndKnowsNoOverflow) {
    const Bytes data(100000, 'q');
    const Bytes stream = compress_fixed(data);
    GuestMemory memory;
    auto& source = memory.map(stream);
    Descriptor d = decompress_descriptor(source, source);
    d.op_flags = kLinuxVerifyFlags;
    d.dst_addr = 0x123;
    for (const std::uint32_t room : {0U, 1U, 1U << 20}) {
        d.max_dst_size = room;
        const Outcome outcome = execute(d, memory, {});
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        EXPECT_EQ(outcome.record.crc, zlib_crc(data));
        EXPECT_EQ(outcome.record.output_size, 0U);
    }
}

/// As a library primes an AECS for a stream that has no header: nothing in, nothing out.
TEST(Suppressed, AnEmptySourceMakesAFreshState) {
    for (const bool format2 : {false, true}) {
        GuestMemory memory;
        auto& areas = memory.map(Bytes(std::size_t{2} * kAecsSizeWithoutHistory, 0x33));
        Descriptor d{};
        d.flags_opcode = flags_opcode(kLinuxDecompress | op_flag::kWriteAecs, Opcode::kDecompress);
        d.completion_addr = kRecordAddress;
        d.op_flags = decompress_flag::kEnable | decompress_flag::kSuppressOutput;
        d.max_dst_size = 1;
        d.src2_addr = areas.address;
        d.src2_size = kAecsSizeWithoutHistory;
        const Outcome outcome = execute(d, memory, {.decompress_aecs_format2 = format2});
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        EXPECT_EQ(outcome.record.bytes_completed, 0U);
        DecompressAecs written;
        ASSERT_EQ(load(std::span(areas.bytes).subspan(kAecsSizeWithoutHistory), format2, written),
                  "");
        EXPECT_EQ(written.state, deflate::DecoderState{});
    }
}

TEST(Checksums, Crc32c) {
    const Bytes stream = compress_fixed(bytes_of("123456789"));
    GuestMemory memory;
    auto& source = memory.map(stream);
    auto& destination = memory.map(9);
    Descriptor d = decompress_descriptor(source, destination);
    set_flags(d, op_flag::kCrc32c);
    EXPECT_EQ(execute(d, memory, {}).record.crc, 0xe3069283U);
}

// Canned tables.

Bytes unhex(const std::string& text) {
    Bytes bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

const nlohmann::json& known_answers() {
    static const nlohmann::json answers =
        nlohmann::json::parse(std::ifstream(IAA_TEST_DATA "/known-answers.json"));
    return answers;
}

/// A guest that has primed an AECS with a header, as the published drivers did: the header alone,
/// its output suppressed, the state written to the first area.
class Canned {
  public:
    Canned(const std::string& header_name, bool format2) : format2_(format2) {
        const auto& header = known_answers().at("headers").at(header_name);
        header_ = unhex(header.at("header_hex").get<std::string>());
        const auto bits = header.at("header_bits").get<unsigned>();
        ignored_ = static_cast<unsigned>(header_.size() * 8 - bits);
        aecs_ = &memory.map(Bytes(std::size_t{2} * size(), 0x33));
    }

    Outcome prime() {
        auto& source = memory.map(header_);
        Descriptor d{};
        d.flags_opcode = flags_opcode(0x44010c, Opcode::kDecompress);
        d.completion_addr = kRecordAddress;
        d.op_flags = static_cast<std::uint16_t>(0x201 | ignored_ << 6);
        d.src1_addr = source.address;
        d.src1_size = static_cast<std::uint32_t>(header_.size());
        d.src2_addr = aecs_->address;
        d.src2_size = size();
        return execute(d, memory, capabilities());
    }

    Outcome decompress(const GuestMemory::Buffer& source, const GuestMemory::Buffer& destination,
                       std::uint16_t codec = kLinuxDecompressFlags) {
        Descriptor d = decompress_descriptor(source, destination);
        set_flags(d, op_flag::kReadAecs);
        d.op_flags = codec;
        d.src2_addr = aecs_->address;
        d.src2_size = size();
        return execute(d, memory, capabilities());
    }

    [[nodiscard]] std::uint32_t size() const {
        return format2_ ? kAecsSizeWithoutHistory : kAecsSizeFormat1;
    }
    [[nodiscard]] Capabilities capabilities() const {
        return {.version = format2_ ? 0x200U : 0x100U, .decompress_aecs_format2 = format2_};
    }
    [[nodiscard]] const Bytes& header() const { return header_; }
    [[nodiscard]] const GuestMemory::Buffer& aecs() const { return *aecs_; }

    GuestMemory memory;

  private:
    bool format2_;
    Bytes header_;
    unsigned ignored_ = 0;
    GuestMemory::Buffer* aecs_;
};

class KnownAnswers : public ::testing::TestWithParam<bool> {};

TEST_P(KnownAnswers, Canned) {
    unsigned vectors = 0;
    for (const auto& vector : known_answers().at("vectors")) {
        if (vector.at("mode") != "canned") {
            continue;
        }
        ++vectors;
        Canned canned(vector.at("header").get<std::string>(), GetParam());
        const Outcome primed = canned.prime();
        ASSERT_EQ(primed.status(), Status::kSuccess) << primed.rule;
        EXPECT_EQ(primed.record.output_size, 0U);
        EXPECT_EQ(primed.record.crc, 0U);
        // Only the first area is written.
        EXPECT_TRUE(std::all_of(canned.aecs().bytes.begin() + canned.size(),
                                canned.aecs().bytes.end(),
                                [](std::uint8_t byte) { return byte == 0x33; }));

        const Bytes plain = unhex(vector.at("plain_hex").get<std::string>());
        const Bytes stream = unhex(vector.at("stream_hex").get<std::string>());
        auto& source = canned.memory.map(stream);
        auto& destination = canned.memory.map(plain.size());
        for (unsigned round = 0; round < 3; ++round) {
            std::ranges::fill(destination.bytes, std::uint8_t{0});
            const Outcome outcome = canned.decompress(source, destination);
            ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
            EXPECT_EQ(outcome.record.output_size, plain.size());
            EXPECT_EQ(outcome.record.bytes_completed, stream.size());
            EXPECT_EQ(outcome.record.crc, zlib_crc(plain));
            EXPECT_EQ(destination.bytes, plain);
            const Outcome verified = canned.decompress(source, destination, kLinuxVerifyFlags);
            EXPECT_EQ(verified.status(), Status::kSuccess) << verified.rule;
            EXPECT_EQ(verified.record.crc, outcome.record.crc);
        }
    }
    EXPECT_EQ(vectors, 2U);
}

TEST_P(KnownAnswers, Dynamic) {
    unsigned vectors = 0;
    for (const auto& vector : known_answers().at("vectors")) {
        if (vector.at("mode") != "dynamic") {
            continue;
        }
        ++vectors;
        const Bytes plain = unhex(vector.at("plain_hex").get<std::string>());
        GuestMemory memory;
        auto& source = memory.map(unhex(vector.at("stream_hex").get<std::string>()));
        auto& destination = memory.map(plain.size());
        const Outcome outcome = execute(decompress_descriptor(source, destination), memory,
                                        {.decompress_aecs_format2 = GetParam()});
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        EXPECT_EQ(destination.bytes, plain);
        EXPECT_EQ(outcome.record.output_size, plain.size());
    }
    EXPECT_EQ(vectors, 2U);
}

/// Both published tables, both ways: compressed with the codes and no header, decompressed with the
/// primed AECS, and by zlib with the header in front.
TEST_P(KnownAnswers, CannedRoundTrip) {
    for (const char* name : {"canned-2023", "canned-2024"}) {
        Canned canned(name, GetParam());
        ASSERT_EQ(canned.prime().status(), Status::kSuccess);
        const auto& header = known_answers().at("headers").at(name);
        deflate::CodeLengths lengths;
        std::size_t symbol = 0;
        for (const auto& length : header.at("ll_lengths")) {
            lengths.ll[symbol++] = length.get<std::uint8_t>();
        }
        symbol = 0;
        for (const auto& length : header.at("d_lengths")) {
            lengths.d[symbol++] = length.get<std::uint8_t>();
        }
        CompressAecs aecs;
        ASSERT_EQ(deflate::make_tables(lengths, aecs.tables), deflate::ErrorCode::kNone);
        auto random = seeded(1);
        for (const std::size_t size : {1U, 70U, 4096U}) {
            const Bytes data = text_like(random, size);
            auto& source = canned.memory.map(data);
            auto& stream = canned.memory.map(2 * size + 64);
            auto& tables = canned.memory.map(image_of(aecs));
            const Outcome compressed = execute(compress_descriptor(source, stream, tables),
                                               canned.memory, canned.capabilities());
            ASSERT_EQ(compressed.status(), Status::kSuccess) << compressed.rule;
            stream.bytes.resize(compressed.record.output_size);

            auto& output = canned.memory.map(size);
            const Outcome decompressed = canned.decompress(stream, output);
            ASSERT_EQ(decompressed.status(), Status::kSuccess) << decompressed.rule;
            EXPECT_EQ(output.bytes, data);
            EXPECT_EQ(decompressed.record.crc, compressed.record.crc);

            // Both headers fill whole bytes, so that they can be put in front as they are.
            ASSERT_EQ(header.at("header_bits").get<unsigned>() % 8, 0U);
            Bytes whole = canned.header();
            whole.insert(whole.end(), stream.bytes.begin(), stream.bytes.end());
            EXPECT_EQ(zlib_inflate(whole, size), data);
        }
    }
}

/// A stream of the canned kind that goes on over several descriptors needs the long AECS; and the
/// priming says so when the AECS of the other generation is given.
TEST_P(KnownAnswers, SizeOfTheOtherGeneration) {
    Canned canned("canned-2023", GetParam());
    ASSERT_EQ(canned.prime().status(), Status::kSuccess);
    auto& source = canned.memory.map(10);
    auto& destination = canned.memory.map(10);
    Descriptor d = decompress_descriptor(source, destination);
    set_flags(d, op_flag::kReadAecs);
    d.src2_addr = canned.aecs().address;
    d.src2_size = kAecsSizeWithoutHistory;
    Capabilities other = canned.capabilities();
    other.decompress_aecs_format2 = !GetParam();
    const Outcome outcome = execute(d, canned.memory, other);
    EXPECT_EQ(outcome.status(), Status::kAnalyticsError);
    EXPECT_EQ(outcome.record.error_code, 22);
}

INSTANTIATE_TEST_SUITE_P(Formats, KnownAnswers, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Format2" : "Format1"; });

}  // namespace
}  // namespace iaa::device::test
