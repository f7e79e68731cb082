// SPDX-License-Identifier: GPL-2.0
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <sstream>
#include <thread>

#include "unit/trace/session.h"

namespace iaa::device::test {
namespace {

TEST(TraceFile, WhatIsWrittenIsRead) {
    const TemporaryDirectory directory;
    auto random = seeded(1);
    std::vector<TraceRecord> records;
    {
        TraceWriter writer(directory / "trace");
        for (unsigned i = 0; i < 200; ++i) {
            records.push_back(record_one(random, i, i % 2 == 0));
            records.back().executed = i % 3 != 0;
            if (i % 5 == 0) {
                records.back().completion.reset();
            } else if (i % 5 == 1) {
                records.back().completion->status = 0x24;
            }
            ASSERT_TRUE(writer.append(records.back()));
        }
    }
    TraceReader reader(directory / "trace");
    std::uint64_t last_time = 0;
    for (std::uint64_t i = 0; i < records.size(); ++i) {
        const auto record = reader.next();
        ASSERT_TRUE(record.has_value());
        EXPECT_EQ(record->number, i);
        EXPECT_GE(record->nanoseconds, last_time);
        last_time = record->nanoseconds;
        EXPECT_EQ(record->work_queue, i);
        EXPECT_EQ(record->fault_injected, i % 2 == 0);
        EXPECT_EQ(record->executed, records[i].executed);
        EXPECT_EQ(record->completion, records[i].completion);
        EXPECT_EQ(record->capabilities, records[i].capabilities);
        EXPECT_EQ(record->descriptor, records[i].descriptor);
        EXPECT_EQ(record->outcome.record, records[i].outcome.record);
        EXPECT_EQ(record->outcome.rule, records[i].outcome.rule);
        EXPECT_EQ(record->accesses, records[i].accesses);
    }
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_FALSE(reader.cut());
}

TEST(TraceFile, HeaderIsAsDocumented) {
    const TemporaryDirectory directory;
    record_session(directory / "trace", 1);
    const Bytes file = read_file(directory / "trace");
    ASSERT_GT(file.size(), 32U + 16U + 280U);
    EXPECT_EQ(std::string(file.begin(), file.begin() + 8), "IAATRACE");
    EXPECT_EQ(file[8], 2);
    EXPECT_EQ(file[12], 32);
    EXPECT_EQ(std::string(file.begin() + 32, file.begin() + 36), "IAAR");
}

TEST(TraceFile, CannotBeCreatedOrOpened) {
    const TemporaryDirectory directory;
    EXPECT_THROW(TraceWriter(directory / "no/such/directory"), std::system_error);
    EXPECT_THROW(TraceReader(directory / "missing"), std::system_error);
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "missing", out), 2);
    EXPECT_NE(out.str().find("missing"), std::string::npos);
}

/// What a record does not hold is not recorded in part.
TEST(TraceFile, RecordTooLarge) {
    const TemporaryDirectory directory;
    TraceWriter writer(directory / "trace");
    auto random = seeded(3);
    ASSERT_TRUE(writer.append(record_one(random)));
    TraceRecord large = record_one(random);
    large.accesses.push_back({.kind = TraceAccess::Kind::kWrite,
                              .ok = true,
                              .iova = 0,
                              .size = TraceWriter::kMaxBody,
                              .bytes = std::vector<std::byte>(TraceWriter::kMaxBody)});
    EXPECT_FALSE(writer.append(large));
    EXPECT_NE(writer.error(), "");
    EXPECT_FALSE(writer.append(record_one(random)));
    EXPECT_EQ(writer.records(), 1U);
    TraceReader reader(directory / "trace");
    EXPECT_TRUE(reader.next().has_value());
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_FALSE(reader.cut());
}

/// A full disk, as a limit on the file's size: the file ends with the last whole record.
TEST(TraceFile, NoRoomLeft) {
    const TemporaryDirectory directory;
    const auto path = directory / "trace";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        (void)std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{20000, 20000};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            ::_exit(3);
        }
        TraceWriter writer(path);
        auto random = seeded(3);
        unsigned written = 0;
        while (written < 1000 && writer.append(record_one(random))) {
            ++written;
        }
        const bool said = writer.error().find("cannot write record") != std::string::npos;
        ::_exit(written > 0 && written < 1000 && said && writer.records() == written ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    TraceReader reader(path);
    while (reader.next()) {
    }
    EXPECT_FALSE(reader.cut());
    EXPECT_LE(std::filesystem::file_size(path), 20000U);
}

