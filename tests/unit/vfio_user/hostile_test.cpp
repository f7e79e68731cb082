// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using vu::Command;

constexpr std::size_t kPage = 4096;

std::vector<std::byte> message(Command command, std::span<const std::byte> payload,
                               std::uint32_t flags = 0, std::uint16_t id = 7) {
    const vu::Header header{.id = id,
                            .command = static_cast<std::uint16_t>(command),
                            .size = static_cast<std::uint32_t>(sizeof(vu::Header) + payload.size()),
                            .flags = flags,
                            .error = 0};
    std::vector<std::byte> bytes(vu::bytes_of(header).begin(), vu::bytes_of(header).end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

std::vector<std::byte> map_message(std::uint64_t address, std::uint16_t id = 7) {
    const vu::DmaMap map{
        .argsz = sizeof(map), .flags = 3, .offset = 0, .address = address, .size = kPage};
    return message(Command::kDmaMap, vu::bytes_of(map), 0, id);
}

class HostileTest : public ServerTest {
  protected:
    void expect_disconnect() {
        EXPECT_TRUE(client->wait_closed(5s));
        thread.join();
    }
    void expect_alive() { EXPECT_NO_THROW(client->reset()); }
};

TEST_F(HostileTest, NothingButVersionFirst) {
    start();
    EXPECT_EQ(client->call(Command::kDeviceReset).error(), EINVAL);
    expect_disconnect();
    EXPECT_EQ(function.attached, 0);
    EXPECT_EQ(function.resets, 0);
}

TEST_F(HostileTest, AnotherVersion) {
    start();
    std::vector<std::byte> payload(4);
    payload[0] = std::byte{1};
    EXPECT_EQ(client->call(Command::kVersion, payload).error(), EINVAL);
    expect_disconnect();
    EXPECT_TRUE(log.contains("version 1.0"));
}

TEST_F(HostileTest, HeadersThatCannotBe) {
    const auto header = [](std::uint32_t size, std::uint32_t flags) {
        return vu::Header{.id = 1, .command = 4, .size = size, .flags = flags, .error = 0};
    };
    for (const vu::Header& bad : {header(0, 0), header(15, 0), header(UINT32_MAX, 0),
                                  header((1U << 20) + 33, 0), header(16, 2), header(16, 15)}) {
        start_negotiated();
        client->send_bytes(vu::bytes_of(bad));
        expect_disconnect();
        EXPECT_TRUE(log.contains("impossible size or type"));
        EXPECT_EQ(function.attached.load(), function.detached.load());
    }
}

TEST_F(HostileTest, TheLargestMessageIsRead) {
    start_negotiated();
    const std::vector<std::byte> payload((1U << 20) + 16);
    EXPECT_EQ(client->call(Command::kRegionWrite, payload).error(), EINVAL);
    EXPECT_EQ(client->call(static_cast<Command>(77), payload).error(), ENOSYS);
    expect_alive();
}

TEST_F(HostileTest, InPiecesAtEveryBoundary) {
    start_negotiated();
    const auto data = pattern(24);
    const vu::RegionAccess access{.offset = 64, .region = kRegisters, .count = 24};
    std::vector<std::byte> payload(vu::bytes_of(access).begin(), vu::bytes_of(access).end());
    payload.insert(payload.end(), data.begin(), data.end());
    const auto one = message(Command::kRegionWrite, payload);
    std::vector<std::byte> two = one;
    two.insert(two.end(), one.begin(), one.end());
    for (std::size_t cut = 1; cut < two.size(); ++cut) {
        client->send_bytes(std::span(two).first(cut));
        std::this_thread::sleep_for(200us);
        client->send_bytes(std::span(two).subspan(cut));
        for (int i = 0; i < 2; ++i) {
            const auto reply = client->receive(5s);
            ASSERT_TRUE(reply) << cut;
            EXPECT_EQ(reply->error(), 0) << cut;
        }
    }
    EXPECT_EQ(function.writes().size(), 2 * (two.size() - 1));
    EXPECT_EQ(client->read(kRegisters, 64, 24), data);
}

TEST_F(HostileTest, ByteByByte) {
    start_negotiated();
    const auto bytes = map_message(0x5000);
    for (const std::byte& byte : bytes) client->send_bytes(std::span(&byte, 1));
    const auto reply = client->receive(5s);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), 0);
}

