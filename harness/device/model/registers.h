// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

/// Where the device's registers lie and what their bits mean. Source: the device's public driver
/// interface, drivers/dma/idxd/registers.h of the kernel.
namespace iaa::device::reg {

// Offsets in BAR0.
inline constexpr std::uint64_t kVersion = 0x00;
inline constexpr std::uint64_t kGenCap = 0x10;
inline constexpr std::uint64_t kWqCap = 0x20;
inline constexpr std::uint64_t kGrpCap = 0x30;
inline constexpr std::uint64_t kEngCap = 0x38;
inline constexpr std::uint64_t kOpCap = 0x40;
inline constexpr std::uint64_t kOffsets = 0x60;
inline constexpr std::uint64_t kGenCfg = 0x80;
inline constexpr std::uint64_t kGenCtrl = 0x88;
inline constexpr std::uint64_t kGenSts = 0x90;
inline constexpr std::uint64_t kIntCause = 0x98;
inline constexpr std::uint64_t kCmd = 0xa0;
inline constexpr std::uint64_t kCmdSts = 0xa8;
inline constexpr std::uint64_t kCmdCap = 0xb0;
inline constexpr std::uint64_t kSwErr = 0xc0;
inline constexpr std::uint64_t kEvlCfg = 0xe0;
inline constexpr std::uint64_t kEvlStatus = 0xf0;
inline constexpr std::uint64_t kIaaCap = 0x180;
inline constexpr std::uint64_t kGrpCfg = 0x400;
inline constexpr std::uint64_t kMsixTable = 0x2000;
inline constexpr std::uint64_t kMsixPba = 0x3000;
inline constexpr std::uint64_t kBar0Size = 0x10000;

/// OFFSETS counts in these many bytes.
inline constexpr std::uint64_t kTableUnit = 0x100;
inline constexpr std::uint64_t kGrpCfgStride = 64;
inline constexpr std::uint64_t kMsixPermStride = 8;
inline constexpr std::uint64_t kWqCfgStride = 64;

// Portals: four pages a WQ in BAR2.
inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr std::uint64_t kPortalPages = 4;
inline constexpr std::uint64_t kSlotSize = 64;

// GENCAP
inline constexpr std::uint64_t kGenCapBlockOnFault = 1ULL << 0;
inline constexpr std::uint64_t kGenCapCmdCap = 1ULL << 4;
inline constexpr unsigned kGenCapEvlShift = 13;
inline constexpr unsigned kGenCapMaxXferShift = 16;
inline constexpr std::uint64_t kGenCapConfigEn = 1ULL << 31;
inline constexpr std::uint64_t kGenCapDecompress = 1ULL << 40;

// WQCAP
inline constexpr unsigned kWqCapNumShift = 16;
inline constexpr unsigned kWqCapCfgSizeShift = 24;
inline constexpr std::uint64_t kWqCapDedicated = 1ULL << 49;
inline constexpr std::uint64_t kWqCapPriority = 1ULL << 51;
inline constexpr std::uint64_t kWqCapOccupancy = 1ULL << 52;
inline constexpr std::uint64_t kWqCapOpConfig = 1ULL << 54;

// GRPCAP
inline constexpr unsigned kGrpCapReadBuffersShift = 8;
inline constexpr std::uint64_t kGrpCapReadBufferCtrl = 1ULL << 16;
inline constexpr std::uint64_t kGrpCapReadBufferLimit = 1ULL << 17;

// GENCFG
inline constexpr std::uint32_t kGenCfgReadBufferLimit = 0xff;
inline constexpr std::uint32_t kGenCfgUserIntEn = 1U << 12;
inline constexpr std::uint32_t kGenCfgEvlEn = 1U << 13;
inline constexpr std::uint32_t kGenCfgMask =
    kGenCfgReadBufferLimit | kGenCfgUserIntEn | kGenCfgEvlEn;

// GENCTRL
inline constexpr std::uint32_t kGenCtrlSoftErrInt = 1U << 0;
inline constexpr std::uint32_t kGenCtrlHaltInt = 1U << 1;
inline constexpr std::uint32_t kGenCtrlEvlInt = 1U << 2;
inline constexpr std::uint32_t kGenCtrlMask = kGenCtrlSoftErrInt | kGenCtrlHaltInt | kGenCtrlEvlInt;

// INTCAUSE
inline constexpr std::uint32_t kIntError = 0x01;
inline constexpr std::uint32_t kIntCommand = 0x02;
inline constexpr std::uint32_t kIntHalt = 0x10;
inline constexpr std::uint32_t kIntEventLog = 0x20;

// CMD
inline constexpr std::uint32_t kCmdOperandMask = 0xfffff;
inline constexpr unsigned kCmdCodeShift = 20;
inline constexpr std::uint32_t kCmdCodeMask = 0x1f;
inline constexpr std::uint32_t kCmdReserved = 0x3fU << 25;
inline constexpr std::uint32_t kCmdInterrupt = 1U << 31;
inline constexpr std::uint32_t kHandleIms = 0x10000;

// CMDSTS
inline constexpr unsigned kCmdStsResultShift = 8;
inline constexpr std::uint32_t kCmdStsActive = 1U << 31;

// SWERR, first word; the event log entry's first word has the same shape.
inline constexpr std::uint64_t kErrValid = 1ULL << 0;
inline constexpr std::uint64_t kErrOverflow = 1ULL << 1;
inline constexpr std::uint64_t kErrDescValid = 1ULL << 2;
inline constexpr std::uint64_t kErrWqValid = 1ULL << 3;
inline constexpr std::uint64_t kErrWrite = 1ULL << 5;
inline constexpr std::uint64_t kErrPrivileged = 1ULL << 6;
inline constexpr std::uint64_t kErrInfoValid = 1ULL << 7;  ///< event log only
inline constexpr unsigned kErrCodeShift = 8;
inline constexpr unsigned kErrWqShift = 16;
inline constexpr unsigned kErrOperationShift = 32;
inline constexpr unsigned kErrPasidShift = 40;

// EVLCFG, EVLSTATUS
inline constexpr std::uint64_t kEvlBaseMask = ~0xfffULL;
inline constexpr std::uint64_t kEvlCfgLowMask = kEvlBaseMask | 0x3;
inline constexpr std::uint64_t kEvlCfgHighMask = 0xfffffffff;
inline constexpr std::uint32_t kEvlMinSize = 0x40;
inline constexpr std::uint32_t kEvlIntPending = 1U << 30;  ///< in the upper word of EVLSTATUS

// MSIXPERM, first word
inline constexpr std::uint32_t kPermIgnore = 1U << 2;
inline constexpr std::uint32_t kPermPasidEn = 1U << 3;
inline constexpr std::uint32_t kPermPasidMask = 0xfffffU << 12;
inline constexpr std::uint32_t kPermMask = kPermIgnore | kPermPasidEn | kPermPasidMask;

/// GENSTS[1:0]
enum class DeviceState : std::uint8_t { kDisabled = 0, kEnabled = 1, kDraining = 2, kHalt = 3 };

/// GENSTS[3:2]: what it takes to leave HALT.
enum class ResetType : std::uint8_t { kSoftware = 0, kFlr = 1, kWarm = 2, kCold = 3 };

/// WQCFG word 6, bits 31:30
enum class WqState : std::uint8_t { kDisabled = 0, kEnabled = 1, kDraining = 2 };

enum class Command : std::uint8_t {
    kEnableDevice = 1,
    kDisableDevice = 2,
    kDrainAll = 3,
    kAbortAll = 4,
    kResetDevice = 5,
    kEnableWq = 6,
    kDisableWq = 7,
    kDrainWq = 8,
    kAbortWq = 9,
    kResetWq = 10,
    kDrainPasid = 11,
    kAbortPasid = 12,
    kRequestIntHandle = 13,
    kReleaseIntHandle = 14,
};

/// CMDSTS[7:0]
enum class CommandError : std::uint8_t {
    kSuccess = 0,
    kInvalidCommand = 0x01,
    kInvalidWqIndex = 0x02,
    kHardwareError = 0x03,
    kReservedField = 0x04,
    kDeviceNotDisabled = 0x10,
    kDeviceConfig = 0x11,
    kBusMasterOff = 0x12,
    kWqSizeSum = 0x14,
    kGroupIncomplete = 0x15,
    kGroupWq = 0x16,
    kGroupEngine = 0x17,
    kGroupReadBuffers = 0x18,
    kDeviceNotEnabled = 0x20,
    kWqNotDisabled = 0x21,
    kWqSize = 0x22,
    kWqPriority = 0x23,
    kWqMode = 0x24,
    kWqBlockOnFault = 0x25,
    kWqPasid = 0x26,
    kWqMaxBatch = 0x27,
    kWqMaxTransfer = 0x28,
    kDisableNotEnabled = 0x31,
    kWqNotEnabled = 0x32,
    kInvalidIntIndex = 0x41,
    kNoHandle = 0x42,
    kHandleNotAssigned = 0x43,
};

/// Error codes of SWERR and of the event log for errors that no descriptor's own status names. The
/// specification's values for these were not at hand; see Documentation/device-model.rst.
enum class PortalError : std::uint8_t {
    kWqNotEnabled = 0x51,  ///< a store to the portal of a WQ that takes nothing
    kWqFull = 0x52,        ///< a dedicated WQ with no free entry; the descriptor is dropped
    kOverwritten = 0x53,   ///< two descriptors stored to one slot at a time; all are dropped
};

}  // namespace iaa::device::reg
