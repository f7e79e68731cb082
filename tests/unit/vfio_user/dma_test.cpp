// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using vu::Command;

constexpr std::uint64_t kBase = 0x100000;
constexpr std::size_t kPage = 4096;

class DmaTest : public ServerTest {
  protected:
    void SetUp() override { start_negotiated(); }

    device::DmaMemory& memory() { return host().memory(); }

    int map(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 3,
            std::span<const int> fds = {}, std::uint64_t offset = 0) {
        const vu::DmaMap map{.argsz = sizeof(map),
                             .flags = flags,
                             .offset = offset,
                             .address = address,
                             .size = size};
        return client->call(Command::kDmaMap, vu::bytes_of(map), fds).error();
    }
    int unmap(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 0) {
        const vu::DmaUnmap unmap{
            .argsz = sizeof(unmap), .flags = flags, .address = address, .size = size};
        const Reply reply = client->call(Command::kDmaUnmap, vu::bytes_of(unmap));
        if (!reply.failed()) {
            EXPECT_EQ(reply.as<vu::DmaUnmap>().address, address);
        }
        return reply.error();
    }
    bool can_read(std::uint64_t address, std::size_t size) {
        std::vector<std::byte> out(size);
        return memory().read(address, out);
    }
    bool can_write(std::uint64_t address, std::size_t size) {
        return memory().write(address, std::vector<std::byte>(size));
    }
    /// Runs work on a thread of its own while the client answers DMA messages.
    template <typename Work>
    void with_dma(Work work) {
        std::atomic<bool> done{false};
        std::jthread engine = function.engine([&] {
            work();
            done = true;
        });
        EXPECT_TRUE(client->serve_dma([&] { return done.load(); }, 20s));
    }
};

TEST_F(DmaTest, SharedMemoryIsReadAndWritten) {
    auto& guest = client->map_memory(kBase, 4 * kPage);
    const auto data = pattern(2 * kPage);
    std::ranges::copy(data, guest.bytes().begin() + 100);
    std::vector<std::byte> out(data.size());
    EXPECT_TRUE(memory().read(kBase + 100, out));
    EXPECT_EQ(out, data);
    EXPECT_TRUE(memory().write(kBase + 3 * kPage, std::span(data).first(kPage)));
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(3 * kPage), std::span(data).first(kPage)));
}

TEST_F(DmaTest, BoundsOfARange) {
    client->map_memory(kBase, 2 * kPage);
    EXPECT_TRUE(can_read(kBase, 2 * kPage));
    EXPECT_FALSE(can_read(kBase, 2 * kPage + 1));
    EXPECT_FALSE(can_read(kBase - 1, 1));
    EXPECT_FALSE(can_read(kBase - 1, 2));
    EXPECT_FALSE(can_read(kBase + 2 * kPage, 1));
    EXPECT_TRUE(can_read(kBase + 2 * kPage - 1, 1));
    EXPECT_FALSE(can_read(UINT64_MAX, 2));
    EXPECT_FALSE(can_read(UINT64_MAX, 1));
    EXPECT_FALSE(can_read(0, 1));
    EXPECT_TRUE(can_read(0, 0));
    EXPECT_TRUE(memory().mapped(kBase, 2 * kPage, true));
    EXPECT_FALSE(memory().mapped(kBase, 2 * kPage + 1, false));
    EXPECT_FALSE(memory().mapped(kBase + 1, UINT64_MAX, false));
}

