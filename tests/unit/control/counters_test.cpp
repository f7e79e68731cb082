// SPDX-License-Identifier: GPL-2.0
#include "device/control/counters.h"

#include <gtest/gtest.h>

#include <thread>

namespace iaa::test {
namespace {

using device::control::Counters;

TEST(Counters, CountByQueueOpcodeAndStatus) {
    Counters counters(4);
    counters.accepted(1);
    counters.accepted(1);
    counters.accepted(2);
    counters.dropped(3);
    counters.completed(1, 0x43, 1, 4096, 1000);
    counters.completed(2, 0x42, 0x0a, 1000, 0);
    counters.interrupt(1);
    counters.fault(2);
    counters.command(10);
    counters.command(10);
    counters.other_interrupt();

    const auto now = counters.snapshot();
    EXPECT_EQ(now.total.accepted, 3U);
    EXPECT_EQ(now.total.completed, 2U);
    EXPECT_EQ(now.total.dropped, 1U);
    EXPECT_EQ(now.total.bytes_in, 5096U);
    EXPECT_EQ(now.total.bytes_out, 1000U);
    EXPECT_EQ(now.total.interrupts, 1U);
    EXPECT_EQ(now.total.faults, 1U);
    ASSERT_EQ(now.per_wq.size(), 4U);
    EXPECT_EQ(now.per_wq[1].accepted, 2U);
    EXPECT_EQ(now.per_wq[0], device::control::CounterValues{});
    EXPECT_EQ(now.by_opcode, (std::map<std::uint8_t, std::uint64_t>{{0x42, 1}, {0x43, 1}}));
    EXPECT_EQ(now.by_status, (std::map<std::uint8_t, std::uint64_t>{{1, 1}, {0x0a, 1}}));
    EXPECT_EQ(now.by_command, (std::map<std::uint8_t, std::uint64_t>{{10, 2}}));
    EXPECT_EQ(now.commands, 2U);
    EXPECT_EQ(now.other_interrupts, 1U);

    counters.reset();
    const auto after = counters.snapshot();
    EXPECT_EQ(after.total, device::control::CounterValues{});
    EXPECT_TRUE(after.by_opcode.empty() && after.by_status.empty() && after.by_command.empty());
    EXPECT_EQ(after.other_interrupts, 0U);
}

TEST(Counters, ByName) {
    Counters counters(3);
    counters.completed(2, 0x43, 1, 10, 5);
    counters.command(5);
    EXPECT_EQ(counters.value("completed"), 1U);
    EXPECT_EQ(counters.value("bytes_in"), 10U);
    EXPECT_EQ(counters.value("wq.2.bytes_out"), 5U);
    EXPECT_EQ(counters.value("wq.0x2.completed"), 1U);
    EXPECT_EQ(counters.value("wq.1.completed"), 0U);
    EXPECT_EQ(counters.value("opcode.0x43"), 1U);
    EXPECT_EQ(counters.value("opcode.67"), 1U);
    EXPECT_EQ(counters.value("status.1"), 1U);
    EXPECT_EQ(counters.value("status.2"), 0U);
    EXPECT_EQ(counters.value("command.5"), 1U);
    EXPECT_EQ(counters.value("commands"), 1U);
    EXPECT_EQ(counters.value("other_interrupts"), 0U);
    for (const char* name :
         {"", "nonsense", "wq", "wq.", "wq.3.completed", "wq.1", "wq.1.", "wq.x.completed",
          "wq.1.nonsense", "opcode.", "opcode.256", "opcode.0x", "opcode.-1",
          "opcode.99999999999999999999999", "status.1 ", ".", "..", "opcode.1.2"})
        EXPECT_FALSE(counters.value(name)) << name;
}

TEST(Counters, WhatDoesNotCompleteAfterAllIsTakenBack) {
    Counters counters(2);
    counters.completed(1, 0x43, 1, 4096, 1000);
    counters.completed(1, 0x43, 1, 10, 5);
    counters.not_completed(1, 0x43, 1, 4096, 1000);
    EXPECT_EQ(counters.value("wq.1.completed"), 1U);
    EXPECT_EQ(counters.value("bytes_in"), 10U);
    EXPECT_EQ(counters.value("bytes_out"), 5U);
    EXPECT_EQ(counters.value("opcode.0x43"), 1U);
    EXPECT_EQ(counters.value("status.1"), 1U);
    counters.reset();
    counters.not_completed(1, 0x43, 1, 10, 5);  // counted before the reset
    EXPECT_EQ(counters.snapshot().total, device::control::CounterValues{});
}

TEST(Counters, FromManyThreads) {
    Counters counters(2);
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                for (int n = 0; n < 10000; ++n) counters.completed(i % 2, 0x42, 1, 2, 3);
            });
        EXPECT_LE(counters.snapshot().total.completed, 40000U);
    }
    EXPECT_EQ(counters.snapshot().total.bytes_out, 120000U);
}

TEST(Counters, AQueueThatIsNotThereDoesNoHarm) {
    Counters counters(2);
    counters.accepted(999);
    EXPECT_EQ(counters.snapshot().total.accepted, 1U);
    EXPECT_EQ(Counters(0).snapshot().per_wq.size(), 1U);
    EXPECT_EQ(Counters(100000).snapshot().per_wq.size(), Counters::kMaxWqs);
}

}  // namespace
}  // namespace iaa::test
