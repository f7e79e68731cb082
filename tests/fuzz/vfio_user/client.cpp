// SPDX-License-Identifier: GPL-2.0
#include "client.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "device/unique_fd.h"
#include "device/vfio_user/protocol.h"
#include "device/vfio_user/server.h"

namespace iaa::fuzz {
namespace {

namespace vu = device::vfio_user;
using device::UniqueFd;

constexpr std::size_t kMemory = 64U << 10;
constexpr std::uint32_t kIrqs = 8;

enum Setup : std::uint8_t { kVersion = 1, kShared = 2, kUnshared = 4, kEventfds = 8 };

/// A fuzzer that cannot make its descriptors must not go on as if it could.
UniqueFd checked(int fd) {
    if (fd < 0) std::abort();
    return UniqueFd(fd);
}

class Client {
  public:
    explicit Client(const UniqueFd& socket) : socket_(socket) {
        memory_ = checked(::memfd_create("iaa-fuzz", MFD_CLOEXEC));
        if (::ftruncate(memory_.get(), kMemory) != 0) std::abort();
        for (std::uint32_t i = 0; i < kIrqs; ++i)
            events_.push_back(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    }

    void set_up(std::uint8_t what) {
        if ((what & kVersion) != 0) {
            constexpr std::string_view kText =
                R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"write_multiple":true}})";
            std::vector<std::byte> payload(2 * sizeof(std::uint16_t) + kText.size() + 1);
            std::memcpy(payload.data() + 2 * sizeof(std::uint16_t), kText.data(), kText.size());
            send(vu::Command::kVersion, payload);
        }
        const auto map = [this](std::uint64_t address, std::span<const int> fds) {
            const vu::DmaMap request{.argsz = sizeof(request),
                                     .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                                     .offset = 0,
                                     .address = address,
                                     .size = kMemory};
            send(vu::Command::kDmaMap, vu::bytes_of(request), fds);
        };
        const std::array<int, 1> memory = {memory_.get()};
        if ((what & kShared) != 0) map(0x10000, memory);
        if ((what & kUnshared) != 0) map(0x40000, {});
        if ((what & kEventfds) != 0) {
            const vu::IrqSet set{.argsz = sizeof(set),
                                 .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                                 .index = VFIO_PCI_MSIX_IRQ_INDEX,
                                 .start = 0,
                                 .count = kIrqs};
            std::vector<int> fds;
            fds.reserve(events_.size());
            for (const UniqueFd& event : events_) fds.push_back(event.get());
            send(vu::Command::kDeviceSetIrqs, vu::bytes_of(set), fds);
        }
    }

    void piece(std::uint8_t kind, std::uint8_t descriptors, std::span<const std::byte> bytes) {
        std::vector<int> fds(descriptors & 3U, memory_.get());
        for (std::uint32_t i = 0; i < ((descriptors >> 2U) & 3U); ++i)
            fds.push_back(events_[i].get());
        if (kind == 0)
            send_bytes(bytes, fds);
        else
            send(static_cast<vu::Command>(kind), bytes, fds,
                 (descriptors & 0x80U) != 0 ? vu::kFlagNoReply : 0);
    }

  private:
    void send(vu::Command command, std::span<const std::byte> payload,
              std::span<const int> fds = {}, std::uint32_t flags = 0) {
        const vu::Header header{.id = next_id_++,
                                .command = static_cast<std::uint16_t>(command),
                                .size = static_cast<std::uint32_t>(sizeof(header) + payload.size()),
                                .flags = flags,
                                .error = 0};
        std::vector<std::byte> message(sizeof(header) + payload.size());
        std::memcpy(message.data(), &header, sizeof(header));
        std::ranges::copy(payload, message.begin() + sizeof(header));
        send_bytes(message, fds);
    }

    /// What no longer fits into the socket is left out.
    void send_bytes(std::span<const std::byte> bytes, std::span<const int> fds) {
        if (bytes.empty()) return;
        iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
        std::vector<std::byte> control(fds.empty() ? 0 : CMSG_SPACE(fds.size_bytes()));
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
        [[maybe_unused]] const ssize_t sent =
            ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    const UniqueFd& socket_;
    UniqueFd memory_;
    std::vector<UniqueFd> events_;
    std::uint16_t next_id_ = 1;
};

}  // namespace

void play(device::Function& function, std::span<const std::uint8_t> input) {
    if (input.empty()) return;
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);

    Client client(ours);
    client.set_up(input[0]);
    auto rest = std::as_bytes(input.subspan(1));
    constexpr std::size_t kPieceHeader = 4;
    while (rest.size() >= kPieceHeader) {
        const auto kind = std::to_integer<std::uint8_t>(rest[0]);
        const auto descriptors = std::to_integer<std::uint8_t>(rest[1]);
        const auto length = std::min<std::size_t>(vu::load<std::uint16_t>(rest, 2).value_or(0),
                                                  rest.size() - kPieceHeader);
        client.piece(kind, descriptors, rest.subspan(kPieceHeader, length));
        rest = rest.subspan(kPieceHeader + length);
    }
    ::shutdown(ours.get(), SHUT_WR);

    using std::chrono::milliseconds;
    vu::ServerOptions options;
    // Replies fill the socket without anybody to read them: no need to wait for that long.
    options.send_timeout = milliseconds(1);
    options.dma_timeout = milliseconds(20);
    options.log = [](std::string_view) {};
    vu::Server server(function, std::move(options));
    server.serve(std::move(theirs));
}

}  // namespace iaa::fuzz
