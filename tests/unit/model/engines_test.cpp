// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "device/ops/codes.h"
#include "device_fixture.h"

namespace iaa::test {
namespace {

using reg::Command;

constexpr std::uint32_t kFence = device::op_flag::kFence;
constexpr std::uint32_t kRequestInterrupt = device::op_flag::kRequestInterrupt;
constexpr std::uint32_t kRecordAddressValid = device::op_flag::kCompletionAddressValid;
constexpr std::uint32_t kRequestRecord = device::op_flag::kRequestCompletionRecord;

class EnginesTest : public DeviceTest {
  protected:
    /// Two groups: WQ 0 with engine 0, WQ 1 with engines 1 and 2.
    void two_groups() {
        power_up();
        setup_wq({.wq = 0, .size = 32});
        setup_wq({.wq = 1, .size = 32});
        setup_group(0, 0x1, 0x1);
        setup_group(1, 0x2, 0x6);
        ASSERT_EQ(command(Command::kEnableDevice), 0U);
        ASSERT_EQ(command(Command::kEnableWq, 0), 0U);
        ASSERT_EQ(command(Command::kEnableWq, 1), 0U);
    }
    /// WQs 0 and 1 of these priorities share one engine.
    void one_engine(std::uint32_t priority0, std::uint32_t priority1) {
        power_up();
        setup_wq({.wq = 0, .size = 64, .priority = priority0});
        setup_wq({.wq = 1, .size = 64, .priority = priority1});
        setup_group(0, 0x3, 0x1);
        ASSERT_EQ(command(Command::kEnableDevice), 0U);
        ASSERT_EQ(command(Command::kEnableWq, 0), 0U);
        ASSERT_EQ(command(Command::kEnableWq, 1), 0U);
    }
};

TEST_F(EnginesTest, ADescriptorIsCarriedOutAndCompleted) {
    bring_up({{}});
    submit(0, descriptor(5));
    ASSERT_TRUE(wait_record(5));
    EXPECT_EQ(record(5).status, 1);
    EXPECT_EQ(record(5).output_size, 1U);
    EXPECT_EQ(memory().peek(kResults + 5, 1)[0], std::byte{0xaa});
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    const auto counters = device_->counters().snapshot();
    EXPECT_EQ(counters.total.completed, 1U);
    EXPECT_EQ(counters.by_opcode.at(0x43), 1U);
    EXPECT_EQ(counters.by_status.at(0x01), 1U);
}

TEST_F(EnginesTest, OnlyEnginesOfTheGroupTakeItsWork) {
    two_groups();
    operation_.hold();
    for (std::uint32_t n = 0; n < 10; ++n) {
        submit(1, descriptor(n));
    }
    ASSERT_TRUE(operation_.wait_begun(2));
    // Engines 1 and 2 are at work. Engine 0 and the five in no group could, and must not.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(operation_.begun(), 2U);
    EXPECT_EQ(device_->state().busy_engines, 2U);
    submit(0, descriptor(20));
    ASSERT_TRUE(operation_.wait_begun(3));
    operation_.let_go();
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(operation_.begun(), 11U);
    EXPECT_EQ(operation_.most_at_once(), 3U);
    EXPECT_EQ(operation_.threads(), 3U);
}

TEST_F(EnginesTest, AllEnginesOfAGroupWorkAtOnce) {
    bring_up({{.wq = 0, .size = 64}});
    operation_.hold();
    for (std::uint32_t n = 0; n < 20; ++n) {
        submit(0, descriptor(n));
    }
    EXPECT_TRUE(operation_.wait_begun(8));
    EXPECT_EQ(device_->state().busy_engines, 8U);
    EXPECT_EQ(occupancy(0), 20U);
    operation_.let_go();
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(operation_.begun(), 20U);
}

TEST_F(EnginesTest, AQueueInNoGroupIsNeverServed) {
    power_up();
    setup_wq({.wq = 0, .size = 8});
    ASSERT_EQ(command(Command::kEnableDevice), 0U);
    ASSERT_EQ(command(Command::kEnableWq, 0), 0U);
    submit(0, descriptor(0));
    EXPECT_EQ(broken("wq-no-group"), 1U);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(operation_.begun(), 0U);
    EXPECT_EQ(command(Command::kResetDevice), 0U);
}

TEST_F(EnginesTest, OneQueueIsServedInOrder) {
    one_engine(10, 10);
    operation_.hold();
    for (std::uint32_t n = 0; n < 30; ++n) {
        submit(0, descriptor(n));
    }
    operation_.let_go();
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    const std::vector<std::uint64_t> order = operation_.order();
    ASSERT_EQ(order.size(), 30U);
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(EnginesTest, QueuesShareByPriorityAndNoneStarves) {
    one_engine(12, 4);
    operation_.hold();
    submit(0, descriptor(0));  // takes the engine
    ASSERT_TRUE(operation_.wait_begun(1));
    for (std::uint32_t n = 1; n <= 40; ++n) {
        submit(0, descriptor(n));
        submit(1, descriptor(100 + n));
    }
    operation_.let_go();
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    const std::vector<std::uint64_t> order = operation_.order();
    ASSERT_EQ(order.size(), 81U);
    // While both had work: three of WQ 0 for one of WQ 1.
    const auto low = std::count_if(order.begin() + 1, order.begin() + 41,
                                   [](std::uint64_t source) { return source > kSources + 100; });
    EXPECT_EQ(low, 10);
}

TEST_F(EnginesTest, AFenceWaitsForAllBeforeItInItsQueueAlone) {
    bring_up({{.wq = 0, .size = 16}, {.wq = 1, .size = 16}});
    operation_.hold();
    submit(0, descriptor(0));
    submit(0, descriptor(1));
    Descriptor fenced = descriptor(2);
    fenced.flags_opcode |= kFence;
    submit(0, fenced);
    submit(0, descriptor(3));
    submit(1, descriptor(4));
    ASSERT_TRUE(operation_.wait_begun(3));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(operation_.begun(), 3U);
    operation_.let_go();
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    const std::vector<std::uint64_t> order = operation_.order();
    ASSERT_EQ(order.size(), 5U);
    EXPECT_LT(order[0], kSources + 5);
    // What follows the fence may begin beside it, but not before.
    EXPECT_EQ(std::min(order[3], order[4]), kSources + 2);
    EXPECT_EQ(std::max(order[3], order[4]), kSources + 3);
}

TEST_F(EnginesTest, ADrainDescriptorCompletesAfterAllBeforeIt) {
    bring_up({{.wq = 0, .size = 16}});
    operation_.hold();
    for (std::uint32_t n = 0; n < 5; ++n) {
        submit(0, descriptor(n));
    }
    Descriptor drain{};
    drain.flags_opcode = 0x02U << 24 | kRecordAddressValid | kRequestRecord;
    drain.completion_addr = record_at(9);
    submit(0, drain);
    ASSERT_TRUE(operation_.wait_begun(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(record(9).status, 0);
    operation_.let_go();
    ASSERT_TRUE(wait_record(9));
    for (std::uint32_t n = 0; n < 5; ++n) {
        EXPECT_EQ(record(n).status, 1) << n;
    }
}

TEST_F(EnginesTest, RecordsAreWrittenAsTheFlagsSay) {
    bring_up({{.wq = 0, .size = 16}});
    Descriptor quiet = descriptor(0);
    quiet.flags_opcode = 0x43U << 24 | kRecordAddressValid;  // a record on errors alone
    submit(0, quiet);
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(record(0).status, 0);
    EXPECT_EQ(device_->counters().snapshot().total.completed, 1U);
    operation_.status = 0x0a;
    submit(0, quiet);
    EXPECT_TRUE(wait_record(0));
    EXPECT_EQ(record(0).status, 0x0a);
    // No place for the record: the error goes to SWERR.
    quiet.flags_opcode = 0x43U << 24;
    submit(0, quiet);
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(software_error_code(), 0x0aU);
    const std::uint64_t error = read64(reg::kSwErr);
    EXPECT_EQ(error & 0xd, 0xdU);          // valid, descriptor valid, WQ valid
    EXPECT_EQ(error >> 32 & 0xff, 0x43U);  // operation
}

TEST_F(EnginesTest, ARecordThatCannotBeWrittenIsReported) {
    bring_up({{}});
    Descriptor bad = descriptor(0);
    bad.completion_addr = kMemorySize;
    submit(0, bad);
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(software_error_code(), 0x1aU);
    EXPECT_NE(read32(reg::kSwErr) & reg::kErrWrite, 0U);
    EXPECT_EQ(read64(reg::kSwErr + 16), kMemorySize);
    EXPECT_EQ(broken("completion-address"), 1U);
}

TEST_F(EnginesTest, AMisalignedRecordIsReported) {
    bring_up({{}});
    operation_.status = 0x1b;  // what the operations say of such an address
    Descriptor bad = descriptor(0);
    bad.completion_addr = record_at(0) + 32;
    submit(0, bad);
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(software_error_code(), 0x1bU);
    EXPECT_EQ(read64(reg::kSwErr + 16), record_at(0) + 32);
    EXPECT_EQ(record(0).status, 0);
}

TEST_F(EnginesTest, AMisalignedRecordIsNeverWritten) {
    bring_up({{.wq = 0, .size = 16}});
    const auto expect_report = [&](Descriptor bad) {
        bad.completion_addr += 32;
        submit(0, bad);
        EXPECT_EQ(command(Command::kDrainAll), 0U);
        EXPECT_EQ(software_error_code(), 0x1bU);
        EXPECT_EQ(read64(reg::kSwErr + 16), bad.completion_addr);
        write64(reg::kSwErr, 3);
        EXPECT_EQ(memory().peek(kRecords, 128), std::vector<std::byte>(128));
    };
    Descriptor asking = descriptor(0);
    asking.flags_opcode |= kRequestInterrupt;
    asking.int_handle = 1;  // no handle: the operations never see the descriptor
    expect_report(asking);
    device::control::FaultRule rule;
    rule.actions.status = device::control::StatusFault{.status = 0x24};
    rule.trigger.count = 1;
    device_->faults().add(rule);
    expect_report(descriptor(0));
    operation_.status = 0x11;
    expect_report(descriptor(0));
    EXPECT_EQ(device_->counters().snapshot().total.completed, 0U);
}

TEST_F(EnginesTest, AnOperationThatFailsCompletesWithAHardwareError) {
    for (const bool inline_execution : {false, true}) {
        make(device::Profile{}, inline_execution);
        memory().fill(kRecords, 128, std::byte{0});
        bring_up({{.wq = 0, .size = 4}});
        operation_.no_memory = true;
        submit(0, descriptor(0));
        ASSERT_TRUE(wait_record(0));
        EXPECT_EQ(record(0).status, 0x20);
        EXPECT_EQ(command(Command::kDrainAll), 0U);
        EXPECT_EQ(device_->state().busy_engines, 0U);
        EXPECT_EQ(occupancy(0), 0U);
        operation_.no_memory = false;
        submit(0, descriptor(1));
        ASSERT_TRUE(wait_record(1));
        EXPECT_EQ(record(1).status, 1);
    }
    EXPECT_EQ(broken("descriptor engine-failure"), 2U);
}

TEST_F(EnginesTest, WhatTheDataIsLikeIsNoBrokenRule) {
    bring_up({{.wq = 0, .size = 16}});
    const auto log_with = [&](std::uint8_t status, std::uint8_t error_code) {
        operation_.status = status;
        operation_.error_code = error_code;
        submit(0, descriptor(0));
        EXPECT_EQ(command(Command::kDrainAll), 0U);
    };
    log_with(0x0a, 13);  // a block type that does not exist
    log_with(0x0b, 1);
    EXPECT_TRUE(log_.rules_broken().empty());
    log_with(0x0a, 22);  // a wrong AECS is the driver's
    EXPECT_EQ(broken("descriptor code"), 1U);
    log_with(0x11, 1);
    EXPECT_EQ(broken("descriptor code"), 2U);
}

TEST_F(EnginesTest, TheInterruptFollowsTheRecord) {
    bring_up({{}});
    Descriptor asking = descriptor(0);
    asking.flags_opcode |= kRequestInterrupt;
    asking.int_handle = static_cast<std::uint16_t>(request_handle(3));
    submit(0, asking);
    ASSERT_TRUE(host_->wait_interrupts(3, 1));
    EXPECT_EQ(record(0).status, 1);
    EXPECT_EQ(device_->counters().snapshot().total.interrupts, 1U);
    submit(0, descriptor(1));  // does not ask
    ASSERT_TRUE(wait_record(1));
    EXPECT_EQ(command(Command::kDrainAll), 0U);
    EXPECT_EQ(host_->interrupts(3), 1U);
}

TEST_F(EnginesTest, HandlesThatWereNotGivenAreRefused) {
    bring_up({{.wq = 0, .size = 16}});
    Descriptor asking = descriptor(0);
    asking.flags_opcode |= kRequestInterrupt;
    const auto expect_refused = [&](std::uint32_t number, std::uint32_t page) {
        asking.completion_addr = record_at(number);
        submit(0, asking, page);
        ASSERT_TRUE(wait_record(number));
        EXPECT_EQ(record(number).status, 0x19) << number;
    };
    asking.int_handle = 3;  // an index, and not a handle
    expect_refused(0, 1);
    const std::uint32_t handle = request_handle(3);
    asking.int_handle = static_cast<std::uint16_t>(handle);
    expect_refused(1, 2);  // by the IMS portal it names message storage
    write32(profile_.msix_perm_offset() + 3 * 8, reg::kPermPasidEn | 5U << 12);
    expect_refused(2, 1);
    EXPECT_EQ(command(Command::kReleaseIntHandle, handle), 0U);
    write32(profile_.msix_perm_offset() + 3 * 8, 0);
    expect_refused(3, 1);
    EXPECT_EQ(operation_.begun(), 0U);
    EXPECT_EQ(host_->interrupts(3), 0U);
    EXPECT_EQ(broken("descriptor interrupt-handle"), 4U);
}

TEST_F(EnginesTest, AnIgnoredPermissionLetsEveryWqIn) {
    bring_up({{}});
    Descriptor asking = descriptor(0);
    asking.flags_opcode |= kRequestInterrupt;
    asking.int_handle = static_cast<std::uint16_t>(request_handle(3));
    write32(profile_.msix_perm_offset() + 3 * 8, reg::kPermIgnore | reg::kPermPasidEn | 5U << 12);
    submit(0, asking);
    EXPECT_TRUE(host_->wait_interrupts(3, 1));
}

TEST_F(EnginesTest, WithoutHandlesTheIndexIsTheHandle) {
    device::Profile profile;
    profile.interrupt_handles = false;
    make(profile);
    bring_up({{.wq = 0, .size = 16}});
    Descriptor asking = descriptor(0);
    asking.flags_opcode |= kRequestInterrupt;
    asking.int_handle = 8;
    submit(0, asking);
    EXPECT_TRUE(host_->wait_interrupts(8, 1));
    asking = descriptor(1);
    asking.flags_opcode |= kRequestInterrupt;
    asking.int_handle = 9;
    submit(0, asking);
    ASSERT_TRUE(wait_record(1));
    EXPECT_EQ(record(1).status, 0x19);
}

TEST_F(EnginesTest, InlineWorkIsDoneWhenTheStoreReturns) {
    make(device::Profile{}, true);
    bring_up({{.wq = 0, .size = 4}, {.wq = 1, .size = 4}});
    for (std::uint32_t n = 0; n < 100; ++n) {
        submit(n % 2, descriptor(n));
        ASSERT_EQ(record(n).status, 1);
    }
    EXPECT_EQ(operation_.threads(), 1U);
    EXPECT_EQ(occupancy(0), 0U);
    EXPECT_EQ(command(Command::kDrainAll), 0U);
}

}  // namespace
}  // namespace iaa::test