TEST_F(DmaTest, AnAccessMaySpanRegions) {
    std::vector<GuestMemory*> parts;
    for (std::uint64_t i = 0; i < 7; ++i)
        parts.push_back(&client->map_memory(kBase + i * kPage, kPage));
    const auto data = pattern(6 * kPage);
    EXPECT_TRUE(memory().write(kBase + kPage / 2, data));
    std::vector<std::byte> out(data.size());
    EXPECT_TRUE(memory().read(kBase + kPage / 2, out));
    EXPECT_EQ(out, data);
    EXPECT_TRUE(std::ranges::equal(parts[1]->bytes(), std::span(data).subspan(kPage / 2, kPage)));

    // A hole in the middle: nothing is written.
    client->unmap_memory(kBase + 3 * kPage);
    const auto other = pattern(6 * kPage, 2);
    EXPECT_FALSE(memory().write(kBase + kPage / 2, other));
    EXPECT_TRUE(std::ranges::equal(parts[1]->bytes(), std::span(data).subspan(kPage / 2, kPage)));
    EXPECT_FALSE(memory().read(kBase, out));
}

TEST_F(DmaTest, AccessRightsHold) {
    client->map_memory(kBase, kPage, Share::kFile, VFIO_DMA_MAP_FLAG_READ);
    client->map_memory(kBase + kPage, kPage, Share::kFile, VFIO_DMA_MAP_FLAG_WRITE);
    client->map_memory(kBase + 2 * kPage, kPage, Share::kMessages, VFIO_DMA_MAP_FLAG_READ);
    EXPECT_TRUE(can_read(kBase, kPage));
    EXPECT_FALSE(can_write(kBase, 1));
    EXPECT_FALSE(can_read(kBase + kPage, 1));
    EXPECT_TRUE(can_write(kBase + kPage, kPage));
    EXPECT_FALSE(can_write(kBase + kPage - 1, 2));
    EXPECT_FALSE(can_write(kBase + 2 * kPage, 1));
    EXPECT_FALSE(memory().mapped(kBase, 1, true));
    EXPECT_TRUE(memory().mapped(kBase, 1, false));
    std::array<std::byte, 64> record{};
    EXPECT_FALSE(memory().write_completion(kBase, record));
}

TEST_F(DmaTest, MapChecksEverything) {
    GuestMemory file(4 * kPage);
    const std::array<int, 1> fd = {file.fd()};
    const std::array<int, 2> two = {file.fd(), file.fd()};
    EXPECT_EQ(map(kBase, 4 * kPage, 3, fd), 0);
    EXPECT_EQ(map(kBase, 4 * kPage, 3, fd), EEXIST);
    EXPECT_EQ(map(kBase + 3 * kPage, 4 * kPage), EEXIST);
    EXPECT_EQ(map(kBase - 3 * kPage, 4 * kPage), EEXIST);
    EXPECT_EQ(map(kBase - kPage, 6 * kPage), EEXIST);
    EXPECT_EQ(map(kBase + kPage, kPage), EEXIST);
    EXPECT_EQ(map(kBase + 4 * kPage, kPage), 0);
    EXPECT_EQ(map(kBase - kPage, kPage), 0);
    EXPECT_EQ(map(0, 0), EINVAL);
    EXPECT_EQ(map(0, 100), EINVAL);
    EXPECT_EQ(map(100, kPage), EINVAL);
    EXPECT_EQ(map(0, kPage, 0), EINVAL);
    EXPECT_EQ(map(0, kPage, 4), EINVAL);
    EXPECT_EQ(map(0, kPage, 7), EINVAL);
    EXPECT_EQ(map(UINT64_MAX - kPage + 1, 2 * kPage), EINVAL);
    EXPECT_EQ(map(UINT64_MAX - kPage + 1, kPage), 0) << "the last page there is";
    EXPECT_EQ(map(2 * kPage, UINT64_MAX - kPage + 1), EINVAL);
    EXPECT_EQ(map(0, kPage, 3, two), EINVAL);
    vu::DmaMap bad{.argsz = 31, .flags = 3, .offset = 0, .address = 0, .size = kPage};
    EXPECT_EQ(client->call(Command::kDmaMap, vu::bytes_of(bad)).error(), EINVAL);
    EXPECT_EQ(client->call(Command::kDmaMap, std::vector<std::byte>(31)).error(), EINVAL);
    EXPECT_EQ(client->call(Command::kDmaMap, std::vector<std::byte>(33)).error(), EINVAL);
    EXPECT_EQ(client->call(Command::kDmaMap).error(), EINVAL);
}

