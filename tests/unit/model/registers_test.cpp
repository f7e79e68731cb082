// SPDX-License-Identifier: GPL-2.0
#include "device/model/registers.h"

#include <gtest/gtest.h>

#include "device_fixture.h"

namespace iaa::test {
namespace {

class RegistersTest : public DeviceTest {
  protected:
    RegistersTest() { power_up(); }
};

TEST_F(RegistersTest, CapabilitiesOfTheFirstGeneration) {
    EXPECT_EQ(read32(reg::kVersion), 0x100U);
    const std::uint64_t gen = read64(reg::kGenCap);
    EXPECT_EQ(gen & 1, 1U);  // block on fault
    EXPECT_EQ(gen >> 4 & 1, 1U);
    EXPECT_EQ(gen >> 13 & 3, 2U);  // event log entries of 128 bytes
    EXPECT_EQ(gen >> 16 & 0x1f, 21U);
    EXPECT_EQ(gen >> 31 & 1, 1U);
    EXPECT_EQ(gen >> 40 & 1, 1U);
    const std::uint64_t wq = read64(reg::kWqCap);
    EXPECT_EQ(wq & 0xffff, 128U);
    EXPECT_EQ(wq >> 16 & 0xff, 8U);
    EXPECT_EQ(wq >> 24 & 0xf, 1U);
    EXPECT_EQ(wq >> 48 & 3, 2U);  // dedicated alone
    EXPECT_EQ(read64(reg::kGrpCap) & 0xffff, 4U | 96U << 8);
    EXPECT_EQ(read64(reg::kEngCap), 8U);
    EXPECT_EQ(read64(reg::kOpCap), 0x5U);
    EXPECT_EQ(read64(reg::kOpCap + 8), 0x1cU);
    EXPECT_EQ(read64(reg::kOpCap + 16), 0U);
    EXPECT_EQ(read64(reg::kOffsets), 0x0005'0006'0004U);
    EXPECT_EQ(read64(reg::kOffsets + 8), 0U);
    EXPECT_EQ(read32(reg::kCmdCap), 0x7ffeU);
    EXPECT_EQ(read64(reg::kIaaCap), 0U);
}

TEST_F(RegistersTest, TheSecondGenerationMakesHeaders) {
    device::Profile profile = device::Profile::named("gnr");
    profile.interrupt_handles = false;
    profile.block_on_fault = false;
    make(profile);
    power_up();
    EXPECT_EQ(read64(reg::kGenCap) & 1, 0U);
    EXPECT_EQ(read32(reg::kVersion), 0x200U);
    EXPECT_EQ(read64(reg::kIaaCap), 0x101U);
    EXPECT_EQ(read32(reg::kCmdCap), 0x1ffeU);
}

TEST_F(RegistersTest, ProfilesOutOfRangeAreRefused) {
    EXPECT_THROW(device::Profile::named("dmr"), std::invalid_argument);
    for (const auto& change : std::vector<std::function<void(device::Profile&)>>{
             [](auto& p) { p.wqs = 0; }, [](auto& p) { p.wqs = 65; },
             [](auto& p) { p.engines = 17; }, [](auto& p) { p.groups = 0; },
             [](auto& p) { p.total_wq_size = 0x10000; },
             [](auto& p) { p.max_transfer_shift = 22; }}) {
        device::Profile profile;
        change(profile);
        EXPECT_THROW(profile.check(), std::invalid_argument);
    }
}

TEST_F(RegistersTest, TheLargestProfileHasRoomForItsTables) {
    device::Profile profile;
    profile.wqs = device::Profile::kMaxWqs;
    profile.engines = device::Profile::kMaxEngines;
    profile.groups = device::Profile::kMaxGroups;
    make(profile);
    EXPECT_LE(profile.wqcfg_offset() + profile.wqs * reg::kWqCfgStride, reg::kMsixTable);
    bring_up({{.wq = 0}, {.wq = 63}});
    submit(63, descriptor(1));
    EXPECT_TRUE(wait_record(1));
    EXPECT_EQ(command(reg::Command::kDisableWq, 3U << 16 | 1U << 15), 0U);  // WQ 63
    EXPECT_EQ(read32(wqcfg(63, 6)) >> 30, 0U);
    EXPECT_EQ(read32(wqcfg(0, 6)) >> 30, 1U);
}

TEST_F(RegistersTest, ReadOnlyRegistersStayAsTheyAre) {
    for (const std::uint64_t offset :
         {reg::kVersion, reg::kGenCap, reg::kWqCap, reg::kGrpCap, reg::kEngCap, reg::kOpCap,
          reg::kOffsets, reg::kGenSts, reg::kCmdSts, reg::kCmdCap, reg::kIaaCap}) {
        const std::uint64_t before = read64(offset);
        const std::uint64_t logged = broken("register-read-only");
        write32(offset, ~static_cast<std::uint32_t>(before));
        EXPECT_EQ(read64(offset), before) << offset;
        EXPECT_EQ(broken("register-read-only"), logged + 1) << offset;
    }
}

TEST_F(RegistersTest, ReservedBitsStayZero) {
    write32(reg::kGenCfg, 0xffffffff);
    EXPECT_EQ(read32(reg::kGenCfg), 0x30ffU);
    write32(reg::kGenCtrl, 0xffffffff);
    EXPECT_EQ(read32(reg::kGenCtrl), 0x7U);
    EXPECT_EQ(broken("genctrl-reserved"), 1U);
    write32(profile_.msix_perm_offset() + 8, 0xffffffff);
    EXPECT_EQ(read32(profile_.msix_perm_offset() + 8), 0xfffff00cU);
    write32(wqcfg(1, 0), 0xffffffff);
    EXPECT_EQ(read32(wqcfg(1, 0)), 0xffffU);
    write32(wqcfg(1, 8), 0xffffffff);  // opcodes 0 to 31: NOOP and DRAIN are there
    EXPECT_EQ(read32(wqcfg(1, 8)), 0x5U);
    write64(reg::kGrpCfg, ~0ULL);
    EXPECT_EQ(read64(reg::kGrpCfg), 0xffU);
    write64(reg::kGrpCfg + 8, ~0ULL);
    EXPECT_EQ(read64(reg::kGrpCfg + 8), 0U);
    write64(reg::kGrpCfg + 32, ~0ULL);
    EXPECT_EQ(read64(reg::kGrpCfg + 32), 0xffU);
}

TEST_F(RegistersTest, GarbageInGencfgIsNoComplaint) {
    write32(reg::kGenCfg, 0xdeadc0ff & ~0x3000U);
    EXPECT_EQ(read32(reg::kGenCfg), 0xffU);
    EXPECT_TRUE(log_.rules_broken().empty());
}

TEST_F(RegistersTest, OnlyAlignedWordsWrite) {
    const std::array<std::byte, 16> ones{std::byte{0x01}, std::byte{0x01}, std::byte{0x01},
                                         std::byte{0x01}, std::byte{0x01}, std::byte{0x01}};
    for (const auto& [offset, size] : {std::pair{reg::kGenCtrl, 1},
                                       {reg::kGenCtrl, 2},
                                       {reg::kGenCtrl + 1, 4},
                                       {reg::kGenCtrl - 4, 8},
                                       {reg::kGenCfg, 16},
                                       {reg::kGenCtrl, 3}}) {
        device_->region_write(kBar0, offset, std::span(ones).first(static_cast<std::size_t>(size)));
        EXPECT_EQ(read32(reg::kGenCtrl), 0U);
    }
    EXPECT_EQ(broken("register-access"), 6U);
    device_->region_write(kBar0, reg::kGenCtrl, std::span(ones).first(4));
    EXPECT_EQ(read32(reg::kGenCtrl), 1U);
}

TEST_F(RegistersTest, OddReadsGiveTheBytesAndAreReported) {
    std::array<std::byte, 3> bytes{};
    device_->region_read(kBar0, reg::kWqCap + 1, bytes);
    EXPECT_EQ(bytes[0], std::byte{0});
    EXPECT_EQ(bytes[1], std::byte{8});
    EXPECT_EQ(bytes[2], std::byte{1});
    EXPECT_EQ(broken("register-access"), 1U);
    std::vector<std::byte> all(reg::kBar0Size);
    device_->region_read(kBar0, 0, all);
    EXPECT_EQ(all[1], std::byte{1});  // VERSION 0x100
}

TEST_F(RegistersTest, IntCauseIsCleardByOnes) {
    start_command(reg::Command::kResetDevice, 0, true);
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntCommand);
    write32(reg::kIntCause, reg::kIntError);
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntCommand);
    write32(reg::kIntCause, reg::kIntCommand);
    EXPECT_EQ(read32(reg::kIntCause), 0U);
}

