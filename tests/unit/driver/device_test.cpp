// SPDX-License-Identifier: GPL-2.0
// The driver's descriptors and tables, carried out by the model of the device: which refuses what
// hardware would, and says by which rule.

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "unit/ops/guest.h"
#include "unit/ops/zlib_peer.h"

extern "C" {
#include "modes/modes.h"
}

namespace iaa::device::test {
namespace {

Bytes driver_aecs() {
    Bytes image(sizeof(iaa_aecs_comp));
    iaa_aecs_comp aecs{};
    iaa_mode_fixed.fill(&aecs);
    std::memcpy(image.data(), &aecs, sizeof(aecs));
    return image;
}

class DriverOnDevice : public testing::Test {
  protected:
    // What the driver does with a descriptor that idxd hands out, used before as it may be.
    template <typename Fill>
    Outcome run(Fill fill) {
        Descriptor descriptor{};
        static_assert(sizeof(descriptor) == sizeof(desc_));
        fill(&desc_);
        std::memcpy(&descriptor, &desc_, sizeof(desc_));
        memory_.forget();
        const Outcome outcome = execute(descriptor, memory_, {});
        // What is wrong with the data is not the descriptor's fault.
        EXPECT_TRUE(outcome.rule.empty() || outcome.rule.starts_with("stream-valid:") ||
                    outcome.rule.starts_with("output-fits:"))
            << outcome.rule;
        return outcome;
    }

    Outcome compress(const iaa_job& job) {
        return run([&](iax_hw_desc* desc) { iaa_hw_compress(desc, &job); });
    }
    Outcome verify(const iaa_job& job, std::uint32_t out_len) {
        return run([&](iax_hw_desc* desc) { iaa_hw_verify(desc, &job, out_len); });
    }
    Outcome decompress(const iaa_job& job) {
        return run([&](iax_hw_desc* desc) { iaa_hw_decompress(desc, &job); });
    }

    [[nodiscard]] iaa_job job(const GuestMemory::Buffer& source,
                              const GuestMemory::Buffer& destination) const {
        return {.src = source.address,
                .dst = destination.address,
                .aecs = aecs_.address,
                .completion = kRecordAddress,
                .src_len = static_cast<u32>(source.bytes.size()),
                .dst_len = static_cast<u32>(destination.bytes.size())};
    }

    GuestMemory memory_;

