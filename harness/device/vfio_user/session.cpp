// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace iaa::device::vfio_user {
namespace {

using std::chrono::milliseconds;

/// How long run() may take to see a stop or a deadline while the client is silent.
constexpr milliseconds kTick{200};
/// How often pump_until() looks again without being woken.
constexpr milliseconds kPumpTick{1};
/// Commands kept back during pump_until(); beyond this the socket is left unread.
constexpr std::size_t kMaxDeferredBytes = 16U << 20;
constexpr unsigned kMaxLogLines = 100;
constexpr std::string_view kStopped = "the server is stopped";

std::size_t message_limit(const ServerOptions& options) {
    return sizeof(Header) + sizeof(DmaAccess) + static_cast<std::size_t>(options.max_transfer);
}

}  // namespace

Session::Session(UniqueFd socket, Function& function, const ServerOptions& options,
                 const std::atomic<bool>& stop)
    : socket_(std::move(socket)),
      function_(function),
      options_(options),
      stop_(stop),
      owner_(std::this_thread::get_id()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reader_(message_limit(options)),
      limits_{.max_transfer = options.max_transfer, .max_dma_maps = options.max_dma_maps},
      dma_(*this, [this] { wake(); }),
      msix_(function.msix_vectors(), [this](std::string_view text) { log(text); }) {
    if (!wake_fd_)
        throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
    const auto tick = std::chrono::duration_cast<std::chrono::microseconds>(kTick);
    const timeval timeout{.tv_sec = 0, .tv_usec = static_cast<suseconds_t>(tick.count())};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

Session::~Session() = default;

void Session::run() {
    log("vfio-user: a client has connected");
    const auto start = Clock::now();
    while (!dead_.load() && !stop_.load()) {
        if (!negotiated_ && Clock::now() - start > options_.handshake_timeout) {
            give_up("the client did not send VERSION in time");
            break;
        }
        if (!deferred_.empty()) {
            current_ = std::move(deferred_.front());
            deferred_.pop_front();
            deferred_bytes_ -= current_.payload.size() + sizeof(Request);
            dispatch(current_);
            continue;
        }
        MessageView view;
        const auto next = reader_.next(view);
        if (next == MessageReader::Next::kBroken) {
            give_up("the client sent a header with an impossible size or type");
        } else if (next == MessageReader::Next::kNone) {
            if (!receive()) break;
        } else if ((view.header.flags & kTypeMask) == kTypeReply) {
            finish_transfer(view);
        } else {
            take(view, current_);
            dispatch(current_);
        }
    }
    dead_.store(true);
    ::shutdown(socket_.get(), SHUT_RDWR);
    fail_transfers();
    if (negotiated_) function_.detach();
    log("vfio-user: the client has left");
}

bool Session::receive() {
    const auto got = reader_.receive(socket_.get(), 0);
    if (got == MessageReader::Received::kClosed) return false;
    if (got == MessageReader::Received::kAbuse) {
        give_up("the client sent file descriptors with every piece of a message");
        return false;
    }
    // Bytes that keep arriving do not extend the time that a message has.
    const auto now = Clock::now();
    if (!reader_.partial() || reader_.position() != partial_position_) {
        partial_position_ = reader_.position();
        partial_since_ = now;
    } else if (now - partial_since_ > options_.message_timeout) {
        give_up("the client left a message incomplete");
        return false;
    }
    return true;
}

void Session::take(MessageView& view, Request& request) {
    request.header = view.header;
    request.payload.assign(view.payload.begin(), view.payload.end());
    request.fds = std::move(view.fds);
    request.fds_lost = view.fds_lost;
}

void Session::defer(MessageView& view) {
    Request request;
    take(view, request);
    deferred_bytes_ += request.payload.size() + sizeof(Request);
    deferred_.push_back(std::move(request));
}

bool Session::drain_reader() {
    MessageView view;
    while (true) {
        switch (reader_.next(view)) {
            case MessageReader::Next::kNone:
                return true;
            case MessageReader::Next::kBroken:
                give_up("the client sent a header with an impossible size or type");
                return false;
            case MessageReader::Next::kMessage:
                if ((view.header.flags & kTypeMask) == kTypeReply)
                    finish_transfer(view);
                else
                    defer(view);
                break;
        }
    }
}

bool Session::receive_pumping() {
    switch (reader_.receive(socket_.get(), MSG_DONTWAIT)) {
        case MessageReader::Received::kClosed:
            dead_.store(true);
            fail_transfers();
            return false;
        case MessageReader::Received::kAbuse:
            give_up("the client sent file descriptors with every piece of a message");
            return false;
        case MessageReader::Received::kData:
        case MessageReader::Received::kNothing:
            break;
    }
    return drain_reader();
}

bool Session::pump_until(const std::function<bool()>& done, milliseconds limit) {
    if (std::this_thread::get_id() != owner_)
        throw std::logic_error("pump_until() was called outside the transport's thread");
    const auto deadline = Clock::now() + limit;
    pumping_.store(true);
    bool reading = !dead_.load() && drain_reader();
    bool result = true;
    while (!done()) {
        if (stop_.load()) give_up(kStopped);
        const auto now = Clock::now();
        if (now >= deadline) {
            result = false;
            break;
        }
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - now) + milliseconds(1);
        const bool listen = reading && !dead_.load() && deferred_bytes_ < kMaxDeferredBytes;
        std::array<pollfd, 2> ready{
            {{.fd = wake_fd_.get(), .events = POLLIN, .revents = 0},
             {.fd = listen ? socket_.get() : -1, .events = POLLIN, .revents = 0}}};
        ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, kPumpTick).count()));
        if (ready[0].revents != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake_fd_.get(), &count, sizeof(count));
        }
        if (ready[1].revents != 0) reading = receive_pumping();
    }
    pumping_.store(false);
    return result;
}

