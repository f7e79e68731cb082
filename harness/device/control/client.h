// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/unique_fd.h"

namespace iaa::device::control {

/// A connection to a control socket, or from inside a guest to a character device that leads there
/// (a virtio-serial port, a serial line).
class Connection {
  public:
    /// Throws std::system_error, or std::invalid_argument where path is neither of these.
    explicit Connection(const std::string& path);

    /// Sends a request and waits for its reply. A request without "id" is given one for the way, so
    /// that replies that somebody left behind on a serial line are not taken for it. Throws
    /// std::runtime_error where the other end goes away or no reply comes within the limit.
    [[nodiscard]] nlohmann::json call(nlohmann::json request, std::chrono::milliseconds limit);

  private:
    using Deadline = std::chrono::steady_clock::time_point;

    void send(std::string_view bytes, Deadline deadline);
    [[nodiscard]] std::string receive_line(Deadline deadline);
    void wait_for(short events, Deadline deadline, std::string_view what) const;

    std::string path_;
    UniqueFd fd_;
    std::string input_;
    unsigned next_id_ = 1;
};

/// `iaa-device ctl WORDS`: the socket or character device, then any number of requests, each a JSON
/// object or a command's name followed by its arguments as key=value; --timeout SECONDS among them
/// limits the wait for each reply (beyond a "wait" command's own limit). Without requests they are
/// read from `in`, a line each. Prints a reply a line to `out`, and what went wrong to `err`.
/// Returns 0 where every reply was ok, 1 where one was not or none came, 2 where the words make no
/// sense.
int run_client(const std::vector<std::string>& words, std::istream& in, std::ostream& out,
               std::ostream& err);

/// With the standard streams.
int run_client(const std::vector<std::string>& words);

}  // namespace iaa::device::control
