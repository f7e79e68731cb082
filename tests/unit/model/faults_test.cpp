// SPDX-License-Identifier: GPL-2.0
#include "device/control/faults.h"

#include <gtest/gtest.h>

#include <atomic>

#include "device/ops/codes.h"
#include "device_fixture.h"

namespace iaa::test {
namespace {

using device::control::DrainFault;
using device::control::FaultActions;
using device::control::FaultRule;
using device::control::InterruptFault;
using reg::Command;

class FaultsTest : public DeviceTest {
  protected:
    void once(const std::function<void(FaultActions&)>& set) {
        FaultRule rule;
        set(rule.actions);
        rule.trigger.count = 1;
        device_->faults().add(rule);
    }
    Descriptor asking(std::uint32_t number, std::uint32_t handle) {
        Descriptor result = descriptor(number);
        result.flags_opcode |= device::op_flag::kRequestInterrupt;
        result.int_handle = static_cast<std::uint16_t>(handle);
        return result;
    }
};

TEST_F(FaultsTest, DroppedAtThePortal) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.drop = true; });
    submit(0, descriptor(0));
    submit(0, descriptor(1));
    ASSERT_TRUE(wait_record(1));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(operation_.begun(), 1U);
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(read64(reg::kSwErr), 0U);
    const auto counters = device_->counters().snapshot();
    EXPECT_EQ(counters.total.dropped, 1U);
    EXPECT_EQ(counters.total.faults, 1U);
}

TEST_F(FaultsTest, AnotherStatusInsteadOfTheWork) {
    bring_up({{}});
    once([](FaultActions& actions) {
        actions.status = device::control::StatusFault{.status = 0x24, .error_code = 7};
    });
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_record(0));
    EXPECT_EQ(record(0).status, 0x24);
    EXPECT_EQ(record(0).error_code, 7);
    EXPECT_EQ(operation_.begun(), 0U);
    once([](FaultActions& actions) {
        actions.status =
            device::control::StatusFault{.status = 0x0a, .error_code = 1, .execute = true};
    });
    submit(0, descriptor(1));
    ASSERT_TRUE(wait_record(1));
    EXPECT_EQ(record(1).status, 0x0a);
    EXPECT_EQ(operation_.begun(), 1U);
}

TEST_F(FaultsTest, ALostDescriptorKeepsItsEntryAndNoEngine) {
    bring_up({{.wq = 0, .size = 2}});
    once([](FaultActions& actions) { actions.never_complete = true; });
    submit(0, descriptor(0));
    for (std::uint32_t n = 1; n < 30; ++n) {
        submit(0, descriptor(n));
        ASSERT_TRUE(wait_record(n));
    }
    EXPECT_EQ(record(0).status, 0);
    EXPECT_TRUE(wait_until([this] { return occupancy(0) == 1; }));
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
}

TEST_F(FaultsTest, ADrainForgetsTheLost) {
    bring_up({{.wq = 0, .size = 4}});
    once([](FaultActions& actions) { actions.never_complete = true; });
    submit(0, descriptor(0));
    EXPECT_EQ(command(Command::kDrainWq, 1), 0U);
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(command(Command::kResetWq, 1), 0U);
    EXPECT_EQ(occupancy(0), 0U);
}

TEST_F(FaultsTest, ADrainCompletesTheLostWhereAsked) {
    bring_up({{.wq = 0, .size = 4}});
    once([](FaultActions& actions) {
        actions.never_complete = true;
        actions.on_drain = DrainFault::kCompletes;
    });
    const std::uint32_t handle = request_handle(1);
    submit(0, asking(0, handle));
    ASSERT_TRUE(wait_until([this] { return device_->counters().snapshot().total.faults == 1; }));
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(command(Command::kDrainWq, 1), 0U);
    EXPECT_EQ(record(0).status, 1);
    EXPECT_EQ(host_->interrupts(1), 1U);
    EXPECT_EQ(occupancy(0), 0U);
}

TEST_F(FaultsTest, ADrainWaitsForTheLostWhereAskedAndAResetEndsIt) {
    for (const bool flr : {true, false}) {
        bring_up({{.wq = 0, .size = 4}});
        once([](FaultActions& actions) {
            actions.never_complete = true;
            actions.on_drain = DrainFault::kWaits;
        });
        submit(0, descriptor(0));
        start_command(Command::kDrainWq, 1, true);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        EXPECT_TRUE(command_active());
        if (flr) {
            config_write(0x48, 2, 0x8000);
        } else {
            device_->reset();
        }
        power_up();
        EXPECT_FALSE(command_active());
        EXPECT_EQ(record(0).status, 0);
    }
}

TEST_F(FaultsTest, DisableAndResetGoPastTheLost) {
    bring_up({{.wq = 0, .size = 4}});
    once([](FaultActions& actions) { actions.never_complete = true; });
    submit(0, descriptor(0));
    EXPECT_EQ(command(Command::kDisableWq, 1), 0U);
    EXPECT_EQ(command(Command::kEnableWq, 0), 0U);
    EXPECT_EQ(occupancy(0), 0U);
    once([](FaultActions& actions) {
        actions.never_complete = true;
        actions.on_drain = DrainFault::kWaits;
    });
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([this] { return device_->counters().snapshot().total.faults == 2; }));
    EXPECT_EQ(command(Command::kAbortWq, 1), 0U);
    EXPECT_EQ(occupancy(0), 0U);
    submit(0, descriptor(1));
    EXPECT_TRUE(wait_record(1));
    EXPECT_EQ(command(Command::kResetDevice), 0U);
}

