// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/irq_table.h"

#include <fmt/format.h>
#include <linux/vfio.h>

#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

namespace iaa::device::vfio_user {

void IrqTable::signal(const UniqueFd& fd) {
    if (fd && signal_ && !signal_->add_one(fd) && log_)
        log_("vfio-user: an interrupt could not be signalled: io_submit failed");
}

void IrqTable::fire(Vector& vector) {
    if (vector.masked) {
        vector.pending = true;
        return;
    }
    signal(vector.trigger);
}

void IrqTable::trigger(std::uint32_t vector) {
    const std::lock_guard lock(mutex_);
    if (vector < vectors_.size()) fire(vectors_[vector]);
}

int IrqTable::assign(std::uint32_t action, std::span<Vector> range, std::span<UniqueFd> fds) {
    if (!fds.empty() && fds.size() != range.size()) return EINVAL;
    try {
        if (!fds.empty() && !signal_) signal_.emplace();
    } catch (const std::system_error& error) {
        if (log_) log_(fmt::format("vfio-user: {}", error.what()));
        return error.code().value();
    }
    for (const UniqueFd& fd : fds)
        if (!EventfdSignal::is_eventfd(fd)) return EINVAL;
    for (std::size_t i = 0; i < range.size(); ++i) {
        UniqueFd fd = fds.empty() ? UniqueFd() : std::move(fds[i]);
        Vector& vector = range[i];
        if (action == VFIO_IRQ_SET_ACTION_MASK) {
            vector.on_mask = std::move(fd);
        } else if (action == VFIO_IRQ_SET_ACTION_UNMASK) {
            vector.on_unmask = std::move(fd);
        } else {
            if (!fd) vector.pending = false;
            vector.trigger = std::move(fd);
        }
    }
    return 0;
}

int IrqTable::set(std::uint32_t flags, std::uint32_t start, std::uint32_t count,
                  std::span<const std::byte> data, std::span<UniqueFd> fds) {
    const std::uint32_t kind = flags & std::uint32_t{VFIO_IRQ_SET_DATA_TYPE_MASK};
    const std::uint32_t action = flags & std::uint32_t{VFIO_IRQ_SET_ACTION_TYPE_MASK};
    if ((kind | action) != flags) return EINVAL;
    if (std::popcount(kind) != 1 || std::popcount(action) != 1) return EINVAL;
    if (kind != VFIO_IRQ_SET_DATA_EVENTFD && !fds.empty()) return EINVAL;

    const std::lock_guard lock(mutex_);
    if (count == 0) {
        if (kind != VFIO_IRQ_SET_DATA_NONE || action != VFIO_IRQ_SET_ACTION_TRIGGER || start != 0)
            return EINVAL;
        for (Vector& vector : vectors_) vector = Vector{};
        return 0;
    }
    if (start >= vectors_.size() || count > vectors_.size() - start) return EINVAL;
    const auto range = std::span(vectors_).subspan(start, count);
    if (kind == VFIO_IRQ_SET_DATA_EVENTFD) return assign(action, range, fds);
    if (kind == VFIO_IRQ_SET_DATA_BOOL && data.size() < count) return EINVAL;

    for (std::size_t i = 0; i < range.size(); ++i) {
        if (kind == VFIO_IRQ_SET_DATA_BOOL && data[i] == std::byte{0}) continue;
        Vector& vector = range[i];
        if (action == VFIO_IRQ_SET_ACTION_TRIGGER) {
            fire(vector);
        } else if (action == VFIO_IRQ_SET_ACTION_MASK) {
            if (!std::exchange(vector.masked, true)) signal(vector.on_mask);
        } else if (std::exchange(vector.masked, false)) {
            signal(vector.on_unmask);
            if (std::exchange(vector.pending, false)) signal(vector.trigger);
        }
    }
    return 0;
}

}  // namespace iaa::device::vfio_user
