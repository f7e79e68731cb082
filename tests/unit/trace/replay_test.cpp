// SPDX-License-Identifier: GPL-2.0
#include <functional>
#include <sstream>

#include "device/trace/format.h"
#include "unit/trace/session.h"

namespace iaa::device::test {
namespace {

TEST(Replay, ARecordedSessionHasNoDifferences) {
    const TemporaryDirectory directory;
    record_session(directory / "trace", 3000);
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 0);
    EXPECT_EQ(out.str(),
              "3000 records replayed (60 with an injected fault), 0 differences in 0 of them\n");
}

TEST(Replay, AnEmptyTrace) {
    const TemporaryDirectory directory;
    record_session(directory / "trace", 0);
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 0);
}

/// Large buffers, as large as a work queue takes.
TEST(Replay, TwoMegabytes) {
    const TemporaryDirectory directory;
    auto random = seeded(1);
    GuestMemory guest;
    auto& source = guest.map(text_like(random, 1U << 21));
    auto& destination = guest.map(std::size_t{1} << 21);
    auto& aecs = guest.map(image_of(fixed_aecs()));
    TraceMemory memory(guest);
    const Descriptor d = compress_descriptor(source, destination, aecs);
    const Outcome outcome = execute(d, memory, {});
    ASSERT_EQ(outcome.status(), Status::kSuccess) << outcome.rule;
    {
        TraceWriter writer(directory / "trace");
        ASSERT_TRUE(writer.append(memory.record(d, {}, outcome, 0, false)));
    }
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 0) << out.str();
}

/// One record of a COMPRESS with write-back of its AECS.
TraceRecord compression() {
    GuestMemory guest;
    auto& source = guest.map(bytes_of("what the record is about, about, about"));
    auto& destination = guest.map(200);
    Bytes areas = image_of(fixed_aecs());
    areas.resize(2 * kCompressAecsSize);
    auto& aecs = guest.map(areas);
    Descriptor d = compress_descriptor(source, destination, aecs);
    set_flags(d, op_flag::kWriteAecs);
    TraceMemory memory(guest);
    const Outcome outcome = execute(d, memory, {});
    EXPECT_EQ(outcome.status(), Status::kSuccess);
    return memory.record(d, {}, outcome, 5, false);
}

TraceAccess& nth(TraceRecord& record, TraceAccess::Kind kind, std::size_t n = 0) {
    for (TraceAccess& access : record.accesses) {
        if (access.kind == kind && n-- == 0) {
            return access;
        }
    }
    ADD_FAILURE() << "no such access";
    return record.accesses.front();
}

struct Change {
    Change(std::string report, std::function<void(TraceRecord&)> change)
        : expected(std::move(report)), apply(std::move(change)) {}

    std::string expected;
    std::function<void(TraceRecord&)> apply;
};