TEST_F(HostileTest, ADescriptorStaysWithItsMessageAtEveryCut) {
    start_negotiated();
    std::uint64_t address = 0x100000;
    for (std::size_t cut = 1; cut < 48; ++cut, address += 3 * kPage) {
        GuestMemory file(kPage);
        file.bytes()[0] = static_cast<std::byte>(cut);
        const std::array<int, 1> fd = {file.fd()};
        // A map without a descriptor before, and one behind it.
        client->send_bytes(map_message(address));
        const auto middle = map_message(address + kPage);
        client->send_bytes(std::span(middle).first(cut), fd);
        if (cut % 2 == 0) std::this_thread::sleep_for(200us);
        client->send_bytes(std::span(middle).subspan(cut));
        client->send_bytes(map_message(address + 2 * kPage));
        for (int i = 0; i < 3; ++i) {
            const auto reply = client->receive(5s);
            ASSERT_TRUE(reply) << cut;
            ASSERT_EQ(reply->error(), 0) << cut << " " << i;
        }
        std::array<std::byte, 1> one{};
        ASSERT_TRUE(host().memory().read(address + kPage, one)) << cut;
        EXPECT_EQ(std::to_integer<std::size_t>(one[0]), cut);
    }
}

TEST_F(HostileTest, DescriptorsOfManyMessagesInOneRead) {
    start_negotiated();
    // While the server is held up, everything queues, and is then read at once.
    std::atomic<bool> go{false};
    function.on_reset = [&] {
        while (!go) std::this_thread::sleep_for(1ms);
    };
    client->send(Command::kDeviceReset);
    std::vector<std::unique_ptr<GuestMemory>> files;
    for (unsigned i = 0; i < 12; ++i) {
        files.push_back(std::make_unique<GuestMemory>(kPage));
        files.back()->bytes()[0] = static_cast<std::byte>(i);
        const std::array<int, 1> fd = {files.back()->fd()};
        const bool with_fd = i % 3 != 0;
        client->send_bytes(map_message(i * kPage, static_cast<std::uint16_t>(100 + i)),
                           with_fd ? std::span<const int>(fd) : std::span<const int>());
    }
    go = true;
    for (int i = 0; i < 13; ++i) {
        const auto reply = client->receive(5s);
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->error(), 0);
    }
    for (unsigned i = 0; i < 12; ++i) {
        if (i % 3 == 0) continue;
        std::array<std::byte, 1> one{};
        EXPECT_TRUE(host().memory().read(i * kPage, one));
        EXPECT_EQ(std::to_integer<unsigned>(one[0]), i);
    }
}

TEST_F(HostileTest, DescriptorsWhereNoneBelong) {
    start_negotiated();
    const GuestMemory file(kPage);
    const std::array<int, 3> fds = {file.fd(), file.fd(), file.fd()};
    expect_alive();
    const std::size_t before = open_fds();
    EXPECT_EQ(client->call(Command::kDeviceReset, {}, fds).error(), EINVAL);
    const vu::RegionAccess read{.offset = 0, .region = kRegisters, .count = 8};
    EXPECT_EQ(client->call(Command::kRegionRead, vu::bytes_of(read), fds).error(), EINVAL);
    EXPECT_EQ(client->call(static_cast<Command>(50), {}, fds).error(), EINVAL);
    expect_alive();
    EXPECT_EQ(open_fds(), before);
}

TEST_F(HostileTest, TooManyDescriptors) {
    start_negotiated();
    const GuestMemory file(kPage);
    std::vector<int> fds(40, file.fd());
    expect_alive();
    const std::size_t before = open_fds();
    EXPECT_EQ(client->call(Command::kDeviceReset, {}, fds).error(), EMFILE);
    const vu::IrqSet set{.argsz = sizeof(set),
                         .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                         .index = VFIO_PCI_MSIX_IRQ_INDEX,
                         .start = 0,
                         .count = 40};
    EXPECT_EQ(client->call(Command::kDeviceSetIrqs, vu::bytes_of(set), fds).error(), EMFILE);
    expect_alive();
    EXPECT_EQ(open_fds(), before);
}

TEST_F(HostileTest, DescriptorsWithEveryByteOfAMessage) {
    start_negotiated();
    const GuestMemory file(kPage);
    const std::vector<int> fds(16, file.fd());
    expect_alive();
    const std::size_t before = open_fds();
    const auto bytes = map_message(0);
    try {
        for (const std::byte& byte : bytes) client->send_bytes(std::span(&byte, 1), fds);
    } catch (const ClientError&) {
        // The server has gone before we were done.
    }
    expect_disconnect();
    EXPECT_LT(open_fds(), before + 1);
}

