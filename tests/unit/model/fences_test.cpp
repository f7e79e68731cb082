// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "device_fixture.h"

namespace iaa::test {
namespace {

using reg::Command;

/// After each of these nothing that was in flight may touch guest memory.
enum class Taking : std::uint8_t {
    kAbortWq,
    kAbortAll,
    kResetWq,
    kResetDevice,
    kFlr,
    kDeviceReset,
    kBusMasterOff,
    kPowerOff,
    kDetach
};

class FencesTest : public DeviceTest, public ::testing::WithParamInterface<Taking> {
  protected:
    void take_away(Taking how) {
        switch (how) {
            case Taking::kAbortWq:
                ASSERT_EQ(command(Command::kAbortWq, 1), 0U);
                return;
            case Taking::kAbortAll:
                ASSERT_EQ(command(Command::kAbortAll), 0U);
                return;
            case Taking::kResetWq:
                ASSERT_EQ(command(Command::kResetWq, 1), 0U);
                return;
            case Taking::kResetDevice:
                ASSERT_EQ(command(Command::kResetDevice), 0U);
                return;
            case Taking::kFlr:
                config_write(0x48, 2, 0x8000);
                return;
            case Taking::kDeviceReset:
                device_->reset();
                return;
            case Taking::kBusMasterOff:
                config_write(0x04, 2, 0x2);
                return;
            case Taking::kPowerOff:
                config_write(0x94, 2, 0x3);
                return;
            case Taking::kDetach:
                device_->detach();
                return;
        }
    }
};

TEST_P(FencesTest, NothingInFlightTouchesMemoryAfterwards) {
    bring_up({{.wq = 0, .size = 64}});
    operation_.hold();
    for (std::uint32_t n = 0; n < 20; ++n) {
        submit(0, descriptor(n));
    }
    ASSERT_TRUE(operation_.wait_begun(8));  // eight in engines, twelve waiting
    take_away(GetParam());
    const std::uint64_t accesses = memory().accesses();
    operation_.let_go();
    ASSERT_TRUE(operation_.wait_ended(8));
    ASSERT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    EXPECT_EQ(memory().accesses(), accesses);
    EXPECT_EQ(operation_.begun(), 8U);
    for (std::uint32_t n = 0; n < 20; ++n) {
        EXPECT_EQ(record(n).status, 0) << n;
        EXPECT_EQ(memory().peek(kResults + n, 1)[0], std::byte{0}) << n;
    }
    EXPECT_EQ(device_->counters().snapshot().total.completed, 0U);
    if (GetParam() == Taking::kDetach) {
        device_->attach(*host_);
    }
}

TEST_P(FencesTest, AnAccessUnderWayIsWaitedFor) {
    bring_up({{.wq = 0, .size = 64}});
    std::atomic<bool> inside{false};
    std::atomic<bool> fenced{false};
    std::atomic<bool> late{false};
    memory().on_access = [&] {
        if (!inside.exchange(true)) {
            // Leaves only once the device waits for it.
            EXPECT_TRUE(wait_until([this] { return host_->pumps() > 0; }));
            late = fenced.load();
        }
    };
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([&] { return inside.load(); }));
    take_away(GetParam());
    fenced = true;
    EXPECT_FALSE(late);
    EXPECT_GE(host_->pumps(), 1U);
    const std::uint64_t accesses = memory().accesses();
    ASSERT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    EXPECT_EQ(memory().accesses(), accesses);
    EXPECT_EQ(record(0).status, 0);
    memory().on_access = nullptr;
    if (GetParam() == Taking::kDetach) {
        device_->attach(*host_);
    }
}

TEST_P(FencesTest, TheDeviceWorksAgainAfterwards) {
    for (std::uint32_t round = 0; round < 20; ++round) {
        ASSERT_NO_FATAL_FAILURE(bring_up({{.wq = 0, .size = 64}}));
        for (std::uint32_t n = 0; n < 30; ++n) {
            submit(0, descriptor(n));
        }
        take_away(GetParam());
        const std::uint64_t accesses = memory().accesses();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(memory().accesses(), accesses);
        if (GetParam() == Taking::kDetach) {
            device_->attach(*host_);
        }
        config_write(0x94, 2, 0);
        power_up();
        ASSERT_EQ(command(Command::kResetDevice), 0U);
        memory().fill(kRecords, 30 * 64, std::byte{0});
    }
    bring_up({{.wq = 0, .size = 64}});
    submit(0, descriptor(0));
    EXPECT_TRUE(wait_record(0));
}

std::string taking_name(const ::testing::TestParamInfo<Taking>& parameter) {
    static const std::array<const char*, 9> kNames{"AbortWq",      "AbortAll", "ResetWq",
                                                   "ResetDevice",  "Flr",      "DeviceReset",
                                                   "BusMasterOff", "PowerOff", "Detach"};
    return kNames.at(static_cast<std::size_t>(parameter.param));
}

INSTANTIATE_TEST_SUITE_P(EveryWay, FencesTest,
                         ::testing::Values(Taking::kAbortWq, Taking::kAbortAll, Taking::kResetWq,
                                           Taking::kResetDevice, Taking::kFlr, Taking::kDeviceReset,
                                           Taking::kBusMasterOff, Taking::kPowerOff,
                                           Taking::kDetach),
                         taking_name);

class FenceTest : public DeviceTest {};

TEST_F(FenceTest, AbortLeavesTheQueueEnabledAndEmpty) {
    bring_up({{.wq = 0, .size = 16}, {.wq = 1, .size = 16}});
    operation_.hold();
    for (std::uint32_t n = 0; n < 12; ++n) {
        submit(0, descriptor(n));
    }
    submit(1, descriptor(20));
    EXPECT_EQ(command(Command::kAbortWq, 1), 0U);
    EXPECT_EQ(occupancy(0), 0U);
    EXPECT_EQ(occupancy(1), 1U);
    operation_.let_go();
    submit(0, descriptor(12));
    EXPECT_TRUE(wait_record(12));
    EXPECT_TRUE(wait_record(20));  // the other WQ's work is not touched
    EXPECT_EQ(record(0).status, 0);
}

TEST_F(FenceTest, AClientThatHoldsAnAccessUpIsSentAway) {
    fence_limit_ = std::chrono::milliseconds(20);
    make(device::Profile{});
    bring_up({{}});
    std::atomic<bool> inside{false};
    memory().on_access = [&] {
        inside = true;
        EXPECT_TRUE(wait_until([this] { return host_->disconnects() > 0; }));
    };
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([&] { return inside.load(); }));
    EXPECT_EQ(command(Command::kAbortWq, 1), 0U);
    EXPECT_EQ(host_->disconnects(), 1U);
    const std::uint64_t accesses = memory().accesses();
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    EXPECT_EQ(memory().accesses(), accesses);
    memory().on_access = nullptr;
}

