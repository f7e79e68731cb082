// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/control/counters.h"
#include "device/control/faults.h"

namespace iaa::device::control {

struct WqState {
    std::uint32_t id = 0;
    std::string state;  ///< "disabled" or "enabled"
    bool dedicated = false;
    std::uint32_t size = 0;       ///< entries configured
    std::uint32_t occupancy = 0;  ///< entries in use: waiting or in an engine
    std::int32_t group = -1;      ///< -1 where in none
};

struct DeviceState {
    std::string profile;        ///< as --profile names it
    std::string state;          ///< "disabled", "enabled", "drain" or "halt"
    std::uint32_t version = 0;  ///< VERSION register
    bool attached = false;      ///< a vfio-user client is connected
    std::uint32_t engines = 0;
    std::uint32_t busy_engines = 0;
    std::string halt_reason;  ///< empty unless in the HALT state
    std::vector<WqState> wqs;
};

/// The least that ends a HALT: GENSTS[3:2].
enum class HaltExit : std::uint8_t { kReset = 0, kFlr = 1, kWarmReset = 2, kColdReset = 3 };

/// What the control socket reaches of a device. Every call may come from any thread, at any time
/// between the server's start and its end, and must not wait for engines or for the guest.
class ControlTarget {
  public:
    virtual ~ControlTarget() = default;

    virtual Counters& counters() = 0;
    virtual FaultTable& faults() = 0;
    [[nodiscard]] virtual DeviceState state() = 0;

    /// Puts the device into the HALT state, as hardware that found an internal error: GENSTS says
    /// so, the halt interrupt is sent where the guest enabled it, nothing more is accepted or
    /// completed until a reset of that kind or a deeper one.
    virtual void halt(std::string_view reason, HaltExit leave_by) = 0;

  protected:
    ControlTarget() = default;
    ControlTarget(const ControlTarget&) = default;
    ControlTarget& operator=(const ControlTarget&) = default;
    ControlTarget(ControlTarget&&) = default;
    ControlTarget& operator=(ControlTarget&&) = default;
};

}  // namespace iaa::device::control
