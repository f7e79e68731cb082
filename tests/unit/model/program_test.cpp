// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "device/unique_fd.h"
#include "vfio_user/test_client.h"

extern char** environ;

namespace iaa::test {
namespace {

using device::UniqueFd;

/// iaa-device as a process of its own.
class Program {
  public:
    explicit Program(std::vector<std::string> words) {
        std::array<int, 2> out{};
        if (pipe2(out.data(), O_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe2");
        }
        output_ = UniqueFd(out[0]);
        const UniqueFd write_end(out[1]);
        words.insert(words.begin(), IAA_DEVICE);
        std::vector<char*> argv;
        for (std::string& word : words) {
            argv.push_back(word.data());
        }
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions{};
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
        const int error = posix_spawn(&pid_, IAA_DEVICE, &actions, nullptr, argv.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) {
            throw std::system_error(error, std::generic_category(), IAA_DEVICE);
        }
    }
    ~Program() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            (void)wait_exit();
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    Program(Program&&) = delete;
    Program& operator=(Program&&) = delete;

    void signal(int number) const { ::kill(pid_, number); }

    /// Reads until text appears in the output; false at its end or after a while.
    bool wait_for(const std::string& text) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (seen_.find(text) == std::string::npos) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                deadline - std::chrono::steady_clock::now());
            pollfd poll_fd{output_.get(), POLLIN, 0};
            if (left.count() <= 0 || poll(&poll_fd, 1, static_cast<int>(left.count())) <= 0) {
                return false;
            }
            std::array<char, 4096> chunk{};
            const ssize_t got = read(output_.get(), chunk.data(), chunk.size());
            if (got <= 0) {
                return false;
            }
            seen_.append(chunk.data(), static_cast<std::size_t>(got));
        }
        return true;
    }

    /// The exit code; -1 where a signal ended it.
    int wait_exit() {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    [[nodiscard]] const std::string& seen() const { return seen_; }

  private:
    pid_t pid_ = -1;
    UniqueFd output_;
    std::string seen_;
};

class ProgramTest : public ::testing::Test {
  protected:
    ProgramTest() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "iaa-device-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), pattern);
        }
        folder_ = pattern;
    }
    ~ProgramTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

    std::filesystem::path folder_;
};

TEST_F(ProgramTest, WrongCommandLinesExitWithTwo) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{},
                                               {"--nonsense"},
                                               {"--socket", path("s"), "--profile", "dmr"},
                                               {"--socket", path("s"), "--wqs", "0"},
                                               {"--socket", path("s"), "--engines", "17"},
                                               {"--socket", path("s"), "--log-level", "loud"},
                                               {"replay"},
                                               {"ctl"}}) {
        Program program(words);
        EXPECT_FALSE(program.wait_for("listening"));
        EXPECT_FALSE(program.seen().empty());
        EXPECT_EQ(program.wait_exit(), 2) << program.seen();
    }
    EXPECT_FALSE(std::filesystem::exists(path("s")));
}

TEST_F(ProgramTest, HelpIsNoError) {
    Program program({"--help"});
    EXPECT_TRUE(program.wait_for("--wq-total-size"));
    EXPECT_EQ(program.wait_exit(), 0);
}

TEST_F(ProgramTest, ASocketThatCannotBeMadeIsSaid) {
    Program program({"--socket", path("missing/s")});
    EXPECT_TRUE(program.wait_for("missing/s"));
    EXPECT_EQ(program.wait_exit(), 1);
    Program trace({"--socket", path("s"), "--trace", path("missing/t")});
    EXPECT_TRUE(trace.wait_for("missing/t"));
    EXPECT_EQ(trace.wait_exit(), 1);
}

TEST_F(ProgramTest, ServesOneClientAfterAnotherUntilTerminated) {
    Program program({"--socket", path("s"), "--control", path("c"), "--profile", "gnr", "--wqs",
                     "3", "--trace", path("t")});
    ASSERT_TRUE(program.wait_for("listening on " + path("s")));
    for (int round = 0; round < 3; ++round) {
        TestClient client = TestClient::connect(path("s"));
        client.negotiate();
        client.write_value<std::uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, 4, 2);
        EXPECT_EQ(client.read_value<std::uint32_t>(VFIO_PCI_BAR0_REGION_INDEX, 0), 0x200U);
        EXPECT_EQ(client.read_value<std::uint64_t>(VFIO_PCI_BAR0_REGION_INDEX, 0x20) >> 16 & 0xff,
                  3U);
    }
    Program control({"ctl", path("c"), "ping"});
    EXPECT_EQ(control.wait_exit(), 0);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait_exit(), 0);
    EXPECT_FALSE(std::filesystem::exists(path("s")));
    Program replay({"replay", path("t")});
    EXPECT_EQ(replay.wait_exit(), 0);
}

TEST_F(ProgramTest, TerminatesWhileAClientIsThere) {
    Program program({"--socket", path("s")});
    ASSERT_TRUE(program.wait_for("listening on"));
    TestClient client = TestClient::connect(path("s"));
    client.negotiate();
    program.signal(SIGINT);
    EXPECT_EQ(program.wait_exit(), 0);
}

}  // namespace
}  // namespace iaa::test
