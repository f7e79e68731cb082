// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "device/unique_fd.h"
#include "device/vfio_user/function.h"
#include "device/vfio_user/options.h"
#include "device/vfio_user/unix_listener.h"

namespace iaa::device::vfio_user {

/// Serves one function on a UNIX socket: one client at a time, the next when it has left. The
/// function keeps its state in between; mappings and eventfds go with the client.
///
/// Writes to sockets and eventfds of clients that are gone must not end the process: SIGPIPE is
/// ignored from construction on. SIGBUS is handled from the first mapping on, for files that a
/// client shortens; faults that are not in such a mapping go where they went before.
class Server {
  public:
    explicit Server(Function& function, ServerOptions options = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    Server(Server&&) = delete;
    Server& operator=(Server&&) = delete;

    /// Binds and listens; clients can connect from here on. A socket that is left over from a
    /// server that has gone is replaced. Throws std::system_error: a path that is too long or in
    /// use, ...
    void listen(const std::string& path);

    /// Serves clients until stop(). All calls of the function are made on this thread.
    void run();

    /// Serves one client on a connected stream socket, until it leaves or stop().
    void serve(UniqueFd socket);

    /// Ends run() and serve() within a fifth of a second. From any thread or signal handler.
    void stop() noexcept;

  private:
    Function& function_;
    ServerOptions options_;
    std::atomic<bool> stop_{false};
    UniqueFd stop_fd_;
    std::optional<UnixListener> listener_;
};

}  // namespace iaa::device::vfio_user
