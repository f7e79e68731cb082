// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "device/control/target.h"

namespace iaa::test {

/// A device that only counts.
class FakeTarget final : public device::control::ControlTarget {
  public:
    device::control::Counters& counters() override { return counters_; }
    device::control::FaultTable& faults() override { return faults_; }

    device::control::DeviceState state() override {
        const std::lock_guard lock(mutex_);
        device::control::DeviceState state;
        state.profile = "spr";
        state.version = 0x100;
        state.state = halt_reason_.empty() ? "enabled" : "halt";
        state.halt_reason = halt_reason_;
        state.engines = 8;
        state.wqs.push_back({.id = 0,
                             .state = "enabled",
                             .dedicated = true,
                             .size = 64,
                             .occupancy = 3,
                             .group = 0});
        state.wqs.push_back({.id = 1, .state = "disabled"});
        return state;
    }

    void halt(std::string_view reason, device::control::HaltExit leave_by) override {
        const std::lock_guard lock(mutex_);
        halt_reason_ = reason;
        halt_exit_ = leave_by;
    }
    [[nodiscard]] device::control::HaltExit halt_exit() {
        const std::lock_guard lock(mutex_);
        return halt_exit_;
    }

  private:
    device::control::Counters counters_{4};
    device::control::FaultTable faults_;
    std::mutex mutex_;
    std::string halt_reason_;
    device::control::HaltExit halt_exit_ = device::control::HaltExit::kReset;
};

inline device::Descriptor descriptor(std::uint8_t opcode, std::uint32_t size = 4096,
                                     std::uint16_t op_flags = 0) {
    device::Descriptor result{};
    result.flags_opcode = std::uint32_t{opcode} << 24;
    result.src1_size = size;
    result.op_flags = op_flags;
    return result;
}

constexpr std::uint8_t kDecompress = 0x42;
constexpr std::uint8_t kCompress = 0x43;
constexpr std::uint16_t kSuppress = 0x200;

}  // namespace iaa::test
