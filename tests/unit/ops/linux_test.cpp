// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

#include "unit/ops/guest.h"
#include "unit/ops/zlib_peer.h"

/// The three descriptors that the kernel's own driver sends have to work as they are.
namespace iaa::device::test {
namespace {

class LinuxRoundTrip : public ::testing::TestWithParam<std::size_t> {};

TEST_P(LinuxRoundTrip, CompressVerifyDecompress) {
    auto random = seeded(GetParam());
    const Bytes data = text_like(random, GetParam());
    GuestMemory memory;
    auto& source = memory.map(data);
    auto& destination = memory.map(std::min<std::size_t>(2 * data.size() + 16, 1U << 21U), 100);
    auto& aecs = memory.map(image_of(fixed_aecs()));

    const Descriptor compress = compress_descriptor(source, destination, aecs);
    const Outcome compressed = execute(compress, memory, {});
    ASSERT_EQ(compressed.status(), Status::kSuccess) << compressed.rule;
    EXPECT_EQ(compressed.rule, "");
    EXPECT_EQ(compressed.record.error_code, 0);
    EXPECT_EQ(compressed.record.crc, zlib_crc(data));
    EXPECT_EQ(compressed.record.bytes_completed, data.size());
    const Bytes stream(destination.bytes.begin(),
                       destination.bytes.begin() + compressed.record.output_size);
    EXPECT_EQ(zlib_inflate(stream, data.size()), data);

    // The kernel maps the destination both ways for the verification, and the source only for the
    // device to read.
    destination.bytes.resize(stream.size());
    source.writable = false;
    Descriptor verify = decompress_descriptor(destination, source);
    verify.op_flags = kLinuxVerifyFlags;
    memory.forget();
    const Outcome verified = execute(verify, memory, {});
    ASSERT_EQ(verified.status(), Status::kSuccess) << verified.rule;
    EXPECT_EQ(verified.record.crc, compressed.record.crc);
    EXPECT_EQ(verified.record.xor_checksum, compressed.record.xor_checksum);
    EXPECT_EQ(verified.record.output_size, 0U);
    for (const auto& access : memory.accesses()) {
        EXPECT_FALSE(access.write);
    }

    auto& output = memory.map(data.size());
    const Outcome decompressed = execute(decompress_descriptor(destination, output), memory, {});
    ASSERT_EQ(decompressed.status(), Status::kSuccess) << decompressed.rule;
    EXPECT_EQ(decompressed.record.output_size, data.size());
    EXPECT_EQ(decompressed.record.crc, zlib_crc(data));
    EXPECT_EQ(output.bytes, data);
    EXPECT_FALSE(memory.completion_written());
}

INSTANTIATE_TEST_SUITE_P(Sizes, LinuxRoundTrip,
                         ::testing::Values(1, 2, 3, 70, 191, 4095, 4096, 65536, 1U << 21U));

TEST(LinuxDriver, InterruptRequestWorks) {
    GuestMemory memory;
    auto& source = memory.map(bytes_of("interrupted interrupted interrupted"));
    auto& destination = memory.map(100);
    auto& aecs = memory.map(image_of(fixed_aecs()));
    Descriptor d = compress_descriptor(source, destination, aecs);
    set_flags(d, op_flag::kRequestInterrupt);
    d.int_handle = 3;
    EXPECT_EQ(execute(d, memory, {}).status(), Status::kSuccess);
}

TEST(LinuxDriver, CompressThatDoesNotFit) {
    auto random = seeded(7);
    Bytes data(4096);
    std::ranges::generate(data, [&] { return static_cast<std::uint8_t>(random()); });
    GuestMemory memory;
    auto& source = memory.map(data);
    auto& destination = memory.map(4096);
    auto& aecs = memory.map(image_of(fixed_aecs()));
    const Outcome outcome = execute(compress_descriptor(source, destination, aecs), memory, {});
    EXPECT_EQ(outcome.record.status, 0x0a);
    EXPECT_EQ(outcome.record.error_code, 0x19);
    EXPECT_EQ(outcome.record.output_size, 0U);
    EXPECT_EQ(destination.bytes, Bytes(4096));
}

TEST(LinuxDriver, DecompressThatDoesNotFit) {
    const Bytes data = bytes_of("a string that is a string that is a string");
    GuestMemory memory;
    auto& source = memory.map(compress_fixed(data));
    auto& destination = memory.map(data.size() - 1);
    const Outcome outcome = execute(decompress_descriptor(source, destination), memory, {});
    EXPECT_EQ(outcome.record.status, 0x0b);
    EXPECT_EQ(outcome.record.error_code, 0);
    EXPECT_EQ(outcome.record.output_size, data.size() - 1);
    EXPECT_TRUE(std::equal(destination.bytes.begin(), destination.bytes.end(), data.begin()));
}

/// A revoked interrupt handle is drained with this.
TEST(LinuxDriver, DrainWithAnInterruptOnly) {
    GuestMemory memory;
    Descriptor d{};
    d.pasid_priv = 1U << 31U;
    d.flags_opcode = flags_opcode(op_flag::kRequestInterrupt, Opcode::kDrain);
    d.int_handle = 1;
    EXPECT_EQ(execute(d, memory, {}).status(), Status::kSuccess);
    EXPECT_TRUE(memory.accesses().empty());
}

}  // namespace
}  // namespace iaa::device::test