TEST_F(DmaTest, AFileMustCoverItsRegion) {
    GuestMemory file(4 * kPage);
    const std::array<int, 1> fd = {file.fd()};
    EXPECT_EQ(map(kBase, 5 * kPage, 3, fd), EINVAL);
    EXPECT_EQ(map(kBase, 4 * kPage, 3, fd, kPage), EINVAL);
    EXPECT_EQ(map(kBase, kPage, 3, fd, 4 * kPage), EINVAL);
    EXPECT_EQ(map(kBase, kPage, 3, fd, UINT64_MAX), EINVAL);
    EXPECT_EQ(map(kBase, kPage, 3, fd, UINT64_MAX - kPage + 1), EINVAL);
    EXPECT_EQ(map(kBase, 1ULL << 62, 3, fd), EINVAL);
    const UniqueFd pipe(::dup(client->socket()));
    const std::array<int, 1> socket = {pipe.get()};
    EXPECT_EQ(map(kBase, kPage, 3, socket), EINVAL);

    EXPECT_EQ(map(kBase, kPage, 3, fd, 3 * kPage), 0);
    std::ranges::fill(file.bytes().subspan(3 * kPage), std::byte{0x5a});
    std::array<std::byte, 1> one{};
    EXPECT_TRUE(memory().read(kBase, one));
    EXPECT_EQ(one[0], std::byte{0x5a});
}

