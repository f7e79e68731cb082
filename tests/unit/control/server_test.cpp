// SPDX-License-Identifier: GPL-2.0
#include "device/control/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/fake_target.h"

namespace iaa::test {
namespace {

using device::control::Server;
using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A client that sends bytes and takes lines.
class Raw {
  public:
    explicit Raw(const std::string& path) : fd_(device::connect_unix(path)) {}

    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            ASSERT_GT(sent, 0);
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    /// The next line; nothing where none comes in time or the server has closed.
    std::optional<std::string> line(std::chrono::milliseconds limit = 5s) {
        const auto deadline = Clock::now() + limit;
        while (true) {
            if (const auto end = input_.find('\n'); end != std::string::npos) {
                std::string result = input_.substr(0, end);
                input_.erase(0, end + 1);
                return result;
            }
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
            pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
            if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) != 1)
                return std::nullopt;
            std::array<char, 4096> buffer{};
            const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0) return std::nullopt;
            input_.append(buffer.data(), static_cast<std::size_t>(got));
        }
    }
    json reply() {
        const auto text = line();
        EXPECT_TRUE(text) << "no reply";
        return json::parse(text.value_or("{}"));
    }
    void end_sending() const { ::shutdown(fd_.get(), SHUT_WR); }
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    device::UniqueFd fd_;
    std::string input_;
};

class ControlServer : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "iaa-control-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        path = (directory / "control.sock").string();
        server = std::make_unique<Server>(target, path);
    }
    void TearDown() override {
        const auto begin = Clock::now();
        server.reset();
        EXPECT_LT(Clock::now() - begin, 2s);
        EXPECT_FALSE(std::filesystem::exists(path));
        std::filesystem::remove_all(directory);
    }

    std::filesystem::path directory;
    std::string path;
    FakeTarget target;
    std::unique_ptr<Server> server;
};

constexpr std::string_view kPing = "{\"command\":\"ping\"}\n";

TEST_F(ControlServer, ALineInALineOut) {
    Raw client(path);
    client.send(kPing);
    EXPECT_EQ(client.reply()["ok"], true);
    client.send("{\"command\":\"nonsense\"}\r\n");
    EXPECT_EQ(client.reply()["ok"], false);
    client.send("garbage\n\n  \n\r\n");
    EXPECT_EQ(client.reply()["ok"], false);
    client.send(kPing);
    EXPECT_EQ(client.reply()["ok"], true) << "an empty line was answered";
}

TEST_F(ControlServer, ManyLinesAtOnceKeepTheirOrder) {
    Raw client(path);
    std::string lines;
    for (int i = 0; i < 500; ++i) lines += json{{"command", "ping"}, {"id", i}}.dump() + "\n";
    client.send(lines);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(client.reply()["id"], i);
}

