// SPDX-License-Identifier: GPL-2.0
#include "device/model/iaa_device.h"

#include <linux/vfio.h>

#include <algorithm>

namespace iaa::device {
namespace {

constexpr std::size_t kMsixEntryWords = 4;

}  // namespace

IaaDevice::IaaDevice(const Profile& profile, Log& log, Options options)
    : profile_((profile.check(), profile)),
      log_(log),
      options_(std::move(options)),
      counters_(profile.wqs),
      config_({.bar0_size = reg::kBar0Size,
               .bar2_size = profile.bar2_size(),
               .msix_vectors = profile.vectors(),
               .msix_table_offset = static_cast<std::uint32_t>(reg::kMsixTable),
               .msix_pba_offset = static_cast<std::uint32_t>(reg::kMsixPba)}),
      tables_(profile_, log_),
      portal_sink_{.complete =
                       [this](const PortalAddress& portal, const Descriptor& descriptor) {
                           take_from_portal(portal, descriptor);
                       },
                   .overwritten = [this](const PortalAddress& portal,
                                         std::size_t byte) { portal_overwritten(portal, byte); },
                   .lost = [this](const PortalAddress& portal,
                                  std::size_t lost) { portal_lost(portal, lost); }},
      queues_(profile.wqs),
      msix_table_(profile.vectors() * kMsixEntryWords) {
    for (std::uint32_t i = 0; i < profile_.engines; ++i) {
        engines_.push_back(std::make_unique<Engine>());
    }
    if (!options_.inline_execution) {
        for (std::uint32_t i = 0; i < profile_.engines; ++i) {
            engines_[i]->thread =
                std::jthread([this, i](const std::stop_token& stop) { engine_main(stop, i); });
        }
    }
}

IaaDevice::~IaaDevice() {
    for (const auto& engine : engines_) {
        engine->thread.request_stop();
    }
    late_thread_.request_stop();
    for (const auto& engine : engines_) {
        if (engine->thread.joinable()) {
            engine->thread.join();
        }
    }
    if (late_thread_.joinable()) {
        late_thread_.join();
    }
}

RegionInfo IaaDevice::region_info(std::uint32_t index) const {
    switch (index) {
        case VFIO_PCI_BAR0_REGION_INDEX:
            return {.size = reg::kBar0Size, .readable = true, .writable = true};
        case VFIO_PCI_BAR2_REGION_INDEX:
            return {.size = profile_.bar2_size(), .readable = true, .writable = true};
        case VFIO_PCI_CONFIG_REGION_INDEX:
            return {.size = ConfigSpace::kSize, .readable = true, .writable = true};
        default:
            return {};
    }
}

bool IaaDevice::responds() const {
    return config_.memory_enabled() && config_.powered();
}

bool IaaDevice::dma_allowed() const {
    return host_ != nullptr && config_.bus_master() && config_.powered();
}

void IaaDevice::region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> out) {
    Lock lock(mutex_);
    if (index == VFIO_PCI_CONFIG_REGION_INDEX) {
        config_.read(offset, out);
        return;
    }
    // As a master abort reads.
    std::ranges::fill(out, std::byte{0xff});
    if (!responds()) {
        log_.rule("memory-disabled", "read of region {} at {:#x}: memory space is off", index,
                  offset);
    } else if (index == VFIO_PCI_BAR0_REGION_INDEX) {
        register_read(offset, out);
    } else {
        log_.rule("portal-read", "read of a portal at {:#x}: portals are write only", offset);
    }
}

void IaaDevice::region_write(std::uint32_t index, std::uint64_t offset,
                             std::span<const std::byte> in) {
    Lock lock(mutex_);
    if (index == VFIO_PCI_CONFIG_REGION_INDEX) {
        config_write(lock, offset, in);
    } else if (!responds()) {
        log_.rule("memory-disabled", "write of {} bytes to region {} at {:#x}: memory space is off",
                  in.size(), index, offset);
    } else if (index == VFIO_PCI_BAR0_REGION_INDEX) {
        register_write(lock, offset, in);
    } else if (offset + in.size() > profile_.wqs * reg::kPortalPages * reg::kPageSize) {
        log_.rule("portal-no-wq", "store of {} bytes at {:#x} of BAR 2: there are {} WQs",
                  in.size(), offset, profile_.wqs);
    } else {
        portals_.store(offset, in, portal_sink_);
    }
    run_inline(lock);
    write_event_log(lock);
}

void IaaDevice::config_write(Lock& lock, std::uint64_t offset, std::span<const std::byte> in) {
    const bool dma_before = dma_allowed();
    if (config_.write(offset, in)) {
        log_.event("flr", "function level reset");
        reset_function(lock, reg::ResetType::kFlr);
        return;
    }
    if (dma_allowed() != dma_before) {
        dma_rights_changed(lock);
    }
}

void IaaDevice::dma_rights_changed(Lock& lock) {
    if (dma_allowed()) {
        own_gate_ = std::make_shared<AccessGate>();
        wake_engines();
        return;
    }
    Gates gates;
    for (std::uint32_t wq = 0; wq < queues_.size(); ++wq) {
        abandon_in_flight(wq, gates);
    }
    if (!gates.empty()) {
        log_.rule("bus-master-off",
                  "{} descriptors were at work when bus mastering or power went off; they are "
                  "abandoned",
                  gates.size());
    }
    own_gate_->shut();
    gates.push_back(own_gate_);
    fence(lock, gates);
    advance_command();
}

void IaaDevice::attach(Host& host) {
    const Lock lock(mutex_);
    host_ = &host;
    own_gate_ = std::make_shared<AccessGate>();
    late_gate_ = std::make_shared<AccessGate>();
}

void IaaDevice::reset() {
    Lock lock(mutex_);
    log_.event("device-reset", "device reset");
    reset_function(lock, reg::ResetType::kCold);
}

void IaaDevice::detach() {
    Lock lock(mutex_);
    Gates gates;
    for (std::uint32_t wq = 0; wq < queues_.size(); ++wq) {
        abandon(wq, std::nullopt, gates);
    }
    if (!gates.empty()) {
        log_.event("left-behind", "the client left {} descriptors behind; they are abandoned",
                   gates.size());
    }
    portals_.forget_all();
    for (const auto& gate : {own_gate_, late_gate_}) {
        gate->shut();
        gates.push_back(gate);
    }
    late_writes_.clear();
    fence(lock, gates);
    host_ = nullptr;
    write_event_log(lock);
}

control::DeviceState IaaDevice::state() {
    const Lock lock(mutex_);
    constexpr std::array<const char*, 4> kStates{"disabled", "enabled", "drain", "halt"};
    control::DeviceState state;
    state.profile = profile_.name;
    state.state = kStates.at(static_cast<std::size_t>(device_state_));
    state.version = profile_.version;
    state.attached = host_ != nullptr;
    state.engines = profile_.engines;
    state.busy_engines = busy_engines_;
    state.halt_reason = halt_reason_;
    for (std::uint32_t wq = 0; wq < queues_.size(); ++wq) {
        const std::optional<std::uint32_t> group = tables_.group_of_wq(wq);
        state.wqs.push_back({wq,
                             queues_[wq].state == reg::WqState::kDisabled ? "disabled" : "enabled",
                             tables_.wq_dedicated(wq), tables_.wq_size(wq), queues_[wq].entries,
                             group ? static_cast<std::int32_t>(*group) : -1});
    }
    return state;
}

void IaaDevice::halt(std::string_view reason, control::HaltExit leave_by) {
    const Lock lock(mutex_);
    enter_halt(reason, static_cast<reg::ResetType>(leave_by));
}

}  // namespace iaa::device