TEST_F(FaultsTest, InterruptsLostAndDoubled) {
    bring_up({{}});
    const std::uint32_t handle = request_handle(2);
    once([](FaultActions& actions) { actions.interrupt = InterruptFault::kLost; });
    submit(0, asking(0, handle));
    ASSERT_TRUE(wait_record(0));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(host_->interrupts(2), 0U);
    once([](FaultActions& actions) { actions.interrupt = InterruptFault::kDoubled; });
    submit(0, asking(1, handle));
    EXPECT_TRUE(host_->wait_interrupts(2, 2));
}

TEST_F(FaultsTest, ADelayHoldsOneEngine) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.delay = std::chrono::milliseconds(80); });
    const auto start = std::chrono::steady_clock::now();
    submit(0, descriptor(0));
    submit(0, descriptor(1));
    ASSERT_TRUE(wait_record(1));
    ASSERT_TRUE(wait_record(0));
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(80));
}

TEST_F(FaultsTest, AResetDoesNotWaitForADelay) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.delay = std::chrono::minutes(10); });
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([this] { return device_->state().busy_engines == 1; }));
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
}

TEST_F(FaultsTest, TheLateRecordComesEvenAfterAReset) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.late = std::chrono::milliseconds(60); });
    submit(0, descriptor(0));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    EXPECT_TRUE(wait_record(0));
}

TEST_F(FaultsTest, TheLateRecordEndsWithTheConnection) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.late = std::chrono::milliseconds(40); });
    submit(0, descriptor(0));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    device_->detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(record(0).status, 0);
    device_->attach(*host_);
}

TEST_F(FaultsTest, TheRecordIsWrittenTwice) {
    bring_up({{}});
    once([](FaultActions& actions) {
        actions.complete_twice = true;
        actions.twice_gap = std::chrono::milliseconds(40);
    });
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_record(0));
    memory().fill(record_at(0), 64, std::byte{0});
    EXPECT_TRUE(wait_record(0));
}

TEST_F(FaultsTest, TheSecondRecordEndsWithItsQueue) {
    static constexpr std::chrono::milliseconds kGap{100};
    for (const auto code : {Command::kAbortWq, Command::kResetWq, Command::kDrainWq,
                            Command::kDisableWq, Command::kResetDevice}) {
        bring_up({{}});
        once([](FaultActions& actions) {
            actions.complete_twice = true;
            actions.twice_gap = kGap;
        });
        submit(0, descriptor(0));
        ASSERT_TRUE(wait_record(0));
        EXPECT_EQ(command(code, code == Command::kResetDevice ? 0 : 1), 0U);
        memory().fill(record_at(0), 64, std::byte{0});
        std::this_thread::sleep_for(2 * kGap);
        EXPECT_EQ(record(0).status, 0) << static_cast<unsigned>(code);
        EXPECT_EQ(command(Command::kResetDevice), 0U);
    }
}

TEST_F(FaultsTest, ASecondRecordUnderWayIsWaitedFor) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.complete_twice = true; });
    std::atomic<int> writes{0};
    std::atomic<bool> fenced{false};
    memory().on_write = [&](std::uint64_t iova) {
        if (iova == record_at(0) && ++writes == 2) {
            EXPECT_TRUE(wait_until([this] { return host_->pumps() > 0; }));
            EXPECT_FALSE(fenced);
        }
    };
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([&] { return writes == 2; }));
    EXPECT_EQ(command(Command::kResetWq, 1), 0U);
    fenced = true;
    EXPECT_GE(host_->pumps(), 1U);
    memory().on_write = nullptr;
}

TEST_F(FaultsTest, ADrainWaitsForASecondRecordUnderWay) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.complete_twice = true; });
    std::atomic<int> writes{0};
    std::atomic<bool> go{false};
    memory().on_write = [&](std::uint64_t iova) {
        if (iova == record_at(0) && ++writes == 2) {
            EXPECT_TRUE(wait_until([&] { return go.load(); }));
        }
    };
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([&] { return writes == 2; }));
    start_command(Command::kDrainWq, 1);
    EXPECT_TRUE(command_active());
    go = true;
    EXPECT_TRUE(wait_command());
}

TEST_F(FaultsTest, TheLateRecordIsCountedWhenItComes) {
    bring_up({{.wq = 0, .size = 16}});
    once([](FaultActions& actions) { actions.late = std::chrono::hours(1); });
    submit(0, descriptor(0));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(device_->counters().snapshot().total.completed, 0U);
    once([](FaultActions& actions) { actions.late = std::chrono::milliseconds(1); });
    submit(0, descriptor(1));
    EXPECT_TRUE(wait_record(1));
    EXPECT_EQ(device_->counters().snapshot().total.completed, 1U);
}

TEST_F(FaultsTest, ADescriptorCanHaltTheDevice) {
    bring_up({{}});
    once([](FaultActions& actions) { actions.halt = true; });
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_until([this] { return (read32(reg::kGenSts) & 3) == 3; }));
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    bring_up({{}});
    submit(0, descriptor(1));
    EXPECT_TRUE(wait_record(1));
}

TEST_F(FaultsTest, FaultsWorkInline) {
    make(device::Profile{}, true);
    bring_up({{.wq = 0, .size = 4}});
    once([](FaultActions& actions) {
        actions.never_complete = true;
        actions.on_drain = DrainFault::kCompletes;
    });
    submit(0, descriptor(0));
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(command(Command::kDrainWq, 1), 0U);
    EXPECT_EQ(record(0).status, 1);
    once([](FaultActions& actions) { actions.halt = true; });
    submit(0, descriptor(1));
    EXPECT_EQ(read32(reg::kGenSts) & 3, 3U);
}

}  // namespace
}  // namespace iaa::test