TEST_F(DmaTest, AReadOnlyFileCannotBeMappedForWriting) {
    GuestMemory file(kPage);
    const UniqueFd read_only(
        ::open(fmt::format("/proc/self/fd/{}", file.fd()).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(read_only);
    const std::array<int, 1> fd = {read_only.get()};
    EXPECT_EQ(map(kBase, kPage, 3, fd), EACCES);
    EXPECT_EQ(map(kBase, kPage, VFIO_DMA_MAP_FLAG_READ, fd), 0);
    EXPECT_TRUE(can_read(kBase, kPage));
}

TEST_F(DmaTest, UnmapMustEqualAMap) {
    client->map_memory(kBase, 2 * kPage);
    EXPECT_EQ(unmap(kBase, kPage), ENOENT);
    EXPECT_EQ(unmap(kBase + kPage, kPage), ENOENT);
    EXPECT_EQ(unmap(kBase, 3 * kPage), ENOENT);
    EXPECT_EQ(unmap(kBase, 0), ENOENT);
    EXPECT_EQ(unmap(kBase, 2 * kPage, 1), EINVAL);
    EXPECT_EQ(unmap(kBase, 2 * kPage, 4), EINVAL);
    EXPECT_TRUE(can_read(kBase, 1));
    EXPECT_EQ(unmap(kBase, 2 * kPage), 0);
    EXPECT_FALSE(can_read(kBase, 1));
    EXPECT_EQ(unmap(kBase, 2 * kPage), ENOENT);
    vu::DmaUnmap bad{.argsz = 23, .flags = 0, .address = kBase, .size = kPage};
    EXPECT_EQ(client->call(Command::kDmaUnmap, vu::bytes_of(bad)).error(), EINVAL);
    EXPECT_EQ(client->call(Command::kDmaUnmap, std::vector<std::byte>(23)).error(), EINVAL);
    client->map_memory(kBase, kPage);
    EXPECT_TRUE(can_read(kBase, kPage));
}

TEST_F(DmaTest, UnmapAll) {
    for (std::uint64_t i = 0; i < 10; ++i) client->map_memory(kBase + i * 2 * kPage, kPage);
    EXPECT_EQ(unmap(kBase, kPage, VFIO_DMA_UNMAP_FLAG_ALL), EINVAL);
    EXPECT_EQ(unmap(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(can_read(kBase + i * 2 * kPage, 1));
    EXPECT_EQ(unmap(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
}

TEST(DmaLimit, AsNegotiated) {
    FakeFunction function;
    device::vfio_user::Server server(function, {.log = [](std::string_view) {}});
    auto [ours, theirs] = socket_pair();
    TestClient client(std::move(ours));
    std::jthread thread([&, socket = std::make_shared<UniqueFd>(std::move(theirs))] {
        server.serve(std::move(*socket));
    });
    client.negotiate(R"({"capabilities":{"max_dma_maps":3}})");
    for (std::uint64_t i = 0; i < 3; ++i) client.map_memory(i * kPage, kPage, Share::kMessages);
    const vu::DmaMap map{
        .argsz = sizeof(map), .flags = 3, .offset = 0, .address = 3 * kPage, .size = kPage};
    EXPECT_EQ(client.call(Command::kDmaMap, vu::bytes_of(map)).error(), ENOSPC);
    client.unmap_memory(0);
    EXPECT_EQ(client.call(Command::kDmaMap, vu::bytes_of(map)).error(), 0);
    function.done_with_host();
    client.close();
}

TEST_F(DmaTest, AFileCutShortAfterwardsIsAnErrorAndNotASignal) {
    auto& guest = client->map_memory(kBase, 4 * kPage);
    auto& intact = client->map_memory(kBase + 4 * kPage, kPage);
    EXPECT_TRUE(can_write(kBase, 4 * kPage));
    guest.resize_file(kPage);
    EXPECT_FALSE(can_read(kBase + kPage, kPage));
    EXPECT_FALSE(can_write(kBase + kPage, kPage));
    EXPECT_FALSE(can_read(kBase, 1)) << "the whole region is given up";
    std::array<std::byte, 64> record{};
    EXPECT_FALSE(memory().write_completion(kBase + 2 * kPage, record));
    EXPECT_TRUE(can_write(kBase + 4 * kPage, kPage));
    intact.resize_file(0);
    EXPECT_FALSE(memory().write_completion(kBase + 4 * kPage, record));
    client->reset();
    client->unmap_memory(kBase);
    client->map_memory(kBase, kPage);
    EXPECT_TRUE(can_write(kBase, kPage));
}

TEST_F(DmaTest, CompletionRecord) {
    auto& guest = client->map_memory(kBase, kPage);
    const auto record = pattern(64);
    EXPECT_TRUE(memory().write_completion(kBase + 128, std::span(record).first<64>()));
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(128, 64), record));
    EXPECT_FALSE(memory().write_completion(kBase + kPage - 63, std::span(record).first<64>()));

    // Over the boundary of two regions, at every offset.
    auto& next = client->map_memory(kBase + kPage, kPage);
    for (std::size_t head = 1; head < 64; ++head) {
        const auto data = pattern(64, static_cast<unsigned>(head) + 7);
        EXPECT_TRUE(memory().write_completion(kBase + kPage - head, std::span(data).first<64>()));
        EXPECT_TRUE(std::ranges::equal(guest.bytes().last(head), std::span(data).first(head)));
        EXPECT_TRUE(
            std::ranges::equal(next.bytes().first(64 - head), std::span(data).subspan(head)));
    }
}

TEST_F(DmaTest, CompletionStatusIsLast) {
    auto& guest = client->map_memory(kBase, kPage);
    auto* const bytes = guest.bytes().data();
    const std::atomic_ref<std::byte> status(bytes[0]);
    constexpr unsigned kRounds = 20000;
    std::jthread engine = function.engine([&](const std::stop_token& stop) {
        std::array<std::byte, 64> record{};
        for (unsigned round = 0; round < kRounds; ++round) {
            record.fill(static_cast<std::byte>(round % 255 + 1));
            if (!memory().write_completion(kBase, record)) return;
            while (status.load(std::memory_order_acquire) != std::byte{0}) {
                if (stop.stop_requested()) return;
                std::this_thread::yield();
            }
        }
    });
    for (unsigned round = 0; round < kRounds; ++round) {
        const auto expected = static_cast<std::byte>(round % 255 + 1);
        const auto deadline = std::chrono::steady_clock::now() + 10s;
        while (status.load(std::memory_order_acquire) == std::byte{0}) {
            ASSERT_LT(std::chrono::steady_clock::now(), deadline);
            std::this_thread::yield();
        }
        for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(bytes[i], expected) << round << " " << i;
        status.store(std::byte{0}, std::memory_order_release);
    }
}

TEST_F(DmaTest, WithoutAFileByMessages) {
    auto& guest = client->map_memory(kBase, 16 * kPage, Share::kMessages);
    const auto data = pattern(3 * kPage + 17);
    std::ranges::copy(data, guest.bytes().begin() + 5);
    const auto record = pattern(64, 9);
    with_dma([&] {
        std::vector<std::byte> out(data.size());
        EXPECT_TRUE(memory().read(kBase + 5, out));
        EXPECT_EQ(out, data);
        EXPECT_TRUE(memory().write(kBase + 8 * kPage + 3, data));
        EXPECT_TRUE(memory().write_completion(kBase + 15 * kPage, std::span(record).first<64>()));
        EXPECT_FALSE(memory().read(kBase + 16 * kPage - 1, std::span(out).first(2)));
    });
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(8 * kPage + 3, data.size()), data));
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(15 * kPage, 64), record));
    EXPECT_TRUE(log.contains("64-bit count"));
}

