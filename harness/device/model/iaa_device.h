// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/control/counters.h"
#include "device/control/faults.h"
#include "device/control/target.h"
#include "device/model/config_space.h"
#include "device/model/error_log.h"
#include "device/model/log.h"
#include "device/model/portal.h"
#include "device/model/profile.h"
#include "device/model/tables.h"
#include "device/model/work_queue.h"
#include "device/ops/operation.h"
#include "device/trace/trace.h"
#include "device/vfio_user/function.h"

namespace iaa::device {

/// The device: one PCI function with its registers, work queues, groups and engines.
///
/// The transport's thread calls Function, engines are threads of the device's own, and the control
/// socket's threads call ControlTarget. One lock guards all state; it is never held across an
/// access to guest memory, since such an access may need the transport's thread to make progress.
///
/// Whatever takes a descriptor away from its engine (abort, reset, FLR, bus mastering off, a
/// disconnect) shuts that descriptor's gate to guest memory and waits until no access is left
/// inside. The engine may compute on for a while; what it finds is thrown away.
class IaaDevice final : public Function, public control::ControlTarget {
  public:
    using Execute = std::function<Outcome(const Descriptor&, DmaMemory&, const Capabilities&)>;

    struct Options {
        /// Descriptors are carried out by the transport's thread, before the store that completed
        /// them returns; there are no engine threads.
        bool inline_execution = false;
        TraceWriter* trace = nullptr;  ///< records every descriptor; outlives the device
        /// How long one access to guest memory may keep a reset waiting until the client is sent
        /// away: a copy, or a few exchanges with the client, each of which has its own time.
        std::chrono::milliseconds fence_limit{10'000};
        Execute execute = device::execute;
    };

    /// Throws std::invalid_argument where the profile is out of range.
    IaaDevice(const Profile& profile, Log& log, Options options);
    IaaDevice(const Profile& profile, Log& log) : IaaDevice(profile, log, Options{}) {}
    ~IaaDevice() override;
    IaaDevice(const IaaDevice&) = delete;
    IaaDevice& operator=(const IaaDevice&) = delete;
    IaaDevice(IaaDevice&&) = delete;
    IaaDevice& operator=(IaaDevice&&) = delete;

    // Function
    [[nodiscard]] RegionInfo region_info(std::uint32_t index) const override;
    [[nodiscard]] std::uint32_t msix_vectors() const override { return profile_.vectors(); }
    void region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> out) override;
    void region_write(std::uint32_t index, std::uint64_t offset,
                      std::span<const std::byte> in) override;
    void attach(Host& host) override;
    void reset() override;
    void detach() override;

    // ControlTarget
    control::Counters& counters() override { return counters_; }
    control::FaultTable& faults() override { return faults_; }
    [[nodiscard]] control::DeviceState state() override;
    void halt(std::string_view reason, control::HaltExit leave_by) override;

  private:
    using Lock = std::unique_lock<std::mutex>;
    using Clock = std::chrono::steady_clock;

    struct Engine {
        std::condition_variable_any wake;
        bool idle = false;
        bool called = false;  ///< woken for a descriptor that it has not looked for yet
        std::jthread thread;
    };

    /// A command that waits for descriptors.
    struct Pending {
        reg::Command command;
        std::vector<std::uint32_t> wqs;
        bool interrupt;
        std::uint64_t last;  ///< number of the last descriptor that it waits for
        std::optional<std::uint32_t> pasid;
        /// Once none of these is left: how many reports the event log must have settled.
        std::optional<std::uint64_t> reports;
    };

    /// A completion record that is written by the clock and not by an engine (fault injection).
    struct LateWrite {
        JobPtr job;
        CompletionRecord record{};
        std::optional<std::uint32_t> vector;
        unsigned interrupts = 0;
        /// The record of a descriptor that has completed comes a second time. What takes the
        /// descriptor's WQ away takes this away too; a record that is late ignores all that.
        bool repeat = false;
    };

