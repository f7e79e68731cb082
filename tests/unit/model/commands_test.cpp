// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "device_fixture.h"

namespace iaa::test {
namespace {

using reg::Command;
using reg::CommandError;

class CommandsTest : public DeviceTest {
  protected:
    CommandsTest() { power_up(); }

    void expect_error(Command code, std::uint32_t operand, CommandError error) {
        EXPECT_EQ(command(code, operand), static_cast<std::uint32_t>(error))
            << "command " << static_cast<unsigned>(code) << " operand " << operand;
    }
    std::uint32_t raw(std::uint32_t value) {
        write32(reg::kCmd, value);
        return read32(reg::kCmdSts);
    }
    std::uint32_t device_state() { return read32(reg::kGenSts) & 3; }
    std::uint32_t wq_state(std::uint32_t wq) { return read32(wqcfg(wq, 6)) >> 30; }
};

TEST_F(CommandsTest, UnknownAndReservedAreRefused) {
    EXPECT_EQ(raw(0), 1U);
    EXPECT_EQ(raw(15U << 20), 1U);
    EXPECT_EQ(raw(31U << 20), 1U);
    EXPECT_EQ(raw(1U << 20 | 1U << 25), 4U);
    EXPECT_EQ(raw(1U << 20 | 1U << 30), 4U);
    EXPECT_EQ(raw(1U << 20 | 1), 4U);  // operand of ENABLE_DEVICE
    EXPECT_EQ(raw(5U << 20 | 1), 4U);
    EXPECT_EQ(broken("command-invalid"), 3U);
    EXPECT_EQ(broken("command-reserved"), 4U);
    EXPECT_EQ(device_state(), 0U);
}

TEST_F(CommandsTest, CmdReadsBackWhatWasWritten) {
    EXPECT_EQ(raw(5U << 20), 0U);
    EXPECT_EQ(read32(reg::kCmd), 5U << 20);
}

TEST_F(CommandsTest, InterruptOnlyWhereAsked) {
    start_command(Command::kResetDevice);
    EXPECT_EQ(host_->interrupts(0), 0U);
    EXPECT_EQ(read32(reg::kIntCause), 0U);
    start_command(Command::kResetDevice, 0, true);
    EXPECT_EQ(host_->interrupts(0), 1U);
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntCommand);
    start_command(static_cast<Command>(15), 0, true);  // errors complete by interrupt as well
    EXPECT_EQ(host_->interrupts(0), 2U);
    EXPECT_EQ(read32(reg::kCmdSts), 1U);
}

TEST_F(CommandsTest, NoInterruptWithoutMsixOrBusMastering) {
    config_write(0x82, 2, 0);
    start_command(Command::kResetDevice, 0, true);
    EXPECT_EQ(host_->interrupts(0), 0U);
    EXPECT_EQ(read32(reg::kIntCause), reg::kIntCommand);
    config_write(0x82, 2, 0xc000);  // masked as a whole: the client holds the interrupt back
    start_command(Command::kResetDevice, 0, true);
    EXPECT_EQ(host_->interrupts(0), 1U);
    config_write(0x04, 2, 0x2);
    start_command(Command::kResetDevice, 0, true);
    EXPECT_EQ(host_->interrupts(0), 1U);
}

TEST_F(CommandsTest, EnableDeviceWithNothingConfiguredIsFine) {
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
    EXPECT_EQ(device_state(), 1U);
    expect_error(Command::kEnableDevice, 0, CommandError::kDeviceNotDisabled);
}

TEST_F(CommandsTest, EnableDeviceNeedsBusMastering) {
    config_write(0x04, 2, 0x2);
    expect_error(Command::kEnableDevice, 0, CommandError::kBusMasterOff);
    EXPECT_EQ(device_state(), 0U);
}

TEST_F(CommandsTest, EnableDeviceChecksTheSumOfSizes) {
    setup_wq({.wq = 0, .size = 100});
    setup_wq({.wq = 5, .size = 29});
    setup_group(0, 0x21, 1);
    expect_error(Command::kEnableDevice, 0, CommandError::kWqSizeSum);
    write32(wqcfg(5, 0), 28);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
}

TEST_F(CommandsTest, EnableDeviceChecksTheGroups) {
    setup_group(0, 1, 0);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupIncomplete);
    setup_group(0, 0, 1);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupIncomplete);
    setup_group(0, 1, 1);
    setup_group(2, 1, 2);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupWq);
    setup_group(2, 2, 1);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupEngine);
    setup_group(2, 2, 2);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
}