  private:
    GuestMemory::Buffer& aecs_ = memory_.map(driver_aecs());
    iax_hw_desc desc_{};
};

TEST_F(DriverOnDevice, TheFixedTablesAreTheDevicesOwn) {
    EXPECT_EQ(driver_aecs(), image_of(fixed_aecs()));
}

TEST_F(DriverOnDevice, CompressVerifyDecompress) {
    auto random = seeded(1);
    for (int round = 0; round < 300; ++round) {
        SCOPED_TRACE(round);
        // Every magnitude of size, at any alignment.
        const std::size_t size = 1 + random() % (std::size_t{1} << (1 + random() % 17));
        const Bytes data = text_like(random, size);
        GuestMemory::Buffer& source = memory_.map(data, random() % 4096);
        GuestMemory::Buffer& stream = memory_.map(2 * size + 16, random() % 4096);
        source.writable = false;
        iaa_job there = job(source, stream);
        const Outcome compressed = compress(there);
        ASSERT_EQ(iaa_hw_verdict(true, compressed.record.status, compressed.record.error_code),
                  IAA_V_OK);
        EXPECT_EQ(compressed.record.crc, zlib_crc(data));

        // Reads the stream, is given the source, and writes nothing.
        const std::uint32_t length = compressed.record.output_size;
        const Bytes wrote = stream.bytes;
        const Outcome verified = verify(there, length);
        ASSERT_EQ(iaa_hw_verdict(false, verified.record.status, verified.record.error_code),
                  IAA_V_OK);
        EXPECT_EQ(verified.record.crc, compressed.record.crc);
        EXPECT_EQ(source.bytes, data);
        EXPECT_EQ(stream.bytes, wrote);
        for (const GuestMemory::Access& access : memory_.accesses()) EXPECT_FALSE(access.write);

        stream.bytes.resize(length);
        EXPECT_EQ(zlib_inflate(stream.bytes, size), data);
        GuestMemory::Buffer& output = memory_.map(size, random() % 4096);
        stream.writable = false;
        const Outcome decompressed = decompress(job(stream, output));
        ASSERT_EQ(iaa_hw_verdict(false, decompressed.record.status, decompressed.record.error_code),
                  IAA_V_OK);
        EXPECT_EQ(decompressed.record.output_size, size);
        EXPECT_EQ(output.bytes, data);
    }
}

TEST_F(DriverOnDevice, WhatDoesNotFitIsToldApart) {
    auto random = seeded(2);
    Bytes noise(4096);
    std::ranges::generate(noise, [&] { return static_cast<std::uint8_t>(random()); });
    const GuestMemory::Buffer& source = memory_.map(noise);
    const GuestMemory::Buffer& page = memory_.map(4096);
    const Outcome compressed = compress(job(source, page));
    EXPECT_EQ(iaa_hw_verdict(true, compressed.record.status, compressed.record.error_code),
              IAA_V_NO_SPACE);

    const GuestMemory::Buffer& stream = memory_.map(compress_fixed(noise));
    const GuestMemory::Buffer& small = memory_.map(4095);
    const Outcome decompressed = decompress(job(stream, small));
    EXPECT_EQ(iaa_hw_verdict(false, decompressed.record.status, decompressed.record.error_code),
              IAA_V_TOO_SMALL);
}

TEST_F(DriverOnDevice, AWrongStreamDoesNotVerify) {
    const Bytes data = bytes_of("one page, another page, one page, another page");
    const GuestMemory::Buffer& source = memory_.map(data);
    GuestMemory::Buffer& stream = memory_.map(100);
    const iaa_job there = job(source, stream);
    const Outcome compressed = compress(there);
    ASSERT_EQ(compressed.status(), Status::kSuccess);
    for (std::uint32_t bit = 3; bit < 8 * compressed.record.output_size - 7; ++bit) {
        stream.bytes[bit / 8] = static_cast<std::uint8_t>(stream.bytes[bit / 8] ^ 1U << bit % 8);
        const Outcome verified = verify(there, compressed.record.output_size);
        EXPECT_TRUE(iaa_hw_verdict(false, verified.record.status, verified.record.error_code) !=
                        IAA_V_OK ||
                    verified.record.crc != compressed.record.crc)
            << "bit " << bit;
        stream.bytes[bit / 8] = static_cast<std::uint8_t>(stream.bytes[bit / 8] ^ 1U << bit % 8);
    }
}

TEST_F(DriverOnDevice, AStreamOfSeveralBlocksIsReadToItsEnd) {
    // A stored block that is not the last, then a fixed one.
    const Bytes first = bytes_of("stored");
    Bytes stream{0, 6, 0, 0xf9, 0xff};
    stream.insert(stream.end(), first.begin(), first.end());
    const Bytes rest = compress_fixed(bytes_of(" and fixed"));
    stream.insert(stream.end(), rest.begin(), rest.end());
    const GuestMemory::Buffer& source = memory_.map(stream);
    const GuestMemory::Buffer& output = memory_.map(16);
    const Outcome outcome = decompress(job(source, output));
    ASSERT_EQ(iaa_hw_verdict(false, outcome.record.status, outcome.record.error_code), IAA_V_OK);
    EXPECT_EQ(output.bytes, bytes_of("stored and fixed"));

    // Without the last, it is not a whole stream.
    GuestMemory::Buffer& cut = memory_.map(stream);
    cut.bytes.resize(5 + first.size());
    const Outcome half = decompress(job(cut, output));
    EXPECT_EQ(iaa_hw_verdict(false, half.record.status, half.record.error_code), IAA_V_STREAM);
}

}  // namespace
}  // namespace iaa::device::test
