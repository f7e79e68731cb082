// SPDX-License-Identifier: GPL-2.0
#include "device/model/work_queue.h"

#include <algorithm>

namespace iaa::device {
namespace {

constexpr std::uint32_t kFlagFence = 0x1;
constexpr std::uint8_t kOpcodeDrain = 0x02;

template <typename Visit>
void for_each_ready(const std::vector<WorkQueue>& queues, std::uint64_t group_wqs, Visit visit) {
    for (std::uint32_t wq = 0; wq < queues.size(); ++wq) {
        if ((group_wqs >> wq & 1) != 0 && queues[wq].ready()) {
            visit(wq);
        }
    }
}

}  // namespace

bool WorkQueue::ready() const {
    if (waiting.empty()) {
        return false;
    }
    const Job& job = *waiting.front();
    const bool ordered =
        job.descriptor.opcode() == kOpcodeDrain || (job.descriptor.flags() & kFlagFence) != 0;
    return !ordered || std::ranges::none_of(in_flight, [&job](const JobPtr& other) {
        return other->number < job.number;
    });
}

JobPtr take_next(std::vector<WorkQueue>& queues, std::uint64_t group_wqs, const Tables& tables) {
    // Smooth weighted round robin: each ready WQ earns its priority, the richest pays for all.
    std::int64_t total = 0;
    WorkQueue* best = nullptr;
    for_each_ready(queues, group_wqs, [&](std::uint32_t wq) {
        WorkQueue& queue = queues[wq];
        const std::int64_t weight = std::max<std::int64_t>(1, tables.wq_priority(wq));
        queue.credit += weight;
        total += weight;
        if (best == nullptr || queue.credit > best->credit) {
            best = &queue;
        }
    });
    if (best == nullptr) {
        return nullptr;
    }
    best->credit -= total;
    JobPtr job = std::move(best->waiting.front());
    best->waiting.pop_front();
    best->in_flight.push_back(job);
    if (best->waiting.empty()) {
        best->credit = 0;
    }
    return job;
}

bool has_next(const std::vector<WorkQueue>& queues, std::uint64_t group_wqs) {
    bool found = false;
    for_each_ready(queues, group_wqs, [&found](std::uint32_t) { found = true; });
    return found;
}

}  // namespace iaa::device
