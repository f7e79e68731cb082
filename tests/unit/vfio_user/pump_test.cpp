// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using vu::Command;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBase = 0x100000;
constexpr std::size_t kPage = 4096;

class PumpTest : public ServerTest {
  protected:
    void SetUp() override {
        start_negotiated({.dma_timeout = 1000ms});
        client->map_memory(kBase, 16 * kPage, Share::kMessages);
    }
};

TEST_F(PumpTest, AResetWaitsForAThreadThatIsInADmaAccess) {
    std::atomic<bool> busy{true};
    std::atomic<bool> started{false};
    std::jthread engine = function.engine([&] {
        std::vector<std::byte> data(3 * kPage);
        started = true;
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(host().memory().write(kBase, data));
        busy = false;
        host().wake();
    });
    function.on_reset = [&] { EXPECT_TRUE(host().pump_until([&] { return !busy; }, 10s)); };
    client->reset();  // the client answers DMA while it waits for the reply
    EXPECT_FALSE(busy);
}

TEST_F(PumpTest, CommandsAreKeptBackInOrder) {
    std::atomic<bool> go{false};
    bool first = true;
    std::vector<std::uint64_t> seen_inside;
    function.on_write = [&](std::uint32_t, std::uint64_t) {
        if (!std::exchange(first, false)) return;
        EXPECT_TRUE(host().pump_until([&] { return go.load(); }, 10s));
        seen_inside.push_back(function.writes().size());
    };
    constexpr std::uint64_t kCount = 5000;
    for (std::uint64_t i = 0; i < kCount; ++i)
        client->write_value(kPortals, i % 0x1000 * 8, i, true);
    go = true;
    client->reset();
    const auto writes = function.writes();
    ASSERT_EQ(writes.size(), kCount);
    for (std::uint64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(*vu::load<std::uint64_t>(writes[i].data), i);
    EXPECT_EQ(seen_inside, std::vector<std::uint64_t>{1}) << "a command ran inside of another";
    EXPECT_EQ(function.resets, 1);
}

TEST_F(PumpTest, DescriptorsOfKeptBackCommandsStayWithThem) {
    std::atomic<bool> go{false};
    function.on_reset = [&] { EXPECT_TRUE(host().pump_until([&] { return go.load(); }, 10s)); };
    const auto reset = client->send(Command::kDeviceReset);
    std::vector<std::unique_ptr<GuestMemory>> files;
    std::vector<std::uint16_t> ids;
    for (std::uint64_t i = 0; i < 5; ++i) {
        files.push_back(std::make_unique<GuestMemory>(kPage));
        files.back()->bytes()[0] = static_cast<std::byte>(i + 1);
        const vu::DmaMap map{.argsz = sizeof(map),
                             .flags = 3,
                             .offset = 0,
                             .address = 0x900000 + i * kPage,
                             .size = kPage};
        const std::array<int, 1> fd = {files.back()->fd()};
        ids.push_back(client->send(Command::kDmaMap, vu::bytes_of(map), fd));
    }
    go = true;
    EXPECT_EQ(client->wait_reply(reset).error(), 0);
    for (const auto id : ids) EXPECT_EQ(client->wait_reply(id).error(), 0);
    for (std::uint64_t i = 0; i < 5; ++i) {
        std::array<std::byte, 1> one{};
        EXPECT_TRUE(host().memory().read(0x900000 + i * kPage, one));
        EXPECT_EQ(std::to_integer<unsigned>(one[0]), i + 1);
    }
}

TEST_F(PumpTest, TheLimitHolds) {
    std::atomic<bool> result{true};
    std::atomic<Clock::duration> took{};
    function.on_reset = [&] {
        const auto start = Clock::now();
        result = host().pump_until([] { return false; }, 100ms);
        took = Clock::now() - start;
    };
    client->reset();
    EXPECT_FALSE(result);
    EXPECT_GE(took.load(), 100ms);
    EXPECT_LT(took.load(), 2s);
}

TEST_F(PumpTest, WakeEndsTheWait) {
    std::atomic<bool> done{false};
    function.on_reset = [&] {
        std::jthread other = function.engine([&] {
            std::this_thread::sleep_for(20ms);
            done = true;
            host().wake();
        });
        EXPECT_TRUE(host().pump_until([&] { return done.load(); }, 5s));
    };
    client->reset();
    host().wake();  // outside of a wait it does nothing
}

TEST_F(PumpTest, TheClientDiesMeanwhile) {
    std::atomic<bool> busy{true};
    std::atomic<bool> ok{true};
    std::atomic<bool> pumped{false};
    client->on_dma = [](const Reply&) { return true; };
    device::Host& host_now = host();
    function.on_reset = [&] { pumped = host_now.pump_until([&] { return !busy; }, 10s); };
    client->send(Command::kDeviceReset);
    std::jthread engine = function.engine([&] {
        std::vector<std::byte> data(kPage);
        ok = host_now.memory().read(kBase, data);
        busy = false;
    });
    EXPECT_TRUE(client->receive(5s)) << "the engine has asked";
    const auto start = Clock::now();
    function.done_with_host();
    client->close();
    thread.join();
    engine.join();
    EXPECT_FALSE(ok);
    EXPECT_TRUE(pumped);
    EXPECT_LT(Clock::now() - start, 900ms) << "it waited for the reply of a client that had gone";
}

TEST_F(PumpTest, StopEndsTheAccessesThatItWaitsFor) {
    finish();
    start_negotiated({.dma_timeout = 60s});
    client->map_memory(kBase, 16 * kPage, Share::kMessages);
    client->on_dma = [](const Reply&) { return true; };
    std::atomic<bool> busy{true};
    std::atomic<bool> ok{true};
    std::atomic<bool> pumped{false};
    device::Host& host_now = host();
    function.on_reset = [&] { pumped = host_now.pump_until([&] { return !busy; }, 60s); };
    std::jthread engine = function.engine([&] {
        std::vector<std::byte> data(kPage);
        ok = host_now.memory().read(kBase, data);
        busy = false;
    });
    ASSERT_TRUE(client->receive(10s)) << "the engine has asked";
    client->send(Command::kDeviceReset);
    const auto start = Clock::now();
    function.done_with_host();
    server->stop();
    thread.join();
    engine.join();
    EXPECT_FALSE(ok);
    EXPECT_LT(Clock::now() - start, 30s) << "it waited for the client's answer";
}

TEST_F(PumpTest, OnlyTheTransportsThreadMayPump) {
    EXPECT_THROW((void)host().pump_until([] { return true; }, 1ms), std::logic_error);
}

TEST_F(PumpTest, AFloodDuringAWaitIsNotKeptWithoutBound) {
    std::atomic<bool> go{false};
    std::atomic<bool> first{true};
    function.on_write = [&](std::uint32_t, std::uint64_t) {
        if (!first.exchange(false)) return;
        EXPECT_TRUE(host().pump_until([&] { return go.load(); }, 20s));
    };
    client->patience = 300ms;
    const std::vector<std::byte> big(4096);
    bool stuck = false;
    std::size_t sent = 0;
    try {
        for (; sent < 64U << 20; sent += big.size()) client->write(kRegisters, 0, big, true);
    } catch (const ClientError&) {
        stuck = true;  // the server has stopped reading
    }
    EXPECT_TRUE(stuck);
    EXPECT_GT(sent, 8U << 20);
    EXPECT_LT(sent, 24U << 20);
    go = true;
    finish();  // while go and first are still there
}

}  // namespace
}  // namespace iaa::test