TEST_F(DmaTest, NoMessageIsLargerThanAClientCanAnswerInOnePiece) {
    auto& guest = client->map_memory(kBase, 64 * kPage, Share::kMessages);
    std::uint64_t largest = 0;
    client->on_dma = [&](const Reply& command) {
        const auto count = command.as<vu::DmaAccess>().count;
        if (count < 1ULL << 32) largest = std::max(largest, count);  // else the probe
        return false;
    };
    const auto data = pattern(64 * kPage);
    with_dma([&] {
        std::vector<std::byte> out(data.size());
        EXPECT_TRUE(memory().write(kBase, data));
        EXPECT_TRUE(memory().read(kBase, out));
        EXPECT_EQ(out, data);
    });
    EXPECT_TRUE(std::ranges::equal(guest.bytes(), data));
    EXPECT_EQ(largest, 32U << 10);
}

TEST_F(DmaTest, ClientsThatCountIn32Bits) {
    client->short_dma_layout = true;
    auto& guest = client->map_memory(kBase, 16 * kPage, Share::kMessages);
    const auto data = pattern(2 * kPage + 1);
    std::ranges::copy(data, guest.bytes().begin());
    const auto record = pattern(64, 9);
    with_dma([&] {
        std::vector<std::byte> out(data.size());
        EXPECT_TRUE(memory().read(kBase, out));
        EXPECT_EQ(out, data);
        EXPECT_TRUE(memory().write(kBase + 8 * kPage, data));
        EXPECT_TRUE(memory().write_completion(kBase + 15 * kPage, std::span(record).first<64>()));
    });
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(8 * kPage, data.size()), data));
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(15 * kPage, 64), record));
    EXPECT_TRUE(log.contains("32-bit count"));
}

TEST_F(DmaTest, StatusIsLastByMessagesToo) {
    client->map_memory(kBase, kPage, Share::kMessages);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> writes;
    client->on_dma = [&](const Reply& command) {
        if (command.header.command == static_cast<std::uint16_t>(Command::kDmaWrite))
            writes.emplace_back(command.as<vu::DmaAccess>().address,
                                command.as<vu::DmaAccess>().count);
        return false;
    };
    with_dma([&] {
        std::array<std::byte, 64> record{};
        EXPECT_TRUE(memory().write_completion(kBase + 64, record));
    });
    ASSERT_EQ(writes.size(), 2U);
    EXPECT_EQ(writes[0], std::pair(kBase + 65, std::uint64_t{63}));
    EXPECT_EQ(writes[1], std::pair(kBase + 64, std::uint64_t{1}));
}

