// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "device/control/faults.h"
#include "device/descriptor.h"
#include "device/model/access_gate.h"
#include "device/model/portal.h"
#include "device/model/registers.h"
#include "device/model/tables.h"

namespace iaa::device {

/// One descriptor on its way through the device.
struct Job {
    std::uint64_t number = 0;  ///< counts up in the order the portals took them
    PortalAddress portal;
    Descriptor descriptor{};
    AccessGate gate;          ///< shut when the descriptor is abandoned
    bool holds_entry = true;  ///< a WQ entry is in use by it
    /// A fault keeps it from completing; it stays in flight until a drain or a reset ends it.
    std::optional<control::FaultActions> parked;
    bool released = false;  ///< a drain ended its fault: it runs as if there had been none
};
using JobPtr = std::shared_ptr<Job>;

/// The job's gate; keeps the job.
[[nodiscard]] inline std::shared_ptr<AccessGate> gate_of(const JobPtr& job) {
    return {job, &job->gate};
}

/// A work queue's descriptors. The device guards it with its lock.
struct WorkQueue {
    reg::WqState state = reg::WqState::kDisabled;
    std::deque<JobPtr> waiting;
    std::vector<JobPtr> in_flight;  ///< in an engine, or parked
    std::uint32_t entries = 0;      ///< in use
    std::int64_t credit = 0;        ///< the arbiter's

    /// True where an engine may take the first of the waiting descriptors: a fence or a DRAIN waits
    /// for all that went before it.
    [[nodiscard]] bool ready() const;
};

/// The descriptor that an engine of this group takes next; nothing where there is none. WQs share
/// the engines in proportion to their priorities, and within one WQ the order is that of the
/// portal.
[[nodiscard]] JobPtr take_next(std::vector<WorkQueue>& queues, std::uint64_t group_wqs,
                               const Tables& tables);

/// True where take_next() would find one.
[[nodiscard]] bool has_next(const std::vector<WorkQueue>& queues, std::uint64_t group_wqs);

}  // namespace iaa::device
