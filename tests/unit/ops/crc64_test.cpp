// SPDX-License-Identifier: GPL-2.0
#include "device/ops/crc64.h"

#include <gtest/gtest.h>

#include "unit/ops/guest.h"

namespace iaa::device::test {
namespace {

constexpr std::uint64_t kEcma = 0x42f0e1eba9ea3693;

constexpr Crc64Options options_of(std::uint64_t polynomial, bool bit_order, bool invert) {
    return {.polynomial = polynomial, .bit_order = bit_order, .invert = invert};
}

struct KnownCrc {
    constexpr KnownCrc(const char* crc, const Crc64Options& how, std::uint64_t value)
        : name(crc), options(how), check(value) {}

    const char* name;
    Crc64Options options;
    std::uint64_t check;  ///< of "123456789"
};

// The catalogued check values of published CRCs. Shorter ones lie at the top of the register, or
// at its bottom where bits go the other way.
constexpr std::array<KnownCrc, 9> kKnown{
    KnownCrc("CRC-64/ECMA-182", options_of(kEcma, false, false), 0x6c40df5f0b497347),
    KnownCrc("CRC-64/WE", options_of(kEcma, false, true), 0x62ec59e3f1a4f00a),
    KnownCrc("CRC-64/XZ", options_of(kEcma, true, true), 0x995dc9bbdf1939fa),
    KnownCrc("CRC-64/GO-ISO", options_of(0x1b, true, true), 0xb90956c775a41001),
    KnownCrc("CRC-32/ISO-HDLC", options_of(0x04c11db7ULL << 32, true, true), 0xcbf43926),
    KnownCrc("CRC-32/BZIP2", options_of(0x04c11db7ULL << 32, false, true), 0xfc891918ULL << 32),
    KnownCrc("CRC-16/XMODEM", options_of(0x1021ULL << 48, false, false), 0x31c3ULL << 48),
    KnownCrc("CRC-16/IBM-SDLC", options_of(0x1021ULL << 48, true, true), 0x906e),
    KnownCrc("CRC-16/GENIBUS", options_of(0x1021ULL << 48, false, true), 0xd64eULL << 48),
};

Outcome run(const Bytes& data, const Crc64Options& options) {
    GuestMemory memory;
    auto& source = memory.map(data, 13);
    Descriptor d{};
    d.flags_opcode = flags_opcode(
        op_flag::kCompletionAddressValid | op_flag::kRequestCompletionRecord, Opcode::kCrc64);
    d.completion_addr = kRecordAddress;
    d.src1_addr = source.address;
    d.src1_size = static_cast<std::uint32_t>(data.size());
    d.op_flags = static_cast<std::uint16_t>((options.bit_order ? crc64_flag::kBitOrder : 0) |
                                            (options.invert ? crc64_flag::kInvert : 0));
    d.filter_flags = static_cast<std::uint32_t>(options.polynomial);
    d.num_inputs = static_cast<std::uint32_t>(options.polynomial >> 32);
    return execute(d, memory, {});
}

TEST(Crc64, CataloguedCheckValues) {
    for (const KnownCrc& known : kKnown) {
        EXPECT_EQ(crc64(bytes_of("123456789"), known.options), known.check) << known.name;
        const Outcome outcome = run(bytes_of("123456789"), known.options);
        ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        EXPECT_EQ(outcome.record.crc64(), known.check) << known.name;
        EXPECT_EQ(outcome.record.bytes_completed, 9U);
        EXPECT_EQ(outcome.record.output_size, 0U);
    }
}

/// A reader of the record finds the result at offset 40.
TEST(Crc64, PlaceInTheRecord) {
    const Outcome outcome = run(bytes_of("123456789"), options_of(kEcma, false, false));
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::uint8_t*>(&outcome.record) + 40, sizeof value);
    EXPECT_EQ(value, 0x6c40df5f0b497347);
}

TEST(Crc64, PolynomialZeroAndNoData) {
    EXPECT_EQ(crc64(bytes_of("abc"), options_of(0, true, true)), 0U);
    EXPECT_EQ(crc64({}, options_of(kEcma, false, false)), 0U);
    EXPECT_EQ(crc64({}, options_of(kEcma, true, true)), 0U);
}

TEST(Crc64, TwoMegabytes) {
    Bytes data(1U << 21U);
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<std::uint8_t>(i * i >> 3U);
    }
    const Crc64Options options = options_of(kEcma, true, true);
    // A CRC without inversion is linear, which gives a second way to the same value.
    Bytes flipped = data;
    flipped[12345] ^= 0x40;
    Bytes difference(data.size());
    difference[12345] = 0x40;
    EXPECT_EQ(run(data, options).record.crc64() ^ run(flipped, options).record.crc64(),
              crc64(difference, options_of(kEcma, true, false)));
}

}  // namespace
}  // namespace iaa::device::test
