// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/vfio_user/server.h"
#include "vfio_user/test_client.h"

namespace iaa::test {

using namespace std::chrono_literals;

constexpr std::uint32_t kConfig = VFIO_PCI_CONFIG_REGION_INDEX;
constexpr std::uint32_t kRegisters = VFIO_PCI_BAR0_REGION_INDEX;
constexpr std::uint32_t kReadOnly = VFIO_PCI_BAR1_REGION_INDEX;
constexpr std::uint32_t kPortals = VFIO_PCI_BAR2_REGION_INDEX;  ///< write-only
constexpr std::uint32_t kVectors = 40;

/// A function that stores what it is written, and whose behaviour a test can add to.
class FakeFunction final : public device::Function {
  public:
    struct Write {
        std::uint32_t region;
        std::uint64_t offset;
        std::vector<std::byte> data;
        bool operator==(const Write&) const = default;
    };

    std::function<void(std::uint32_t region, std::uint64_t offset)> on_write;
    std::function<void()> on_reset;
    std::atomic<device::Host*> host{nullptr};
    std::atomic<int> attached{0};
    std::atomic<int> detached{0};
    std::atomic<int> resets{0};

    [[nodiscard]] device::RegionInfo region_info(std::uint32_t index) const override {
        switch (index) {
            case kConfig:
            case kRegisters:
                return {.size = 4096, .readable = true, .writable = true};
            case kReadOnly:
                return {.size = 256, .readable = true, .writable = false};
            case kPortals:
                return {.size = 0x10000, .readable = false, .writable = true};
            default:
                return {};
        }
    }
    [[nodiscard]] std::uint32_t msix_vectors() const override { return kVectors; }

    void region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), memory_.at(index).data() + offset, out.size());
    }
    void region_write(std::uint32_t index, std::uint64_t offset,
                      std::span<const std::byte> in) override {
        std::memcpy(memory_.at(index).data() + offset, in.data(), in.size());
        {
            const std::lock_guard lock(mutex_);
            writes_.push_back({index, offset, {in.begin(), in.end()}});
        }
        if (on_write) on_write(index, offset);
    }
    void attach(device::Host& new_host) override {
        host = &new_host;
        ++attached;
    }
    void reset() override {
        ++resets;
        if (on_reset) on_reset();
    }
    /// A thread of the device's: as a device must, detach() waits for its work to end.
    template <typename Work>
    [[nodiscard]] std::jthread engine(Work work) {
        working_.fetch_add(1);
        return std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
            if constexpr (std::is_invocable_v<const Work&, const std::stop_token&>)
                work(stop);
            else
                work();
            working_.fetch_sub(1);
            working_.notify_all();
        });
    }
    /// To be called before the client leaves, by a test whose own thread has used the host.
    void done_with_host() { released_.fetch_add(1); }
    void detach() override {
        released_.fetch_add(1);
        for (unsigned left = working_; left != 0; left = working_) working_.wait(left);
        host = nullptr;
        ++detached;
    }

    std::vector<Write> writes() {
        const std::lock_guard lock(mutex_);
        return writes_;
    }

  private:
    std::array<std::array<std::byte, 0x10000>, VFIO_PCI_NUM_REGIONS> memory_{};
    std::mutex mutex_;
    std::vector<Write> writes_;
    std::atomic<unsigned> released_{0};
    std::atomic<unsigned> working_{0};
};

/// Lines that the server logged.
class Log {
  public:
    void add(std::string_view line) {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(line);
    }
    bool contains(std::string_view part) {
        const std::lock_guard lock(mutex_);
        for (const std::string& line : lines_)
            if (line.find(part) != std::string::npos) return true;
        return false;
    }
    std::size_t size() {
        const std::lock_guard lock(mutex_);
        return lines_.size();
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

inline std::pair<UniqueFd, UniqueFd> socket_pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
        throw std::system_error(errno, std::generic_category(), "socketpair");
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

inline std::size_t open_fds() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::byte> bytes(size);
    std::uint32_t state = seed * 2654435761U + 1;
    for (std::byte& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
}

/// A server with one client on a socket pair.
class ServerTest : public testing::Test {
  protected:
    void start(device::vfio_user::ServerOptions options = {}) {
        options.log = [this](std::string_view line) { log.add(line); };
        server.emplace(function, std::move(options));
        auto [ours, theirs] = socket_pair();
        client.emplace(std::move(ours));
        thread = std::jthread([this, socket = std::make_shared<UniqueFd>(std::move(theirs))] {
            server->serve(std::move(*socket));
        });
    }
    void start_negotiated(device::vfio_user::ServerOptions options = {}) {
        start(std::move(options));
        client->negotiate();
    }
    /// Closes the client and waits for the server to be done with it.
    void finish() {
        function.done_with_host();
        if (client) client->close();
        if (thread.joinable()) thread.join();
    }
    void TearDown() override {
        finish();
        EXPECT_EQ(function.attached.load(), function.detached.load());
    }

    device::Host& host() { return *function.host.load(); }

    FakeFunction function;
    Log log;
    std::optional<device::vfio_user::Server> server;
    std::optional<TestClient> client;
    std::jthread thread;
};

}  // namespace iaa::test
