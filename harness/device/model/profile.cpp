// SPDX-License-Identifier: GPL-2.0
#include "device/model/profile.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>

#include "device/model/registers.h"

namespace iaa::device {
namespace {

constexpr std::uint64_t kIaaCapDecompressFormat2 = 1ULL << 0;
constexpr std::uint64_t kIaaCapHeaderGeneration = 1ULL << 8;
constexpr std::uint32_t kEvlSupport = 2;  // entries of 32 << 2 bytes

std::uint64_t align_up(std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
}

void check_range(const char* what, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
    if (value < low || value > high) {
        throw std::invalid_argument(
            fmt::format("{} is {}: give a number from {} to {}", what, value, low, high));
    }
}

}  // namespace

Profile Profile::named(const std::string& name) {
    Profile profile;
    profile.name = name;
    if (name == "spr") {
        profile.version = 0x100;
    } else if (name == "gnr") {
        profile.version = 0x200;
        profile.iaa_cap = kIaaCapDecompressFormat2 | kIaaCapHeaderGeneration;
    } else {
        throw std::invalid_argument(fmt::format("profile \"{}\" is unknown: use spr or gnr", name));
    }
    return profile;
}

void Profile::check() const {
    check_range("the number of WQs", wqs, 1, kMaxWqs);
    check_range("the number of engines", engines, 1, kMaxEngines);
    check_range("the number of groups", groups, 1, kMaxGroups);
    check_range("the total WQ size", total_wq_size, 1, kMaxTotalWqSize);
    check_range("the log2 of the largest transfer", max_transfer_shift, 1, kMaxTransferShift);
}

std::uint64_t Profile::gen_cap() const {
    return (block_on_fault ? reg::kGenCapBlockOnFault : 0) | reg::kGenCapCmdCap |
           (std::uint64_t{kEvlSupport} << reg::kGenCapEvlShift) |
           (std::uint64_t{max_transfer_shift} << reg::kGenCapMaxXferShift) | reg::kGenCapConfigEn |
           reg::kGenCapDecompress;
}

std::uint64_t Profile::wq_cap() const {
    constexpr std::uint64_t kCfgSize64Bytes = 1;  // 1 << (n + 5)
    return total_wq_size | (std::uint64_t{wqs} << reg::kWqCapNumShift) |
           (kCfgSize64Bytes << reg::kWqCapCfgSizeShift) | reg::kWqCapDedicated |
           reg::kWqCapPriority | reg::kWqCapOccupancy | reg::kWqCapOpConfig;
}

std::uint64_t Profile::grp_cap() const {
    return groups | (std::uint64_t{kReadBuffers} << reg::kGrpCapReadBuffersShift) |
           reg::kGrpCapReadBufferCtrl | reg::kGrpCapReadBufferLimit;
}

std::array<std::uint64_t, 4> Profile::op_cap() const {
    std::array<std::uint64_t, 4> bits{};
    // NOOP, DRAIN, DECOMPRESS, COMPRESS, CRC64.
    for (const unsigned opcode : {0x00U, 0x02U, 0x42U, 0x43U, 0x44U}) {
        bits.at(opcode / 64) |= 1ULL << (opcode % 64);
    }
    return bits;
}

std::uint32_t Profile::cmd_cap() const {
    constexpr std::uint32_t kAllCommands = 0x7ffe;
    constexpr std::uint32_t kHandles =
        (1U << static_cast<unsigned>(reg::Command::kRequestIntHandle)) |
        (1U << static_cast<unsigned>(reg::Command::kReleaseIntHandle));
    return interrupt_handles ? kAllCommands : kAllCommands & ~kHandles;
}

std::array<std::uint64_t, 2> Profile::offsets() const {
    // grpcfg, wqcfg, msix_perm, ims; perfmon. No interrupt message storage and no performance
    // counters: zero.
    return {(reg::kGrpCfg / reg::kTableUnit) | (wqcfg_offset() / reg::kTableUnit) << 16 |
                (msix_perm_offset() / reg::kTableUnit) << 32,
            0};
}

std::uint64_t Profile::msix_perm_offset() const {
    return align_up(reg::kGrpCfg + groups * reg::kGrpCfgStride, reg::kTableUnit);
}

std::uint64_t Profile::wqcfg_offset() const {
    return align_up(msix_perm_offset() + vectors() * reg::kMsixPermStride, reg::kTableUnit);
}

std::uint64_t Profile::bar2_size() const {
    return std::bit_ceil(std::uint64_t{wqs}) * reg::kPortalPages * reg::kPageSize;
}

Capabilities Profile::capabilities() const {
    Capabilities capabilities;
    capabilities.version = version;
    capabilities.header_generation = (iaa_cap & kIaaCapHeaderGeneration) != 0;
    capabilities.decompress_aecs_format2 = (iaa_cap & kIaaCapDecompressFormat2) != 0;
    capabilities.max_transfer_size = 1ULL << max_transfer_shift;
    capabilities.opcodes = op_cap();
    return capabilities;
}

}  // namespace iaa::device
