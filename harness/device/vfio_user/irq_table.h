// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "device/unique_fd.h"
#include "device/vfio_user/eventfd_signal.h"

namespace iaa::device::vfio_user {

/// The interrupts of one vfio index, signalled through the client's eventfds. Safe from any thread.
class IrqTable {
  public:
    using Log = std::function<void(std::string_view)>;

    /// `log`, where there is one, is told of interrupts that cannot be signalled.
    explicit IrqTable(std::uint32_t count, Log log = {}) : vectors_(count), log_(std::move(log)) {}

    /// Signals a vector; remembered while it is masked, dropped where it has no eventfd.
    void trigger(std::uint32_t vector);

    /// DEVICE_SET_IRQS. flags are VFIO_IRQ_SET_*; data is what follows the fixed part. Takes from
    /// fds what it uses. Returns 0 or an errno.
    [[nodiscard]] int set(std::uint32_t flags, std::uint32_t start, std::uint32_t count,
                          std::span<const std::byte> data, std::span<UniqueFd> fds);

    [[nodiscard]] std::uint32_t count() const {
        return static_cast<std::uint32_t>(vectors_.size());
    }

  private:
    struct Vector {
        UniqueFd trigger;
        UniqueFd on_mask;    ///< told when the vector is masked
        UniqueFd on_unmask;  ///< told when it is unmasked
        bool masked = false;
        bool pending = false;
    };

    void fire(Vector& vector);
    void signal(const UniqueFd& fd);
    [[nodiscard]] int assign(std::uint32_t action, std::span<Vector> range,
                             std::span<UniqueFd> fds);

    std::mutex mutex_;
    std::vector<Vector> vectors_;
    Log log_;
    std::optional<EventfdSignal> signal_;  ///< made with the first eventfd
};

}  // namespace iaa::device::vfio_user
