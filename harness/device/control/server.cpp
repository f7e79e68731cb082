// SPDX-License-Identifier: GPL-2.0
#include "device/control/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "device/control/requests.h"

namespace iaa::device::control {
namespace {

/// How often a wait looks at its counter.
constexpr int kWaitTickMs = 5;

class Client {
  public:
    Client(UniqueFd socket, ControlTarget& target) : socket_(std::move(socket)), target_(target) {}

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool waiting() const { return wait_.has_value(); }
    [[nodiscard]] short events() const {
        // While a wait is on, and while replies are not taken, requests stay in the socket.
        const bool take = !ended_ && !wait_ && output_.size() < Server::kMaxReplies;
        return static_cast<short>((take ? POLLIN : 0) | (output_.empty() ? 0 : POLLOUT));
    }

    /// False where the client is to be dropped.
    [[nodiscard]] bool serve(short ready) {
        if ((ready & POLLIN) != 0 && !receive()) return false;
        if ((ready & (POLLERR | POLLNVAL)) != 0) return false;
        // A hang-up without input left: nobody is there to read a reply.
        if ((ready & POLLHUP) != 0 && (ready & POLLIN) == 0) return false;
        if (wait_) {
            if (auto reply = look_again(*wait_, target_)) {
                wait_.reset();
                put(*reply);
            }
        }
        do {
            take_lines();
            if (!flush()) return false;
        } while (!wait_ && output_.empty() && input_.find('\n') != std::string::npos);
        return !ended_ || wait_ || !output_.empty();
    }

  private:
    bool receive() {
        std::array<char, 16384> buffer{};
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            ended_ = true;  // of what it sends; it may still read
        else
            input_.append(buffer.data(), static_cast<std::size_t>(got));
        return true;
    }

    void take_lines() {
        std::size_t begin = 0;
        std::size_t end = input_.find('\n');
        while (end != std::string::npos && !wait_ && output_.size() < Server::kMaxReplies) {
            take_line(std::string_view(input_).substr(begin, end - begin));
            begin = end + 1;
            end = input_.find('\n', begin);
        }
        input_.erase(0, begin);
        if (end == std::string::npos && input_.size() >= Server::kMaxLine) {
            // What has come of it is thrown away, and so is the rest up to its newline.
            input_.clear();
            skipping_ = true;
        }
    }

    void take_line(std::string_view line) {
        if (std::exchange(skipping_, false) || line.size() >= Server::kMaxLine) {
            put(error_reply(fmt::format("a line may have {} bytes", Server::kMaxLine)));
            return;
        }
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.find_first_not_of(" \t") == std::string_view::npos) return;
        Answer result = answer(line, target_);
        if (result.reply) put(*result.reply);
        wait_ = std::move(result.wait);
    }

    void put(std::string_view reply) {
        output_.append(reply);
        output_.push_back('\n');
    }

    bool flush() {
        while (!output_.empty()) {
            const ssize_t sent =
                ::send(socket_.get(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) return errno == EAGAIN || errno == EINTR;
            output_.erase(0, static_cast<std::size_t>(sent));
        }
        return true;
    }

    UniqueFd socket_;
    ControlTarget& target_;
    std::string input_;
    std::string output_;
    bool ended_ = false;
    bool skipping_ = false;  ///< in the rest of a line that was too long
    std::optional<PendingWait> wait_;
};

UniqueFd new_event() {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
    return event;
}

}  // namespace

Server::Server(ControlTarget& target, const std::string& path)
    : target_(target), listener_(path), stop_fd_(new_event()), thread_([this] { run(); }) {}

Server::~Server() {
    stop_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_fd_.get(), &one, sizeof(one));
    thread_.join();
}

void Server::run() {
    std::list<Client> clients;
    std::vector<pollfd> ready;
    bool accepting = true;
    while (!stop_.load()) {
        ready.clear();
        ready.push_back({.fd = stop_fd_.get(), .events = POLLIN, .revents = 0});
        ready.push_back({.fd = accepting && clients.size() < kMaxClients ? listener_.fd() : -1,
                         .events = POLLIN,
                         .revents = 0});
        bool waiting = false;
        for (const Client& client : clients) {
            ready.push_back({.fd = client.fd(), .events = client.events(), .revents = 0});
            waiting = waiting || client.waiting();
        }
        constexpr int kRetryMs = 100;
        const int timeout = waiting ? kWaitTickMs : (accepting ? -1 : kRetryMs);
        if (::poll(ready.data(), ready.size(), timeout) < 0 && errno != EINTR) return;

        std::size_t at = 2;
        for (auto client = clients.begin(); client != clients.end(); ++at) {
            const short events = ready[at].revents;
            const bool stays = (events == 0 && !client->waiting()) || client->serve(events);
            client = stays ? std::next(client) : clients.erase(client);
        }
        accepting = true;
        if ((ready[1].revents & POLLIN) != 0) {
            UniqueFd socket = listener_.accept();
            if (socket)
                clients.emplace_back(std::move(socket), target_);
            else
                accepting = errno == EINTR || errno == ECONNABORTED;  // out of descriptors: later
        }
    }
}

}  // namespace iaa::device::control
