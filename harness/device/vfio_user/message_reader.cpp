// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/message_reader.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace iaa::device::vfio_user {
namespace {

constexpr std::size_t kInitialBuffer = 64U << 10;
/// Of one message: a client that sends a message in pieces has its descriptors with one of them.
constexpr std::size_t kMaxFdSets = 16;

}  // namespace

MessageReader::MessageReader(std::size_t max_size)
    : max_size_(max_size), buffer_(std::min(kInitialBuffer, max_size)) {}

MessageReader::Received MessageReader::receive(int socket, int flags) {
    if (head_ == tail_) {
        head_ = tail_ = 0;
    } else if (head_ != 0) {
        std::memmove(buffer_.data(), buffer_.data() + head_, tail_ - head_);
        tail_ -= head_;
        head_ = 0;
    }
    // next() has seen this header, and found its size within bounds.
    const auto header = load<Header>(std::span(buffer_).first(tail_));
    if (header && header->size > buffer_.size())
        buffer_.resize(std::min<std::size_t>(max_size_, header->size));

    iovec data{.iov_base = buffer_.data() + tail_, .iov_len = buffer_.size() - tail_};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxMessageFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? Received::kNothing : Received::kClosed;

    std::vector<UniqueFd> fds;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            fds.emplace_back(fd);
        }
    }
    if (got == 0) return Received::kClosed;
    tail_ += static_cast<std::size_t>(got);
    const bool truncated = (message.msg_flags & MSG_CTRUNC) != 0;
    if (!fds.empty() || truncated) {
        // What is held now belongs to the one message that is incomplete.
        if (fd_sets_.size() >= kMaxFdSets) return Received::kAbuse;
        fd_sets_.push_back(
            {.end = head_position_ + (tail_ - head_), .fds = std::move(fds), .lost = truncated});
    }
    return Received::kData;
}

void MessageReader::take_fds(std::uint64_t end, MessageView& view) {
    view.fds.clear();
    view.fds_lost = false;
    while (!fd_sets_.empty() && fd_sets_.front().end <= end) {
        FdSet& set = fd_sets_.front();
        view.fds_lost = view.fds_lost || set.lost;
        std::ranges::move(set.fds, std::back_inserter(view.fds));
        fd_sets_.erase(fd_sets_.begin());
    }
    if (view.fds.size() > kMaxMessageFds) {
        view.fds.clear();
        view.fds_lost = true;
    }
}

MessageReader::Next MessageReader::next(MessageView& view) {
    const std::span<const std::byte> rest = std::span(buffer_).subspan(head_, tail_ - head_);
    const auto header = load<Header>(rest);
    if (!header) return Next::kNone;
    const std::uint32_t type = header->flags & kTypeMask;
    if (header->size < sizeof(Header) || header->size > max_size_ ||
        (type != kTypeCommand && type != kTypeReply))
        return Next::kBroken;
    if (rest.size() < header->size) return Next::kNone;

    view.header = *header;
    view.payload = rest.subspan(sizeof(Header), header->size - sizeof(Header));
    head_ += header->size;
    head_position_ += header->size;
    take_fds(head_position_, view);
    return Next::kMessage;
}

}  // namespace iaa::device::vfio_user