/// Killed while it writes: every record but the last is whole, and that one is told apart.
TEST(TraceFile, SurvivesAKill) {
    const TemporaryDirectory directory;
    const auto path = directory / "trace";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        TraceWriter writer(path);
        auto random = seeded(4);
        while (writer.append(record_one(random))) {
        }
        ::_exit(1);
    }
    for (unsigned wait = 0; wait < 1000; ++wait) {
        std::error_code missing;
        if (std::filesystem::file_size(path, missing) > 200000 && !missing) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    TraceReader reader(path);
    std::uint64_t records = 0;
    while (reader.next()) {
        ++records;
    }
    EXPECT_GT(records, 10U);
    std::ostringstream out;
    EXPECT_EQ(replay(path, out), 0) << out.str();
}

TEST(TraceFile, EveryCutIsDetected) {
    const TemporaryDirectory directory;
    const auto path = directory / "trace";
    record_session(path, 4);
    std::vector<std::uint64_t> ends{32};
    TraceReader whole(path);
    while (whole.next()) {
        ends.push_back(whole.offset());
    }
    // Shorter and shorter; within the records' bytes not every one.
    const auto near_an_end = [&ends](std::uint64_t size) {
        return std::ranges::any_of(
            ends, [size](std::uint64_t end) { return size + 20 >= end && size <= end + 250; });
    };
    for (std::uint64_t size = ends.back(); size-- > 0;) {
        if (!near_an_end(size) && size > 32 && size % 41 != 0) {
            continue;
        }
        std::filesystem::resize_file(path, size);
        std::ostringstream out;
        const int result = replay(path, out);
        if (size < 32) {
            EXPECT_EQ(result, 2) << size;
            continue;
        }
        EXPECT_EQ(result, 0) << size << out.str();
        TraceReader reader(path);
        std::size_t records = 0;
        while (reader.next()) {
            ++records;
        }
        const bool boundary = std::ranges::find(ends, size) != ends.end();
        EXPECT_EQ(reader.cut(), !boundary) << size;
        EXPECT_EQ(
            records,
            static_cast<std::size_t>(std::ranges::upper_bound(ends, size) - ends.begin()) - 1);
        EXPECT_EQ(out.str().find("ends inside a record") != std::string::npos, !boundary);
    }
}

/// Any changed byte is an error that names an offset, never a crash and never unnoticed.
TEST(TraceFile, EveryChangedByteIsDetected) {
    const TemporaryDirectory directory;
    record_session(directory / "whole", 2);
    const Bytes file = read_file(directory / "whole");
    // Every byte of the headers, and many of what a record holds.
    for (std::size_t at = 0; at < file.size(); at += at < 400 ? 1 : 29) {
        Bytes changed = file;
        changed[at] ^= static_cast<std::uint8_t>(1U << at % 8);
        write_file(directory / "changed", changed);
        std::ostringstream out;
        EXPECT_EQ(replay(directory / "changed", out), 2) << at;
        EXPECT_NE(out.str().find("at offset "), std::string::npos) << out.str();
    }
}

TEST(TraceFile, ThreadsAppendWholeRecords) {
    const TemporaryDirectory directory;
    {
        TraceWriter writer(directory / "trace");
        std::vector<std::thread> engines;
        for (std::uint32_t engine = 0; engine < 4; ++engine) {
            engines.emplace_back([&writer, engine] {
                auto random = seeded(engine);
                for (unsigned i = 0; i < 100; ++i) {
                    EXPECT_TRUE(writer.append(record_one(random, engine)));
                }
            });
        }
        for (auto& engine : engines) {
            engine.join();
        }
        EXPECT_EQ(writer.records(), 400U);
    }
    TraceReader reader(directory / "trace");
    std::array<unsigned, 4> counts{};
    while (const auto record = reader.next()) {
        ++counts[record->work_queue];
    }
    EXPECT_EQ(counts, (std::array<unsigned, 4>{100, 100, 100, 100}));
    std::ostringstream out;
    EXPECT_EQ(replay(directory / "trace", out), 0) << out.str();
}

}  // namespace
}  // namespace iaa::device::test