TEST_F(HostileTest, DescriptorsOfAnUnfinishedMessageAreClosed) {
    start_negotiated();
    expect_alive();
    const std::size_t before = open_fds();
    {
        const GuestMemory file(kPage);
        const std::array<int, 1> fd = {file.fd()};
        const auto bytes = map_message(0);
        client->send_bytes(std::span(bytes).first(20), fd);
        std::this_thread::sleep_for(20ms);
    }
    finish();
    // The server's side of the pair, ours, the session's eventfd: all gone, and nothing is left
    // over.
    EXPECT_EQ(open_fds() + 3, before);
}

TEST_F(HostileTest, OutOfDescriptors) {
    start_negotiated();
    const GuestMemory file(kPage);
    const std::array<int, 1> fd = {file.fd()};
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
    rlimit tight = old;
    tight.rlim_cur = 3;  // below what is open: no new one can be had
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const vu::DmaMap map{
        .argsz = sizeof(map), .flags = 3, .offset = 0, .address = 0, .size = kPage};
    const int error = client->call(Command::kDmaMap, vu::bytes_of(map), fd).error();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_EQ(error, EMFILE);
    EXPECT_EQ(client->call(Command::kDmaMap, vu::bytes_of(map), fd).error(), 0);
}

TEST_F(HostileTest, AnUnfinishedMessageHasItsTime) {
    start_negotiated({.message_timeout = 300ms});
    const auto bytes = map_message(0);
    client->send_bytes(std::span(bytes).first(30));
    expect_disconnect();
    EXPECT_TRUE(log.contains("incomplete"));
}

TEST_F(HostileTest, ADripDoesNotExtendIt) {
    start_negotiated({.message_timeout = 400ms});
    const auto bytes = map_message(0);
    const auto start = std::chrono::steady_clock::now();
    try {
        for (const std::byte& byte : bytes) {
            client->send_bytes(std::span(&byte, 1));
            std::this_thread::sleep_for(100ms);
        }
    } catch (const ClientError&) {
        // Cut off, as it should be.
    }
    expect_disconnect();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST_F(HostileTest, ASilentClientIsSentAwayUnlessItHasSaidHello) {
    start({.handshake_timeout = 300ms, .message_timeout = 300ms});
    expect_disconnect();
    EXPECT_TRUE(log.contains("VERSION in time"));
    start_negotiated({.handshake_timeout = 300ms, .message_timeout = 300ms});
    std::this_thread::sleep_for(800ms);
    expect_alive();
}

TEST_F(HostileTest, AClientThatNeverReads) {
    start_negotiated({.send_timeout = 300ms});
    client->patience = 1000ms;
    const vu::RegionAccess read{.offset = 0, .region = kRegisters, .count = 4096};
    bool stopped = false;
    try {
        for (int i = 0; i < 100000; ++i) client->send(Command::kRegionRead, vu::bytes_of(read));
    } catch (const ClientError&) {
        stopped = true;
    }
    EXPECT_TRUE(stopped);
    thread.join();
    EXPECT_TRUE(log.contains("does not read"));
}

TEST_F(HostileTest, ClosedInTheMiddleOfEverything) {
    const auto bytes = map_message(0);
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 5) {
        start_negotiated();
        client->send_bytes(std::span(bytes).first(cut));
        finish();
    }
    start();
    finish();
}

TEST_F(HostileTest, TheLogIsBounded) {
    start_negotiated();
    for (int i = 0; i < 1000; ++i) client->send(static_cast<Command>(99), {}, {}, vu::kFlagNoReply);
    expect_alive();
    EXPECT_LT(log.size(), 110U);
}

/// Well-formed headers with random content: errors at most. The seed is fixed, so that a failure
/// can be repeated.
TEST_F(HostileTest, RandomPayloads) {
    start_negotiated();
    std::mt19937 random(20240607);
    const GuestMemory file(16 * kPage);
    const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
    std::size_t answered = 0;
    for (int i = 0; i < 5000; ++i) {
        std::vector<std::byte> payload(random() % 64);
        for (std::byte& byte : payload) {
            // Mostly small numbers, which get further than large ones.
            byte = random() % 4 == 0 ? static_cast<std::byte>(random())
                                     : static_cast<std::byte>(random() % 3);
        }
        const auto command = static_cast<Command>(2 + random() % 17);
        std::vector<int> fds;
        if (random() % 8 == 0) fds.push_back(random() % 2 == 0 ? file.fd() : event.get());
        const Reply reply = client->call(command, payload, fds);
        answered += reply.header.command == static_cast<std::uint16_t>(command) ? 1 : 0;
    }
    EXPECT_EQ(answered, 5000U);
    expect_alive();
}

}  // namespace
}  // namespace iaa::test
