// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "device/descriptor.h"
#include "device/model/iaa_device.h"
#include "device/model/log.h"
#include "device/model/profile.h"
#include "device/model/registers.h"
#include "device/vfio_user/function.h"

namespace iaa::test {

using device::CompletionRecord;
using device::Descriptor;
namespace reg = device::reg;

inline constexpr std::chrono::seconds kPatience{20};

/// Guest memory from address 0 to its size. Every access is counted, and can be refused.
class FakeMemory final : public device::DmaMemory {
  public:
    explicit FakeMemory(std::size_t size) : bytes_(size) {}

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override;
    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override;
    [[nodiscard]] bool write_completion(std::uint64_t iova,
                                        std::span<const std::byte, 64> record) override;
    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override;

    /// Called before every access, outside the lock.
    std::function<void()> on_access;
    /// The same, before every write, with its address.
    std::function<void(std::uint64_t iova)> on_write;

    // The test's own view.
    [[nodiscard]] std::uint64_t accesses() const;
    [[nodiscard]] CompletionRecord record(std::uint64_t iova) const;
    [[nodiscard]] std::vector<std::byte> peek(std::uint64_t iova, std::size_t size) const;
    void fill(std::uint64_t iova, std::size_t size, std::byte value);
    [[nodiscard]] bool wait_status(std::uint64_t iova) const;

  private:
    [[nodiscard]] bool inside(std::uint64_t iova, std::uint64_t size) const {
        return iova <= bytes_.size() && size <= bytes_.size() - iova;
    }
    void counted();

    mutable std::mutex mutex_;
    mutable std::condition_variable written_;
    std::vector<std::byte> bytes_;
    std::uint64_t accesses_ = 0;
};

class FakeHost final : public device::Host {
  public:
    explicit FakeHost(std::size_t memory_size) : memory_(memory_size) {}

    device::DmaMemory& memory() override { return memory_; }
    void trigger_msix(std::uint32_t vector) override;
    [[nodiscard]] bool pump_until(const std::function<bool()>& done,
                                  std::chrono::milliseconds limit) override;
    void wake() override {}
    void disconnect(std::string_view why) override;

    FakeMemory& fake_memory() { return memory_; }
    [[nodiscard]] std::uint64_t interrupts(std::uint32_t vector) const;
    /// Waits until the vector was signalled at least so often, in all.
    [[nodiscard]] bool wait_interrupts(std::uint32_t vector, std::uint64_t count) const;
    [[nodiscard]] std::uint64_t pumps() const { return pumps_.load(); }
    /// How often the device has sent its client away.
    [[nodiscard]] std::uint64_t disconnects() const { return disconnects_.load(); }

  private:
    FakeMemory memory_;
    mutable std::mutex mutex_;
    mutable std::condition_variable signalled_;
    std::map<std::uint32_t, std::uint64_t> interrupts_;
    std::atomic<std::uint64_t> pumps_{0};
    std::atomic<std::uint64_t> disconnects_{0};
};

/// An operation that the test holds up and lets go: what engines run in place of the real ones.
class FakeOperation {
  public:
    /// Reads source 1, waits while held, writes one byte to the destination and succeeds.
    device::Outcome operator()(const Descriptor& descriptor, device::DmaMemory& memory,
                               const device::Capabilities& capabilities);

    void hold();
    void let_go();
    /// Waits until so many operations have begun, in all.
    [[nodiscard]] bool wait_begun(std::uint64_t count);
    [[nodiscard]] std::uint64_t begun() const;
    [[nodiscard]] bool wait_ended(std::uint64_t count);
    /// Source 1 addresses of the operations, in the order in which they began.
    [[nodiscard]] std::vector<std::uint64_t> order() const;
    [[nodiscard]] std::size_t threads() const;
    [[nodiscard]] device::Capabilities capabilities() const;
    [[nodiscard]] std::size_t most_at_once() const;