TEST(Replay, ReportsWhatDiffers) {
    const std::vector<Change> changes{
        {"status: recorded 0xb, replayed 0x1",
         [](TraceRecord& r) { r.outcome.record.status = 0x0b; }},
        {"error_code: recorded 0x19, replayed 0x0",
         [](TraceRecord& r) { r.outcome.record.error_code = 0x19; }},
        {"output_size: ", [](TraceRecord& r) { ++r.outcome.record.output_size; }},
        {"output_bits: ", [](TraceRecord& r) { r.outcome.record.output_bits ^= 1; }},
        {"crc: ", [](TraceRecord& r) { r.outcome.record.crc ^= 1; }},
        {"xor_checksum: ", [](TraceRecord& r) { r.outcome.record.xor_checksum ^= 1; }},
        {"bytes_completed: ", [](TraceRecord& r) { r.outcome.record.bytes_completed = 0; }},
        {"fault_addr: ", [](TraceRecord& r) { r.outcome.record.fault_addr = 4096; }},
        {"fault_info: ", [](TraceRecord& r) { r.outcome.record.fault_info = 1; }},
        {"invalid_flags: ", [](TraceRecord& r) { r.outcome.record.invalid_flags = 1; }},
        {"min: ", [](TraceRecord& r) { r.outcome.record.min_first = 1; }},
        {"max: ", [](TraceRecord& r) { r.outcome.record.max_last = 1; }},
        {"sum: ", [](TraceRecord& r) { r.outcome.record.sum = 1; }},
        {"reserved, byte 3: ", [](TraceRecord& r) { r.outcome.record.reserved0 = 1; }},
        {"reserved, byte 20: ", [](TraceRecord& r) { r.outcome.record.reserved1 = 1; }},
        {"reserved, byte 29: ", [](TraceRecord& r) { r.outcome.record.reserved2 = 1; }},
        {"reserved, byte 48: ", [](TraceRecord& r) { r.outcome.record.reserved3[0] = 1; }},
        {"reserved, byte 56: ", [](TraceRecord& r) { r.outcome.record.reserved3[1] = 1; }},
        {"rule: recorded \"other\", replayed \"\"",
         [](TraceRecord& r) { r.outcome.rule = "other"; }},
        {"byte 1 recorded 0x00, replayed ",
         [](TraceRecord& r) {
             nth(r, TraceAccess::Kind::kWrite).bytes[1] = std::byte{0};
             nth(r, TraceAccess::Kind::kWrite).bytes[2] = std::byte{0};
         }},
        {"write 0: recorded ", [](TraceRecord& r) { ++nth(r, TraceAccess::Kind::kWrite).iova; }},
        {"writes: recorded 1, replayed 2", [](TraceRecord& r) { r.accesses.pop_back(); }},
        {"crc: ",
         [](TraceRecord& r) { nth(r, TraceAccess::Kind::kRead).bytes[0] ^= std::byte{1}; }},
        // Memory that was there and is not any more, and the other way round.
        {"status: recorded 0x1, replayed 0x3",
         [](TraceRecord& r) { nth(r, TraceAccess::Kind::kMappedForRead, 1).ok = false; }},
        {"status: recorded 0x1, replayed 0x83",
         [](TraceRecord& r) { nth(r, TraceAccess::Kind::kMappedForWrite).ok = false; }},
        {"status: recorded 0x1, replayed 0x3",
         [](TraceRecord& r) {
             std::erase_if(r.accesses,
                           [](const TraceAccess& a) { return a.kind == TraceAccess::Kind::kRead; });
         }},
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const TemporaryDirectory directory;
        TraceRecord record = compression();
        changes[i].apply(record);
        {
            TraceWriter writer(directory / "trace");
            auto random = seeded(i);
            ASSERT_TRUE(writer.append(record_one(random)));
            ASSERT_TRUE(writer.append(record));
        }
        std::ostringstream out;
        EXPECT_EQ(replay(directory / "trace", out), 1) << i;
        EXPECT_NE(out.str().find("record 1 (opcode 0x43, work queue 5): "), std::string::npos)
            << out.str();
        EXPECT_NE(out.str().find(changes[i].expected), std::string::npos)
            << changes[i].expected << " in\n"
            << out.str();
        EXPECT_EQ(out.str().find("record 0"), std::string::npos) << out.str();
    }
}

/// A fault that the control socket injected is not execute()'s: the record has what it was before.
TEST(Replay, InjectedFaultsAreNamed) {
    const TemporaryDirectory directory;
    TraceRecord record = compression();
    record.fault_injected = true;
    TraceRecord wrong = record;
    wrong.outcome.record.crc ^= 1;
    {
        TraceWriter writer(directory / "trace");
        ASSERT_TRUE(writer.append(record));
        ASSERT_TRUE(writer.append(wrong));
    }
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 1);
    EXPECT_NE(out.str().find("record 1 (opcode 0x43, work queue 5, fault injected afterwards): "
                             "crc: "),
              std::string::npos)
        << out.str();
    EXPECT_NE(out.str().find("2 records replayed (2 with an injected fault), 1 differences in 1 of "
                             "them"),
              std::string::npos);
}

/// What was not carried out then cannot be now: it is counted, and is no difference.
TEST(Replay, WhatWasNotExecutedIsCounted) {
    const TemporaryDirectory directory;
    TraceRecord refused = compression();
    refused.executed = false;
    refused.accesses.clear();
    refused.outcome.record.status = 0x19;
    {
        TraceWriter writer(directory / "trace");
        ASSERT_TRUE(writer.append(refused));
        ASSERT_TRUE(writer.append(compression()));
    }
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 0);
    EXPECT_EQ(out.str(),
              "note: 1 records are of descriptors that were not carried out\n"
              "1 records replayed (0 with an injected fault), 0 differences in 0 of them\n");
}

