// SPDX-License-Identifier: GPL-2.0
#include "device/model/registers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/model/iaa_device.h"

namespace iaa::device {
namespace {

constexpr std::uint64_t kWord = 4;

struct Range {
    Range(std::uint64_t first, std::uint64_t bytes) : base(first), size(bytes) {}

    std::uint64_t base;
    std::uint64_t size;

    [[nodiscard]] bool holds(std::uint64_t offset) const {
        return offset >= base && offset - base < size;
    }
};

std::uint32_t half(std::uint64_t value, std::uint64_t offset) {
    return static_cast<std::uint32_t>(value >> (offset % 8 * 8));
}

// Registers are reached by aligned accesses of 4 or 8 bytes alone.
bool proper(std::uint64_t offset, std::size_t size) {
    return (size == 4 || size == 8) && offset % size == 0;
}

Range group_range(const Profile& profile) {
    return {reg::kGrpCfg, profile.groups * reg::kGrpCfgStride};
}
Range permission_range(const Profile& profile) {
    return {profile.msix_perm_offset(), profile.vectors() * reg::kMsixPermStride};
}
Range wq_range(const Profile& profile) {
    return {profile.wqcfg_offset(), profile.wqs * reg::kWqCfgStride};
}
Range msix_table_range(const Profile& profile) {
    return {reg::kMsixTable, profile.vectors() * 16ULL};
}

}  // namespace

bool IaaDevice::device_enabled() const {
    return device_state_ == reg::DeviceState::kEnabled ||
           device_state_ == reg::DeviceState::kDraining;
}

void IaaDevice::register_read(std::uint64_t offset, std::span<std::byte> out) {
    if (!proper(offset, out.size())) {
        log_.rule("register-access",
                  "read of {} bytes at {:#x}: registers take aligned 4 or 8 bytes", out.size(),
                  offset);
    }
    // No register changes by being read, so any access can be served from whole words.
    std::uint64_t at = offset;
    while (!out.empty()) {
        const std::uint64_t in_word = at % kWord;
        const std::size_t count = std::min<std::size_t>(out.size(), kWord - in_word);
        const auto bytes = std::bit_cast<std::array<std::byte, kWord>>(read_word(at - in_word));
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(in_word), count, out.begin());
        out = out.subspan(count);
        at += count;
    }
}

void IaaDevice::register_write(Lock& lock, std::uint64_t offset, std::span<const std::byte> in) {
    if (!proper(offset, in.size())) {
        log_.rule("register-access",
                  "write of {} bytes at {:#x} ignored: registers take aligned 4 or 8 bytes",
                  in.size(), offset);
        return;
    }
    for (std::size_t i = 0; i < in.size(); i += kWord) {
        std::uint32_t value = 0;
        std::memcpy(&value, in.data() + i, kWord);
        write_word(lock, offset + i, value);
    }
}

std::uint32_t IaaDevice::read_word(std::uint64_t offset) const {
    const std::uint64_t qword = offset & ~7ULL;
    switch (qword) {
        case reg::kVersion:
            return half(profile_.version, offset);
        case reg::kGenCap:
            return half(profile_.gen_cap(), offset);
        case reg::kWqCap:
            return half(profile_.wq_cap(), offset);
        case reg::kGrpCap:
            return half(profile_.grp_cap(), offset);
        case reg::kEngCap:
            return half(profile_.eng_cap(), offset);
        case reg::kGenCfg:
            return half(gencfg_, offset);
        case reg::kGenCtrl:
            return half(genctrl_, offset);
        case reg::kGenSts:
            return half(static_cast<std::uint32_t>(device_state_) |
                            static_cast<std::uint32_t>(reset_type_) << 2,
                        offset);
        case reg::kIntCause:
            return half(intcause_, offset);
        case reg::kCmd:
            return half(command_, offset);
        case reg::kCmdSts:
            return half(command_status_, offset);
        case reg::kCmdCap:
            return half(profile_.cmd_cap(), offset);
        case reg::kEvlStatus:
            return errors_.status_word(offset % 8 / kWord);
        case reg::kIaaCap:
            return half(profile_.iaa_cap, offset);
        default:
            break;
    }
    if (const Range range{reg::kOpCap, 32}; range.holds(offset)) {
        return half(profile_.op_cap().at((offset - range.base) / 8), offset);
    }
    if (const Range range{reg::kOffsets, 16}; range.holds(offset)) {
        return half(profile_.offsets().at((offset - range.base) / 8), offset);
    }
    if (const Range range{reg::kSwErr, 32}; range.holds(offset)) {
        return errors_.software_error_word((offset - range.base) / kWord);
    }
    if (const Range range{reg::kEvlCfg, 16}; range.holds(offset)) {
        return errors_.config_word((offset - range.base) / kWord);
    }
    if (const Range range = group_range(profile_); range.holds(offset)) {
        const std::uint64_t at = offset - range.base;
        return tables_.group_word(static_cast<std::uint32_t>(at / reg::kGrpCfgStride),
                                  static_cast<std::uint32_t>(at % reg::kGrpCfgStride / kWord));
    }
    if (const Range range = permission_range(profile_); range.holds(offset)) {
        const std::uint64_t at = offset - range.base;
        return at % reg::kMsixPermStride == 0
                   ? tables_.permission(static_cast<std::uint32_t>(at / reg::kMsixPermStride))
                   : 0;
    }
    if (const Range range = wq_range(profile_); range.holds(offset)) {
        const std::uint64_t at = offset - range.base;
        const auto wq = static_cast<std::uint32_t>(at / reg::kWqCfgStride);
        const auto word = static_cast<std::uint32_t>(at % reg::kWqCfgStride / kWord);
        constexpr std::uint32_t kStateWord = 6;
        if (word == kStateWord) {
            const WorkQueue& queue = queues_[wq];
            return std::min<std::uint32_t>(queue.entries, 0xffff) |
                   static_cast<std::uint32_t>(queue.state) << 30;
        }
        return tables_.wq_word(wq, word);
    }
    if (const Range range = msix_table_range(profile_); range.holds(offset)) {
        return msix_table_.at((offset - range.base) / kWord);
    }
    return 0;
}

