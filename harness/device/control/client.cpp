// SPDX-License-Identifier: GPL-2.0
#include "device/control/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "device/vfio_user/unix_listener.h"

namespace iaa::device::control {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr milliseconds kDefaultLimit{30'000};
constexpr std::size_t kMaxReply = 16U << 20;

std::system_error failure(const std::string& what) {
    return {errno, std::generic_category(), what};
}

/// A serial line as it is would echo, translate newlines and wait for whole lines.
void make_raw(int fd) {
    termios settings{};
    if (::isatty(fd) == 0 || ::tcgetattr(fd, &settings) != 0) return;
    ::cfmakeraw(&settings);
    ::tcsetattr(fd, TCSANOW, &settings);
}

UniqueFd open_device(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (!fd) throw failure(fmt::format("cannot open '{}'", path));
    make_raw(fd.get());
    return fd;
}

UniqueFd connect_to(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) throw failure(fmt::format("cannot find '{}'", path));
    if (S_ISCHR(info.st_mode)) return open_device(path);
    if (S_ISSOCK(info.st_mode)) return connect_unix(path);
    throw std::invalid_argument(
        fmt::format("'{}' is neither a socket nor a character device", path));
}

struct Arguments {
    std::string path;
    milliseconds limit = kDefaultLimit;
    std::vector<json> requests;
    bool from_input = true;
};

milliseconds seconds_from(std::string_view text) {
    constexpr double kMax = 86'400;
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(seconds) ||
        seconds <= 0 || seconds > kMax)
        throw std::invalid_argument(
            fmt::format("--timeout needs a number of seconds, more than 0, and not '{}'", text));
    return milliseconds(static_cast<std::int64_t>(seconds * 1000) + 1);
}

json object_from(std::string_view text) {
    json request = json::parse(text, nullptr, false);
    if (!request.is_object())
        throw std::invalid_argument(fmt::format("not a JSON object: {}", text));
    return request;
}

Arguments parse(const std::vector<std::string>& words) {
    constexpr std::string_view kTimeout = "--timeout";
    Arguments result;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == kTimeout) {
            if (++i == words.size())
                throw std::invalid_argument("--timeout needs a number of seconds");
            result.limit = seconds_from(words[i]);
        } else if (word.starts_with(kTimeout) && word.substr(kTimeout.size()).starts_with('=')) {
            result.limit = seconds_from(word.substr(kTimeout.size() + 1));
        } else if (result.path.empty()) {
            result.path = word;
        } else if (word.starts_with('{')) {
            result.requests.push_back(object_from(word));
        } else if (const auto equals = word.find('='); equals == std::string_view::npos) {
            result.requests.push_back({{"command", word}});
        } else {
            if (result.requests.empty())
                throw std::invalid_argument(fmt::format("'{}' comes before any command", word));
            // A value that is no JSON is a string: counter=completed needs no quotes.
            const std::string_view text = word.substr(equals + 1);
            json value = json::parse(text, nullptr, false);
            if (value.is_discarded()) value = text;
            result.requests.back()[std::string(word.substr(0, equals))] = std::move(value);
        }
    }
    if (result.path.empty())
        throw std::invalid_argument(
            "usage: ctl PATH [--timeout SECONDS] [COMMAND [KEY=VALUE]... | JSON]...");
    result.from_input = result.requests.empty();
    return result;
}

milliseconds limit_of(const json& request, milliseconds limit) {
    constexpr milliseconds kDefaultWait{10'000};
    constexpr std::int64_t kMaxWaitMs = 3'600'000;
    if (request.value("command", json()) != "wait") return limit;
    const json timeout = request.value("timeout_ms", json());
    if (!timeout.is_number_unsigned()) return limit + kDefaultWait;
    return limit + milliseconds(std::min<std::uint64_t>(timeout.get<std::uint64_t>(), kMaxWaitMs));
}

}  // namespace

Connection::Connection(const std::string& path) : path_(path), fd_(connect_to(path)) {
    // Somebody before us on a serial line may have left half a request.
    send("\n", Clock::now() + kDefaultLimit);
}

void Connection::wait_for(short events, Deadline deadline, std::string_view what) const {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd ready{.fd = fd_.get(), .events = events, .revents = 0};
    const int found = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
    if (found < 0 && errno != EINTR) throw failure(fmt::format("cannot wait for '{}'", path_));
    if (found == 0)
        throw std::runtime_error(fmt::format("'{}' {} within the time limit", path_, what));
}

void Connection::send(std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::write(fd_.get(), bytes.data(), bytes.size());
        if (sent > 0)
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        else if (sent < 0 && errno != EAGAIN && errno != EINTR)
            throw failure(fmt::format("cannot send to '{}'", path_));
        else
            wait_for(POLLOUT, deadline, "took no request");
    }
}

std::string Connection::receive_line(Deadline deadline) {
    while (true) {
        if (const std::size_t end = input_.find('\n'); end != std::string::npos) {
            std::string line = input_.substr(0, end);
            input_.erase(0, end + 1);
            return line;
        }
        if (input_.size() > kMaxReply)
            throw std::runtime_error(fmt::format("'{}' sends a line without end", path_));
        wait_for(POLLIN, deadline, "sent no reply");
        std::array<char, 16384> buffer{};
        const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
        if (got > 0)
            input_.append(buffer.data(), static_cast<std::size_t>(got));
        else if (got == 0)
            throw std::runtime_error(
                fmt::format("nobody is at the other end of '{}' any more", path_));
        else if (errno != EAGAIN && errno != EINTR)
            throw failure(fmt::format("cannot read from '{}'", path_));
    }
}

json Connection::call(json request, milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    const bool own_id = !request.contains("id");
    if (!own_id && !request["id"].is_string() && !request["id"].is_number())
        throw std::invalid_argument("\"id\" must be a string or a number");
    if (own_id)
        request["id"] = fmt::format("ctl-{}-{}-{}", ::getpid(),
                                    Clock::now().time_since_epoch().count(), next_id_++);
    send(request.dump(-1, ' ', false, json::error_handler_t::replace) + "\n", deadline);
    while (true) {
        json reply = json::parse(receive_line(deadline), nullptr, false);
        if (!reply.is_object() || reply.value("id", json()) != request["id"]) continue;
        if (own_id) reply.erase("id");
        return reply;
    }
}

int run_client(const std::vector<std::string>& words, std::istream& in, std::ostream& out,
               std::ostream& err) {
    Arguments arguments;
    try {
        arguments = parse(words);
    } catch (const std::invalid_argument& error) {
        err << "ctl: " << error.what() << '\n';
        return kUsage;
    }
    // A server that goes away is an error to report, and not a signal to die of.
    (void)std::signal(SIGPIPE, SIG_IGN);
    bool ok = true;
    try {
        Connection connection(arguments.path);
        const auto run = [&](const json& request) {
            const json reply = connection.call(request, limit_of(request, arguments.limit));
            out << reply.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
            ok = ok && reply.value("ok", json()) == true;
        };
        for (const json& request : arguments.requests) run(request);
        std::string line;
        while (arguments.from_input && std::getline(in, line))
            if (line.find_first_not_of(" \t\r") != std::string::npos) run(object_from(line));
    } catch (const std::invalid_argument& error) {
        err << "ctl: " << error.what() << '\n';
        return kUsage;
    } catch (const std::exception& error) {
        err << "ctl: " << error.what() << '\n';
        return kFailure;
    }
    return ok ? 0 : kFailure;
}

int run_client(const std::vector<std::string>& words) {
    return run_client(words, std::cin, std::cout, std::cerr);
}

}  // namespace iaa::device::control
