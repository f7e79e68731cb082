// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "device/descriptor.h"
#include "device/model/profile.h"
#include "device/model/registers.h"
#include "device/ops/codes.h"
#include "device/trace/trace.h"
#include "device/unique_fd.h"
#include "vfio_user/test_client.h"

extern char** environ;

namespace iaa::test {
namespace {

using namespace std::chrono_literals;
using device::Descriptor;
using device::UniqueFd;
namespace reg = device::reg;

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

    /// Bus mastering on; WQ 0 of 16 entries with every engine, enabled.
    static void enable_first_wq(TestClient& client) {
        constexpr std::uint32_t kBar0 = VFIO_PCI_BAR0_REGION_INDEX;
        const std::uint64_t wqcfg = device::Profile{}.wqcfg_offset();
        client.write_value<std::uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, 4, 0x6);
        client.write_value<std::uint32_t>(kBar0, wqcfg, 16);
        client.write_value<std::uint32_t>(kBar0, wqcfg + 8, 1 | 10 << 4);
        client.write_value<std::uint32_t>(kBar0, wqcfg + 12, 21);
        client.write_value<std::uint64_t>(kBar0, reg::kGrpCfg, 1);
        client.write_value<std::uint64_t>(kBar0, reg::kGrpCfg + 32, 0xff);
        client.write_value<std::uint64_t>(kBar0, reg::kGrpCfg + 40, 96ULL << 20);
        for (const auto code : {reg::Command::kEnableDevice, reg::Command::kEnableWq}) {
            client.write_value<std::uint32_t>(
                kBar0, reg::kCmd, static_cast<std::uint32_t>(code) << reg::kCmdCodeShift);
            ASSERT_EQ(client.read_value<std::uint32_t>(kBar0, reg::kCmdSts), 0U);
        }
    }

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

/// Every descriptor leaves its record: what was done with it, and what the guest saw.
TEST_F(ProgramTest, TheTraceHasEveryDescriptor) {
    Program program({"--socket", path("s"), "--control", path("c"), "--trace", path("t")});
    ASSERT_TRUE(program.wait_for("listening on"));
    constexpr std::uint64_t kGuest = 0x100000;
    constexpr std::uint32_t kNoRecord = UINT32_MAX;
    TestClient client = TestClient::connect(path("s"));
    client.negotiate();
    GuestMemory& memory = client.map_memory(kGuest, 0x20000);
    enable_first_wq(client);

    Descriptor descriptor{};
    descriptor.flags_opcode = 0x44U << 24 | device::op_flag::kCompletionAddressValid |
                              device::op_flag::kRequestCompletionRecord;
    descriptor.src1_addr = kGuest + 0x10000;
    descriptor.src1_size = 4096;
    descriptor.filter_flags = 1;
    std::uint32_t submitted = 0;
    const auto submit = [&](std::uint32_t flags = 0) {
        Descriptor one = descriptor;
        one.flags_opcode |= flags;
        one.completion_addr = kGuest + submitted * 64ULL;
        client.write_portal(VFIO_PCI_BAR2_REGION_INDEX, 0x1000 + submitted * 64ULL,
                            std::bit_cast<std::array<std::byte, 64>>(one));
        return submitted++;
    };
    const auto status = [&](std::uint32_t number) {
        auto* byte = reinterpret_cast<std::uint8_t*>(memory.bytes().data() + number * 64ULL);
        return std::atomic_ref(*byte).load(std::memory_order_acquire);
    };
    const auto run = [&](std::uint8_t expected, std::uint32_t flags = 0) {
        const std::uint32_t number = submit(flags);
        EXPECT_TRUE(client.serve_dma([&] { return status(number) != 0; }, 20s));
        EXPECT_EQ(status(number), expected);
    };
    const auto fault = [&](const char* what) {
        Program control(
            {"ctl", path("c"), "fault-add", std::string("fault=") + what, R"(when={"once":true})"});
        EXPECT_EQ(control.wait_exit(), 0) << what;
    };
    run(1);
    run(0x19, device::op_flag::kRequestInterrupt);  // without a handle
    fault(R"({"status":"0x24"})");
    run(0x24);
    fault(R"({"status":"0x0a","execute":true})");
    run(0x0a);
    fault(R"({"drop":true})");
    submit();
    run(1);
    fault(R"({"never_complete":true})");
    submit();
    run(1);
    Program wait({"ctl", path("c"), "wait", "counter=faults", "value=4"});
    EXPECT_EQ(wait.wait_exit(), 0);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait_exit(), 0);

    struct Expected {
        bool executed;
        bool fault;
        std::uint32_t status;
    };
    std::vector<Expected> expected{{true, false, 1},         {false, false, 0x19},
                                   {false, true, 0x24},      {true, true, 0x0a},
                                   {false, true, kNoRecord}, {true, false, 1},
                                   {false, true, kNoRecord}, {true, false, 1}};
    device::TraceReader reader(path("t"));
    std::size_t seen = 0;
    while (const auto record = reader.next()) {
        ++seen;
        // Two engines may end in another order than they began.
        const std::uint32_t got = record->completion ? record->completion->status : kNoRecord;
        const auto found = std::ranges::find_if(expected, [&](const Expected& one) {
            return one.executed == record->executed && one.fault == record->fault_injected &&
                   one.status == got;
        });
        ASSERT_NE(found, expected.end()) << "record " << record->number;
        expected.erase(found);
        EXPECT_EQ(record->outcome.record.status == 1, record->executed);
    }
    EXPECT_EQ(seen, 8U);
    EXPECT_TRUE(expected.empty());
    Program replay({"replay", path("t")});
    EXPECT_TRUE(replay.wait_for("4 records replayed (1 with an injected fault), 0 differences"));
    EXPECT_NE(replay.seen().find("note: 4 records"), std::string::npos);
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