void Session::wake() {
    if (!pumping_.load()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_fd_.get(), &one, sizeof(one));
}
bool Session::send(const Header& header, std::span<const std::byte> payload,
                   std::span<const std::byte> data) {
    const auto part = [](std::span<const std::byte> bytes) {
        // sendmsg() only reads what it is given.
        return iovec{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    };
    std::array<iovec, 3> parts{part(bytes_of(header)), part(payload), part(data)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();

    const std::lock_guard lock(send_mutex_);
    const auto deadline = Clock::now() + options_.send_timeout;
    while (!dead_.load()) {
        const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            auto left = static_cast<std::size_t>(sent);
            while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
                left -= message.msg_iov->iov_len;
                ++message.msg_iov;
                --message.msg_iovlen;
            }
            if (message.msg_iovlen == 0) return true;
            message.msg_iov->iov_base = static_cast<std::byte*>(message.msg_iov->iov_base) + left;
            message.msg_iov->iov_len -= left;
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            give_up(fmt::format("cannot send to the client: {}",
                                std::generic_category().message(errno)));
            return false;
        }
        if (stop_.load()) {
            give_up(kStopped);
            return false;
        }
        const auto now = Clock::now();
        if (now >= deadline) {
            give_up("the client does not read what it is sent");
            return false;
        }
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - now) + milliseconds(1);
        pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
        ::poll(&ready, 1, static_cast<int>(std::min(left, kTick).count()));
    }
    return false;
}

void Session::give_up(std::string_view why) {
    if (dead_.exchange(true)) return;
    log(fmt::format("vfio-user: disconnecting: {}", why));
    ::shutdown(socket_.get(), SHUT_RDWR);
    fail_transfers();
}
void Session::log(std::string_view text) {
    const std::lock_guard lock(log_mutex_);
    if (logged_ >= kMaxLogLines) return;
    options_.log(text);
    if (++logged_ == kMaxLogLines)
        options_.log("vfio-user: too many messages about this client; the rest is left out");
}

}  // namespace iaa::device::vfio_user