TEST(GatedMemory, ALongAccessEndsAtTheNextPiece) {
    constexpr std::size_t kPiece = device::GatedMemory::kPiece;
    FakeMemory memory(10 * kPiece);
    device::AccessGate gate;
    device::GatedMemory gated(memory, gate);
    std::vector<std::byte> buffer(8 * kPiece + 1, std::byte{1});
    EXPECT_TRUE(gated.write(7, buffer));
    std::ranges::fill(buffer, std::byte{0});
    EXPECT_TRUE(gated.read(7, buffer));
    EXPECT_EQ(std::ranges::count(buffer, std::byte{1}), 8 * kPiece + 1);
    EXPECT_EQ(memory.peek(0, 8)[6], std::byte{0});
    EXPECT_EQ(memory.accesses(), 18U);
    // Where the end of the range is not mapped, nothing is written.
    EXPECT_FALSE(gated.write(2 * kPiece, buffer));
    EXPECT_EQ(memory.accesses(), 18U);
    for (const bool write : {false, true}) {
        device::AccessGate closing;
        device::GatedMemory closed(memory, closing);
        const std::uint64_t before = memory.accesses();
        memory.on_access = [&] {
            EXPECT_FALSE(closing.empty());
            if (memory.accesses() == before + 2) {
                closing.shut();
            }
        };
        EXPECT_FALSE(write ? closed.write(0, buffer) : closed.read(0, buffer));
        EXPECT_EQ(memory.accesses(), before + 3);
        EXPECT_TRUE(closing.empty());
        memory.on_access = nullptr;
    }
}

TEST_F(FenceTest, ResetEndsADrainThatWaits) {
    bring_up({{.wq = 0, .size = 16}});
    operation_.hold();
    submit(0, descriptor(0));
    ASSERT_TRUE(operation_.wait_begun(1));
    start_command(Command::kDrainWq, 1, true);
    EXPECT_TRUE(command_active());
    config_write(0x48, 2, 0x8000);  // FLR: the only thing that helps now
    power_up();
    EXPECT_FALSE(command_active());
    EXPECT_EQ(host_->interrupts(0), 0U);
    operation_.let_go();
}

TEST_F(FenceTest, WhatWaitsGoesOnWhenBusMasteringReturns) {
    power_up();
    setup_wq({.wq = 0, .size = 16});
    setup_group(0, 1, 1);  // one engine
    ASSERT_EQ(command(Command::kEnableDevice), 0U);
    ASSERT_EQ(command(Command::kEnableWq, 0), 0U);
    operation_.hold();
    submit(0, descriptor(0));
    submit(0, descriptor(1));
    ASSERT_TRUE(operation_.wait_begun(1));
    config_write(0x04, 2, 0x2);
    operation_.let_go();
    EXPECT_EQ(broken("bus-master-off"), 1U);
    submit(0, descriptor(2));
    start_command(Command::kDrainWq, 1);
    EXPECT_TRUE(command_active());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(operation_.begun(), 1U);
    config_write(0x04, 2, 0x6);
    EXPECT_TRUE(wait_command());
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(record(1).status, 1);
    EXPECT_EQ(record(2).status, 1);
}

TEST_F(FenceTest, NothingHappensBetweenClients) {
    bring_up({{.wq = 0, .size = 16}});
    operation_.hold();
    submit(0, descriptor(0));
    ASSERT_TRUE(operation_.wait_begun(1));
    start_command(Command::kDrainWq, 1, true);
    device_->detach();
    EXPECT_FALSE(device_->state().attached);
    operation_.let_go();
    device_->halt("between clients",
                  device::control::HaltExit::kReset);  // must not reach for a host
    EXPECT_EQ(host_->interrupts(0), 0U);
    FakeHost next(kMemorySize);
    device_->attach(next);
    EXPECT_EQ(device_->state().state, "halt");
    device_->detach();
    device_->attach(*host_);
}

}  // namespace
}  // namespace iaa::test
