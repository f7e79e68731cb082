// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using vu::Command;

class MessageTest : public ServerTest {
  protected:
    void SetUp() override { start_negotiated(); }

    /// The errno that the server answers with; 0 where it agrees.
    int ask(Command command, std::span<const std::byte> payload, std::span<const int> fds = {}) {
        const Reply reply = client->call(command, payload, fds);
        EXPECT_EQ(reply.header.command, static_cast<std::uint16_t>(command));
        EXPECT_EQ(reply.header.flags & vu::kTypeMask, vu::kTypeReply);
        if (reply.failed()) {
            EXPECT_TRUE(reply.payload.empty());
        }
        return reply.error();
    }
    template <typename T>
        requires std::is_trivially_copyable_v<T>
    int ask(Command command, const T& payload, std::span<const int> fds = {}) {
        return ask(command, vu::bytes_of(payload), fds);
    }

    static std::vector<std::byte> write_payload(std::uint32_t region, std::uint64_t offset,
                                                std::size_t count, std::size_t data) {
        const vu::RegionAccess access{
            .offset = offset, .region = region, .count = static_cast<std::uint32_t>(count)};
        std::vector<std::byte> payload(sizeof(access) + data);
        std::memcpy(payload.data(), &access, sizeof(access));
        return payload;
    }
};