    /// Status of the outcome; success where 0.
    std::atomic<std::uint8_t> status{0};
    /// Error code of the outcome, which then has broken the rule "code".
    std::atomic<std::uint8_t> error_code{0};
    /// Throws std::bad_alloc in place of what it does after the source has been read.
    std::atomic<bool> no_memory{false};

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool held_ = false;
    std::uint64_t begun_ = 0;
    std::uint64_t ended_ = 0;
    std::size_t at_once_ = 0;
    std::size_t most_at_once_ = 0;
    std::vector<std::uint64_t> order_;
    std::set<std::thread::id> threads_;
    device::Capabilities capabilities_;
};

struct WqSetup {
    std::uint32_t wq = 0;
    std::uint32_t size = 16;
    std::uint32_t priority = 10;
};

/// A device with a fake host, driven through the Function interface as the transport does.
class DeviceTest : public ::testing::Test {
  protected:
    static constexpr std::uint32_t kBar0 = 0;
    static constexpr std::uint32_t kBar2 = 2;
    static constexpr std::uint32_t kConfig = 7;
    static constexpr std::uint64_t kRecords = 0x10000;  ///< completion records in guest memory
    static constexpr std::uint64_t kSources = 0x40000;
    static constexpr std::uint64_t kResults = 0x80000;
    static constexpr std::size_t kMemorySize = 1U << 20;

    DeviceTest();
    ~DeviceTest() override;

    /// Makes the device; the tests' bodies do it where SetUp's is not the one they want.
    void make(const device::Profile& profile, bool inline_execution = false);

    [[nodiscard]] std::uint32_t read32(std::uint64_t offset);
    [[nodiscard]] std::uint64_t read64(std::uint64_t offset);
    void write32(std::uint64_t offset, std::uint32_t value);
    void write64(std::uint64_t offset, std::uint64_t value);
    [[nodiscard]] std::uint32_t config_read(std::uint64_t offset, std::size_t size);
    void config_write(std::uint64_t offset, std::size_t size, std::uint32_t value);

    /// Memory space, bus mastering and MSI-X on.
    void power_up();
    /// Writes CMD without interrupt; the status it leaves.
    std::uint32_t command(reg::Command code, std::uint32_t operand = 0);
    void start_command(reg::Command code, std::uint32_t operand = 0, bool interrupt = false);
    [[nodiscard]] bool command_active() { return (read32(reg::kCmdSts) & reg::kCmdStsActive) != 0; }
    [[nodiscard]] bool wait_command();
    void setup_wq(const WqSetup& setup);
    void setup_group(std::uint32_t group, std::uint64_t wqs, std::uint64_t engines);
    /// power_up(), one group of all engines with these WQs, device and WQs enabled.
    void bring_up(const std::vector<WqSetup>& wqs);
    [[nodiscard]] std::uint64_t wqcfg(std::uint32_t wq, std::uint32_t word) const;
    [[nodiscard]] std::uint32_t occupancy(std::uint32_t wq);
    [[nodiscard]] std::uint32_t request_handle(std::uint32_t vector);

    /// A descriptor whose record is the number's, and whose source says the number.
    [[nodiscard]] static Descriptor descriptor(std::uint32_t number);
    [[nodiscard]] static std::uint64_t record_at(std::uint32_t number) {
        return kRecords + number * 64ULL;
    }
    [[nodiscard]] static std::uint64_t portal(std::uint32_t wq, std::uint32_t page = 1,
                                              std::uint32_t slot = 0) {
        return wq * 0x4000ULL + page * 0x1000ULL + slot * 64ULL;
    }
    void store(std::uint64_t bar_offset, std::span<const std::byte> bytes);
    /// One whole descriptor, as eight stores of eight bytes.
    void submit(std::uint32_t wq, const Descriptor& descriptor, std::uint32_t page = 1);
    [[nodiscard]] CompletionRecord record(std::uint32_t number) {
        return memory().record(record_at(number));
    }
    [[nodiscard]] bool wait_record(std::uint32_t number) {
        return memory().wait_status(record_at(number));
    }
    [[nodiscard]] FakeMemory& memory() { return host_->fake_memory(); }
    [[nodiscard]] bool wait_until(const std::function<bool()>& done);
    [[nodiscard]] std::uint64_t broken(const char* rule) const { return log_.rule_count(rule); }
    [[nodiscard]] std::uint32_t software_error_code() { return read32(reg::kSwErr) >> 8 & 0xff; }

    device::Profile profile_;
    std::FILE* log_file_;
    device::Log log_;
    /// Of the next device that make() makes.
    std::chrono::milliseconds fence_limit_ = kPatience;
    FakeOperation operation_;
    std::unique_ptr<FakeHost> host_;
    std::unique_ptr<device::IaaDevice> device_;
    std::uint32_t next_slot_ = 0;
};

}  // namespace iaa::test