TEST_F(CommandsTest, EnableDeviceChecksReadBuffers) {
    const std::uint64_t flags = reg::kGrpCfg + 40;
    setup_group(0, 1, 0xff);
    write64(flags, 31ULL << 20);  // 8 engines need 32
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupReadBuffers);
    write64(flags, 97ULL << 20);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupReadBuffers);
    write64(flags, 32ULL << 20 | 97ULL << 8);
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupReadBuffers);
    setup_group(1, 2, 0x100);  // no such engine: masked, so the group is not whole
    expect_error(Command::kEnableDevice, 0, CommandError::kGroupIncomplete);
    setup_group(1, 0, 0);
    write64(flags, 32ULL << 20 | 32ULL << 8);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
}

TEST_F(CommandsTest, EnableDeviceChecksTheEventLog) {
    write64(reg::kEvlCfg, 0x1000);
    write64(reg::kEvlCfg + 8, 0x3f);
    write32(reg::kGenCfg, reg::kGenCfgEvlEn);
    expect_error(Command::kEnableDevice, 0, CommandError::kDeviceConfig);
    write32(reg::kGenCfg, 0);
    write64(reg::kEvlCfg + 8, 0x40);
    write32(reg::kGenCfg, reg::kGenCfgEvlEn);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
}

TEST_F(CommandsTest, EnableWqNeedsAnEnabledDevice) {
    setup_wq({.wq = 0});
    expect_error(Command::kEnableWq, 0, CommandError::kDeviceNotEnabled);
}

TEST_F(CommandsTest, EnableWqChecksItsConfiguration) {
    struct Case {
        std::uint32_t word;
        std::uint32_t value;
        CommandError error;
    };
    constexpr std::uint32_t kGood = 1 | 10U << 4;
    const std::vector<Case> cases{
        {2, 1, CommandError::kWqPriority},
        {2, 10U << 4, CommandError::kWqMode},
        {2, kGood | 1U << 28, CommandError::kWqPasid},
        {3, 21 | 1U << 5, CommandError::kWqMaxBatch},
    };
    setup_wq({.wq = 1});
    setup_group(0, 7, 1);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
    expect_error(Command::kEnableWq, 8, CommandError::kInvalidWqIndex);
    expect_error(Command::kEnableWq, 0xfffff, CommandError::kInvalidWqIndex);
    write32(wqcfg(0, 2), kGood);
    expect_error(Command::kEnableWq, 0, CommandError::kWqSize);
    for (const Case& check : cases) {
        write32(wqcfg(1, 2), kGood);
        write32(wqcfg(1, 3), 21);
        write32(wqcfg(1, check.word), check.value);
        expect_error(Command::kEnableWq, 1, check.error);
        EXPECT_EQ(wq_state(1), 0U);
    }
    write32(wqcfg(1, 2), kGood);
    write32(wqcfg(1, 3), 21);
    expect_error(Command::kEnableWq, 1, CommandError::kSuccess);
    EXPECT_EQ(wq_state(1), 1U);
    expect_error(Command::kEnableWq, 1, CommandError::kWqNotDisabled);
}

TEST_F(CommandsTest, EnableWqChecksBlockOnFault) {
    constexpr std::uint32_t kBlockOnFault = 1 | 1U << 1 | 10U << 4;
    for (const bool there : {true, false}) {
        device::Profile profile;
        profile.block_on_fault = there;
        make(profile);
        power_up();
        setup_wq({.wq = 0});
        setup_group(0, 1, 1);
        write32(wqcfg(0, 2), kBlockOnFault);
        expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
        expect_error(Command::kEnableWq, 0,
                     there ? CommandError::kSuccess : CommandError::kWqBlockOnFault);
    }
}

TEST_F(CommandsTest, EnableWqChecksTheTransferSize) {
    device::Profile profile;
    profile.max_transfer_shift = 20;
    make(profile);
    power_up();
    setup_wq({.wq = 0});
    setup_group(0, 1, 1);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);
    expect_error(Command::kEnableWq, 0, CommandError::kWqMaxTransfer);
}