TEST_F(MessageTest, DeviceInfo) {
    const vu::DeviceInfo info{.argsz = sizeof(info), .flags = 0, .num_regions = 0, .num_irqs = 0};
    const auto answer =
        client->call(Command::kDeviceGetInfo, vu::bytes_of(info)).as<vu::DeviceInfo>();
    EXPECT_EQ(answer.argsz, sizeof(info));
    EXPECT_EQ(answer.flags, VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
    EXPECT_EQ(answer.num_regions, VFIO_PCI_NUM_REGIONS);
    EXPECT_EQ(answer.num_irqs, VFIO_PCI_NUM_IRQS);

    const vu::DeviceInfo small{.argsz = 15, .flags = 0, .num_regions = 0, .num_irqs = 0};
    EXPECT_EQ(ask(Command::kDeviceGetInfo, small), EINVAL);
    EXPECT_EQ(ask(Command::kDeviceGetInfo, std::vector<std::byte>(15)), EINVAL);
    EXPECT_EQ(ask(Command::kDeviceGetInfo, std::vector<std::byte>()), EINVAL);
}

TEST_F(MessageTest, RegionInfo) {
    for (std::uint32_t index = 0; index < VFIO_PCI_NUM_REGIONS; ++index) {
        vfio_region_info info{};
        info.argsz = sizeof(info);
        info.index = index;
        const auto answer =
            client->call(Command::kDeviceGetRegionInfo, vu::bytes_of(info)).as<vfio_region_info>();
        const auto expected = function.region_info(index);
        EXPECT_EQ(answer.index, index);
        EXPECT_EQ(answer.size, expected.size);
        EXPECT_EQ((answer.flags & VFIO_REGION_INFO_FLAG_READ) != 0, expected.readable);
        EXPECT_EQ((answer.flags & VFIO_REGION_INFO_FLAG_WRITE) != 0, expected.writable);
        EXPECT_EQ(answer.flags & (VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS), 0U);
    }
    vfio_region_info bad{};
    bad.argsz = sizeof(bad);
    bad.index = VFIO_PCI_NUM_REGIONS;
    EXPECT_EQ(ask(Command::kDeviceGetRegionInfo, bad), EINVAL);
    bad.index = 0xffffffff;
    EXPECT_EQ(ask(Command::kDeviceGetRegionInfo, bad), EINVAL);
    bad.index = 0;
    bad.argsz = sizeof(bad) - 1;
    EXPECT_EQ(ask(Command::kDeviceGetRegionInfo, bad), EINVAL);
    EXPECT_EQ(ask(Command::kDeviceGetRegionInfo, std::vector<std::byte>(31)), EINVAL);
}

TEST_F(MessageTest, RegionIoFdsAreNotOffered) {
    vu::RegionIoFds query{.argsz = 4096, .flags = 0, .index = kPortals, .count = 0};
    const Reply reply = client->call(Command::kDeviceGetRegionIoFds, vu::bytes_of(query));
    EXPECT_EQ(reply.error(), 0);
    EXPECT_EQ(reply.as<vu::RegionIoFds>().count, 0U);
    EXPECT_TRUE(reply.fds.empty());
    query.index = 9;
    EXPECT_EQ(ask(Command::kDeviceGetRegionIoFds, query), EINVAL);
    EXPECT_EQ(ask(Command::kDeviceGetRegionIoFds, std::vector<std::byte>(8)), EINVAL);
}

TEST_F(MessageTest, IrqInfo) {
    for (std::uint32_t index = 0; index < VFIO_PCI_NUM_IRQS; ++index) {
        vfio_irq_info info{};
        info.argsz = sizeof(info);
        info.index = index;
        const auto answer =
            client->call(Command::kDeviceGetIrqInfo, vu::bytes_of(info)).as<vfio_irq_info>();
        EXPECT_EQ(answer.count, index == VFIO_PCI_MSIX_IRQ_INDEX ? kVectors : 0);
        EXPECT_EQ((answer.flags & VFIO_IRQ_INFO_EVENTFD) != 0, index == VFIO_PCI_MSIX_IRQ_INDEX);
        EXPECT_EQ(answer.flags & VFIO_IRQ_INFO_NORESIZE, 0U);
    }
    vfio_irq_info bad{};
    bad.argsz = sizeof(bad);
    bad.index = VFIO_PCI_NUM_IRQS;
    EXPECT_EQ(ask(Command::kDeviceGetIrqInfo, bad), EINVAL);
    bad.index = 0;
    bad.argsz = 4;
    EXPECT_EQ(ask(Command::kDeviceGetIrqInfo, bad), EINVAL);
}

TEST_F(MessageTest, RegionReadAndWrite) {
    const auto data = pattern(100);
    client->write(kRegisters, 300, data);
    EXPECT_EQ(client->read(kRegisters, 300, 100), data);
    EXPECT_EQ(client->read(kRegisters, 301, 3),
              std::vector<std::byte>(data.begin() + 1, data.begin() + 4));
    EXPECT_EQ(function.writes().size(), 1U);
    client->write_value<std::uint16_t>(kConfig, 4095 - 1, 0xbeef);
    EXPECT_EQ(client->read_value<std::uint16_t>(kConfig, 4094), 0xbeef);
}

TEST_F(MessageTest, RepliesEchoTheAccess) {
    const vu::RegionAccess read{.offset = 8, .region = kRegisters, .count = 4};
    const Reply reply = client->call(Command::kRegionRead, vu::bytes_of(read));
    EXPECT_EQ(reply.payload.size(), sizeof(read) + 4);
    EXPECT_EQ(reply.as<vu::RegionAccess>().offset, 8U);
    const Reply written = client->call(Command::kRegionWrite, write_payload(kRegisters, 8, 4, 4));
    EXPECT_EQ(written.payload.size(), sizeof(read));
    EXPECT_EQ(written.as<vu::RegionAccess>().count, 4U);
}

TEST_F(MessageTest, RegionReadChecksEverything) {
    const auto read = [&](std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
        return ask(Command::kRegionRead,
                   vu::RegionAccess{.offset = offset, .region = region, .count = count});
    };
    EXPECT_EQ(read(kRegisters, 0, 4096), 0);
    EXPECT_EQ(read(kRegisters, 0, 0), EINVAL);
    EXPECT_EQ(read(kRegisters, 0, 4097), EINVAL);
    EXPECT_EQ(read(kRegisters, 4096, 1), EINVAL);
    EXPECT_EQ(read(kRegisters, 4093, 4), EINVAL);
    EXPECT_EQ(read(kRegisters, UINT64_MAX, 1), EINVAL);
    EXPECT_EQ(read(kRegisters, UINT64_MAX - 3, 8), EINVAL);
    EXPECT_EQ(read(kPortals, 0, 8), EPERM);
    EXPECT_EQ(read(VFIO_PCI_ROM_REGION_INDEX, 0, 1), EINVAL);
    EXPECT_EQ(read(9, 0, 1), EINVAL);
    EXPECT_EQ(read(UINT32_MAX, 0, 1), EINVAL);
    EXPECT_EQ(read(kRegisters, 0, (1U << 20) + 1), E2BIG);
    EXPECT_EQ(read(kRegisters, 0, UINT32_MAX), E2BIG);
    EXPECT_EQ(ask(Command::kRegionRead, std::vector<std::byte>(15)), EINVAL);
    EXPECT_EQ(ask(Command::kRegionRead, std::vector<std::byte>(17)), EINVAL);
}

TEST_F(MessageTest, RegionWriteChecksEverything) {
    const auto write = [&](std::uint32_t region, std::uint64_t offset, std::size_t count,
                           std::size_t data) {
        return ask(Command::kRegionWrite, write_payload(region, offset, count, data));
    };
    EXPECT_EQ(write(kRegisters, 0, 8, 8), 0);
    EXPECT_EQ(write(kRegisters, 0, 8, 7), EINVAL);
    EXPECT_EQ(write(kRegisters, 0, 8, 9), EINVAL);
    EXPECT_EQ(write(kRegisters, 0, 0, 0), EINVAL);
    EXPECT_EQ(write(kRegisters, 4090, 8, 8), EINVAL);
    EXPECT_EQ(write(kReadOnly, 0, 8, 8), EPERM);
    EXPECT_EQ(write(9, 0, 8, 8), EINVAL);
    EXPECT_EQ(write(kRegisters, UINT64_MAX - 7, 8, 8), EINVAL);
    EXPECT_EQ(write(kRegisters, 0, UINT32_MAX, 8), EINVAL);
    EXPECT_EQ(ask(Command::kRegionWrite, std::vector<std::byte>(12)), EINVAL);
    EXPECT_EQ(function.writes().size(), 1U);
}

TEST_F(MessageTest, PostedWritesAreNotAnswered) {
    for (std::uint64_t i = 0; i < 100; ++i) client->write_value(kPortals, i * 8, i, true);
    client->write_value<std::uint64_t>(kReadOnly, 0, 1, true);  // an error: not answered either
    client->write_value<std::uint64_t>(kRegisters, 1U << 30, 1, true);
    const vu::RegionAccess read{.offset = 0, .region = kRegisters, .count = 8};
    const auto id = client->send(Command::kRegionRead, vu::bytes_of(read));
    const auto next = client->receive(10s);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->header.id, id);
    const auto writes = function.writes();
    ASSERT_EQ(writes.size(), 100U);
    for (std::uint64_t i = 0; i < writes.size(); ++i) {
        EXPECT_EQ(writes[i].offset, i * 8);
        EXPECT_EQ(*vu::load<std::uint64_t>(writes[i].data), i);
    }
}

