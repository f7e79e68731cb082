// SPDX-License-Identifier: GPL-2.0
#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "deflate/error.h"
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
        if (options_.trace != nullptr) {
            trace(uncompleted(portal.wq, descriptor));
        }
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
        const std::optional<std::uint32_t> group = tables_.group_of_engine(index);
        if (group && has_next(queues_, tables_.group_wqs(*group))) {
            wake_engine(*group);
        }
        run(lock, job);
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
                run(lock, job);
                found = true;
                break;
            }
        }
    }
}

void IaaDevice::run(Lock& lock, const JobPtr& job) {
    ++busy_engines_;
    try {
        serve(lock, job);
    } catch (const std::exception& failure) {
        if (!lock.owns_lock()) {
            lock.lock();
        }
        log_.error("WQ {}: a descriptor is lost: {}", job->portal.wq, failure.what());
        if (!job->gate.is_shut()) {
            ErrorReport error;
            error.code = static_cast<std::uint8_t>(Status::kHardwareError);
            error.wq = job->portal.wq;
            error.descriptor = job->descriptor;
            report_software_error(error);
        }
        release_entry(*job);
        end_job(job);
        advance_command();
    }
    --busy_engines_;
}

void IaaDevice::serve(Lock& lock, const JobPtr& job) {
    const std::uint32_t wq = job->portal.wq;
    const control::Decision decision =
        job->released ? control::Decision{} : faults_.decide(job->descriptor, wq);
    if (decision) {
        counters_.fault(wq);
    }
    const bool completes = !decision.actions.halt && !decision.actions.never_complete;
    if (!completes && options_.trace != nullptr) {
        TraceRecord record = uncompleted(wq, job->descriptor);
        lock.unlock();
        trace(std::move(record));
        lock.lock();
        if (job->gate.is_shut()) {
            end_job(job);
            return;
        }
    }
    if (decision.actions.halt) {
        enter_halt("a fault rule asks for it", reg::ResetType::kSoftware);
        return;
    }
    if (decision.actions.never_complete && !job->gate.is_shut()) {
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
    const Work work{.decision = decision,
                    .vector = completion_vector(*job),
                    .capabilities = capabilities(wq),
                    .host = *host_};
    GatedMemory memory(work.host.memory(), job->gate);

    lock.unlock();
    const CompletionRecord record = carry_out(*job, memory, work);
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

Capabilities IaaDevice::capabilities(std::uint32_t wq) const {
    Capabilities capabilities = profile_.capabilities();
    tables_.describe_wq(wq, capabilities);
    return capabilities;
}

CompletionRecord IaaDevice::carry_out(const Job& job, DmaMemory& memory, const Work& work) {
    const Descriptor& descriptor = job.descriptor;
    const std::uint32_t wq = job.portal.wq;
    const std::optional<control::StatusFault>& status = work.decision.actions.status;
    TraceMemory recording(memory);
    Outcome outcome;
    bool executed = false;
    if ((descriptor.flags() & op_flag::kRequestInterrupt) != 0 && !work.vector) {
        outcome.record.status = static_cast<std::uint8_t>(Status::kInterruptHandle);
        outcome.rule =
            fmt::format("interrupt-handle: {:#x} is not this WQ's to use", descriptor.int_handle);
    } else if (!status || status->execute) {
        try {
            outcome = options_.execute(
                descriptor, options_.trace != nullptr ? static_cast<DmaMemory&>(recording) : memory,
                work.capabilities);
            executed = true;
        } catch (const std::exception& failure) {
            outcome.record.status = static_cast<std::uint8_t>(Status::kHardwareError);
            outcome.rule = fmt::format("engine-failure: {}", failure.what());
        }
    }
    if (!outcome.rule.empty() && !job.gate.is_shut()) {
        log_outcome(wq, descriptor, outcome);
    }
    CompletionRecord record = outcome.record;
    if (work.decision) {
        control::apply_to_result(work.decision, descriptor, memory, record);
    }
    // A descriptor that was abandoned on its way has read and written only a part.
    if (options_.trace != nullptr && !job.gate.is_shut()) {
        TraceRecord traced = recording.record(descriptor, work.capabilities, outcome, wq,
                                              static_cast<bool>(work.decision));
        if (!executed) {
            traced.executed = false;
            traced.accesses.clear();
        }
        traced.completion = record;
        trace(std::move(traced));
    }
    return record;
}

void IaaDevice::log_outcome(std::uint32_t wq, const Descriptor& descriptor,
                            const Outcome& outcome) {
    // Output that does not fit and streams that are not DEFLATE are what data is like; everything
    // else, a wrong AECS included, is a descriptor that should not have been written.
    const bool wrong_aecs =
        outcome.record.error_code == static_cast<std::uint8_t>(deflate::ErrorCode::kAecs);
    if (outcome.status() == Status::kOutputOverflow ||
        (outcome.status() == Status::kAnalyticsError && !wrong_aecs)) {
        log_.debug("WQ {} opcode {:#04x}, status {:#04x}, error {}: {}", wq, descriptor.opcode(),
                   outcome.record.status, outcome.record.error_code, outcome.rule);
        return;
    }
    // Each of the operations' rules has a limit of its own, so that none hides another.
    const std::string_view rule = outcome.rule;
    const std::size_t colon = std::min(rule.find(": "), rule.size());
    log_.rule(fmt::format("descriptor {}", rule.substr(0, colon)),
              "WQ {} opcode {:#04x}, status {:#04x}{}", wq, descriptor.opcode(),
              outcome.record.status, rule.substr(colon));
}

TraceRecord IaaDevice::uncompleted(std::uint32_t wq, const Descriptor& descriptor) const {
    TraceRecord record;
    record.work_queue = wq;
    record.fault_injected = true;
    record.executed = false;
    record.capabilities = capabilities(wq);
    record.descriptor = descriptor;
    return record;
}

void IaaDevice::trace(TraceRecord record) {
    if (!trace_failed_.load() && !options_.trace->append(std::move(record)) &&
        !trace_failed_.exchange(true)) {
        log_.error("trace: {}; nothing more is recorded", options_.trace->error());
    }
}

void IaaDevice::finish(Lock& lock, const JobPtr& job, DmaMemory& memory, const Work& work,
                       const CompletionRecord& record) {
    const Descriptor& descriptor = job->descriptor;
    const std::uint32_t wq = job->portal.wq;
    const control::FaultActions& actions = work.decision.actions;
    const auto status = static_cast<Status>(record.status);
    const bool addressed = (descriptor.flags() & op_flag::kCompletionAddressValid) != 0;
    // Whatever else is wrong with the descriptor or was made of it: such an address is not written.
    const bool misaligned = addressed && descriptor.completion_addr % sizeof(CompletionRecord) != 0;
    const bool has_place = addressed && !misaligned;
    const bool wants_record =
        has_place && ((descriptor.flags() & op_flag::kRequestCompletionRecord) != 0 ||
                      status != Status::kSuccess);
    const bool wants_interrupt =
        (descriptor.flags() & op_flag::kRequestInterrupt) != 0 && work.vector.has_value();
    const unsigned interrupts =
        !wants_interrupt || actions.interrupt == control::InterruptFault::kLost ? 0
        : actions.interrupt == control::InterruptFault::kDoubled                ? 2
                                                                                : 1;

    if (wants_record && actions.late) {
        schedule_late_write(*actions.late, {.job = job,
                                            .record = record,
                                            .vector = work.vector,
                                            .interrupts = interrupts,
                                            .repeat = false});
        return;
    }
    if (wants_record || (status == Status::kSuccess && !misaligned)) {
        count_completion(*job, record);
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
        uncount_completion(*job, record);
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
    } else if (misaligned || (!addressed && status != Status::kSuccess)) {
        ErrorReport error;
        error.code =
            misaligned ? static_cast<std::uint8_t>(Status::kCompletionAlignment) : record.status;
        error.wq = wq;
        error.descriptor = descriptor;
        error.fault_addr = misaligned ? descriptor.completion_addr : record.fault_addr;
        error.info = !misaligned && status == Status::kInterruptHandle ? descriptor.int_handle
                                                                       : record.invalid_flags;
        error.record = record;
        report(error);
    }
    send_msix(work.vector, interrupts, wq);
    // A drain that is under way lets nothing come after it.
    if (written && actions.complete_twice && !(pending_ && covers(*pending_, *job))) {
        schedule_late_write(actions.twice_gap, {.job = job,
                                                .record = record,
                                                .vector = std::nullopt,
                                                .interrupts = 0,
                                                .repeat = true});
    }
}

void IaaDevice::count_completion(const Job& job, const CompletionRecord& record) {
    counters_.completed(job.portal.wq, job.descriptor.opcode(), record.status,
                        job.descriptor.src1_size, record.output_size);
}

void IaaDevice::uncount_completion(const Job& job, const CompletionRecord& record) {
    counters_.not_completed(job.portal.wq, job.descriptor.opcode(), record.status,
                            job.descriptor.src1_size, record.output_size);
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
