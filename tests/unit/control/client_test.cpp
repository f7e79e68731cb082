// SPDX-License-Identifier: GPL-2.0
#include "device/control/client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "control/fake_target.h"
#include "device/control/requests.h"
#include "device/control/server.h"

namespace iaa::test {
namespace {

using device::control::Connection;
using device::control::run_client;
using device::control::Server;
using nlohmann::json;
using namespace std::chrono_literals;

class ControlClient : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "iaa-client-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        path = (directory / "control.sock").string();
        server = std::make_unique<Server>(target, path);
    }
    void TearDown() override {
        server.reset();
        std::filesystem::remove_all(directory);
    }

    int run(std::vector<std::string> words, const std::string& input = "") {
        std::istringstream in(input);
        std::ostringstream out;
        std::ostringstream err;
        const int result = run_client(words, in, out, err);
        printed.clear();
        std::istringstream lines(out.str());
        for (std::string line; std::getline(lines, line);) printed.push_back(json::parse(line));
        problem = err.str();
        return result;
    }

    std::filesystem::path directory;
    std::string path;
    FakeTarget target;
    std::unique_ptr<Server> server;
    std::vector<json> printed;
    std::string problem;
};

TEST_F(ControlClient, JsonArguments) {
    EXPECT_EQ(run({path, R"({"command":"ping"})", R"({"command":"fault-list","id":3})"}), 0);
    ASSERT_EQ(printed.size(), 2U);
    EXPECT_EQ(printed[0], (json{{"ok", true}}));
    EXPECT_EQ(printed[1]["id"], 3);
    EXPECT_TRUE(problem.empty());
}

TEST_F(ControlClient, WordsAndKeys) {
    target.counters().accepted(0);
    EXPECT_EQ(
        run({path, "ping", "wait", "counter=accepted", "value=1", "halt", "reason=no reason"}), 0);
    ASSERT_EQ(printed.size(), 3U);
    EXPECT_EQ(printed[1]["value"], 1);
    EXPECT_EQ(target.state().halt_reason, "no reason");
    EXPECT_EQ(run({path, "fault-add", R"(fault={"drop":true})", R"(when={"once":true})"}), 0);
    EXPECT_EQ(printed[0]["rule"], 1);
}

TEST_F(ControlClient, RequestsFromInput) {
    EXPECT_EQ(run({path}, "{\"command\":\"ping\"}\n\n  \n{\"command\":\"help\"}"), 0);
    EXPECT_EQ(printed.size(), 2U);
    EXPECT_EQ(run({path}, ""), 0);
    EXPECT_TRUE(printed.empty());
}

TEST_F(ControlClient, AReplyThatIsNotOkShowsInTheExitStatus) {
    EXPECT_EQ(run({path, "nonsense", "ping"}), 1);
    ASSERT_EQ(printed.size(), 2U);
    EXPECT_EQ(printed[0]["ok"], false);
    EXPECT_EQ(printed[1]["ok"], true);
    EXPECT_EQ(run({path, "wait", "counter=accepted", "value=9", "timeout_ms=10"}), 1);
}

TEST_F(ControlClient, WordsThatMakeNoSense) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{},
                                               {path, "key=value"},
                                               {path, "{"},
                                               {path, "{]"},
                                               {path, "--timeout"},
                                               {path, "--timeout", "x", "ping"},
                                               {path, "--timeout=0", "ping"},
                                               {path, "--timeout=-1", "ping"},
                                               {path, "--timeout=1e99", "ping"},
                                               {path, R"({"id":[]})"}}) {
        EXPECT_EQ(run(words), 2);
        EXPECT_TRUE(problem.starts_with("ctl: ")) << problem;
        EXPECT_TRUE(printed.empty());
    }
    EXPECT_EQ(run({path}, "{\"command\":\"ping\"}\nnot json\n"), 2);
    EXPECT_EQ(printed.size(), 1U);
}

