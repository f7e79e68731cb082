// SPDX-License-Identifier: GPL-2.0
#include <algorithm>

#include "device/model/iaa_device.h"

namespace iaa::device {

void IaaDevice::portal_error(reg::PortalError code, const PortalAddress& portal,
                             const Descriptor* descriptor) {
    ErrorReport error;
    error.code = static_cast<std::uint8_t>(code);
    error.wq = portal.wq;
    if (descriptor != nullptr) {
        error.descriptor = *descriptor;
    }
    report(error);
}

void IaaDevice::portal_overwritten(const PortalAddress& portal, std::size_t byte) {
    log_.rule(
        "portal-overwrite",
        "WQ {} slot {:#x}: byte {} stored again before its descriptor was whole; serialise the "
        "stores of one slot",
        portal.wq, portal.slot, byte);
    portal_error(reg::PortalError::kOverwritten, portal, nullptr);
}

void IaaDevice::portal_lost(const PortalAddress& portal, std::size_t lost) {
    log_.rule("portal-lost", "WQ {} slot {:#x}: {} mixed descriptors given up", portal.wq,
              portal.slot, lost);
    for (std::size_t i = 0; i < lost; ++i) {
        counters_.dropped(portal.wq);
    }
}

void IaaDevice::take_from_portal(const PortalAddress& portal, const Descriptor& descriptor) {
    WorkQueue& queue = queues_[portal.wq];
    if (device_state_ != reg::DeviceState::kEnabled || queue.state != reg::WqState::kEnabled) {
        log_.rule("portal-disabled", "WQ {}: descriptor dropped, the WQ is not enabled", portal.wq);
        counters_.dropped(portal.wq);
        portal_error(reg::PortalError::kWqNotEnabled, portal, &descriptor);
        return;
    }
    if (faults_.at_portal(descriptor, portal.wq)) {
        log_.debug("WQ {}: a fault drops a descriptor at the portal", portal.wq);
        counters_.fault(portal.wq);
        counters_.dropped(portal.wq);
        return;
    }
    if (queue.entries >= tables_.wq_size(portal.wq)) {
        log_.rule("wq-full", "WQ {}: descriptor dropped, all {} entries are in use", portal.wq,
                  queue.entries);
        counters_.dropped(portal.wq);
        portal_error(reg::PortalError::kWqFull, portal, &descriptor);
        return;
    }
    auto job = std::make_shared<Job>();
    job->number = next_job_++;
    job->portal = portal;
    job->descriptor = descriptor;
    ++queue.entries;
    queue.waiting.push_back(std::move(job));
    counters_.accepted(portal.wq);
    if (const std::optional<std::uint32_t> group = tables_.group_of_wq(portal.wq)) {
        wake_engine(*group);
    } else {
        log_.rule("wq-no-group", "WQ {} is in no group: no engine ever takes its descriptors",
                  portal.wq);
    }
}

JobPtr IaaDevice::next_job(std::uint32_t engine) {
    if (!dma_allowed() || !device_enabled()) {
        return nullptr;
    }
    const std::optional<std::uint32_t> group = tables_.group_of_engine(engine);
    return group ? take_next(queues_, tables_.group_wqs(*group), tables_) : nullptr;
}

void IaaDevice::engine_main(const std::stop_token& stop, std::uint32_t index) {
    Engine& engine = *engines_[index];
    Lock lock(mutex_);
    while (!stop.stop_requested()) {
        engine.called = false;
        const JobPtr job = next_job(index);
        if (job == nullptr) {
            engine.idle = true;
            engine.wake.wait(lock, stop, [&engine] { return engine.called; });
            engine.idle = false;
            continue;
        }
        ++busy_engines_;
        const std::optional<std::uint32_t> group = tables_.group_of_engine(index);
        if (group && has_next(queues_, tables_.group_wqs(*group))) {
            wake_engine(*group);
        }
        run(lock, job);
        --busy_engines_;
        write_event_log(lock);
    }
}

void IaaDevice::wake_engine(std::uint32_t group) {
    const std::uint64_t members = tables_.group_engines(group);
    for (std::uint32_t i = 0; i < profile_.engines; ++i) {
        const std::uint32_t index = (next_engine_ + i) % profile_.engines;
        Engine& engine = *engines_[index];
        if ((members >> index & 1) != 0 && engine.idle && !engine.called) {
            engine.called = true;
            engine.wake.notify_one();
            next_engine_ = (index + 1) % profile_.engines;
            return;
        }
    }
}

void IaaDevice::wake_engines() {
    for (const auto& engine : engines_) {
        engine->called = true;
        engine->wake.notify_one();
    }
}

void IaaDevice::run_inline(Lock& lock) {
    if (!options_.inline_execution) {
        return;
    }
    for (bool found = true; found;) {
        found = false;
        for (std::uint32_t i = 0; i < profile_.engines; ++i) {
            const std::uint32_t index = (next_engine_ + i) % profile_.engines;
            if (const JobPtr job = next_job(index)) {
                next_engine_ = (index + 1) % profile_.engines;
                ++busy_engines_;
                run(lock, job);
                --busy_engines_;
                found = true;
                break;
            }
        }
    }
}

void IaaDevice::run(Lock& lock, const JobPtr& job) {
    const std::uint32_t wq = job->portal.wq;
    const control::Decision decision =
        job->released ? control::Decision{} : faults_.decide(job->descriptor, wq);
    if (decision) {
        counters_.fault(wq);
    }
    if (decision.actions.halt) {
        enter_halt("a fault rule asks for it", reg::ResetType::kSoftware);
        return;
    }
    if (decision.actions.never_complete) {
        job->parked = decision.actions;
        settle_parked();
        advance_command();
        return;
    }
    if (decision.actions.delay.count() > 0) {
        delays_.wait_for(lock, decision.actions.delay, [&job] { return job->gate.is_shut(); });
    }
    if (job->gate.is_shut()) {
        end_job(job);
        return;
    }
    Work work{.decision = decision,
              .vector = completion_vector(*job),
              .capabilities = profile_.capabilities(),
              .host = *host_};
    tables_.describe_wq(wq, work.capabilities);
    GatedMemory memory(work.host.memory(), job->gate);

    lock.unlock();
    CompletionRecord record = carry_out(*job, memory, work);
    lock.lock();
    if (job->gate.is_shut()) {
        end_job(job);
        return;
    }
    // The entry is free before the record can be seen: whoever sees the record may submit again.
    release_entry(*job);
    finish(lock, job, memory, work, record);
    end_job(job);
    advance_command();
}

CompletionRecord IaaDevice::carry_out(const Job& job, DmaMemory& memory, const Work& work) {
    const Descriptor& descriptor = job.descriptor;
    const std::uint32_t wq = job.portal.wq;
    const std::optional<control::StatusFault>& status = work.decision.actions.status;
    Outcome outcome;
    if ((descriptor.flags() & op_flag::kRequestInterrupt) != 0 && !work.vector) {
        outcome.record.status = static_cast<std::uint8_t>(Status::kInterruptHandle);
        outcome.rule =
            fmt::format("interrupt-handle: {:#x} is not this WQ's to use", descriptor.int_handle);
    } else if (!status || status->execute) {
        outcome = execute(job, memory, work);
    }
    if (!outcome.rule.empty() && !job.gate.is_shut()) {
        log_outcome(wq, descriptor, outcome);
    }
    if (work.decision) {
        control::apply_to_result(work.decision, descriptor, memory, outcome.record);
    }
    return outcome.record;
}

void IaaDevice::log_outcome(std::uint32_t wq, const Descriptor& descriptor,
                            const Outcome& outcome) {
    // Output that does not fit and streams that are not DEFLATE are what data is like; everything
    // else is a descriptor that should not have been written.
    if (outcome.status() == Status::kAnalyticsError ||
        outcome.status() == Status::kOutputOverflow) {
        log_.debug("WQ {} opcode {:#04x}, status {:#04x}, error {}: {}", wq, descriptor.opcode(),
                   outcome.record.status, outcome.record.error_code, outcome.rule);
    } else {
        log_.rule("descriptor", "WQ {} opcode {:#04x}, status {:#04x}: {}", wq, descriptor.opcode(),
                  outcome.record.status, outcome.rule);
    }
}

Outcome IaaDevice::execute(const Job& job, DmaMemory& memory, const Work& work) {
    if (options_.trace == nullptr) {
        return options_.execute(job.descriptor, memory, work.capabilities);
    }
    TraceMemory recording(memory);
    Outcome outcome = options_.execute(job.descriptor, recording, work.capabilities);
    // A descriptor that was abandoned on its way has read and written only a part.
    if (job.gate.is_shut() || trace_failed_.load()) {
        return outcome;
    }
    if (!options_.trace->append(recording.record(job.descriptor, work.capabilities, outcome,
                                                 job.portal.wq,
                                                 static_cast<bool>(work.decision))) &&
        !trace_failed_.exchange(true)) {
        log_.error("trace: {}; nothing more is recorded", options_.trace->error());
    }
    return outcome;
}

void IaaDevice::finish(Lock& lock, const JobPtr& job, DmaMemory& memory, const Work& work,
                       const CompletionRecord& record) {
    const Descriptor& descriptor = job->descriptor;
    const std::uint32_t wq = job->portal.wq;
    const control::FaultActions& actions = work.decision.actions;
    const auto status = static_cast<Status>(record.status);
    const bool has_place = (descriptor.flags() & op_flag::kCompletionAddressValid) != 0 &&
                           status != Status::kCompletionAlignment;
    const bool wants_record =
        has_place && ((descriptor.flags() & op_flag::kRequestCompletionRecord) != 0 ||
                      status != Status::kSuccess);
    const bool wants_interrupt =
        (descriptor.flags() & op_flag::kRequestInterrupt) != 0 && work.vector.has_value();

    if (wants_record || status == Status::kSuccess) {
        counters_.completed(wq, descriptor.opcode(), record.status, descriptor.src1_size,
                            record.output_size);
    }
    if (wants_record && actions.late) {
        schedule_late_write(*actions.late,
                            {.address = descriptor.completion_addr,
                             .record = record,
                             .wq = wq,
                             .vector = wants_interrupt ? work.vector : std::nullopt});
        return;
    }
    bool written = false;
    if (wants_record) {
        lock.unlock();
        written = memory.write_completion(
            descriptor.completion_addr,
            std::as_bytes(std::span<const CompletionRecord, 1>(&record, 1)));
        lock.lock();
    }
    if (wants_record && !written) {
        counters_.not_completed(wq, descriptor.opcode(), record.status, descriptor.src1_size,
                                record.output_size);
    }
    if (job->gate.is_shut()) {
        return;
    }
    if (wants_record && !written) {
        log_.rule("completion-address", "WQ {}: no completion record can be written to {:#x}", wq,
                  descriptor.completion_addr);
        ErrorReport error;
        error.code = static_cast<std::uint8_t>(Status::kCompletionTranslation);
        error.wq = wq;
        error.descriptor = descriptor;
        error.write = true;
        error.fault_addr = descriptor.completion_addr;
        error.record = record;
        report(error);
    } else if (!has_place && status != Status::kSuccess) {
        ErrorReport error;
        error.code = record.status;
        error.wq = wq;
        error.descriptor = descriptor;
        error.fault_addr =
            status == Status::kCompletionAlignment ? descriptor.completion_addr : record.fault_addr;
        error.info =
            status == Status::kInterruptHandle ? descriptor.int_handle : record.invalid_flags;
        error.record = record;
        report(error);
    }
    if (wants_interrupt && actions.interrupt != control::InterruptFault::kLost) {
        send_msix(*work.vector, wq);
        if (actions.interrupt == control::InterruptFault::kDoubled) {
            send_msix(*work.vector, wq);
        }
    }
    if (written && actions.complete_twice) {
        schedule_late_write(actions.twice_gap, {.address = descriptor.completion_addr,
                                                .record = record,
                                                .wq = wq,
                                                .vector = std::nullopt});
    }
}

void IaaDevice::release_entry(Job& job) {
    if (std::exchange(job.holds_entry, false)) {
        --queues_[job.portal.wq].entries;
    }
}

void IaaDevice::end_job(const JobPtr& job) {
    std::erase(queues_[job->portal.wq].in_flight, job);
}

}  // namespace iaa::device