TEST_F(MessageTest, NoReplyHoldsForEveryCommand) {
    const vu::DeviceInfo info{.argsz = sizeof(info), .flags = 0, .num_regions = 0, .num_irqs = 0};
    client->send(Command::kDeviceGetInfo, vu::bytes_of(info), {}, vu::kFlagNoReply);
    client->send(Command::kDeviceReset, {}, {}, vu::kFlagNoReply);
    client->send(static_cast<Command>(99), {}, {}, vu::kFlagNoReply);
    const auto id = client->send(Command::kDeviceReset);
    const auto next = client->receive(10s);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->header.id, id);
    EXPECT_EQ(function.resets, 2);
}

TEST_F(MessageTest, WriteMulti) {
    const auto multi = [](std::uint64_t count, std::initializer_list<vu::MultiWrite> writes) {
        std::vector<std::byte> payload(8);
        std::memcpy(payload.data(), &count, 8);
        for (const auto& one : writes) {
            const auto bytes = vu::bytes_of(one);
            payload.insert(payload.end(), bytes.begin(), bytes.end());
        }
        return payload;
    };
    const auto one = [](std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
        vu::MultiWrite write{.access = {.offset = offset, .region = region, .count = count},
                             .data = {}};
        write.data.fill(static_cast<std::byte>(offset));
        return write;
    };
    const Reply reply =
        client->call(Command::kRegionWriteMulti,
                     multi(3, {one(kPortals, 8, 8), one(kRegisters, 3, 1), one(kPortals, 16, 4)}));
    EXPECT_EQ(reply.error(), 0);
    EXPECT_EQ(reply.as<std::uint64_t>(), 3U);
    const auto writes = function.writes();
    ASSERT_EQ(writes.size(), 3U);
    EXPECT_EQ(writes[0],
              (FakeFunction::Write{kPortals, 8, std::vector<std::byte>(8, std::byte{8})}));
    EXPECT_EQ(writes[1],
              (FakeFunction::Write{kRegisters, 3, std::vector<std::byte>(1, std::byte{3})}));
    EXPECT_EQ(writes[2].data.size(), 4U);

    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(0, {})), 0);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(2, {one(kPortals, 8, 8)})), EINVAL);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(UINT64_MAX, {one(kPortals, 8, 8)})), EINVAL);
    // Times the size of a write this is 2^64 + 24.
    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(0x0aaaaaaaaaaaaaacULL, {one(kPortals, 8, 8)})),
              EINVAL);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(1, {one(kPortals, 8, 9)})), EINVAL);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, multi(1, {one(kReadOnly, 8, 8)})), EPERM);
    EXPECT_EQ(
        ask(Command::kRegionWriteMulti, multi(2, {one(kPortals, 8, 8), one(kPortals, 0xfffc, 8)})),
        EINVAL);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, std::vector<std::byte>(7)), EINVAL);
    EXPECT_EQ(ask(Command::kRegionWriteMulti, std::vector<std::byte>(9)), EINVAL);
    EXPECT_EQ(function.writes().size(), 3U) << "a refused message has done a part of its work";
}

