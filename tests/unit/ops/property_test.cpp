// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "unit/ops/guest.h"
#include "unit/ops/random_guest.h"
#include "unit/ops/zlib_peer.h"

namespace iaa::device::test {
namespace {

/// Whatever a guest sends: every access lies in a buffer that the descriptor names, output lies
/// within its limit, and the record is one that a device may write.
TEST(Property, RandomDescriptors) {
    auto random = seeded(77);
    std::array<unsigned, 256> statuses{};
    for (unsigned round = 0; round < 15000; ++round) {
        RandomGuest guest([&random] { return random(); });
        const auto before = guest.memory().contents();
        const Outcome outcome = execute(guest.descriptor(), guest.memory(), guest.capabilities());
        ++statuses[outcome.record.status];
        ASSERT_EQ(guest.complaint(outcome, before), "") << outcome.rule << " in round " << round;
        // The same again gives the same, but for what the first run has written over its own input.
        if (guest.memory().contents() == before) {
            const Outcome again = execute(guest.descriptor(), guest.memory(), guest.capabilities());
            ASSERT_EQ(again.record, outcome.record);
            ASSERT_EQ(again.rule, outcome.rule);
        }
    }
    // The generator reaches all that matters.
    for (const Status status :
         {Status::kSuccess, Status::kPageFault, Status::kPageFaultWrite, Status::kAnalyticsError,
          Status::kOutputOverflow, Status::kBadOpcode, Status::kInvalidFlags,
          Status::kReservedField, Status::kInvalidSize, Status::kOverlap,
          Status::kCompletionAlignment, Status::kAddressAlignment, Status::kPrivilege,
          Status::kInvalidCodecFlags, Status::kInvalidFilterFlags, Status::kInvalidInputSize}) {
        EXPECT_GT(statuses[static_cast<std::size_t>(status)], 0U) << describe(status);
    }
    EXPECT_GT(statuses[1], 500U);
}

/// Any valid stream of zlib's, and any broken by a few bytes: what the device makes of it is what
/// zlib makes of it, or an error of its own.
TEST(Property, StreamsOfZlib) {
    auto random = seeded(5);
    for (unsigned round = 0; round < 1500; ++round) {
        const Bytes data = text_like(random, 1 + random() % 3000);
        const int level = static_cast<int>(random() % 10);
        const int strategy = random() % 3 == 0 ? Z_FIXED : Z_DEFAULT_STRATEGY;
        Bytes stream = zlib_deflate(data, level, strategy, random() % 2 == 0 ? 0 : 500);
        const bool broken = random() % 2 == 0;
        if (broken) {
            stream[random() % stream.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
        }
        GuestMemory memory;
        auto& source = memory.map(stream);
        auto& destination = memory.map(data.size());
        Descriptor d = decompress_descriptor(source, destination);
        d.op_flags = decompress_flag::kEnable | decompress_flag::kFlush |
                     decompress_flag::kStopOnEob | decompress_flag::kCheckForEob |
                     decompress_flag::kOnlyFinalEob;
        const Outcome outcome = execute(d, memory, {});

        z_stream z{};
        ASSERT_EQ(inflateInit2(&z, -12), Z_OK);
        Bytes expected(data.size());
        z.next_in = stream.data();
        z.avail_in = static_cast<unsigned>(stream.size());
        z.next_out = expected.data();
        z.avail_out = static_cast<unsigned>(expected.size());
        const int result = inflate(&z, Z_FINISH);
        const std::size_t size = z.total_out;
        const std::size_t taken = z.total_in;
        inflateEnd(&z);

        if (!broken) {
            ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
        }
        // zlib refuses incomplete codes when it reads the header, the device when it meets them.
        if (result == Z_STREAM_END) {
            ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
            ASSERT_EQ(outcome.record.output_size, size);
            ASSERT_EQ(outcome.record.bytes_completed, taken);
            destination.bytes.resize(size);
            expected.resize(size);
            ASSERT_EQ(destination.bytes, expected);
            ASSERT_EQ(outcome.record.crc, zlib_crc(expected));
        } else if (outcome.status() == Status::kSuccess) {
            ASSERT_EQ(result, Z_DATA_ERROR);
        }
    }
}

/// Several engines at once, each with its own guest.
TEST(Property, Reentrant) {
    auto seed = seeded(2);
    const Bytes data = text_like(seed, 4096);
    const Bytes expected = compress_fixed(data);
    std::vector<std::thread> engines;
    std::array<unsigned, 4> wrong{};
    for (unsigned engine = 0; engine < wrong.size(); ++engine) {
        engines.emplace_back([&, engine] {
            for (unsigned round = 0; round < 50; ++round) {
                const Bytes stream = compress_fixed(data);
                GuestMemory memory;
                auto& source = memory.map(stream);
                auto& destination = memory.map(data.size());
                const Outcome outcome =
                    execute(decompress_descriptor(source, destination), memory, {});
                const bool good = stream == expected && outcome.status() == Status::kSuccess &&
                                  destination.bytes == data;
                wrong[engine] += good ? 0U : 1U;
            }
        });
    }
    for (auto& engine : engines) {
        engine.join();
    }
    EXPECT_EQ(wrong, (std::array<unsigned, 4>{}));
}

}  // namespace
}  // namespace iaa::device::test