TEST(DmaMessages, AreSplitAtTheClientsLimit) {
    FakeFunction function;
    device::vfio_user::Server server(function, {.log = [](std::string_view) {}});
    auto [ours, theirs] = socket_pair();
    TestClient client(std::move(ours));
    std::jthread thread([&, socket = std::make_shared<UniqueFd>(std::move(theirs))] {
        server.serve(std::move(*socket));
    });
    client.negotiate(R"({"capabilities":{"max_data_xfer_size":8192}})");
    auto& guest = client.map_memory(0, 64 * kPage, Share::kMessages);
    std::vector<std::uint64_t> counts;
    client.on_dma = [&](const Reply& command) {
        counts.push_back(command.as<vu::DmaAccess>().count);
        return false;
    };
    const auto data = pattern(20000);
    std::ranges::copy(data, guest.bytes().begin());
    std::atomic<bool> done{false};
    std::jthread engine = function.engine([&] {
        std::vector<std::byte> out(data.size());
        EXPECT_TRUE(function.host.load()->memory().read(0, out));
        EXPECT_EQ(out, data);
        EXPECT_TRUE(function.host.load()->memory().write(1 << 16, data));
        done = true;
    });
    EXPECT_TRUE(client.serve_dma([&] { return done.load(); }, 20s));
    engine.join();
    EXPECT_TRUE(std::ranges::equal(guest.bytes().subspan(1 << 16, data.size()), data));
    EXPECT_EQ(std::ranges::count(counts, 8192U), 4);
    EXPECT_EQ(std::ranges::count(counts, 20000U - 2 * 8192U), 2);
    function.done_with_host();
    client.close();
}

TEST_F(DmaTest, ManyThreadsByMessages) {
    auto& guest = client->map_memory(kBase, 64 * kPage, Share::kMessages);
    constexpr unsigned kThreads = 6;
    std::atomic<unsigned> running{kThreads};
    std::vector<std::jthread> engines;
    for (unsigned i = 0; i < kThreads; ++i) {
        engines.push_back(function.engine([&, i] {
            const std::uint64_t at = kBase + i * 8 * kPage;
            for (unsigned round = 0; round < 50; ++round) {
                const auto data = pattern(100 + round * 37, i * 1000 + round);
                std::vector<std::byte> out(data.size());
                EXPECT_TRUE(memory().write(at, data));
                EXPECT_TRUE(memory().read(at, out));
                EXPECT_EQ(out, data);
            }
            --running;
        }));
    }
    EXPECT_TRUE(client->serve_dma([&] { return running == 0; }, 30s));
    EXPECT_EQ(guest.bytes().size(), 64 * kPage);
}

TEST_F(DmaTest, FromTheFunctionsOwnThread) {
    client->map_memory(kBase, kPage, Share::kMessages);
    std::atomic<bool> ok{false};
    function.on_write = [&](std::uint32_t, std::uint64_t) {
        const auto data = pattern(64);
        std::vector<std::byte> out(64);
        ok = memory().write(kBase + 8, data) && memory().read(kBase + 8, out) && out == data;
    };
    client->write_value<std::uint64_t>(kRegisters, 0, 1);
    EXPECT_TRUE(ok);
}

TEST_F(DmaTest, ErrorsOfTheClientAreErrors) {
    client->map_memory(kBase, kPage, Share::kMessages);
    client->on_dma = [&](const Reply& command) {
        vu::Header header = command.header;
        header.flags = vu::kTypeReply | vu::kFlagError;
        header.size = sizeof(header);
        header.error = 0;  // allowed: the errno is optional
        client->send_bytes(vu::bytes_of(header));
        return true;
    };
    with_dma([&] {
        EXPECT_FALSE(can_read(kBase, 64));
        EXPECT_FALSE(can_write(kBase, 64));
    });
}

