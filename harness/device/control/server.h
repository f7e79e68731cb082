// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "device/control/target.h"
#include "device/unique_fd.h"
#include "device/vfio_user/unix_listener.h"

namespace iaa::device::control {

/// The control socket: a request a line, a reply a line, JSON both; any number of clients, any of
/// whom may be a guest at the other end of a virtio-serial port, who comes and goes without the
/// connection ending. Serves on a thread of its own from construction to destruction.
///
/// A line that is too long or no request gets an error, an empty line nothing. The
/// requests of a client that does not read its replies wait until it does.
class Server {
  public:
    /// As UnixListener. Throws std::system_error.
    Server(ControlTarget& target, const std::string& path);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    Server(Server&&) = delete;
    Server& operator=(Server&&) = delete;

    static constexpr std::size_t kMaxLine = 64U << 10;  ///< bytes, the newline included
    /// Bytes that a client has not read, beyond which its requests wait.
    static constexpr std::size_t kMaxReplies = 1U << 20;
    static constexpr std::size_t kMaxClients = 64;

  private:
    void run();

    ControlTarget& target_;
    UnixListener listener_;
    UniqueFd stop_fd_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace iaa::device::control
