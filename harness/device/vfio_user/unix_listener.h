// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>

#include "device/unique_fd.h"

namespace iaa::device {

/// A listening UNIX stream socket, whose name goes with it.
class UnixListener {
  public:
    /// Binds and listens; clients can connect from here on. A socket that is left over from a
    /// server that has gone is replaced. Throws std::system_error: a path that is too long or in
    /// use, ...
    explicit UnixListener(std::string path);
    ~UnixListener();
    UnixListener(const UnixListener&) = delete;
    UnixListener& operator=(const UnixListener&) = delete;
    UnixListener(UnixListener&&) = delete;
    UnixListener& operator=(UnixListener&&) = delete;

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// The next client; empty, with errno set, where there is none to be had.
    [[nodiscard]] UniqueFd accept() const;

  private:
    std::string path_;
    UniqueFd socket_;
};

/// Connects to such a socket. Throws std::system_error.
[[nodiscard]] UniqueFd connect_unix(const std::string& path);

}  // namespace iaa::device