TEST_F(DmaTest, RepliesThatDoNotFitAreErrors) {
    client->map_memory(kBase, kPage, Share::kMessages);
    int round = 0;
    client->on_dma = [&](const Reply& command) {
        if (command.as<vu::DmaAccess>().count != 64) return false;  // the probe
        vu::Header header = command.header;
        header.flags = vu::kTypeReply;
        vu::DmaAccess access = command.as<vu::DmaAccess>();
        std::size_t data = 64;
        if (round == 0) data = 63;
        if (round == 1) data = 65;
        if (round == 2) access.address += 8;
        header.size = static_cast<std::uint32_t>(sizeof(header) + sizeof(access) + data);
        std::vector<std::byte> message(header.size);
        std::memcpy(message.data(), &header, sizeof(header));
        std::memcpy(message.data() + sizeof(header), &access, sizeof(access));
        client->send_bytes(message);
        return true;
    };
    for (; round < 3; ++round) with_dma([&] { EXPECT_FALSE(can_read(kBase, 64)) << round; });
    with_dma([&] { EXPECT_TRUE(can_read(kBase, 64)); });
}

TEST_F(DmaTest, RepliesNobodyWaitsForAreDropped) {
    client->map_memory(kBase, kPage, Share::kMessages);
    client->on_dma = [&](const Reply& command) {
        vu::Header wrong = command.header;
        wrong.flags = vu::kTypeReply;
        wrong.size = sizeof(wrong);
        wrong.id ^= 0x8000;  // an earlier use of the same transfer
        client->send_bytes(vu::bytes_of(wrong));
        wrong.id = 31;  // a transfer that is not in use
        client->send_bytes(vu::bytes_of(wrong));
        wrong = command.header;
        wrong.flags = vu::kTypeReply;
        wrong.size = sizeof(wrong);
        wrong.command = static_cast<std::uint16_t>(Command::kRegionRead);
        client->send_bytes(vu::bytes_of(wrong));
        return false;
    };
    with_dma([&] { EXPECT_TRUE(can_read(kBase, 64)); });
    EXPECT_TRUE(log.contains("nobody waits for"));
}

}  // namespace

/// With limits short enough to be waited for.
class ImpatientDmaTest : public ServerTest {
  protected:
    void SetUp() override {
        start_negotiated({.send_timeout = 300ms, .dma_timeout = 300ms});
        client->map_memory(kBase, kPage, Share::kMessages);
    }
};

TEST_F(ImpatientDmaTest, AClientThatNeverAnswers) {
    client->on_dma = [](const Reply&) { return true; };
    std::atomic<bool> done{false};
    std::jthread engine = function.engine([&] {
        std::array<std::byte, 64> out{};
        EXPECT_FALSE(host().memory().read(kBase, out));
        done = true;
    });
    EXPECT_TRUE(client->serve_dma([&] { return done.load(); }, 5s));
    client->reset();  // and is still served
}

TEST_F(ImpatientDmaTest, ALateReplyDoesNotTouchWhatIsNoLongerThere) {
    std::vector<Reply> kept;
    client->on_dma = [&](const Reply& command) {
        kept.push_back({.header = command.header, .payload = command.payload, .fds = {}});
        return true;
    };
    std::atomic<bool> done{false};
    std::jthread engine = function.engine([&] {
        {
            auto out = std::make_unique<std::array<std::byte, 64>>();
            EXPECT_FALSE(host().memory().read(kBase, *out));
        }
        done = true;
    });
    EXPECT_TRUE(client->serve_dma([&] { return done.load(); }, 5s));
    client->on_dma = nullptr;
    for (const Reply& command : kept) client->answer_dma(command);
    client->reset();
    EXPECT_TRUE(log.contains("nobody waits for"));
}

TEST_F(ImpatientDmaTest, TheClientLeavesInTheMiddleOfAnAccess) {
    std::atomic<int> asked{0};
    client->on_dma = [&](const Reply&) {
        ++asked;
        return true;
    };
    std::atomic<int> failed{0};
    device::Host& host_now = host();
    std::vector<std::jthread> engines;
    for (int i = 0; i < 4; ++i) {
        engines.push_back(function.engine([&] {
            std::array<std::byte, 64> out{};
            if (!host_now.memory().read(kBase, out)) ++failed;
        }));
    }
    EXPECT_TRUE(client->serve_dma([&] { return asked == 4; }, 5s));
    function.done_with_host();
    client->close();
    thread.join();
    EXPECT_EQ(failed, 4);
}