    /// What an engine knows of its descriptor beside the descriptor itself.
    struct Work {
        control::Decision decision;
        std::optional<std::uint32_t> vector;  ///< of the completion interrupt, where it may be sent
        Capabilities capabilities;
        Host& host;
    };

    // Config space and BARs: iaa_device.cpp.
    void config_write(Lock& lock, std::uint64_t offset, std::span<const std::byte> in);
    void dma_rights_changed(Lock& lock);
    [[nodiscard]] bool dma_allowed() const;
    [[nodiscard]] bool responds() const;

    // Registers: registers.cpp.
    void register_read(std::uint64_t offset, std::span<std::byte> out);
    void register_write(Lock& lock, std::uint64_t offset, std::span<const std::byte> in);
    [[nodiscard]] std::uint32_t read_word(std::uint64_t offset) const;
    void write_word(Lock& lock, std::uint64_t offset, std::uint32_t value);
    void write_control_word(Lock& lock, std::uint64_t offset, std::uint32_t value);
    void write_gencfg(Lock& lock, std::uint32_t value);
    void write_evlcfg(std::uint64_t offset, std::uint32_t value);
    [[nodiscard]] bool device_enabled() const;

    // Commands: commands.cpp.
    void command(Lock& lock, std::uint32_t value);
    void command_on_device(Lock& lock, reg::Command code, bool interrupt);
    void command_on_wqs(Lock& lock, reg::Command code, std::uint32_t operand, bool interrupt);
    void command_by_pasid(Lock& lock, reg::Command code, std::uint32_t pasid, bool interrupt);
    void command_handle(reg::Command code, std::uint32_t operand, bool interrupt);
    [[nodiscard]] reg::CommandError enable_device();
    [[nodiscard]] reg::CommandError enable_wq(std::uint32_t wq);
    [[nodiscard]] std::vector<std::uint32_t> enabled_wqs() const;
    [[nodiscard]] std::optional<std::uint32_t> completion_vector(const Job& job) const;
    void start_draining(Pending pending);
    [[nodiscard]] static bool covers(const Pending& pending, const Job& job);
    /// Ends the faults that a drain ends.
    void settle_parked();
    /// Completes the pending command where nothing that it waits for is left.
    void advance_command();
    void finish_command(reg::CommandError error, bool interrupt, std::uint32_t result = 0);

    // Work and its end: engines.cpp.
    void take_from_portal(const PortalAddress& portal, const Descriptor& descriptor);
    void portal_overwritten(const PortalAddress& portal, std::size_t byte);
    void portal_lost(const PortalAddress& portal, std::size_t lost);
    void portal_error(reg::PortalError code, const PortalAddress& portal,
                      const Descriptor* descriptor);
    [[nodiscard]] JobPtr next_job(std::uint32_t engine);
    void engine_main(const std::stop_token& stop, std::uint32_t index);
    void wake_engine(std::uint32_t group);
    void wake_engines();
    void run_inline(Lock& lock);
    /// What an engine does with a descriptor. Returns with the lock held and the job ended, parked
    /// or abandoned, whatever goes wrong.
    void run(Lock& lock, const JobPtr& job);
    void serve(Lock& lock, const JobPtr& job);
    [[nodiscard]] CompletionRecord carry_out(const Job& job, DmaMemory& memory, const Work& work);
    void log_outcome(std::uint32_t wq, const Descriptor& descriptor, const Outcome& outcome);
    void finish(Lock& lock, const JobPtr& job, DmaMemory& memory, const Work& work,
                const CompletionRecord& record);
    void count_completion(const Job& job, const CompletionRecord& record);
    void uncount_completion(const Job& job, const CompletionRecord& record);
    [[nodiscard]] Capabilities capabilities(std::uint32_t wq) const;
    void trace(TraceRecord record);
    /// The record of a descriptor that a fault rule keeps from completing.
    [[nodiscard]] TraceRecord uncompleted(std::uint32_t wq, const Descriptor& descriptor) const;
    void release_entry(Job& job);
    void end_job(const JobPtr& job);

