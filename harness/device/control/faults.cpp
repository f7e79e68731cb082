// SPDX-License-Identifier: GPL-2.0
#include "device/control/faults.h"

#include <algorithm>

namespace iaa::device::control {
namespace {

constexpr std::uint8_t kOpcodeDecompress = 0x42;
constexpr std::uint16_t kSuppressOutput = 1U << 9;

bool suppresses_output(const Descriptor& descriptor) {
    return descriptor.opcode() == kOpcodeDecompress && (descriptor.op_flags & kSuppressOutput) != 0;
}

}  // namespace

bool FaultMatch::matches(const Descriptor& descriptor, std::uint32_t on_wq) const {
    if (opcode && *opcode != descriptor.opcode()) return false;
    if (wq && *wq != on_wq) return false;
    if (verify && *verify != suppresses_output(descriptor)) return false;
    return descriptor.src1_size >= min_size && descriptor.src1_size <= max_size;
}

std::uint64_t FaultTable::add(const FaultRule& rule) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = next_id_++;
    entries_.push_back(
        {.state = {.id = id, .rule = rule}, .generator = std::mt19937_64(rule.trigger.seed)});
    return id;
}

bool FaultTable::clear(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    return std::erase_if(entries_, [id](const Entry& entry) { return entry.state.id == id; }) != 0;
}

void FaultTable::clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
}

void FaultTable::reset() {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
        entry.state = {.id = entry.state.id, .rule = entry.state.rule};
        entry.generator.seed(entry.state.rule.trigger.seed);
    }
}

std::vector<FaultRuleState> FaultTable::list() const {
    const std::lock_guard lock(mutex_);
    std::vector<FaultRuleState> rules;
    rules.reserve(entries_.size());
    for (const Entry& entry : entries_) rules.push_back(entry.state);
    return rules;
}

Decision FaultTable::fire(const Descriptor& descriptor, std::uint32_t wq, bool portal) {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
        FaultRuleState& state = entry.state;
        const FaultTrigger& trigger = state.rule.trigger;
        if (state.spent || state.rule.actions.drop != portal) continue;
        if (!state.rule.match.matches(descriptor, wq)) continue;
        ++state.matched;
        if (state.matched <= trigger.after) continue;
        if (trigger.every > 1 && (state.matched - trigger.after) % trigger.every != 0) continue;
        if (trigger.probability < 1.0 &&
            std::generate_canonical<double, 53>(entry.generator) >= trigger.probability)
            continue;
        ++state.fired;
        state.spent = trigger.count != 0 && state.fired >= trigger.count;
        return {.rule = state.id, .actions = state.rule.actions, .random = entry.generator()};
    }
    return {};
}

bool FaultTable::at_portal(const Descriptor& descriptor, std::uint32_t wq) {
    return static_cast<bool>(fire(descriptor, wq, true));
}

Decision FaultTable::decide(const Descriptor& descriptor, std::uint32_t wq) {
    return fire(descriptor, wq, false);
}

}  // namespace iaa::device::control