TEST_F(RegistersTest, WqConfigIsLockedStepByStep) {
    bring_up({{.wq = 0, .size = 8}});
    write32(wqcfg(1, 0), 4);  // the size belongs to the device
    EXPECT_EQ(read32(wqcfg(1, 0)), 0U);
    EXPECT_EQ(broken("wqcfg-locked"), 1U);
    write32(wqcfg(1, 2), 0x51);  // the rest to the WQ
    EXPECT_EQ(read32(wqcfg(1, 2)), 0x51U);
    write32(wqcfg(0, 2), 0x51);
    EXPECT_EQ(read32(wqcfg(0, 2)), 0xa1U);
    EXPECT_EQ(broken("wqcfg-locked"), 2U);
    // What a driver does that configures again without a change.
    write32(wqcfg(0, 0), 8);
    write32(wqcfg(0, 2), 0xa1);
    write32(wqcfg(0, 6), read32(wqcfg(0, 6)));
    EXPECT_EQ(broken("wqcfg-locked"), 2U);
    EXPECT_EQ(command(reg::Command::kDisableWq, 1), 0U);
    write32(wqcfg(0, 2), 0x51);
    EXPECT_EQ(read32(wqcfg(0, 2)), 0x51U);
}

TEST_F(RegistersTest, GroupsGencfgAndEventLogAreLockedWhileEnabled) {
    bring_up({{.wq = 0}});
    write64(reg::kGrpCfg, 3);
    EXPECT_EQ(read64(reg::kGrpCfg), 1U);
    write64(reg::kGrpCfg, 1);  // no change, no complaint
    EXPECT_EQ(broken("grpcfg-locked"), 1U);
    write32(reg::kGenCfg, reg::kGenCfgEvlEn);
    EXPECT_EQ(read32(reg::kGenCfg), 0U);
    EXPECT_EQ(broken("gencfg-locked"), 1U);
    write64(reg::kEvlCfg, 0x1000);
    EXPECT_EQ(read64(reg::kEvlCfg), 0U);
    EXPECT_GE(broken("evlcfg-locked"), 1U);
}

