// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/irq_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/vfio.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <string_view>
#include <utility>

namespace iaa::device::vfio_user {
namespace {

/// A write to another kind of file could block, or do something else altogether.
bool is_eventfd(int fd) {
    std::array<char, 64> target{};
    const std::string link = fmt::format("/proc/self/fd/{}", fd);
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) ==
                             "anon_inode:[eventfd]";
}

bool set_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/// A counter that is full is as good as signalled. The poll is for a client that made its eventfd
/// blocking again.
void signal(const UniqueFd& fd) {
    if (!fd) return;
    pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
    const std::uint64_t one = 1;
    while (::write(fd.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

}  // namespace

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
    for (const UniqueFd& fd : fds)
        if (!is_eventfd(fd.get()) || !set_nonblocking(fd.get())) return EINVAL;
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
