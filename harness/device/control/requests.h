// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "device/control/target.h"

namespace iaa::device::control {

/// A "wait" that has not come to its end.
struct PendingWait {
    nlohmann::json id;  ///< of the request; null where it had none
    std::string counter;
    std::uint64_t value = 0;
    std::chrono::steady_clock::time_point deadline;
};

/// What came of a line: a reply, or a wait that will have one.
struct Answer {
    std::optional<std::string> reply;  ///< one line of JSON, without the newline
    std::optional<PendingWait> wait;
};

/// Carries out one request. Never throws: whatever is wrong with the line is in the reply.
/// Documentation/device-control.rst is the contract.
[[nodiscard]] Answer answer(std::string_view line, ControlTarget& target);

/// The reply to a wait that is over; nothing where it goes on.
[[nodiscard]] std::optional<std::string> look_again(const PendingWait& wait, ControlTarget& target);

/// A reply to what could not even be taken for a request.
[[nodiscard]] std::string error_reply(std::string_view what);

}  // namespace iaa::device::control
