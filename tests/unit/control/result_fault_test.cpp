// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "control/fake_target.h"
#include "device/control/faults.h"

namespace iaa::test {
namespace {

using device::CompletionRecord;
using device::control::CrcFault;
using device::control::Decision;

/// Guest memory at address 0x1000.
class FlatMemory final : public device::DmaMemory {
  public:
    static constexpr std::uint64_t kBase = 0x1000;
    std::vector<std::byte> bytes = std::vector<std::byte>(8192);

    bool read(std::uint64_t iova, std::span<std::byte> out) override {
        if (!mapped(iova, out.size(), false)) return false;
        std::memcpy(out.data(), bytes.data() + (iova - kBase), out.size());
        return true;
    }
    bool write(std::uint64_t iova, std::span<const std::byte> in) override {
        if (!mapped(iova, in.size(), true)) return false;
        std::memcpy(bytes.data() + (iova - kBase), in.data(), in.size());
        return true;
    }
    bool write_completion(std::uint64_t iova, std::span<const std::byte, 64> record) override {
        return write(iova, record);
    }
    bool mapped(std::uint64_t iova, std::uint64_t size, bool) override {
        return iova >= kBase && iova - kBase <= bytes.size() &&
               size <= bytes.size() - (iova - kBase);
    }
};

class ResultFault : public testing::Test {
  protected:
    void SetUp() override {
        for (std::size_t i = 0; i < kSize; ++i)
            memory.bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
        what.dst_addr = FlatMemory::kBase;
        record.status = 1;
        record.output_size = kSize;
        record.crc = crc();
        record.xor_checksum = checksum();
        decision.rule = 1;
        decision.random = 0x123456789abcdefULL;
    }

    std::uint32_t crc(std::uint32_t seed = 0) const {
        return static_cast<std::uint32_t>(
            ::crc32(seed, reinterpret_cast<const Bytef*>(memory.bytes.data()), kSize));
    }
    /// Bit by bit, as the Castagnoli polynomial is not in zlib.
    std::uint32_t crc_castagnoli() const {
        std::uint32_t value = 0xffffffff;
        for (std::size_t i = 0; i < kSize; ++i) {
            value ^= std::to_integer<std::uint32_t>(memory.bytes[i]);
            for (int bit = 0; bit < 8; ++bit)
                value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
        }
        return ~value;
    }
    std::uint16_t checksum() const {
        std::uint16_t value = 0;
        for (std::size_t i = 0; i < kSize; ++i)
            value = static_cast<std::uint16_t>(
                value ^ (std::to_integer<std::uint32_t>(memory.bytes[i]) << (i % 2 == 0 ? 0 : 8)));
        return value;
    }
    void apply() { device::control::apply_to_result(decision, what, memory, record); }

    static constexpr std::size_t kSize = 4096;
    FlatMemory memory;
    device::Descriptor what = descriptor(kDecompress);
    CompletionRecord record{};
    Decision decision;
};

TEST_F(ResultFault, ADecisionForNothingChangesNothing) {
    const auto before = record;
    const auto bytes = memory.bytes;
    apply();
    EXPECT_EQ(record, before);
    EXPECT_EQ(memory.bytes, bytes);
}

TEST_F(ResultFault, StaleCrcTellsTheCorruptionApart) {
    const auto bytes = memory.bytes;
    decision.actions.corrupt = {.offset = 100, .flip = 0x10, .crc = CrcFault::kStale};
    apply();
    EXPECT_EQ(memory.bytes[100], bytes[100] ^ std::byte{0x10});
    memory.bytes[100] = bytes[100];
    EXPECT_EQ(memory.bytes, bytes) << "more than one byte has changed";
    EXPECT_EQ(record.crc, crc());
    EXPECT_EQ(record.status, 1);
}

TEST_F(ResultFault, MatchingChecksumsAtEveryPlace) {
    for (const std::uint32_t offset : {0U, 1U, 2U, 1000U, 2047U, 4094U, 4095U}) {
        decision.actions.corrupt = {.offset = offset,
                                    .flip = static_cast<std::uint8_t>(offset * 7 + 1),
                                    .crc = CrcFault::kMatching};
        apply();
        EXPECT_EQ(record.crc, crc()) << offset;
        EXPECT_EQ(record.xor_checksum, checksum()) << offset;
    }
}

TEST_F(ResultFault, MatchingCrcDoesNotDependOnTheSeed) {
    record.crc = crc(0xdeadbeef);
    decision.actions.corrupt = {.offset = 7, .crc = CrcFault::kMatching};
    apply();
    EXPECT_EQ(record.crc, crc(0xdeadbeef));
}

TEST_F(ResultFault, MatchingCastagnoli) {
    what.flags_opcode |= 0x200000;
    record.crc = crc_castagnoli();
    decision.actions.corrupt = {.offset = 1234, .crc = CrcFault::kMatching};
    apply();
    EXPECT_EQ(record.crc, crc_castagnoli());
    EXPECT_NE(record.crc, crc());
}

TEST_F(ResultFault, ARandomPlaceIsInsideTheOutput) {
    record.output_size = 10;
    const auto bytes = memory.bytes;
    for (std::uint64_t random = 0; random < 100; ++random) {
        memory.bytes = bytes;
        decision.random = random * 0x9e3779b97f4a7c15ULL;
        decision.actions.corrupt.emplace();
        apply();
        EXPECT_NE(memory.bytes, bytes);
        EXPECT_TRUE(std::equal(bytes.begin() + 10, bytes.end(), memory.bytes.begin() + 10));
    }
}

TEST_F(ResultFault, CompressionKeepsTheCrcOfItsInput) {
    what = descriptor(kCompress);
    what.dst_addr = FlatMemory::kBase;
    record.crc = 0x12345678;
    decision.actions.corrupt = {.offset = 5, .crc = CrcFault::kMatching};
    const auto bytes = memory.bytes;
    apply();
    EXPECT_NE(memory.bytes, bytes);
    EXPECT_EQ(record.crc, 0x12345678U);
}

TEST_F(ResultFault, SuppressedOutputIsNotWritten) {
    what.op_flags = kSuppress;
    const auto bytes = memory.bytes;
    const auto before = record.crc;
    decision.actions.corrupt = {.offset = 5, .crc = CrcFault::kMatching};
    apply();
    EXPECT_EQ(memory.bytes, bytes);
    EXPECT_NE(record.crc, before);
}

TEST_F(ResultFault, WithoutOutputThereIsNothingToCorrupt) {
    record.output_size = 0;
    const auto before = record;
    decision.actions.corrupt.emplace();
    apply();
    EXPECT_EQ(record, before);
    record.output_size = 100;
    what.dst_addr = 0x900000;  // gone meanwhile
    const auto gone = record;
    apply();
    EXPECT_EQ(record, gone);
}

TEST_F(ResultFault, StatusAndSize) {
    decision.actions.status = {.status = 0x0a, .error_code = 0x19};
    decision.actions.output_size = 0xffffffff;
    apply();
    EXPECT_EQ(record.status, 0x0a);
    EXPECT_EQ(record.error_code, 0x19);
    EXPECT_EQ(record.output_size, 0xffffffffU);
    EXPECT_EQ(record.crc, crc());
}

}  // namespace
}  // namespace iaa::test
