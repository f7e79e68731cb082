// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "device/vfio_user/session.h"

namespace iaa::device::vfio_user {
namespace {

std::system_error failure(const std::string& what) {
    return {errno, std::generic_category(), what};
}

}  // namespace

Server::Server(Function& function, ServerOptions options)
    : function_(function),
      options_(std::move(options)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_fd_) throw failure("cannot make an eventfd");
    if (!options_.log)
        options_.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
    (void)std::signal(SIGPIPE, SIG_IGN);
}

Server::~Server() = default;

void Server::listen(const std::string& path) {
    listener_.emplace(path);
}

void Server::run() {
    if (!listener_) throw std::logic_error("run() was called before listen()");
    constexpr int kRetryMs = 100;
    while (!stop_.load()) {
        std::array<pollfd, 2> ready{{{.fd = listener_->fd(), .events = POLLIN, .revents = 0},
                                     {.fd = stop_fd_.get(), .events = POLLIN, .revents = 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
            throw failure("cannot wait for clients");
        if (stop_.load() || ready[0].revents == 0) continue;
        UniqueFd client = listener_->accept();
        if (client) {
            serve(std::move(client));
        } else if (errno != EINTR && errno != ECONNABORTED) {
            options_.log(fmt::format("vfio-user: cannot accept a client: {}",
                                     std::generic_category().message(errno)));
            ::poll(&ready[1], 1, kRetryMs);
        }
    }
}

void Server::serve(UniqueFd socket) {
    Session session(std::move(socket), function_, options_, stop_);
    session.run();
}

void Server::stop() noexcept {
    stop_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_fd_.get(), &one, sizeof(one));
}

}  // namespace iaa::device::vfio_user