/// Memory that the guest took away in the middle of an operation fails at the same place again.
TEST(Replay, WritesThatFailed) {
    TraceRecord record = compression();
    TraceAccess& write = nth(record, TraceAccess::Kind::kWrite);
    write.ok = false;
    write.bytes.clear();
    record.accesses.erase(record.accesses.begin() + (&write - record.accesses.data()) + 1,
                          record.accesses.end());
    record.outcome = {};
    record.outcome.record.status = 0x83;
    record.outcome.record.fault_addr = write.iova & ~0xfffULL;
    const TemporaryDirectory directory;
    {
        TraceWriter writer(directory / "trace");
        ASSERT_TRUE(writer.append(record));
    }
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 1);
    // Only the text of the rule, which the test did not make up, differs.
    EXPECT_EQ(out.str().find("status"), std::string::npos) << out.str();
    EXPECT_EQ(out.str().find("fault_addr"), std::string::npos) << out.str();
    EXPECT_NE(out.str().find("rule: "), std::string::npos) << out.str();
}

/// Files whose checksums are right, and whose contents are not: made by somebody hostile.
TEST(Replay, HostileRecords) {
    const std::vector<std::function<void(TraceRecord&)>> harms{
        [](TraceRecord& r) {
            r.descriptor.src1_size = 0xffffffff;
            r.capabilities.max_transfer_size = ~0ULL;
        },
        [](TraceRecord& r) {
            r.descriptor.max_dst_size = 0xf0000000;
            r.capabilities.max_transfer_size = 1ULL << 32;
        },
        [](TraceRecord& r) { r.accesses[0].kind = static_cast<TraceAccess::Kind>(7); },
        [](TraceRecord& r) { nth(r, TraceAccess::Kind::kRead).size = ~0ULL; },
        [](TraceRecord& r) { nth(r, TraceAccess::Kind::kRead).size += 1; },
        [](TraceRecord& r) { nth(r, TraceAccess::Kind::kWrite, 1).size -= 1; },
    };
    for (std::size_t i = 0; i < harms.size(); ++i) {
        const TemporaryDirectory directory;
        TraceRecord record = compression();
        harms[i](record);
        {
            TraceWriter writer(directory / "trace");
            ASSERT_TRUE(writer.append(record));
        }
        std::ostringstream out;
        EXPECT_EQ(replay(directory / "trace", out), 2) << i << out.str();
        EXPECT_NE(out.str().find("at offset "), std::string::npos) << out.str();
    }

    // Addresses at the end of everything: a difference, no crash.
    const TemporaryDirectory directory;
    TraceRecord record = compression();
    for (TraceAccess& access : record.accesses) {
        access.iova = ~0ULL - 3;
    }
    {
        TraceWriter writer(directory / "trace");
        ASSERT_TRUE(writer.append(record));
    }
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 1);
}

/// Records and whole bodies of random bytes behind right checksums.
TEST(Replay, RandomBodies) {
    auto random = seeded(12);
    const TraceRecord base = compression();
    const auto encoded = trace_format::make_record(base);
    const std::span<const std::byte> body =
        std::span(encoded).subspan(trace_format::kRecordHeaderSize);
    unsigned parsed = 0;
    for (unsigned round = 0; round < 20000; ++round) {
        std::vector<std::byte> changed(body.begin(), body.end());
        for (unsigned change = 0; change <= random() % 4; ++change) {
            changed[random() % (round % 2 == 0 ? 300 : changed.size())] =
                static_cast<std::byte>(random());
        }
        if (round % 5 == 0) {
            changed.resize(trace_format::kBodyFixedSize + random() % 100);
        }
        const auto header =
            trace_format::RecordHeader{.body_size = static_cast<std::uint32_t>(changed.size()),
                                       .body_crc = trace_format::checksum(changed)};
        try {
            (void)trace_format::parse_body(changed, header, 48);
            ++parsed;
        } catch (const TraceError& error) {
            EXPECT_GE(error.offset(), 48U);
            EXPECT_LE(error.offset(), 48 + changed.size());
        }
    }
    EXPECT_GT(parsed, 100U);
}

}  // namespace
}  // namespace iaa::device::test
