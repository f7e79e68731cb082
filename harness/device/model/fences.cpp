// SPDX-License-Identifier: GPL-2.0
#include <algorithm>

#include "device/model/iaa_device.h"

namespace iaa::device {
namespace {

constexpr std::uint32_t kPasidMask = 0xfffff;

}  // namespace

void IaaDevice::abandon(std::uint32_t wq, std::optional<std::uint32_t> pasid, Gates& gates) {
    WorkQueue& queue = queues_[wq];
    const auto leaves = [&](const JobPtr& job) {
        if (pasid && *pasid != (job->descriptor.pasid_priv & kPasidMask)) {
            return false;
        }
        job->gate.shut();
        release_entry(*job);
        gates.push_back(gate_of(job));
        return true;
    };
    std::erase_if(queue.waiting, leaves);
    std::erase_if(queue.in_flight, leaves);
    forget_repeats(wq, pasid, gates);
    delays_.notify_all();
}

void IaaDevice::abandon_in_flight(std::uint32_t wq, Gates& gates) {
    for (const JobPtr& job : queues_[wq].in_flight) {
        job->gate.shut();
        release_entry(*job);
        gates.push_back(gate_of(job));
    }
    queues_[wq].in_flight.clear();
    forget_repeats(wq, std::nullopt, gates);
    delays_.notify_all();
}

void IaaDevice::forget_repeats(std::uint32_t wq, std::optional<std::uint32_t> pasid, Gates& gates) {
    const auto leaves = [&](const Job& job) {
        return job.portal.wq == wq &&
               (!pasid || *pasid == (job.descriptor.pasid_priv & kPasidMask));
    };
    std::erase_if(late_writes_, [&](const auto& entry) {
        return entry.second.repeat && leaves(*entry.second.job);
    });
    if (repeating_ && leaves(*repeating_)) {
        repeating_->gate.shut();
        gates.push_back(gate_of(repeating_));
    }
}

void IaaDevice::disable_queue(std::uint32_t wq) {
    WorkQueue& queue = queues_[wq];
    queue.state = reg::WqState::kDisabled;
    queue.entries = 0;
    if (const std::size_t partial = portals_.forget(wq); partial != 0) {
        log_.rule("portal-partial", "WQ {}: {} half stored descriptors are lost with the WQ", wq,
                  partial);
    }
}

void IaaDevice::fence(Lock& lock, const Gates& gates) {
    const auto empty = [&gates] {
        return std::ranges::all_of(gates, [](const auto& gate) { return gate->empty(); });
    };
    Host* host = host_;
    if (host == nullptr || empty()) {
        return;
    }
    lock.unlock();
    if (!host->pump_until(empty, options_.fence_limit)) {
        host->disconnect("an access to guest memory does not end");
    }
    // Without a client every access ends. Going on before would let the device write to memory that
    // the guest has taken back.
    while (!host->pump_until(empty, options_.fence_limit)) {
        log_.event("fence", "an access to guest memory has still not ended");
    }
    lock.lock();
}

void IaaDevice::reset_device_state(Lock& lock) {
    Gates gates;
    for (std::uint32_t wq = 0; wq < queues_.size(); ++wq) {
        abandon(wq, std::nullopt, gates);
        disable_queue(wq);
    }
    pending_.reset();
    take_own_gate(gates);
    errors_.reset();
    tables_.reset();
    device_state_ = reg::DeviceState::kDisabled;
    reset_type_ = reg::ResetType::kSoftware;
    halt_reason_.clear();
    gencfg_ = 0;
    genctrl_ = 0;
    intcause_ = 0;
    command_status_ = 0;
    fence(lock, gates);
}

void IaaDevice::reset_function(Lock& lock, reg::ResetType kind) {
    config_.reset();
    command_ = 0;
    handles_.clear();
    std::ranges::fill(msix_table_, 0U);
    const bool stays_halted = device_state_ == reg::DeviceState::kHalt &&
                              static_cast<unsigned>(reset_type_) > static_cast<unsigned>(kind);
    if (!stays_halted) {
        reset_device_state(lock);
        return;
    }
    const reg::ResetType needed = reset_type_;
    const std::string reason = halt_reason_;
    reset_device_state(lock);
    device_state_ = reg::DeviceState::kHalt;
    reset_type_ = needed;
    halt_reason_ = reason;
    log_.event("still-halted", "still in HALT: it takes a deeper reset to leave it");
}

void IaaDevice::enter_halt(std::string_view reason, reg::ResetType leave_by) {
    log_.error("HALT: {}", reason);
    // No fence: nobody has been told yet that the guest's memory is its own again, and the reset
    // that ends this state fences. The shut gates keep everything out from here on.
    for (WorkQueue& queue : queues_) {
        for (const JobPtr& job : queue.in_flight) {
            job->gate.shut();
        }
        queue.waiting.clear();
    }
    std::erase_if(late_writes_, [](const auto& entry) { return entry.second.repeat; });
    if (repeating_) {
        repeating_->gate.shut();
    }
    delays_.notify_all();
    if (pending_) {
        const bool interrupt = pending_->interrupt;
        pending_.reset();
        finish_command(reg::CommandError::kHardwareError, interrupt);
    }
    device_state_ = reg::DeviceState::kHalt;
    reset_type_ = leave_by;
    halt_reason_ = reason;
    if ((genctrl_ & reg::kGenCtrlHaltInt) != 0) {
        raise(reg::kIntHalt);
    }
}

}  // namespace iaa::device
