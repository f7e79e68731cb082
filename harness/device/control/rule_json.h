// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "device/control/faults.h"

namespace iaa::device::control {

/// Reads {"match": {...}, "when": {...}, "fault": {...}}; other keys of the object are left alone.
/// Throws std::invalid_argument, with a text for whoever wrote the rule, where a key is unknown, a
/// value is of the wrong kind or out of range, or the parts of the fault contradict each other.
[[nodiscard]] FaultRule rule_from_json(const nlohmann::json& object);

[[nodiscard]] nlohmann::json rule_to_json(const FaultRuleState& state);

/// The opcode of a name ("compress") or number; what "any" means is the caller's.
[[nodiscard]] std::uint8_t opcode_from_json(const nlohmann::json& value);

}  // namespace iaa::device::control
