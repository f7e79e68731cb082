// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "device_fixture.h"

namespace iaa::test {
namespace {

using reg::Command;

constexpr std::uint64_t kRing = 0x20000;
constexpr std::uint32_t kRingSize = 0x40;

class ReportsTest : public DeviceTest {
  protected:
    void bring_up_with_event_log(std::uint64_t ring = kRing) {
        power_up();
        write64(reg::kEvlCfg, ring);
        write64(reg::kEvlCfg + 8, kRingSize);
        write32(reg::kGenCtrl, reg::kGenCtrlEvlInt | reg::kGenCtrlSoftErrInt);
        write32(reg::kGenCfg, reg::kGenCfgEvlEn);
        bring_up({{.wq = 0, .size = 16}});
    }
    /// The engine's write of the next event log entry does not return before go() is true.
    void hold_entries(std::function<bool()> go) {
        memory().on_write = [this, go = std::move(go)](std::uint64_t iova) {
            if (iova >= kRing && iova < kRing + kRingSize * 128) {
                entry_held_ = true;
                EXPECT_TRUE(wait_until(go));
            }
        };
    }
    /// An engine is about to write an entry.
    void hold_one_entry(std::function<bool()> go) {
        hold_entries(std::move(go));
        Descriptor bad = descriptor(0);
        bad.completion_addr = kMemorySize;
        submit(0, bad);
        ASSERT_TRUE(wait_until([this] { return entry_held_.load(); }));
    }
    std::atomic<bool> entry_held_{false};

    std::uint32_t head() { return read32(reg::kEvlStatus); }
    std::uint32_t tail() { return read32(reg::kEvlStatus + 4) & 0xffff; }
    bool pending() { return (read32(reg::kEvlStatus + 4) & reg::kEvlIntPending) != 0; }
    std::uint64_t entry_word(std::uint32_t entry, std::uint32_t word) {
        const auto bytes = memory().peek(kRing + entry * 128ULL + word * 8ULL, 8);
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), sizeof(value));
        return value;
    }
};

TEST_F(ReportsTest, SoftwareErrorsInterruptWhereEnabled) {
    bring_up({{}});
    submit(1, descriptor(0));
    EXPECT_EQ(host_->interrupts(0), 0U);
    EXPECT_EQ(read32(reg::kIntCause), 0U);
    write64(reg::kSwErr, 3);
    EXPECT_EQ(read32(reg::kSwErr) & 3, 0U);
    write32(reg::kGenCtrl, reg::kGenCtrlSoftErrInt);
    submit(1, descriptor(0));
    EXPECT_EQ(host_->interrupts(0), 1U);
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntError);
}

TEST_F(ReportsTest, TheFirstErrorStaysAndTheNextIsOverflow) {
    bring_up({{}});
    submit(1, descriptor(0));
    submit(2, descriptor(0));
    EXPECT_EQ(read64(reg::kSwErr) >> 16 & 0xff, 1U);
    EXPECT_EQ(read32(reg::kSwErr) & 3, 3U);
    write64(reg::kSwErr, reg::kErrOverflow);
    EXPECT_EQ(read32(reg::kSwErr) & 3, 1U);
    write64(reg::kSwErr, reg::kErrValid);
    submit(2, descriptor(0));
    EXPECT_EQ(read64(reg::kSwErr) >> 16 & 0xff, 2U);
    EXPECT_EQ(read32(reg::kSwErr) & 3, 1U);
}

TEST_F(ReportsTest, TheEventLogTakesErrorsInItsStead) {
    bring_up_with_event_log();
    Descriptor bad = descriptor(0);
    bad.completion_addr = kMemorySize;
    submit(0, bad);
    ASSERT_TRUE(host_->wait_interrupts(0, 1));
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntEventLog);
    EXPECT_EQ(tail(), 1U);
    EXPECT_EQ(head(), 0U);
    EXPECT_TRUE(pending());
    EXPECT_EQ(read64(reg::kSwErr), 0U);
    const std::uint64_t first = entry_word(0, 0);
    EXPECT_EQ(first & 3, 0U);
    EXPECT_EQ(first & 0xac, 0xacU);  // descriptor, WQ, write, error information
    EXPECT_EQ(first >> 8 & 0xff, 0x1aU);
    EXPECT_EQ(first >> 16 & 0xff, 0U);
    EXPECT_EQ(first >> 32 & 0xff, 0x43U);
    EXPECT_EQ(entry_word(0, 2), kMemorySize);
    EXPECT_EQ(entry_word(0, 8) & 0xff, 1U);  // the record that had no place
}