TEST_F(RegistersTest, StateAndOccupancyAreShownInWqcfg) {
    bring_up({{.wq = 3, .size = 4}});
    EXPECT_EQ(read32(wqcfg(3, 6)) >> 30, 1U);
    operation_.hold();
    submit(3, descriptor(0));
    submit(3, descriptor(1));
    EXPECT_EQ(occupancy(3), 2U);
    write32(wqcfg(3, 6), 0);
    EXPECT_EQ(occupancy(3), 2U);
    operation_.let_go();
    EXPECT_TRUE(wait_until([this] { return occupancy(3) == 0; }));
}

TEST_F(RegistersTest, TheMsixTableIsStorageAndThePbaReadsZero) {
    write32(reg::kMsixTable + 16, 0xfee00000);
    EXPECT_EQ(read32(reg::kMsixTable + 16), 0xfee00000U);
    EXPECT_EQ(read64(reg::kMsixPba), 0U);
    EXPECT_EQ(read32(reg::kBar0Size - 4), 0U);
}

TEST_F(RegistersTest, WhatTheWqIsSetToReachesTheOperation) {
    setup_wq({.wq = 0});
    write32(wqcfg(0, 3), 12);
    write32(wqcfg(0, 10), 0x8);  // opcodes 64 to 95: COMPRESS alone
    setup_group(0, 1, 1);
    ASSERT_EQ(command(reg::Command::kEnableDevice), 0U);
    ASSERT_EQ(command(reg::Command::kEnableWq, 0), 0U);
    submit(0, descriptor(0));
    ASSERT_TRUE(wait_record(0));
    const device::Capabilities capabilities = operation_.capabilities();
    EXPECT_EQ(capabilities.max_transfer_size, 4096U);
    EXPECT_EQ(capabilities.opcodes, (std::array<std::uint64_t, 4>{0x5, 0x8, 0, 0}));
    EXPECT_EQ(capabilities.version, 0x100U);
    EXPECT_FALSE(capabilities.pasid_enabled);
}

}  // namespace
}  // namespace iaa::test
