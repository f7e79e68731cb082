// SPDX-License-Identifier: GPL-2.0
#include "vfio_user/test_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace iaa::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kQemuCapabilities =
    R"({"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, )"
    R"("max_msg_fds": 16, "max_data_xfer_size": 1048576, "pgsizes": 4096, )"
    R"("max_dma_maps": 65535, "write_multiple": true}})";

[[noreturn]] void fail(const std::string& what) {
    throw ClientError(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

int time_left(Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::max<long>(left, 0));
}

}  // namespace

GuestMemory::GuestMemory(std::size_t size)
    : fd_(::memfd_create("iaa-test-guest", MFD_CLOEXEC)), size_(size) {
    if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail("memfd");
    void* const area = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (area == MAP_FAILED) fail("mmap");
    data_ = static_cast<std::byte*>(area);
}

GuestMemory::~GuestMemory() {
    ::munmap(data_, size_);
}

void GuestMemory::resize_file(std::size_t size) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail("ftruncate");
}

TestClient TestClient::connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) throw ClientError("the socket path is too long");
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        fail("connect " + path);
    return TestClient(std::move(socket));
}

Reply TestClient::negotiate() {
    return negotiate(kQemuCapabilities);
}

Reply TestClient::negotiate(std::string_view json) {
    // Major and minor version 0, the text, NUL.
    std::vector<std::byte> payload(2 * sizeof(std::uint16_t) + json.size() + 1);
    std::memcpy(payload.data() + 2 * sizeof(std::uint16_t), json.data(), json.size());
    Reply reply = call(vu::Command::kVersion, payload);
    expect_ok(reply, "VERSION");
    return reply;
}

Reply TestClient::call(vu::Command command, std::span<const std::byte> payload,
                       std::span<const int> fds, std::uint32_t flags) {
    return wait_reply(send(command, payload, fds, flags));
}

std::uint16_t TestClient::send(vu::Command command, std::span<const std::byte> payload,
                               std::span<const int> fds, std::uint32_t flags) {
    const std::uint16_t id = next_id_++;
    const vu::Header header{.id = id,
                            .command = static_cast<std::uint16_t>(command),
                            .size = static_cast<std::uint32_t>(sizeof(vu::Header) + payload.size()),
                            .flags = flags,
                            .error = 0};
    std::vector<std::byte> message(sizeof(header) + payload.size());
    std::memcpy(message.data(), &header, sizeof(header));
    std::ranges::copy(payload, message.begin() + sizeof(header));
    send_bytes(message, fds);
    return id;
}

void TestClient::send_bytes(std::span<const std::byte> bytes, std::span<const int> fds) {
    std::vector<std::byte> control(fds.empty() ? 0 : CMSG_SPACE(fds.size_bytes()));
    const auto deadline = Clock::now() + patience;
    while (!bytes.empty()) {
        iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        if (!fds.empty()) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            cmsghdr* const part = CMSG_FIRSTHDR(&message);
            part->cmsg_level = SOL_SOCKET;
            part->cmsg_type = SCM_RIGHTS;
            part->cmsg_len = CMSG_LEN(fds.size_bytes());
            std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
        }
        const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            fds = {};
        } else if (errno == EAGAIN) {
            pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
            if (::poll(&ready, 1, time_left(deadline)) == 0)
                throw ClientError("the server does not read");
        } else {
            fail("send");
        }
    }
}

bool TestClient::fill(std::size_t size, Clock::time_point deadline) {
    while (received_.size() < size) {
        pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&ready, 1, time_left(deadline)) == 0) return false;
        std::array<std::byte, 65536> buffer{};
        iovec data{.iov_base = buffer.data(),
                   .iov_len = std::min(buffer.size(), size - received_.size())};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(vu::kMaxMessageFds * sizeof(int))>
            control{};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
        if (got <= 0) return false;
        received_.insert(received_.end(), buffer.begin(), buffer.begin() + got);
        for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
             part = CMSG_NXTHDR(&message, part)) {
            if (part->cmsg_type != SCM_RIGHTS) continue;
            for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
                received_fds_.emplace_back(fd);
            }
        }
    }
    return true;
}