TEST_F(ControlClient, PlacesThatAreNoServer) {
    EXPECT_EQ(run({(directory / "missing").string(), "ping"}), 1);
    EXPECT_NE(problem.find("cannot find"), std::string::npos);
    std::ofstream(directory / "file") << "x";
    EXPECT_EQ(run({(directory / "file").string(), "ping"}), 2);
    EXPECT_NE(problem.find("neither a socket nor a character device"), std::string::npos);
    EXPECT_EQ(run({"/dev/null", "ping"}), 1);
    EXPECT_NE(problem.find("nobody is at the other end"), std::string::npos);
    {
        const device::UnixListener silent((directory / "silent").string());
        EXPECT_EQ(run({(directory / "silent").string(), "--timeout=0.1", "ping"}), 1);
        EXPECT_NE(problem.find("sent no reply within the time limit"), std::string::npos);
    }
    std::filesystem::remove(directory / "silent");
}

TEST_F(ControlClient, TheServerGoesAway) {
    const device::UnixListener listener((directory / "other").string());
    std::jthread other([&] { device::UniqueFd gone = listener.accept(); });
    EXPECT_EQ(run({(directory / "other").string(), "ping"}), 1);
    EXPECT_FALSE(problem.empty());
}

/// Serves one end of a pseudo-terminal as the control socket would, with what somebody before us
/// left on the line.
TEST_F(ControlClient, ThroughACharacterDevice) {
    const device::UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal);
    ASSERT_EQ(::grantpt(terminal.get()), 0);
    ASSERT_EQ(::unlockpt(terminal.get()), 0);
    const std::string name = ::ptsname(terminal.get());
    termios raw{};
    ASSERT_EQ(::tcgetattr(terminal.get(), &raw), 0);
    ::cfmakeraw(&raw);
    ASSERT_EQ(::tcsetattr(terminal.get(), TCSANOW, &raw), 0);

    const std::string stale = "{\"ok\":true,\"id\":\"somebody's\"}\nhalf a rep";
    std::atomic<bool> stop{false};
    std::jthread far_end([&] {
        ASSERT_EQ(::write(terminal.get(), stale.data(), stale.size()),
                  static_cast<ssize_t>(stale.size()));
        ASSERT_EQ(::write(terminal.get(), "\n", 1), 1);
        std::string input;
        while (!stop) {
            pollfd ready{.fd = terminal.get(), .events = POLLIN, .revents = 0};
            if (::poll(&ready, 1, 20) != 1 || (ready.revents & POLLIN) == 0) continue;
            std::array<char, 512> buffer{};
            const ssize_t got = ::read(terminal.get(), buffer.data(), buffer.size());
            if (got <= 0) continue;
            input.append(buffer.data(), static_cast<std::size_t>(got));
            for (auto end = input.find('\n'); end != std::string::npos; end = input.find('\n')) {
                if (end != 0) {
                    const std::string reply =
                        device::control::answer(input.substr(0, end), target).reply.value_or("") +
                        "\n";
                    ASSERT_EQ(::write(terminal.get(), reply.data(), reply.size()),
                              static_cast<ssize_t>(reply.size()));
                }
                input.erase(0, end + 1);
            }
        }
    });
    EXPECT_EQ(run({name, "--timeout", "5", "halt", "reason=far", "ping"}), 0) << problem;
    EXPECT_EQ(printed, (std::vector<json>{{{"ok", true}}, {{"ok", true}}}));
    EXPECT_EQ(target.state().halt_reason, "far");
    stop = true;
}

TEST_F(ControlClient, AConnectionKeepsAnIdOfOnesOwn) {
    Connection connection(path);
    EXPECT_EQ(connection.call({{"command", "ping"}, {"id", "mine"}}, 5s)["id"], "mine");
    EXPECT_FALSE(connection.call({{"command", "ping"}}, 5s).contains("id"));
    EXPECT_THROW(
        (void)connection.call(
            {{"command", "wait"}, {"counter", "accepted"}, {"value", 1}, {"timeout_ms", 2000}},
            50ms),
        std::runtime_error);
    // The late reply to that is not taken for this one's.
    target.counters().accepted(0);
    EXPECT_TRUE(connection.call({{"command", "fault-list"}}, 5s).contains("rules"));
}

}  // namespace
}  // namespace iaa::test