TEST_F(ControlServer, PiecesOfALine) {
    Raw client(path);
    for (const char c : kPing) {
        client.send(std::string_view(&c, 1));
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(client.reply()["ok"], true);
    EXPECT_FALSE(client.line(20ms));
}

TEST_F(ControlServer, HalfALineHasNoEffectAndNoReply) {
    {
        Raw client(path);
        client.send(R"({"command":"halt"})");
    }
    Raw other(path);
    other.send(kPing);
    EXPECT_EQ(other.reply()["ok"], true);
    EXPECT_EQ(target.state().state, "enabled");
}

TEST_F(ControlServer, OversizeLinesAreThrownAwayToTheirEnd) {
    Raw client(path);
    const std::string big(3 * Server::kMaxLine, 'x');
    client.send(big);
    client.send(" {\"command\":\"halt\"}\n");
    EXPECT_NE(client.reply().value("error", "").find("a line may have"), std::string::npos);
    client.send(kPing);
    EXPECT_EQ(client.reply()["ok"], true);
    // Just below the limit, and just at it.
    std::string padded(kPing.substr(0, kPing.size() - 1));
    padded.resize(Server::kMaxLine - 1, ' ');
    client.send(padded + "\n");
    EXPECT_EQ(client.reply()["ok"], true);
    client.send(padded + " \n");
    EXPECT_EQ(client.reply()["ok"], false);
    client.send(kPing);
    EXPECT_EQ(client.reply()["ok"], true);
    EXPECT_EQ(target.state().state, "enabled");
}

TEST_F(ControlServer, ManyClientsOneAfterAnotherAndAtOnce) {
    for (int i = 0; i < 200; ++i) {
        Raw client(path);
        client.send(kPing);
        EXPECT_EQ(client.reply()["ok"], true);
    }
    std::vector<Raw> clients;
    for (int i = 0; i < 20; ++i) clients.emplace_back(path);
    for (auto client = clients.rbegin(); client != clients.rend(); ++client) client->send(kPing);
    for (Raw& client : clients) EXPECT_EQ(client.reply()["ok"], true);
}

TEST_F(ControlServer, MoreThanItTakes) {
    std::vector<Raw> clients;
    for (std::size_t i = 0; i < Server::kMaxClients + 4; ++i) clients.emplace_back(path);
    clients.front().send(kPing);
    EXPECT_EQ(clients.front().reply()["ok"], true);
    clients.back().send(kPing);
    EXPECT_FALSE(clients.back().line(50ms)) << "it waits for its turn";
    Raw last = std::move(clients.back());
    clients.clear();
    EXPECT_EQ(last.reply()["ok"], true);
}

TEST_F(ControlServer, AWaitHoldsUpItsOwnClientAlone) {
    Raw waiting(path);
    waiting.send(R"({"command":"wait","counter":"accepted","value":2,"id":1})"
                 "\n");
    waiting.send(kPing);
    Raw other(path);
    other.send(kPing);
    EXPECT_EQ(other.reply()["ok"], true);
    EXPECT_FALSE(waiting.line(30ms));
    target.counters().accepted(0);
    EXPECT_FALSE(waiting.line(30ms));
    target.counters().accepted(3);
    const json reply = waiting.reply();
    EXPECT_EQ(reply["id"], 1);
    EXPECT_EQ(reply["value"], 2);
    EXPECT_EQ(waiting.reply()["ok"], true) << "the request behind the wait";
}

TEST_F(ControlServer, AWaitEnds) {
    Raw client(path);
    const auto begin = Clock::now();
    client.send(R"({"command":"wait","counter":"wq.1.completed","value":1,"timeout_ms":100})"
                "\n");
    const json reply = client.reply();
    EXPECT_EQ(reply["ok"], false);
    EXPECT_EQ(reply["value"], 0);
    EXPECT_GE(Clock::now() - begin, 100ms);
}

TEST_F(ControlServer, AWaitingClientMayLeave) {
    {
        Raw client(path);
        client.send(R"({"command":"wait","counter":"accepted","value":1})"
                    "\n");
        std::this_thread::sleep_for(20ms);
    }
    Raw other(path);
    other.send(kPing);
    EXPECT_EQ(other.reply()["ok"], true);
}

TEST_F(ControlServer, RepliesReachAClientThatHasStoppedSending) {
    Raw client(path);
    client.send(R"({"command":"wait","counter":"accepted","value":1})"
                "\n");
    client.send(kPing);
    client.end_sending();
    std::this_thread::sleep_for(20ms);
    target.counters().accepted(0);
    EXPECT_EQ(client.reply()["value"], 1);
    EXPECT_EQ(client.reply()["ok"], true);
    EXPECT_FALSE(client.line()) << "and then the server closes";
}

TEST_F(ControlServer, AClientThatNeverReadsIsBounded) {
    Raw client(path);
    const std::string request = R"({"command":"counters"})"
                                "\n";
    std::size_t sent = 0;
    const auto deadline = Clock::now() + 5s;
    while (Clock::now() < deadline && sent < 64U << 20) {
        const ssize_t now =
            ::send(client.fd(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now > 0) {
            sent += static_cast<std::size_t>(now);
        } else {
            pollfd ready{.fd = client.fd(), .events = POLLOUT, .revents = 0};
            if (::poll(&ready, 1, 200) != 1 || (ready.revents & POLLHUP) != 0) break;
        }
    }
    EXPECT_LT(sent, 32U << 20) << "it takes requests without end";
    Raw other(path);
    other.send(kPing);
    EXPECT_EQ(other.reply()["ok"], true);
}

TEST_F(ControlServer, ManyLongRepliesToOneBurst) {
    Raw client(path);
    std::string lines;
    constexpr int kCount = 2000;  // some megabytes of replies, for 50 kB of requests
    for (int i = 0; i < kCount; ++i)
        lines += R"({"command":"counters"})"
                 "\n";
    client.send(lines);
    std::this_thread::sleep_for(50ms);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(client.reply()["ok"], true) << i;
}

TEST_F(ControlServer, TwoServersCannotShareAPath) {
    EXPECT_THROW(Server(target, path), std::system_error);
    Raw client(path);
    client.send(kPing);
    EXPECT_EQ(client.reply()["ok"], true);
}

}  // namespace
}  // namespace iaa::test
