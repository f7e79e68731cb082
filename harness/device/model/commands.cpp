// SPDX-License-Identifier: GPL-2.0
#include <algorithm>
#include <ranges>

#include "device/model/iaa_device.h"

namespace iaa::device {
namespace {

using reg::Command;
using reg::CommandError;

constexpr std::uint32_t kPasidMask = 0xfffff;

/// Handles are not vector numbers, so that a driver that mixes the two up is found out.
constexpr std::uint32_t kHandleBase = 0x100;

}  // namespace

void IaaDevice::command(Lock& lock, std::uint32_t value) {
    const std::uint32_t number = value >> reg::kCmdCodeShift & reg::kCmdCodeMask;
    const std::uint32_t operand = value & reg::kCmdOperandMask;
    const bool interrupt = (value & reg::kCmdInterrupt) != 0;
    if (pending_) {
        log_.rule("command-while-active", "CMD {:#x} ignored: command {} is still at work", value,
                  static_cast<unsigned>(pending_->command));
        return;
    }
    command_ = value;
    counters_.command(static_cast<std::uint8_t>(number));
    log_.debug("command {} operand {:#x}{}", number, operand, interrupt ? ", interrupt" : "");
    if ((value & reg::kCmdReserved) != 0) {
        log_.rule("command-reserved", "CMD {:#x}: reserved bits set", value);
        finish_command(CommandError::kReservedField, interrupt);
        return;
    }
    if ((profile_.cmd_cap() >> number & 1) == 0) {
        log_.rule("command-invalid", "command {} is not there (CMDCAP)", number);
        finish_command(CommandError::kInvalidCommand, interrupt);
        return;
    }
    const auto code = static_cast<Command>(number);
    if (device_state_ == reg::DeviceState::kHalt &&
        (code != Command::kResetDevice || reset_type_ != reg::ResetType::kSoftware)) {
        log_.rule("command-in-halt", "command {} in the HALT state", number);
        finish_command(CommandError::kHardwareError, interrupt);
        return;
    }
    switch (code) {
        case Command::kEnableDevice:
        case Command::kDisableDevice:
        case Command::kDrainAll:
        case Command::kAbortAll:
        case Command::kResetDevice:
            if (operand != 0) {
                log_.rule("command-reserved", "command {}: its operand {:#x} is reserved", number,
                          operand);
                finish_command(CommandError::kReservedField, interrupt);
                return;
            }
            command_on_device(lock, code, interrupt);
            return;
        case Command::kEnableWq:
            finish_command(enable_wq(operand), interrupt);
            return;
        case Command::kDisableWq:
        case Command::kDrainWq:
        case Command::kAbortWq:
        case Command::kResetWq:
            command_on_wqs(lock, code, operand, interrupt);
            return;
        case Command::kDrainPasid:
        case Command::kAbortPasid:
            command_by_pasid(lock, code, operand, interrupt);
            return;
        case Command::kRequestIntHandle:
        case Command::kReleaseIntHandle:
            command_handle(code, operand, interrupt);
            return;
    }
}

void IaaDevice::command_on_device(Lock& lock, Command code, bool interrupt) {
    if (code == Command::kEnableDevice) {
        finish_command(enable_device(), interrupt);
        return;
    }
    if (code == Command::kResetDevice) {
        reset_device_state(lock);
        finish_command(CommandError::kSuccess, interrupt);
        return;
    }
    if (!device_enabled()) {
        log_.rule("command-order", "command {}: the device is not enabled",
                  static_cast<unsigned>(code));
        finish_command(CommandError::kDisableNotEnabled, interrupt);
        return;
    }
    const std::vector<std::uint32_t> wqs = enabled_wqs();
    if (code == Command::kAbortAll) {
        Gates gates;
        for (const std::uint32_t wq : wqs) {
            abandon(wq, std::nullopt, gates);
        }
        fence(lock, gates);
        finish_command(CommandError::kSuccess, interrupt);
        return;
    }
    if (code == Command::kDisableDevice) {
        device_state_ = reg::DeviceState::kDraining;
        for (const std::uint32_t wq : wqs) {
            queues_[wq].state = reg::WqState::kDraining;
        }
    }
    start_draining({.command = code,
                    .wqs = wqs,
                    .interrupt = interrupt,
                    .last = next_job_ - 1,
                    .pasid = std::nullopt,
                    .reports = std::nullopt});
}

CommandError IaaDevice::enable_device() {
    if (device_state_ != reg::DeviceState::kDisabled) {
        log_.rule("command-order", "ENABLE_DEVICE: the device is enabled");
        return CommandError::kDeviceNotDisabled;
    }
    if (!config_.bus_master()) {
        log_.rule("bus-master-off", "ENABLE_DEVICE: bus mastering is off");
        return CommandError::kBusMasterOff;
    }
    if ((gencfg_ & reg::kGenCfgEvlEn) != 0 && errors_.ring_size() < reg::kEvlMinSize) {
        log_.rule("evl-size", "ENABLE_DEVICE: the event log has {} entries: {} are the least",
                  errors_.ring_size(), reg::kEvlMinSize);
        return CommandError::kDeviceConfig;
    }
    const CommandError error = tables_.check_device();
    if (error == CommandError::kSuccess) {
        device_state_ = reg::DeviceState::kEnabled;
    }
    return error;
}

CommandError IaaDevice::enable_wq(std::uint32_t wq) {
    if (wq >= profile_.wqs) {
        log_.rule("wq-index", "ENABLE_WQ {}: there are {} WQs", wq, profile_.wqs);
        return CommandError::kInvalidWqIndex;
    }
    if (device_state_ != reg::DeviceState::kEnabled) {
        log_.rule("command-order", "ENABLE_WQ {}: the device is not enabled", wq);
        return CommandError::kDeviceNotEnabled;
    }
    if (queues_[wq].state != reg::WqState::kDisabled) {
        log_.rule("command-order", "ENABLE_WQ {}: the WQ is enabled", wq);
        return CommandError::kWqNotDisabled;
    }
    const CommandError error = tables_.check_wq(wq);
    if (error == CommandError::kSuccess) {
        queues_[wq].state = reg::WqState::kEnabled;
        queues_[wq].credit = 0;
    }
    return error;
}

std::vector<std::uint32_t> IaaDevice::enabled_wqs() const {
    std::vector<std::uint32_t> wqs;
    for (std::uint32_t wq = 0; wq < queues_.size(); ++wq) {
        if (queues_[wq].state != reg::WqState::kDisabled) {
            wqs.push_back(wq);
        }
    }
    return wqs;
}

void IaaDevice::command_on_wqs(Lock& lock, Command code, std::uint32_t operand, bool interrupt) {
    // The operand holds 16 WQs: a mask in 15:0, and which 16 in 19:16.
    constexpr std::uint32_t kWqsInMask = 16;
    const std::uint32_t base = operand / 0x10000 * kWqsInMask;
    std::vector<std::uint32_t> wqs;
    for (std::uint32_t bit = 0; bit < kWqsInMask; ++bit) {
        if ((operand >> bit & 1) != 0) {
            wqs.push_back(base + bit);
        }
    }
    if (wqs.empty() || wqs.back() >= profile_.wqs) {
        log_.rule("wq-index", "command {} operand {:#x} names no WQ, or one that is not there",
                  static_cast<unsigned>(code), operand);
        finish_command(CommandError::kInvalidWqIndex, interrupt);
        return;
    }
    const bool all_enabled = std::ranges::all_of(
        wqs, [this](std::uint32_t wq) { return queues_[wq].state != reg::WqState::kDisabled; });
    if (!all_enabled) {
        log_.rule("command-order", "command {} operand {:#x}: a WQ is not enabled",
                  static_cast<unsigned>(code), operand);
        finish_command(CommandError::kWqNotEnabled, interrupt);
        return;
    }
    if (code == Command::kDrainWq || code == Command::kDisableWq) {
        if (code == Command::kDisableWq) {
            for (const std::uint32_t wq : wqs) {
                queues_[wq].state = reg::WqState::kDraining;
            }
        }
        start_draining({.command = code,
                        .wqs = wqs,
                        .interrupt = interrupt,
                        .last = next_job_ - 1,
                        .pasid = std::nullopt,
                        .reports = std::nullopt});
        return;
    }
    Gates gates;
    for (const std::uint32_t wq : wqs) {
        abandon(wq, std::nullopt, gates);
    }
    fence(lock, gates);
    if (code == Command::kResetWq) {
        for (const std::uint32_t wq : wqs) {
            disable_queue(wq);
            tables_.reset_wq(wq);
        }
    }
    finish_command(CommandError::kSuccess, interrupt);
}

void IaaDevice::command_by_pasid(Lock& lock, Command code, std::uint32_t pasid, bool interrupt) {
    if (!device_enabled()) {
        log_.rule("command-order", "command {}: the device is not enabled",
                  static_cast<unsigned>(code));
        finish_command(CommandError::kDisableNotEnabled, interrupt);
        return;
    }
    const std::vector<std::uint32_t> wqs = enabled_wqs();
    if (code == Command::kDrainPasid) {
        start_draining({.command = code,
                        .wqs = wqs,
                        .interrupt = interrupt,
                        .last = next_job_ - 1,
                        .pasid = pasid,
                        .reports = std::nullopt});
        return;
    }
    Gates gates;
    for (const std::uint32_t wq : wqs) {
        abandon(wq, pasid, gates);
    }
    fence(lock, gates);
    wake_engines();  // a fence may have waited for what is gone
    finish_command(CommandError::kSuccess, interrupt);
}

void IaaDevice::command_handle(Command code, std::uint32_t operand, bool interrupt) {
    const bool ims = (operand & reg::kHandleIms) != 0;
    const std::uint32_t number = operand & 0xffff;
    if (ims || (operand & ~(reg::kHandleIms | 0xffffU)) != 0) {
        log_.rule("int-handle", "command {} operand {:#x}: no interrupt message storage here",
                  static_cast<unsigned>(code), operand);
        finish_command(ims ? CommandError::kInvalidIntIndex : CommandError::kReservedField,
                       interrupt);
        return;
    }
    if (code == Command::kRequestIntHandle) {
        if (number >= profile_.vectors()) {
            log_.rule("int-handle", "REQUEST_INT_HANDLE {}: there are {} vectors", number,
                      profile_.vectors());
            finish_command(CommandError::kInvalidIntIndex, interrupt);
            return;
        }
        handles_.insert(number);
        finish_command(CommandError::kSuccess, interrupt, number + kHandleBase);
        return;
    }
    if (number < kHandleBase || handles_.erase(number - kHandleBase) == 0) {
        log_.rule("int-handle", "RELEASE_INT_HANDLE {:#x}: it was not requested", number);
        finish_command(CommandError::kHandleNotAssigned, interrupt);
        return;
    }
    finish_command(CommandError::kSuccess, interrupt);
}

std::optional<std::uint32_t> IaaDevice::completion_vector(const Job& job) const {
    if (job.portal.ims) {
        return std::nullopt;
    }
    const std::uint32_t handle = job.descriptor.int_handle;
    std::uint32_t vector = handle;
    if (profile_.interrupt_handles) {
        if (handle < kHandleBase || !handles_.contains(handle - kHandleBase)) {
            return std::nullopt;
        }
        vector = handle - kHandleBase;
    }
    if (vector >= profile_.vectors()) {
        return std::nullopt;
    }
    const std::uint32_t permission = tables_.permission(vector);
    if ((permission & reg::kPermIgnore) != 0) {
        return vector;
    }
    const bool pasid_wanted = (permission & reg::kPermPasidEn) != 0;
    if (pasid_wanted != tables_.wq_pasid_enabled(job.portal.wq)) {
        return std::nullopt;
    }
    if (pasid_wanted && permission >> 12 != (job.descriptor.pasid_priv & kPasidMask)) {
        return std::nullopt;
    }
    return vector;
}

bool IaaDevice::covers(const Pending& pending, const Job& job) {
    return job.number <= pending.last &&
           std::ranges::find(pending.wqs, job.portal.wq) != pending.wqs.end() &&
           (!pending.pasid || *pending.pasid == (job.descriptor.pasid_priv & kPasidMask));
}

void IaaDevice::start_draining(Pending pending) {
    // Whoever has seen a drain complete may take the records' memory back.
    Gates under_way;  // advance_command() waits for it
    for (const std::uint32_t wq : pending.wqs) {
        forget_repeats(wq, pending.pasid, under_way);
    }
    pending_ = std::move(pending);
    command_status_ = reg::kCmdStsActive;
    settle_parked();
    advance_command();
}

void IaaDevice::settle_parked() {
    if (!pending_) {
        return;
    }
    for (const std::uint32_t wq : pending_->wqs) {
        WorkQueue& queue = queues_[wq];
        std::vector<JobPtr> released;
        std::erase_if(queue.in_flight, [&](const JobPtr& job) {
            if (!job->parked || !covers(*pending_, *job) ||
                job->parked->on_drain == control::DrainFault::kWaits) {
                return false;
            }
            if (job->parked->on_drain == control::DrainFault::kCompletes) {
                released.push_back(job);
            } else {
                log_.debug("WQ {}: a drain forgets a descriptor that a fault keeps from completing",
                           wq);
            }
            return true;
        });
        for (const JobPtr& job : std::views::reverse(released)) {
            job->parked.reset();
            job->released = true;
            queue.waiting.push_front(job);
        }
    }
    wake_engines();
}

void IaaDevice::advance_command() {
    if (!pending_) {
        return;
    }
    for (const std::uint32_t wq : pending_->wqs) {
        const auto covered = [this](const JobPtr& job) { return covers(*pending_, *job); };
        if (std::ranges::any_of(queues_[wq].waiting, covered) ||
            std::ranges::any_of(queues_[wq].in_flight, covered)) {
            return;
        }
    }
    if (repeating_ && covers(*pending_, *repeating_)) {
        return;
    }
    // What these descriptors had to report belongs to their completion.
    if (!pending_->reports) {
        pending_->reports = errors_.queued();
    }
    if (errors_.settled() < *pending_->reports) {
        return;
    }
    const Pending done = std::move(*pending_);
    pending_.reset();
    if (done.command == Command::kDisableWq || done.command == Command::kDisableDevice) {
        for (const std::uint32_t wq : done.wqs) {
            disable_queue(wq);
        }
    }
    if (done.command == Command::kDisableDevice) {
        device_state_ = reg::DeviceState::kDisabled;
    }
    finish_command(CommandError::kSuccess, done.interrupt);
}

void IaaDevice::finish_command(CommandError error, bool interrupt, std::uint32_t result) {
    command_status_ = static_cast<std::uint32_t>(error) | result << reg::kCmdStsResultShift;
    if (interrupt) {
        raise(reg::kIntCommand);
    }
}

}  // namespace iaa::device
