// SPDX-License-Identifier: GPL-2.0
#include "device/model/iaa_device.h"

namespace iaa::device {

void IaaDevice::send_msix(std::uint32_t vector, std::optional<std::uint32_t> wq) {
    if (!dma_allowed() || !config_.msix_enabled()) {
        log_.debug("interrupt {} not sent: MSI-X or bus mastering is off", vector);
        return;
    }
    // Counted first, so that whoever gets the interrupt finds it counted.
    if (wq) {
        counters_.interrupt(*wq);
    } else {
        counters_.other_interrupt();
    }
    host_->trigger_msix(vector);
}

void IaaDevice::send_msix(std::optional<std::uint32_t> vector, unsigned times, std::uint32_t wq) {
    for (; vector && times > 0; --times) {
        send_msix(*vector, wq);
    }
}

void IaaDevice::raise(std::uint32_t cause) {
    intcause_ |= cause;
    send_msix(0, std::nullopt);
}

void IaaDevice::report(const ErrorReport& report) {
    if ((gencfg_ & reg::kGenCfgEvlEn) != 0 && device_enabled()) {
        if (errors_.queue(report)) {
            return;
        }
        log_.rule("evl-full", "event log: too many reports wait for their entry; it goes to SWERR");
    }
    report_software_error(report);
}

void IaaDevice::report_software_error(const ErrorReport& report) {
    errors_.record_software_error(report);
    if ((genctrl_ & reg::kGenCtrlSoftErrInt) != 0) {
        raise(reg::kIntError);
    }
}

void IaaDevice::write_event_log(Lock& lock) {
    // One thread at a time, so that entries reach the ring in order; it writes those of the others.
    if (event_log_busy_) {
        return;
    }
    event_log_busy_ = true;
    while (errors_.waiting()) {
        if (errors_.full() || !dma_allowed()) {
            log_.rule("evl-full", "event log: no entry can be written now; it goes to SWERR");
            report_software_error(errors_.take_waiting());
            continue;
        }
        const ErrorLog::Write write = errors_.next_write();
        const std::shared_ptr<AccessGate> gate = own_gate_;
        GatedMemory memory(host_->memory(), *gate);
        lock.unlock();
        const bool written = memory.write(write.address, write.entry);
        lock.lock();
        if (!errors_.current(write)) {
            continue;
        }
        if (!written) {
            log_.rule("evl-address", "event log: no entry can be written to {:#x}", write.address);
            report_software_error(errors_.take_waiting());
        } else if (errors_.written() && (genctrl_ & reg::kGenCtrlEvlInt) != 0) {
            raise(reg::kIntEventLog);
        }
        advance_command();
    }
    event_log_busy_ = false;
    advance_command();
}

void IaaDevice::take_own_gate(Gates& gates) {
    own_gate_->shut();
    gates.push_back(std::exchange(own_gate_, std::make_shared<AccessGate>()));
}

void IaaDevice::schedule_late_write(Clock::duration delay, LateWrite write) {
    late_writes_.emplace(Clock::now() + delay, std::move(write));
    if (!late_thread_.joinable()) {
        late_thread_ = std::jthread([this](const std::stop_token& stop) { late_main(stop); });
    }
    late_wake_.notify_one();
}

void IaaDevice::late_main(const std::stop_token& stop) {
    Lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (late_writes_.empty()) {
            late_wake_.wait(lock, stop, [this] { return !late_writes_.empty(); });
            continue;
        }
        const auto due = late_writes_.begin()->first;
        if (Clock::now() < due) {
            late_wake_.wait_until(lock, stop, due, [this, due] {
                return late_writes_.empty() || late_writes_.begin()->first < due;
            });
            continue;
        }
        const LateWrite write = std::move(late_writes_.begin()->second);
        late_writes_.erase(late_writes_.begin());
        late_write(lock, write);
    }
}

void IaaDevice::late_write(Lock& lock, const LateWrite& write) {
    const Descriptor& descriptor = write.job->descriptor;
    const std::uint32_t wq = write.job->portal.wq;
    if (!dma_allowed()) {
        log_.info("WQ {}: a late completion record is lost: bus mastering or power is off", wq);
        return;
    }
    const std::shared_ptr<AccessGate> gate = write.repeat ? gate_of(write.job) : late_gate_;
    GatedMemory memory(host_->memory(), *gate);
    if (write.repeat) {
        repeating_ = write.job;
    } else {
        count_completion(*write.job, write.record);
    }
    lock.unlock();
    const bool written = memory.write_completion(
        descriptor.completion_addr,
        std::as_bytes(std::span<const CompletionRecord, 1>(&write.record, 1)));
    lock.lock();
    repeating_ = nullptr;
    advance_command();
    if (!written) {
        if (!write.repeat) {
            uncount_completion(*write.job, write.record);
        }
        if (!gate->is_shut()) {
            log_.info("WQ {}: a late completion record could not be written to {:#x}", wq,
                      descriptor.completion_addr);
        }
        return;
    }
    send_msix(write.vector, write.interrupts, wq);
}

}  // namespace iaa::device