TEST_F(MessageTest, Reset) {
    client->reset();
    EXPECT_EQ(function.resets, 1);
    EXPECT_EQ(ask(Command::kDeviceReset, std::vector<std::byte>(1)), EINVAL);
    EXPECT_EQ(function.resets, 1);
}

TEST_F(MessageTest, WhatThisServerDoesNotDo) {
    EXPECT_EQ(ask(Command::kDeviceFeature, std::vector<std::byte>(8)), ENOTTY);
    EXPECT_EQ(ask(Command::kMigDataRead, std::vector<std::byte>(8)), ENOTSUP);
    EXPECT_EQ(ask(Command::kMigDataWrite, std::vector<std::byte>(8)), ENOTSUP);
    EXPECT_EQ(ask(Command::kDmaRead, std::vector<std::byte>(16)), ENOTSUP);
    EXPECT_EQ(ask(Command::kDmaWrite, std::vector<std::byte>(16)), ENOTSUP);
    EXPECT_EQ(ask(static_cast<Command>(14), std::vector<std::byte>(16)), ENOSYS);
    EXPECT_EQ(ask(static_cast<Command>(0), std::vector<std::byte>()), ENOSYS);
    EXPECT_EQ(ask(static_cast<Command>(0xffff), std::vector<std::byte>()), ENOSYS);
    client->reset();
}

TEST_F(MessageTest, VersionIsAskedForOnce) {
    EXPECT_EQ(ask(Command::kVersion, std::vector<std::byte>(4)), EINVAL);
    EXPECT_EQ(function.attached, 1);
    client->reset();
}

TEST_F(MessageTest, AFunctionThatThrowsIsAnError) {
    function.on_write = [](std::uint32_t, std::uint64_t) { throw std::bad_alloc(); };
    EXPECT_EQ(ask(Command::kRegionWrite, write_payload(kRegisters, 0, 8, 8)), EIO);
    client->reset();
}

}  // namespace
}  // namespace iaa::test
