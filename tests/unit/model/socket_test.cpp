// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <system_error>
#include <thread>

#include "device/model/iaa_device.h"
#include "device/model/registers.h"
#include "device/ops/codes.h"
#include "device/vfio_user/server.h"
#include "device_fixture.h"
#include "vfio_user/test_client.h"

namespace iaa::test {
namespace {

using reg::Command;

constexpr std::uint32_t kBar0 = VFIO_PCI_BAR0_REGION_INDEX;
constexpr std::uint32_t kBar2 = VFIO_PCI_BAR2_REGION_INDEX;
constexpr std::uint32_t kConfig = VFIO_PCI_CONFIG_REGION_INDEX;
constexpr std::uint64_t kGuest = 0x100000;  // iova of guest memory
constexpr std::size_t kGuestSize = 0x100000;
constexpr std::uint64_t kRecords = kGuest;
constexpr std::uint64_t kSource = kGuest + 0x10000;
constexpr auto kShort = std::chrono::milliseconds(10'000);

/// The device behind the real transport, with the real operations, over a socket pair.
class SocketTest : public ::testing::TestWithParam<Share> {
  protected:
    SocketTest()
        : log_file_(std::fopen("/dev/null", "w")),
          log_(device::LogLevel::kDebug, log_file_),
          device_(profile_, log_),
          server_(device_, quiet()) {}

    ~SocketTest() override {
        client_.reset();
        server_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
        (void)std::fclose(log_file_);
    }

    static device::vfio_user::ServerOptions quiet() {
        device::vfio_user::ServerOptions options;
        options.log = [](std::string_view) {};
        return options;
    }

    void connect() {
        if (thread_.joinable()) {
            thread_.join();
        }
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throw std::system_error(errno, std::generic_category(), "socketpair");
        }
        thread_ = std::thread([this, fd = ends[1]] { server_.serve(device::UniqueFd(fd)); });
        client_ = std::make_unique<TestClient>(device::UniqueFd(ends[0]));
        client_->negotiate();
        memory_ = &client_->map_memory(kGuest, kGuestSize, GetParam());
        client_->attach_irqs(profile_.vectors());
    }

    void disconnect() {
        client_.reset();
        thread_.join();
    }

    void command(Command code, std::uint32_t operand = 0) {
        client_->write_value(
            kBar0, reg::kCmd,
            static_cast<std::uint32_t>(code) << reg::kCmdCodeShift | operand | reg::kCmdInterrupt,
            true);
        ASSERT_GE(client_->wait_irq(0, kShort), 1U);
        client_->write_value(kBar0, reg::kIntCause, reg::kIntCommand, true);
        ASSERT_EQ(client_->read_value<std::uint32_t>(kBar0, reg::kCmdSts) & 0xff, 0U);
    }

    /// As a driver does: MSI-X, reset, WQ 0 of all entries with every engine.
    void bring_up() {
        client_->write_value<std::uint16_t>(kConfig, 0x04, 0x0006, true);
        client_->write_value<std::uint16_t>(kConfig, 0x82, 0x8000, true);
        command(Command::kResetDevice);
        const std::uint64_t wqcfg = profile_.wqcfg_offset();
        client_->write_value<std::uint32_t>(kBar0, wqcfg, 64, true);
        client_->write_value<std::uint32_t>(kBar0, wqcfg + 8, 1 | 10 << 4, true);
        client_->write_value<std::uint32_t>(kBar0, wqcfg + 12, 21, true);
        client_->write_value<std::uint64_t>(kBar0, reg::kGrpCfg, 1, true);
        client_->write_value<std::uint64_t>(kBar0, reg::kGrpCfg + 32, 0xff, true);
        client_->write_value<std::uint64_t>(kBar0, reg::kGrpCfg + 40, 96ULL << 20, true);
        command(Command::kEnableDevice);
        command(Command::kEnableWq, 0);
        command(Command::kRequestIntHandle, 1);
        handle_ = static_cast<std::uint16_t>(
            client_->read_value<std::uint32_t>(kBar0, reg::kCmdSts) >> 8);
    }

    /// CRC64 of 4096 bytes: a whole operation with reads, a record and an interrupt.
    [[nodiscard]] Descriptor crc(std::uint32_t number) const {
        Descriptor descriptor{};
        descriptor.flags_opcode = 0x44U << 24 | device::op_flag::kCompletionAddressValid |
                                  device::op_flag::kRequestCompletionRecord |
                                  device::op_flag::kRequestInterrupt;
        descriptor.completion_addr = kRecords + number * 64ULL;
        descriptor.src1_addr = kSource;
        descriptor.src1_size = 4096;
        descriptor.int_handle = handle_;
        descriptor.filter_flags = 0xa9ea3693;  // ECMA-182
        descriptor.num_inputs = 0x42f0e1eb;
        return descriptor;
    }

    void submit(const Descriptor& descriptor) {
        client_->write_portal(kBar2, 0x1000 + slot_ * 64ULL,
                              std::bit_cast<std::array<std::byte, 64>>(descriptor));
        slot_ = (slot_ + 1) % 64;
    }

    [[nodiscard]] std::uint8_t status(std::uint32_t number) const {
        auto* byte = reinterpret_cast<std::uint8_t*>(memory_->bytes().data() + number * 64ULL);
        return std::atomic_ref(*byte).load(std::memory_order_acquire);
    }

    [[nodiscard]] bool wait_status(std::uint32_t number) {
        return client_->serve_dma([&] { return status(number) != 0; }, kShort);
    }

    device::Profile profile_;
    std::FILE* log_file_;
    device::Log log_;
    device::IaaDevice device_;
    device::vfio_user::Server server_;
    std::thread thread_;
    std::unique_ptr<TestClient> client_;
    GuestMemory* memory_ = nullptr;
    std::uint16_t handle_ = 0;
    std::uint32_t slot_ = 0;
};

TEST_P(SocketTest, ADriverBringsItUpAndWorks) {
    connect();
    EXPECT_EQ(client_->read_value<std::uint32_t>(kConfig, 0), 0x0cfe8086U);
    bring_up();
    constexpr std::uint32_t kCount = 100;
    std::memset(memory_->bytes().data() + (kSource - kGuest), 0x5a, 4096);
    for (std::uint32_t n = 0; n < kCount; ++n) {
        submit(crc(n));
        ASSERT_TRUE(wait_status(n)) << n;
        ASSERT_EQ(status(n), 1) << n;
    }
    std::uint64_t interrupts = 0;
    while (interrupts < kCount) {
        const std::uint64_t more = client_->wait_irq(1, kShort);
        ASSERT_NE(more, 0U);
        interrupts += more;
    }
    EXPECT_EQ(interrupts, kCount);
    command(Command::kDisableWq, 1);
    command(Command::kDisableDevice);
    EXPECT_TRUE(log_.rules_broken().empty());
}

TEST_P(SocketTest, TheSocketAnswersWhileADrainWaits) {
    connect();
    bring_up();
    device::control::FaultRule rule;
    rule.actions.delay = std::chrono::milliseconds(200);
    rule.trigger.count = 1;
    device_.faults().add(rule);
    submit(crc(0));
    client_->write_value(kBar0, reg::kCmd,
                         static_cast<std::uint32_t>(Command::kDrainWq) << reg::kCmdCodeShift | 1 |
                             reg::kCmdInterrupt,
                         true);
    EXPECT_NE(client_->read_value<std::uint32_t>(kBar0, reg::kCmdSts) & reg::kCmdStsActive, 0U);
    EXPECT_GE(client_->wait_irq(0, kShort), 1U);
    EXPECT_EQ(status(0), 1);
}

TEST_P(SocketTest, ResetUnderLoadLeavesMemoryAlone) {
    connect();
    for (std::uint32_t round = 0; round < 10; ++round) {
        ASSERT_NO_FATAL_FAILURE(bring_up());
        std::memset(memory_->bytes().data(), 0, 64 * 64);
        for (std::uint32_t n = 0; n < 60; ++n) {
            submit(crc(n));
        }
        client_->reset();
        std::vector<std::byte> before(memory_->bytes().begin(), memory_->bytes().end());
        EXPECT_FALSE(client_->serve_dma([] { return false; }, std::chrono::milliseconds(5)));
        EXPECT_TRUE(std::equal(before.begin(), before.end(), memory_->bytes().begin()));
    }
}

TEST_P(SocketTest, UnmapUnderLoadIsFencedAndSeenAsAFault) {
    connect();
    bring_up();
    constexpr std::uint64_t kSecond = 0x800000;
    for (std::uint32_t round = 0; round < 10; ++round) {
        client_->on_dma = nullptr;
        client_->map_memory(kSecond, 0x20000, GetParam());
        std::memset(memory_->bytes().data(), 0, 64 * 64);
        // The even ones read from what goes away, the odd ones complete there.
        for (std::uint32_t n = 0; n < 60; ++n) {
            Descriptor descriptor = crc(n);
            descriptor.src1_size = 0x10000;
            if (n % 2 == 0) {
                descriptor.src1_addr = kSecond;
            } else {
                descriptor.completion_addr = kSecond + 0x10000 + n * 64ULL;
            }
            submit(descriptor);
        }
        const std::unique_ptr<GuestMemory> second = client_->unmap_memory(kSecond);
        client_->on_dma = [&](const Reply& dma) {
            EXPECT_LT(dma.as<std::uint64_t>(), kSecond) << "DMA to what was taken away";
            return false;
        };
        const std::vector<std::byte> before(second->bytes().begin(), second->bytes().end());
        for (std::uint32_t n = 0; n < 60; n += 2) {
            ASSERT_TRUE(wait_status(n)) << n;
            EXPECT_TRUE(status(n) == 1 || status(n) == 3) << int{status(n)};
        }
        command(Command::kDrainAll);
        EXPECT_TRUE(std::ranges::equal(before, second->bytes()));
    }
}

// A long access to memory that only the client reaches is many messages: the abort does not wait
// for all of them.
TEST_P(SocketTest, AnAbortEndsALongAccess) {
    if (GetParam() == Share::kFile) {
        return;  // there it is a copy
    }
    connect();
    bring_up();
    constexpr std::uint64_t kLong = 0x800000;
    constexpr std::uint32_t kSize = 1U << 21;
    client_->map_memory(kLong, kSize, GetParam());
    std::uint32_t reads = 0;
    client_->on_dma = [&](const Reply& dma) {
        if (dma.as<std::uint64_t>() >= kLong && dma.as<std::uint64_t>(8) <= kSize && ++reads == 1) {
            // Goes before the answer.
            client_->write_value(
                kBar0, reg::kCmd,
                static_cast<std::uint32_t>(Command::kAbortWq) << reg::kCmdCodeShift | 1 |
                    reg::kCmdInterrupt,
                true);
        }
        return false;
    };
    Descriptor descriptor = crc(0);
    descriptor.src1_addr = kLong;
    descriptor.src1_size = kSize;
    submit(descriptor);
    ASSERT_TRUE(client_->serve_dma(
        [&] {
            std::uint64_t count = 0;
            return ::read(client_->irq_fd(0), &count, sizeof(count)) == sizeof(count);
        },
        kShort));
    EXPECT_EQ(reads, 1U);
    EXPECT_EQ(status(0), 0);
}

TEST_P(SocketTest, TheNextClientFindsTheDevice) {
    connect();
    bring_up();
    for (std::uint32_t n = 0; n < 60; ++n) {
        submit(crc(n));
    }
    disconnect();
    for (int round = 0; round < 5; ++round) {
        connect();
        bring_up();
        submit(crc(0));
        ASSERT_TRUE(wait_status(0));
        disconnect();
    }
}

TEST_P(SocketTest, HostileAccessesEndInErrorsAndNothingElse) {
    connect();
    bring_up();
    const std::vector<std::byte> zeros(65536);
    for (const std::uint32_t region : {kBar0, kBar2}) {
        for (const std::uint64_t offset :
             {0x0ULL, 0x1ULL, 0xa0ULL, 0xa3ULL, 0xffffULL, 0x1fffULL}) {
            for (const std::size_t size : {1UL, 2UL, 3UL, 7UL, 9UL, 64UL, 1000UL}) {
                if (offset + size <= device_.region_info(region).size) {
                    client_->write(region, offset, std::span(zeros).first(size), true);
                    (void)client_->read(region, offset, static_cast<std::uint32_t>(size));
                }
            }
        }
    }
    EXPECT_EQ(client_->read_value<std::uint32_t>(kBar0, reg::kVersion), 0x100U);
    client_->reset();
    bring_up();
    submit(crc(0));
    EXPECT_TRUE(wait_status(0));
}

std::string share_name(const ::testing::TestParamInfo<Share>& parameter) {
    return parameter.param == Share::kFile ? "Shared" : "ByMessages";
}

INSTANTIATE_TEST_SUITE_P(Memory, SocketTest, ::testing::Values(Share::kFile, Share::kMessages),
                         share_name);

}  // namespace
}  // namespace iaa::test
