// SPDX-License-Identifier: GPL-2.0
// Descriptors, byte by byte, against the layout of the device's 64-byte work descriptor, and what
// completion records mean.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>

extern "C" {
#include "hw.h"
}

namespace {

using Bytes = std::array<std::uint8_t, 64>;

constexpr iaa_job kJob = {
    .src = 0x1122334455667788,
    .dst = 0x99aabbccddeeff00,
    .aecs = 0x0102030405060700,
    .completion = 0x0a0b0c0d0e0f1000,
    .src_len = 0x1000,
    .dst_len = 0x2000,
};

template <typename T>
T at(const Bytes& bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
}

// A descriptor as idxd hands it out: zero, but for the PASID and the privilege bit; then used once
// for something else, as a descriptor that is verified with is.
template <typename Fill>
Bytes build(std::uint32_t pasid_word, bool dirty, Fill fill) {
    Bytes bytes{};
    iax_hw_desc desc{};
    static_assert(sizeof(desc) == sizeof(bytes));
    if (dirty) {
        std::memset(&desc, 0xff, sizeof(desc));
    }
    std::memcpy(&desc, &pasid_word, sizeof(pasid_word));
    fill(&desc);
    std::memcpy(bytes.data(), &desc, sizeof(desc));
    return bytes;
}

class Descriptor : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(FreshAndUsed, Descriptor, testing::Bool());

TEST_P(Descriptor, Compress) {
    const Bytes bytes =
        build(0x80012345, GetParam(), [](iax_hw_desc* desc) { iaa_hw_compress(desc, &kJob); });
    EXPECT_EQ(at<std::uint32_t>(bytes, 0), 0x80012345u) << "PASID and privilege are idxd's";
    EXPECT_EQ(at<std::uint32_t>(bytes, 4), 0x4301010cu) << "opcode and flags";
    EXPECT_EQ(at<std::uint64_t>(bytes, 8), kJob.completion);
    EXPECT_EQ(at<std::uint64_t>(bytes, 16), kJob.src);
    EXPECT_EQ(at<std::uint64_t>(bytes, 24), kJob.dst);
    EXPECT_EQ(at<std::uint32_t>(bytes, 32), kJob.src_len);
    EXPECT_EQ(at<std::uint16_t>(bytes, 36), 0) << "interrupt handle";
    EXPECT_EQ(at<std::uint16_t>(bytes, 38), 0x0006) << "compression flags";
    EXPECT_EQ(at<std::uint64_t>(bytes, 40), kJob.aecs);
    EXPECT_EQ(at<std::uint32_t>(bytes, 48), kJob.dst_len);
    EXPECT_EQ(at<std::uint32_t>(bytes, 52), 1568u) << "size of the AECS";
    EXPECT_EQ(at<std::uint64_t>(bytes, 56), 0u) << "second flags, inputs";
}

TEST_P(Descriptor, Decompress) {
    const Bytes bytes =
        build(0, GetParam(), [](iax_hw_desc* desc) { iaa_hw_decompress(desc, &kJob); });
    EXPECT_EQ(at<std::uint32_t>(bytes, 0), 0u);
    EXPECT_EQ(at<std::uint32_t>(bytes, 4), 0x4200010cu);
    EXPECT_EQ(at<std::uint64_t>(bytes, 8), kJob.completion);
    EXPECT_EQ(at<std::uint64_t>(bytes, 16), kJob.src);
    EXPECT_EQ(at<std::uint64_t>(bytes, 24), kJob.dst);
    EXPECT_EQ(at<std::uint32_t>(bytes, 32), kJob.src_len);
    EXPECT_EQ(at<std::uint16_t>(bytes, 36), 0);
    EXPECT_EQ(at<std::uint16_t>(bytes, 38), 0x001f);
    EXPECT_EQ(at<std::uint64_t>(bytes, 40), 0u) << "no AECS";
    EXPECT_EQ(at<std::uint32_t>(bytes, 48), kJob.dst_len);
    EXPECT_EQ(at<std::uint32_t>(bytes, 52), 0u);
    EXPECT_EQ(at<std::uint64_t>(bytes, 56), 0u);
}

TEST_P(Descriptor, VerifyReadsTheOutputAndWritesNothing) {
    const Bytes bytes =
        build(0, GetParam(), [](iax_hw_desc* desc) { iaa_hw_verify(desc, &kJob, 0x321); });
    EXPECT_EQ(at<std::uint32_t>(bytes, 4), 0x4200010cu);
    EXPECT_EQ(at<std::uint64_t>(bytes, 8), kJob.completion);
    EXPECT_EQ(at<std::uint64_t>(bytes, 16), kJob.dst) << "reads what was written";
    EXPECT_EQ(at<std::uint64_t>(bytes, 24), kJob.src);
    EXPECT_EQ(at<std::uint32_t>(bytes, 32), 0x321u);
    EXPECT_EQ(at<std::uint16_t>(bytes, 38), 0x021f) << "output suppressed";
    EXPECT_EQ(at<std::uint64_t>(bytes, 40), 0u);
    EXPECT_EQ(at<std::uint32_t>(bytes, 48), kJob.src_len);
    EXPECT_EQ(at<std::uint32_t>(bytes, 52), 0u);
    EXPECT_EQ(at<std::uint64_t>(bytes, 56), 0u);
}

// Every bit of a job has its place, and no other.
TEST(DescriptorBytes, AnyJob) {
    std::seed_seq seed{3};
    std::mt19937_64 random(seed);
    for (int round = 0; round < 10000; ++round) {
        const iaa_job job = {.src = random(),
                             .dst = random(),
                             .aecs = random(),
                             .completion = random(),
                             .src_len = static_cast<u32>(random()),
                             .dst_len = static_cast<u32>(random())};
        const auto pasid = static_cast<std::uint32_t>(random());
        const auto out_len = static_cast<std::uint32_t>(random());
        const auto expect = [&](const Bytes& got, std::uint32_t opcode_flags, std::uint64_t src,
                                std::uint64_t dst, std::uint32_t src_len, std::uint16_t flags,
                                std::uint64_t aecs, std::uint32_t dst_len, std::uint32_t aecs_len) {
            Bytes want{};
            const auto put = [&](std::size_t offset, std::uint64_t value, std::size_t bytes) {
                for (std::size_t i = 0; i < bytes; ++i) {
                    want[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
                }
            };
            put(0, pasid, 4);
            put(4, opcode_flags, 4);
            put(8, job.completion, 8);
            put(16, src, 8);
            put(24, dst, 8);
            put(32, src_len, 4);
            put(38, flags, 2);
            put(40, aecs, 8);
            put(48, dst_len, 4);
            put(52, aecs_len, 4);
            ASSERT_EQ(got, want);
        };
        const bool dirty = round % 2 != 0;
        expect(build(pasid, dirty, [&](iax_hw_desc* desc) { iaa_hw_compress(desc, &job); }),
               0x4301010c, job.src, job.dst, job.src_len, 0x6, job.aecs, job.dst_len, 1568);
        expect(build(pasid, dirty, [&](iax_hw_desc* desc) { iaa_hw_decompress(desc, &job); }),
               0x4200010c, job.src, job.dst, job.src_len, 0x1f, 0, job.dst_len, 0);
        expect(build(pasid, dirty, [&](iax_hw_desc* desc) { iaa_hw_verify(desc, &job, out_len); }),
               0x4200010c, job.dst, job.src, out_len, 0x21f, 0, job.src_len, 0);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST(Verdict, Success) {
    EXPECT_EQ(iaa_hw_verdict(true, 0x01, 0), IAA_V_OK);
    EXPECT_EQ(iaa_hw_verdict(false, 0x01, 0), IAA_V_OK);
}

TEST(Verdict, CompressionThatDoesNotFit) {
    EXPECT_EQ(iaa_hw_verdict(true, 0x0a, 0x19), IAA_V_NO_SPACE);
    // Not how a whole compression in one descriptor ends: software has the last word.
    EXPECT_EQ(iaa_hw_verdict(true, 0x0b, 0), IAA_V_TOO_SMALL);
}

TEST(Verdict, DecompressionIsNeverRefusedOnTheDevicesWord) {
    EXPECT_EQ(iaa_hw_verdict(false, 0x0b, 0), IAA_V_TOO_SMALL);
    for (unsigned code = 0; code < 256; ++code) {
        EXPECT_EQ(iaa_hw_verdict(false, 0x0a, static_cast<std::uint8_t>(code)), IAA_V_STREAM);
    }
}

TEST(Verdict, Watchdog) {
    EXPECT_EQ(iaa_hw_verdict(true, 0x24, 0), IAA_V_SLOW);
    EXPECT_EQ(iaa_hw_verdict(false, 0x24, 0), IAA_V_SLOW);
}

TEST(Verdict, EveryOtherStatusIsAnError) {
    for (unsigned status = 0; status < 256; ++status) {
        if (status == 0x01 || status == 0x0a || status == 0x0b || status == 0x24) {
            continue;
        }
        EXPECT_EQ(iaa_hw_verdict(true, static_cast<std::uint8_t>(status), 0), IAA_V_ERROR)
            << status;
        EXPECT_EQ(iaa_hw_verdict(false, static_cast<std::uint8_t>(status), 0), IAA_V_ERROR)
            << status;
    }
    EXPECT_EQ(iaa_hw_verdict(true, 0x0a, 0x1e), IAA_V_ERROR);
}

}  // namespace