    // Taking work away: fences.cpp.
    using Gates = std::vector<std::shared_ptr<AccessGate>>;
    /// Takes all descriptors of a WQ, or those of one PASID, away from it.
    void abandon(std::uint32_t wq, std::optional<std::uint32_t> pasid, Gates& gates);
    void abandon_in_flight(std::uint32_t wq, Gates& gates);
    /// Takes away the second writes of records that the WQ's descriptors have had.
    void forget_repeats(std::uint32_t wq, std::optional<std::uint32_t> pasid, Gates& gates);
    void disable_queue(std::uint32_t wq);
    /// Waits until nobody is inside one of these gates. For the transport's thread.
    void fence(Lock& lock, const Gates& gates);
    void reset_device_state(Lock& lock);
    void reset_function(Lock& lock, reg::ResetType kind);
    void enter_halt(std::string_view reason, reg::ResetType leave_by);

    // Interrupts and errors: reports.cpp.
    void raise(std::uint32_t cause);
    /// `wq`: whose descriptor asked for it; none: no descriptor did.
    void send_msix(std::uint32_t vector, std::optional<std::uint32_t> wq);
    /// A completion interrupt, where there is one, so many times.
    void send_msix(std::optional<std::uint32_t> vector, unsigned times, std::uint32_t wq);
    void report(const ErrorReport& report);
    void report_software_error(const ErrorReport& report);
    void write_event_log(Lock& lock);
    /// Shuts the gate of what the device itself writes, and makes a new one.
    void take_own_gate(Gates& gates);
    void schedule_late_write(Clock::duration delay, LateWrite write);
    void late_write(Lock& lock, const LateWrite& write);
    void late_main(const std::stop_token& stop);

    const Profile profile_;
    Log& log_;
    const Options options_;
    control::Counters counters_;
    control::FaultTable faults_;
    std::atomic<bool> trace_failed_{false};

    mutable std::mutex mutex_;
    ConfigSpace config_;
    Tables tables_;
    PortalAssembler portals_;
    const PortalAssembler::Sink portal_sink_;
    ErrorLog errors_;
    std::vector<WorkQueue> queues_;
    std::vector<std::unique_ptr<Engine>> engines_;
    std::uint32_t busy_engines_ = 0;
    std::uint32_t next_engine_ = 0;
    std::uint64_t next_job_ = 1;

    reg::DeviceState device_state_ = reg::DeviceState::kDisabled;
    reg::ResetType reset_type_ = reg::ResetType::kSoftware;
    std::string halt_reason_;
    std::uint32_t gencfg_ = 0;
    std::uint32_t genctrl_ = 0;
    std::uint32_t intcause_ = 0;
    std::uint32_t command_ = 0;
    std::uint32_t command_status_ = 0;
    std::optional<Pending> pending_;
    std::set<std::uint32_t> handles_;        ///< vectors with an interrupt handle
    std::vector<std::uint32_t> msix_table_;  ///< what the client stores there; its own to use

    Host* host_ = nullptr;
    /// Gate of what the device itself writes: event log entries. A new one after each shutting.
    std::shared_ptr<AccessGate> own_gate_ = std::make_shared<AccessGate>();
    /// Gate of the late writes, which only the end of the connection shuts.
    std::shared_ptr<AccessGate> late_gate_ = std::make_shared<AccessGate>();
    bool event_log_busy_ = false;
    std::condition_variable_any delays_;
    std::condition_variable_any late_wake_;
    std::multimap<Clock::time_point, LateWrite> late_writes_;
    JobPtr repeating_;          ///< whose record is being written a second time at this moment
    std::jthread late_thread_;  ///< started with the first late write
};

}  // namespace iaa::device