TEST_F(ReportsTest, OneInterruptUntilThePendingBitIsCleared) {
    bring_up_with_event_log();
    submit(1, descriptor(0));
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), 2U);
    EXPECT_EQ(host_->interrupts(0), 1U);
    write32(reg::kEvlStatus + 4, reg::kEvlIntPending);
    EXPECT_FALSE(pending());
    EXPECT_EQ(tail(), 2U);
    submit(1, descriptor(0));
    EXPECT_EQ(host_->interrupts(0), 2U);
    EXPECT_EQ(entry_word(2, 0) >> 8 & 0xff,
              static_cast<std::uint64_t>(reg::PortalError::kWqNotEnabled));
}

TEST_F(ReportsTest, AFullRingOverflowsIntoSwerrAndGoesOnWhenRead) {
    bring_up_with_event_log();
    for (std::uint32_t n = 0; n < kRingSize - 1; ++n) {
        submit(1, descriptor(0));
    }
    EXPECT_EQ(tail(), kRingSize - 1);
    EXPECT_EQ(read64(reg::kSwErr), 0U);
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), kRingSize - 1);
    EXPECT_EQ(broken("evl-full"), 1U);
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kWqNotEnabled));
    write32(reg::kEvlStatus, kRingSize);  // outside the ring
    EXPECT_EQ(broken("evl-head"), 1U);
    EXPECT_EQ(head(), 0U);
    write32(reg::kEvlStatus, 10);
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), 0U);
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), 1U);
}

TEST_F(ReportsTest, AnUnmappedRingFallsBackToSwerr) {
    bring_up_with_event_log(kMemorySize);
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), 0U);
    EXPECT_EQ(broken("evl-address"), 1U);
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kWqNotEnabled));
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntError);
}

TEST_F(ReportsTest, EnginesAndPortalsShareTheRing) {
    bring_up_with_event_log();
    Descriptor bad = descriptor(0);
    bad.completion_addr = kMemorySize;
    constexpr std::uint32_t kEach = 10;
    for (std::uint32_t n = 0; n < kEach; ++n) {
        submit(0, bad);
        submit(1, descriptor(1));
    }
    EXPECT_TRUE(wait_until([this] { return tail() == 2 * kEach; }));
    std::uint32_t from_engines = 0;
    for (std::uint32_t n = 0; n < 2 * kEach; ++n) {
        from_engines += (entry_word(n, 0) >> 8 & 0xff) == 0x1a ? 1U : 0U;
    }
    EXPECT_EQ(from_engines, kEach);
}

TEST_F(ReportsTest, ADrainAndADisableWaitForTheEntriesOfTheirDescriptors) {
    for (const auto code : {Command::kDisableDevice, Command::kDrainAll, Command::kDisableWq}) {
        bring_up_with_event_log();
        entry_held_ = false;
        std::atomic<bool> go{false};
        hold_one_entry([&] { return go.load(); });
        start_command(code, code == Command::kDisableWq ? 1 : 0);
        EXPECT_TRUE(command_active());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_TRUE(command_active());
        EXPECT_EQ(tail(), 0U);
        go = true;
        EXPECT_TRUE(wait_command());
        EXPECT_EQ(tail(), 1U);
        EXPECT_EQ(command(Command::kResetDevice), 0U);
    }
}

TEST_F(ReportsTest, AResetWaitsForTheEntryAndForgetsIt) {
    bring_up_with_event_log();
    hold_one_entry([this] { return host_->pumps() > 0; });
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    const std::uint64_t accesses = memory().accesses();
    memory().on_write = nullptr;
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    EXPECT_EQ(memory().accesses(), accesses);
    EXPECT_EQ(tail(), 0U);
    bring_up_with_event_log();
    EXPECT_EQ(tail(), 0U);
    submit(1, descriptor(1));
    EXPECT_TRUE(wait_until([this] { return tail() == 1; }));
}

// In HALT the log's registers can be written while an engine is writing an entry of it.
TEST_F(ReportsTest, TheLogCanEndWhileAnEntryIsWritten) {
    bring_up_with_event_log();
    hold_one_entry([this] { return host_->pumps() > 0; });
    device_->halt("a test", device::control::HaltExit::kReset);
    write32(reg::kGenCfg, 0);
    EXPECT_GE(host_->pumps(), 1U);  // the ring is the guest's again only now
    memory().on_write = nullptr;
    write64(reg::kEvlCfg + 8, 0);
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(tail(), 0U);
    write64(reg::kEvlCfg + 8, kRingSize);
    write32(reg::kGenCfg, reg::kGenCfgEvlEn);
    EXPECT_EQ(tail(), 0U);
}