void IaaDevice::write_word(Lock& lock, std::uint64_t offset, std::uint32_t value) {
    const Range groups = group_range(profile_);
    const Range permissions = permission_range(profile_);
    const Range wqs = wq_range(profile_);
    const Range msix_table = msix_table_range(profile_);
    if (groups.holds(offset)) {
        const std::uint64_t at = offset - groups.base;
        tables_.write_group_word(static_cast<std::uint32_t>(at / reg::kGrpCfgStride),
                                 static_cast<std::uint32_t>(at % reg::kGrpCfgStride / kWord), value,
                                 device_enabled());
    } else if (permissions.holds(offset)) {
        const std::uint64_t at = offset - permissions.base;
        if (at % reg::kMsixPermStride == 0) {
            tables_.write_permission(static_cast<std::uint32_t>(at / reg::kMsixPermStride), value);
        }
    } else if (wqs.holds(offset)) {
        const std::uint64_t at = offset - wqs.base;
        const auto wq = static_cast<std::uint32_t>(at / reg::kWqCfgStride);
        tables_.write_wq_word(wq, static_cast<std::uint32_t>(at % reg::kWqCfgStride / kWord), value,
                              device_enabled(), queues_[wq].state != reg::WqState::kDisabled);
    } else if (msix_table.holds(offset)) {
        msix_table_.at((offset - msix_table.base) / kWord) = value;
    } else {
        write_control_word(lock, offset, value);
    }
}

void IaaDevice::write_control_word(Lock& lock, std::uint64_t offset, std::uint32_t value) {
    switch (offset) {
        case reg::kGenCfg:
            write_gencfg(lock, value);
            return;
        case reg::kGenCtrl:
            if ((value & ~reg::kGenCtrlMask) != 0) {
                log_.rule("genctrl-reserved", "GENCTRL: reserved bits {:#x} set; they stay 0",
                          value & ~reg::kGenCtrlMask);
            }
            genctrl_ = value & reg::kGenCtrlMask;
            return;
        case reg::kIntCause:
            intcause_ &= ~value;
            return;
        case reg::kCmd:
            command(lock, value);
            return;
        case reg::kSwErr:
            errors_.acknowledge_software_error(value);
            return;
        case reg::kEvlStatus:
            if (errors_.ring_size() != 0 && (value & 0xffff) >= errors_.ring_size()) {
                log_.rule("evl-head", "EVLSTATUS: head {} is outside the ring of {} entries",
                          value & 0xffff, errors_.ring_size());
                return;
            }
            errors_.set_head(value);
            return;
        case reg::kEvlStatus + kWord:
            if ((value & reg::kEvlIntPending) != 0) {
                errors_.clear_pending();
            }
            return;
        default:
            break;
    }
    // The upper halves of the registers above, which have no bits.
    constexpr std::array<std::uint64_t, 5> kUpperHalves{reg::kGenCfg + kWord, reg::kGenCtrl + kWord,
                                                        reg::kIntCause + kWord, reg::kCmd + kWord,
                                                        reg::kSwErr + kWord};
    if (std::ranges::find(kUpperHalves, offset) != kUpperHalves.end()) {
        return;
    }
    if (const Range range{reg::kEvlCfg, 16}; range.holds(offset)) {
        write_evlcfg(offset - range.base, value);
        return;
    }
    log_.rule("register-read-only", "write of {:#x} at {:#x} ignored: nothing there is writable",
              value, offset);
}

void IaaDevice::write_gencfg(Lock& lock, std::uint32_t value) {
    // Drivers in the field write the reserved bits from memory that they never set: no complaint.
    value &= reg::kGenCfgMask;
    if (value == gencfg_) {
        return;
    }
    if (device_enabled()) {
        log_.rule("gencfg-locked", "GENCFG: read only while the device is enabled");
        return;
    }
    if ((value & ~gencfg_ & reg::kGenCfgEvlEn) != 0) {
        errors_.restart();
    }
    const bool log_ends = (gencfg_ & ~value & reg::kGenCfgEvlEn) != 0;
    gencfg_ = value;
    if (log_ends) {
        errors_.forget();
        Gates gates;
        take_own_gate(gates);
        fence(lock, gates);
    }
}

void IaaDevice::write_evlcfg(std::uint64_t offset, std::uint32_t value) {
    const std::size_t word = offset / kWord;
    if (device_enabled() || (gencfg_ & reg::kGenCfgEvlEn) != 0) {
        if (value != errors_.config_word(word)) {
            log_.rule("evlcfg-locked", "EVLCFG: read only while the event log is enabled");
        }
        return;
    }
    errors_.set_config_word(word, value);
}

}  // namespace iaa::device