TEST_F(CommandsTest, DisableWqTakesAMask) {
    bring_up({{.wq = 0}, {.wq = 3}, {.wq = 7}});
    expect_error(Command::kDisableWq, 0, CommandError::kInvalidWqIndex);
    expect_error(Command::kDisableWq, 1U << 8, CommandError::kInvalidWqIndex);
    expect_error(Command::kDisableWq, 1U << 16 | 1, CommandError::kInvalidWqIndex);
    expect_error(Command::kDisableWq, 3, CommandError::kWqNotEnabled);
    EXPECT_EQ(wq_state(0), 1U);
    expect_error(Command::kDisableWq, 1 | 1U << 7, CommandError::kSuccess);
    EXPECT_EQ(wq_state(0), 0U);
    EXPECT_EQ(wq_state(3), 1U);
    EXPECT_EQ(wq_state(7), 0U);
    for (const Command code : {Command::kDrainWq, Command::kAbortWq, Command::kResetWq}) {
        expect_error(code, 1, CommandError::kWqNotEnabled);
        expect_error(code, 0, CommandError::kInvalidWqIndex);
        expect_error(code, 8, CommandError::kSuccess);
        if (code == Command::kResetWq) {
            EXPECT_EQ(wq_state(3), 0U);
        } else {
            EXPECT_EQ(wq_state(3), 1U);
        }
    }
}

TEST_F(CommandsTest, ResetWqClearsAllButTheSize) {
    bring_up({{.wq = 2, .size = 9}});
    write32(wqcfg(2, 1), 5);
    expect_error(Command::kResetWq, 4, CommandError::kSuccess);
    EXPECT_EQ(read32(wqcfg(2, 0)), 9U);
    EXPECT_EQ(read32(wqcfg(2, 1)), 0U);
    EXPECT_EQ(read32(wqcfg(2, 2)), 0U);
    EXPECT_EQ(read32(wqcfg(2, 8)), 5U);  // every opcode again
}

TEST_F(CommandsTest, DisableWqKeepsTheConfiguration) {
    bring_up({{.wq = 2, .size = 9}});
    expect_error(Command::kDisableWq, 4, CommandError::kSuccess);
    EXPECT_EQ(read32(wqcfg(2, 2)), 1U | 10U << 4);
    expect_error(Command::kEnableWq, 2, CommandError::kSuccess);
    submit(2, descriptor(0));
    EXPECT_TRUE(wait_record(0));
}

TEST_F(CommandsTest, DeviceCommandsNeedAnEnabledDevice) {
    for (const Command code : {Command::kDisableDevice, Command::kDrainAll, Command::kAbortAll}) {
        expect_error(code, 0, CommandError::kDisableNotEnabled);
    }
    for (const Command code : {Command::kDrainPasid, Command::kAbortPasid}) {
        expect_error(code, 5, CommandError::kDisableNotEnabled);
    }
    expect_error(Command::kResetDevice, 0, CommandError::kSuccess);
    for (const Command code : {Command::kDrainAll, Command::kAbortAll, Command::kDisableDevice}) {
        expect_error(Command::kResetDevice, 0, CommandError::kSuccess);
        bring_up({{}});
        expect_error(code, 0, CommandError::kSuccess);
    }
    EXPECT_EQ(device_state(), 0U);
    EXPECT_EQ(wq_state(0), 0U);
    expect_error(Command::kEnableDevice, 0, CommandError::kSuccess);  // the configuration is there
    expect_error(Command::kEnableWq, 0, CommandError::kSuccess);
}

TEST_F(CommandsTest, ResetDeviceClearsEverything) {
    bring_up({{.wq = 0, .size = 8}});
    write32(reg::kGenCtrl, 7);
    write32(profile_.msix_perm_offset() + 8, 8);
    submit(1, descriptor(0));  // an error in SWERR
    EXPECT_NE(read64(reg::kSwErr), 0U);
    expect_error(Command::kResetDevice, 0, CommandError::kSuccess);
    EXPECT_EQ(device_state(), 0U);
    EXPECT_EQ(read32(reg::kGenCtrl), 0U);
    EXPECT_EQ(read32(reg::kIntCause), 0U);
    EXPECT_EQ(read64(reg::kSwErr), 0U);
    EXPECT_EQ(read32(wqcfg(0, 0)), 0U);
    EXPECT_EQ(read32(wqcfg(0, 6)), 0U);
    EXPECT_EQ(read64(reg::kGrpCfg), 0U);
    EXPECT_EQ(read32(profile_.msix_perm_offset() + 8), 0U);
}