TEST_F(ReportsTest, WithoutBusMasteringReportsGoToSwerr) {
    bring_up_with_event_log();
    hold_one_entry([this] { return host_->pumps() > 0; });
    submit(1, descriptor(1));
    submit(1, descriptor(1));  // both wait behind the entry that is being written
    config_write(0x04, 2, 0x2);
    EXPECT_TRUE(wait_until([this] { return tail() == 1; }));
    EXPECT_TRUE(wait_until([this] { return (read32(reg::kSwErr) & 3) == 3; }));
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kWqNotEnabled));
    memory().on_write = nullptr;
}

TEST_F(ReportsTest, NoMoreReportsWaitThanTheRingHas) {
    bring_up_with_event_log();
    std::atomic<bool> go{false};
    hold_one_entry([&] { return go.load(); });
    for (std::uint32_t n = 1; n < kRingSize; ++n) {
        submit(1, descriptor(1));
    }
    EXPECT_EQ(read64(reg::kSwErr), 0U);
    submit(1, descriptor(1));
    EXPECT_EQ(read32(reg::kSwErr) & 3, 1U);
    submit(1, descriptor(1));
    EXPECT_EQ(read32(reg::kSwErr) & 3, 3U);
    EXPECT_EQ(broken("evl-full"), 2U);
    EXPECT_EQ(tail(), 0U);
    go = true;
    EXPECT_TRUE(wait_until([this] { return tail() == kRingSize - 1; }));
}

TEST_F(ReportsTest, TheRingIsLeftAloneAfterAReset) {
    bring_up_with_event_log();
    submit(1, descriptor(0));
    ASSERT_EQ(tail(), 1U);
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    EXPECT_EQ(tail(), 0U);
    EXPECT_EQ(read64(reg::kEvlCfg), 0U);
    submit(1, descriptor(0));
    EXPECT_EQ(tail(), 0U);
    EXPECT_NE(read64(reg::kSwErr), 0U);
}

TEST_F(ReportsTest, HaltStopsEverythingAndSaysSo) {
    bring_up({{.wq = 0, .size = 16}});
    write32(reg::kGenCtrl, reg::kGenCtrlHaltInt);
    operation_.hold();
    submit(0, descriptor(0));
    ASSERT_TRUE(operation_.wait_begun(1));
    start_command(Command::kDrainWq, 1, true);
    device_->halt("a test", device::control::HaltExit::kFlr);
    EXPECT_EQ(read32(reg::kGenSts), 3U | 1U << 2);
    EXPECT_NE(read32(reg::kIntCause) & reg::kIntHalt, 0U);
    EXPECT_EQ(read32(reg::kCmdSts), 3U);  // the drain ended with a hardware error
    EXPECT_GE(host_->interrupts(0), 2U);
    EXPECT_EQ(device_->state().halt_reason, "a test");
    operation_.let_go();
    ASSERT_TRUE(operation_.wait_ended(1));
    EXPECT_TRUE(wait_until([this] { return device_->state().busy_engines == 0; }));
    EXPECT_EQ(record(0).status, 0);
    submit(0, descriptor(1));
    EXPECT_EQ(broken("portal-disabled"), 1U);
    // The wrong way out, and the right one.
    EXPECT_EQ(command(Command::kResetDevice), 3U);
    EXPECT_EQ(command(Command::kEnableDevice), 3U);
    EXPECT_EQ(read32(reg::kGenSts) & 3, 3U);
    config_write(0x48, 2, 0x8000);
    power_up();
    EXPECT_EQ(read32(reg::kGenSts), 0U);
    bring_up({{.wq = 0, .size = 16}});
    submit(0, descriptor(2));
    EXPECT_TRUE(wait_record(2));
}

TEST_F(ReportsTest, HaltsEndByTheResetTheyNeed) {
    bring_up({{}});
    device_->halt("software", device::control::HaltExit::kReset);
    EXPECT_EQ(read32(reg::kGenSts), 3U);
    EXPECT_EQ(command(Command::kResetDevice), 0U);
    EXPECT_EQ(read32(reg::kGenSts), 0U);
    device_->halt("warm", device::control::HaltExit::kWarmReset);
    config_write(0x48, 2, 0x8000);
    power_up();
    EXPECT_EQ(read32(reg::kGenSts), 3U | 2U << 2);
    device_->reset();
    power_up();
    EXPECT_EQ(read32(reg::kGenSts), 0U);
}

}  // namespace
}  // namespace iaa::test