TEST_F(ImpatientDmaTest, UnmapEndsAnAccessThatWaits) {
    std::atomic<int> asked{0};
    client->on_dma = [&](const Reply&) {
        ++asked;
        return true;
    };
    std::atomic<bool> failed{false};
    std::jthread engine = function.engine([&] {
        std::array<std::byte, 64> out{};
        failed = !host().memory().read(kBase, out);
    });
    EXPECT_TRUE(client->serve_dma([&] { return asked == 1; }, 5s));
    client->unmap_memory(kBase);
    engine.join();  // it may not have come to say so yet
    EXPECT_TRUE(failed);
}

TEST_F(ImpatientDmaTest, UnmapLetsAnAccessFinishThatIsAnswered) {
    std::vector<Reply> kept;
    client->on_dma = [&](const Reply& command) {
        if (command.as<vu::DmaAccess>().count > kPage) return false;  // the probe
        kept.push_back({.header = command.header, .payload = command.payload, .fds = {}});
        return true;
    };
    std::atomic<bool> ok{false};
    std::jthread engine = function.engine([&] {
        std::array<std::byte, 64> out{};
        ok = host().memory().read(kBase, out);
    });
    EXPECT_TRUE(client->serve_dma([&] { return !kept.empty(); }, 5s));
    const vu::DmaUnmap unmap{.argsz = sizeof(unmap), .flags = 0, .address = kBase, .size = kPage};
    const auto id = client->send(Command::kDmaUnmap, vu::bytes_of(unmap));
    EXPECT_FALSE(client->receive(50ms)) << "replied while an access was under way";
    client->on_dma = nullptr;
    client->answer_dma(kept.front());
    EXPECT_EQ(client->wait_reply(id).error(), 0);
    engine.join();
    EXPECT_TRUE(ok);
}

/// Threads that access memory all the time, while it is mapped and unmapped: none may touch memory
/// after the reply to its unmapping.
TEST_F(ImpatientDmaTest, UnmapRacesWithAccesses) {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> accesses{0};
    device::Host& host_now = host();
    std::vector<std::jthread> engines;
    for (unsigned i = 0; i < 3; ++i) {
        engines.push_back(function.engine([&, i] {
            // A page of its own, of which the second one's lies in both regions.
            const std::uint64_t at = 0x800000 + i * kPage + kPage / 2;
            std::vector<std::byte> data(kPage, static_cast<std::byte>(i + 1));
            while (!stop) {
                if (host_now.memory().write(at, data)) ++accesses;
                if (host_now.memory().read(at, data)) ++accesses;
            }
        }));
    }
    for (unsigned round = 0; round < 200; ++round) {
        auto& guest = client->map_memory(0x800000, 2 * kPage);
        auto& more = client->map_memory(0x800000 + 2 * kPage, 2 * kPage);
        if (round % 8 == 0) std::this_thread::sleep_for(1ms);
        const vu::DmaUnmap unmap{
            .argsz = sizeof(unmap), .flags = 0, .address = 0x800000, .size = 2 * kPage};
        EXPECT_EQ(client->call(Command::kDmaUnmap, vu::bytes_of(unmap)).error(), 0);
        // Nothing may write here any more.
        std::ranges::fill(guest.bytes(), std::byte{0xee});
        std::this_thread::yield();
        EXPECT_TRUE(
            std::ranges::all_of(guest.bytes(), [](std::byte b) { return b == std::byte{0xee}; }));
        EXPECT_EQ(more.bytes().size(), 2 * kPage);
        client->unmap_memory(0x800000 + 2 * kPage);
    }
    stop = true;
    engines.clear();
    EXPECT_GT(accesses.load(), 0U);
}

}  // namespace iaa::test
