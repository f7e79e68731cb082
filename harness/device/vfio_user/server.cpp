// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "device/vfio_user/session.h"

namespace iaa::device::vfio_user {
namespace {

std::system_error failure(const std::string& what) {
    return {errno, std::generic_category(), what};
}

UniqueFd new_socket() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) throw failure("cannot make a UNIX socket");
    return socket;
}

/// Removes a socket that nobody listens on any more. Anything else at path is left to fail bind().
void remove_stale_socket(const sockaddr_un& address) {
    struct stat info{};
    if (::lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
    const UniqueFd probe = new_socket();
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
        errno == ECONNREFUSED)
        ::unlink(address.sun_path);
}

}  // namespace

Server::Server(Function& function, ServerOptions options)
    : function_(function),
      options_(std::move(options)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_fd_) throw failure("cannot make an eventfd");
    if (!options_.log)
        options_.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
    std::signal(SIGPIPE, SIG_IGN);
}

Server::~Server() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

void Server::listen(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        throw failure(fmt::format("the socket path '{}' must have 1 to {} characters", path,
                                  sizeof(address.sun_path) - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    remove_stale_socket(address);
    UniqueFd listener = new_socket();
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        throw failure(fmt::format("cannot bind '{}'", path));
    path_ = path;
    if (::listen(listener.get(), 4) != 0) throw failure(fmt::format("cannot listen on '{}'", path));
    listener_ = std::move(listener);
}

void Server::run() {
    constexpr int kRetryMs = 100;
    while (!stop_.load()) {
        std::array<pollfd, 2> ready{{{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                     {.fd = stop_fd_.get(), .events = POLLIN, .revents = 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
            throw failure("cannot wait for clients");
        if (stop_.load() || ready[0].revents == 0) continue;
        UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (client) {
            serve(std::move(client));
        } else if (errno != EINTR && errno != ECONNABORTED) {
            options_.log(
                fmt::format("vfio-user: cannot accept a client: {}", std::strerror(errno)));
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