std::optional<Reply> TestClient::receive(milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    if (!fill(sizeof(vu::Header), deadline)) return std::nullopt;
    Reply reply;
    reply.header = *vu::load<vu::Header>(received_);
    if (reply.header.size < sizeof(vu::Header)) throw ClientError("the server sent a bad header");
    if (!fill(reply.header.size, deadline)) return std::nullopt;
    reply.payload.assign(received_.begin() + sizeof(vu::Header), received_.end());
    reply.fds = std::exchange(received_fds_, {});
    received_.clear();
    return reply;
}

Reply TestClient::wait_reply(std::uint16_t id) {
    const auto deadline = Clock::now() + patience;
    while (true) {
        if (const auto early = early_replies_.find(id); early != early_replies_.end()) {
            Reply reply = std::move(early->second);
            early_replies_.erase(early);
            return reply;
        }
        auto message = receive(milliseconds(time_left(deadline)));
        if (!message) throw ClientError(fmt::format("no reply to message {}", id));
        if ((message->header.flags & vu::kTypeMask) == vu::kTypeReply)
            early_replies_[message->header.id] = std::move(*message);
        else
            answer_dma(*message);
    }
}

bool TestClient::wait_closed(milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    while (receive(milliseconds(time_left(deadline)))) {
    }
    std::byte one{};
    return ::recv(socket_.get(), &one, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

bool TestClient::serve_dma(const std::function<bool()>& done, milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    while (!done()) {
        if (Clock::now() >= deadline) return false;
        auto message = receive(milliseconds(1));
        if (!message) continue;
        if ((message->header.flags & vu::kTypeMask) == vu::kTypeReply)
            early_replies_[message->header.id] = std::move(*message);
        else
            answer_dma(*message);
    }
    return true;
}

std::span<std::byte> TestClient::find(std::uint64_t iova, std::uint64_t size) {
    auto found = memory_.upper_bound(iova);
    if (found == memory_.begin()) return {};
    --found;
    const auto bytes = found->second->bytes();
    const std::uint64_t offset = iova - found->first;
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.subspan(offset, size);
}

void TestClient::answer_dma(const Reply& command) {
    if (on_dma && on_dma(command)) return;
    vu::Header header = command.header;
    header.flags = vu::kTypeReply;
    header.size = sizeof(header);
    const auto answer = [&](std::uint32_t error, std::span<const std::byte> payload) {
        if (error != 0) header.flags |= vu::kFlagError;
        header.error = error;
        header.size = static_cast<std::uint32_t>(sizeof(header) + payload.size());
        std::vector<std::byte> message(header.size);
        std::memcpy(message.data(), &header, sizeof(header));
        std::ranges::copy(payload, message.begin() + sizeof(header));
        send_bytes(message);
    };
    const auto address = command.as<std::uint64_t>(0);
    const std::uint64_t count =
        short_dma_layout ? command.as<std::uint32_t>(8) : command.as<std::uint64_t>(8);
    const std::size_t data_at = short_dma_layout ? vu::kShortDmaDataOffset : sizeof(vu::DmaAccess);
    if (count > vu::kDefaultMaxTransfer) return answer(E2BIG, {});
    const auto memory = find(address, count);
    if (memory.size() != count) return answer(EFAULT, {});
    if (command.header.command == static_cast<std::uint16_t>(vu::Command::kDmaRead)) {
        std::vector<std::byte> payload(sizeof(vu::DmaAccess) + count);
        std::memcpy(payload.data(), command.payload.data(), sizeof(vu::DmaAccess));
        std::ranges::copy(memory, payload.begin() + static_cast<std::ptrdiff_t>(data_at));
        return answer(0, payload);
    }
    if (command.payload.size() != sizeof(vu::DmaAccess) + count) return answer(EINVAL, {});
    std::ranges::copy(std::span(command.payload).subspan(data_at, count), memory.begin());
    if (short_dma_layout) return answer(0, {});
    return answer(0, std::span(command.payload).first(sizeof(vu::DmaAccess)));
}

void TestClient::expect_ok(const Reply& reply, std::string_view what) const {
    if (reply.failed())
        throw ClientError(fmt::format("{} was refused: {}", what,
                                      std::generic_category().message(reply.error())));
}

GuestMemory& TestClient::map_memory(std::uint64_t iova, std::size_t size, Share share,
                                    std::uint32_t flags) {
    auto memory = std::make_unique<GuestMemory>(size);
    const vu::DmaMap map{
        .argsz = sizeof(map), .flags = flags, .offset = 0, .address = iova, .size = size};
    const std::array<int, 1> fd = {memory->fd()};
    expect_ok(call(vu::Command::kDmaMap, vu::bytes_of(map),
                   share == Share::kFile ? std::span<const int>(fd) : std::span<const int>()),
              "DMA_MAP");
    return *(memory_[iova] = std::move(memory));
}

std::unique_ptr<GuestMemory> TestClient::unmap_memory(std::uint64_t iova) {
    const vu::DmaUnmap unmap{.argsz = sizeof(unmap),
                             .flags = 0,
                             .address = iova,
                             .size = memory_.at(iova)->bytes().size()};
    expect_ok(call(vu::Command::kDmaUnmap, vu::bytes_of(unmap)), "DMA_UNMAP");
    return std::move(memory_.extract(iova).mapped());
}

std::vector<std::byte> TestClient::read(std::uint32_t region, std::uint64_t offset,
                                        std::uint32_t count) {
    const vu::RegionAccess access{.offset = offset, .region = region, .count = count};
    Reply reply = call(vu::Command::kRegionRead, vu::bytes_of(access));
    expect_ok(reply, "REGION_READ");
    if (reply.payload.size() != sizeof(access) + count)
        throw ClientError("REGION_READ's reply is short");
    return {reply.payload.begin() + sizeof(access), reply.payload.end()};
}

void TestClient::write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data,
                       bool posted) {
    const vu::RegionAccess access{
        .offset = offset, .region = region, .count = static_cast<std::uint32_t>(data.size())};
    std::vector<std::byte> payload(sizeof(access) + data.size());
    std::memcpy(payload.data(), &access, sizeof(access));
    std::ranges::copy(data, payload.begin() + sizeof(access));
    if (posted)
        send(vu::Command::kRegionWrite, payload, {}, vu::kFlagNoReply);
    else
        expect_ok(call(vu::Command::kRegionWrite, payload), "REGION_WRITE");
}

void TestClient::write_portal(std::uint32_t region, std::uint64_t offset,
                              std::span<const std::byte, 64> descriptor) {
    constexpr std::size_t kStore = 8;
    for (std::size_t at = 0; at < descriptor.size(); at += kStore)
        write(region, offset + at, descriptor.subspan(at, kStore), true);
}

void TestClient::reset() {
    expect_ok(call(vu::Command::kDeviceReset), "DEVICE_RESET");
}

void TestClient::attach_irqs(std::uint32_t count) {
    irqs_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
        irqs_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!irqs_.back()) fail("eventfd");
    }
    for (std::uint32_t start = 0; start < count; start += vu::kMaxMessageFds) {
        const std::uint32_t part = std::min(count - start, vu::kMaxMessageFds);
        std::vector<int> fds;
        for (std::uint32_t i = 0; i < part; ++i) fds.push_back(irqs_[start + i].get());
        const vu::IrqSet set{.argsz = sizeof(set),
                             .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                             .index = VFIO_PCI_MSIX_IRQ_INDEX,
                             .start = start,
                             .count = part};
        expect_ok(call(vu::Command::kDeviceSetIrqs, vu::bytes_of(set), fds), "DEVICE_SET_IRQS");
    }
}

std::uint64_t TestClient::wait_irq(std::uint32_t vector, milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    do {
        std::uint64_t count = 0;
        if (::read(irq_fd(vector), &count, sizeof(count)) == sizeof(count)) return count;
        // Looks at the socket too: the interrupt may be waiting for a DMA message to be answered.
        std::array<pollfd, 2> ready{{{.fd = irq_fd(vector), .events = POLLIN, .revents = 0},
                                     {.fd = socket_.get(), .events = POLLIN, .revents = 0}}};
        ::poll(ready.data(), ready.size(), time_left(deadline));
        if (ready[1].revents != 0) {
            auto message = receive(milliseconds(time_left(deadline)));
            if (!message) return 0;
            if ((message->header.flags & vu::kTypeMask) == vu::kTypeReply)
                early_replies_[message->header.id] = std::move(*message);
            else
                answer_dma(*message);
        }
    } while (Clock::now() < deadline);
    std::uint64_t count = 0;
    return ::read(irq_fd(vector), &count, sizeof(count)) == sizeof(count) ? count : 0;
}

}  // namespace iaa::test