TEST_F(CommandsTest, InterruptHandles) {
    expect_error(Command::kRequestIntHandle, profile_.vectors(), CommandError::kInvalidIntIndex);
    expect_error(Command::kRequestIntHandle, 0x10001, CommandError::kInvalidIntIndex);
    expect_error(Command::kReleaseIntHandle, 1, CommandError::kHandleNotAssigned);
    const std::uint32_t handle = request_handle(1);
    EXPECT_NE(handle, 1U);  // a handle is not an index
    EXPECT_EQ(request_handle(1), handle);
    EXPECT_NE(request_handle(2), handle);
    expect_error(Command::kReleaseIntHandle, handle, CommandError::kSuccess);
    expect_error(Command::kReleaseIntHandle, handle, CommandError::kHandleNotAssigned);
    device::Profile profile;
    profile.interrupt_handles = false;
    make(profile);
    power_up();
    expect_error(Command::kRequestIntHandle, 1, CommandError::kInvalidCommand);
    expect_error(Command::kReleaseIntHandle, 1, CommandError::kInvalidCommand);
}

TEST_F(CommandsTest, DrainWaitsForWhatWasThereAndNotForWhatFollows) {
    bring_up({{.wq = 0, .size = 16}, {.wq = 1, .size = 16}});
    operation_.hold();
    submit(0, descriptor(0));
    submit(0, descriptor(1));
    ASSERT_TRUE(operation_.wait_begun(2));
    start_command(Command::kDrainWq, 1, true);
    EXPECT_TRUE(command_active());
    EXPECT_EQ(host_->interrupts(0), 0U);
    // The socket's thread is free all the while: registers and portals work.
    submit(0, descriptor(2));
    submit(1, descriptor(3));
    EXPECT_EQ(read32(reg::kGenSts) & 3, 1U);
    // Another command has to wait its turn.
    start_command(Command::kResetDevice, 0, true);
    EXPECT_EQ(broken("command-while-active"), 1U);
    EXPECT_TRUE(command_active());
    operation_.let_go();
    EXPECT_TRUE(host_->wait_interrupts(0, 1));
    EXPECT_EQ(read32(reg::kCmdSts), 0U);
    EXPECT_EQ(record(0).status, 1);
    EXPECT_EQ(record(1).status, 1);
    EXPECT_EQ(wq_state(0), 1U);
    EXPECT_TRUE(wait_record(2));
    EXPECT_TRUE(wait_record(3));
}

TEST_F(CommandsTest, DrainOfAnIdleQueueEndsAtOnce) {
    bring_up({{}});
    start_command(Command::kDrainWq, 1, true);
    EXPECT_FALSE(command_active());
    EXPECT_EQ(host_->interrupts(0), 1U);
}

TEST_F(CommandsTest, DisableTakesNoMoreAndFinishesWhatItHas) {
    bring_up({{.wq = 0, .size = 16}});
    operation_.hold();
    submit(0, descriptor(0));
    start_command(Command::kDisableWq, 1);
    EXPECT_TRUE(command_active());
    submit(0, descriptor(1));
    EXPECT_EQ(broken("portal-disabled"), 1U);
    operation_.let_go();
    EXPECT_TRUE(wait_command());
    EXPECT_EQ(record(0).status, 1);
    EXPECT_EQ(wq_state(0), 0U);
    EXPECT_EQ(record(1).status, 0);
}

TEST_F(CommandsTest, DisableDeviceDrainsAllQueues) {
    bring_up({{.wq = 0}, {.wq = 1}});
    operation_.hold();
    submit(0, descriptor(0));
    submit(1, descriptor(1));
    start_command(Command::kDisableDevice);
    EXPECT_TRUE(command_active());
    EXPECT_EQ(device_state(), 2U);
    operation_.let_go();
    EXPECT_TRUE(wait_command());
    EXPECT_EQ(device_state(), 0U);
    EXPECT_EQ(record(0).status, 1);
    EXPECT_EQ(record(1).status, 1);
}

TEST_F(CommandsTest, DrainAndAbortByPasid) {
    bring_up({{.wq = 0, .size = 16}});
    operation_.hold();
    Descriptor other = descriptor(0);
    other.pasid_priv = 7;
    submit(0, other);
    ASSERT_TRUE(operation_.wait_begun(1));
    start_command(Command::kDrainPasid, 8);
    EXPECT_FALSE(command_active());
    start_command(Command::kDrainPasid, 7);
    EXPECT_TRUE(command_active());
    operation_.let_go();
    EXPECT_TRUE(wait_command());
    operation_.hold();
    other = descriptor(1);
    other.pasid_priv = 7;
    submit(0, other);
    submit(0, descriptor(2));
    ASSERT_TRUE(operation_.wait_begun(3));
    expect_error(Command::kAbortPasid, 7, CommandError::kSuccess);
    operation_.let_go();
    EXPECT_TRUE(wait_record(2));
    expect_error(Command::kDrainAll, 0, CommandError::kSuccess);
    EXPECT_EQ(record(1).status, 0);
}

}  // namespace
}  // namespace iaa::test
