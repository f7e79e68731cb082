// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/unix_listener.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace iaa::device {
namespace {

std::system_error failure(const std::string& what) {
    return {errno, std::generic_category(), what};
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        throw failure(fmt::format("the socket path '{}' must have 1 to {} characters", path,
                                  sizeof(address.sun_path) - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

UniqueFd new_socket() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) throw failure("cannot make a UNIX socket");
    return socket;
}

int connect_to(const UniqueFd& socket, const sockaddr_un& address) {
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

/// Removes a socket that nobody listens on any more. Anything else at path is left to fail bind().
void remove_stale_socket(const sockaddr_un& address) {
    struct stat info{};
    if (::lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
    if (connect_to(new_socket(), address) != 0 && errno == ECONNREFUSED) ::unlink(address.sun_path);
}

}  // namespace

UnixListener::UnixListener(std::string path) {
    const sockaddr_un address = address_of(path);
    remove_stale_socket(address);
    UniqueFd socket = new_socket();
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        throw failure(fmt::format("cannot bind '{}'", path));
    constexpr int kBacklog = 16;
    if (::listen(socket.get(), kBacklog) != 0) {
        const int error = errno;
        ::unlink(path.c_str());
        errno = error;
        throw failure(fmt::format("cannot listen on '{}'", path));
    }
    path_ = std::move(path);
    socket_ = std::move(socket);
}

UnixListener::~UnixListener() {
    ::unlink(path_.c_str());
}

UniqueFd UnixListener::accept() const {
    return UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

UniqueFd connect_unix(const std::string& path) {
    UniqueFd socket = new_socket();
    if (connect_to(socket, address_of(path)) != 0)
        throw failure(fmt::format("cannot connect to '{}'", path));
    return socket;
}

}  // namespace iaa::device
