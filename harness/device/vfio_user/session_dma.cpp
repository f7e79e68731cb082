// SPDX-License-Identifier: GPL-2.0
// DMA by messages to the client: requests of ours, and its replies.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/vfio_user/session.h"

namespace iaa::device::vfio_user {
namespace {

/// Ids of our own commands: a transfer's index, and above it a number that tells one use of that
/// transfer from the one before.
constexpr unsigned kTransferIdBits = 5;
/// More than 32 bits can hold: a client that counts in 64 bits refuses it, and one that takes only
/// the low half sees a transfer of nothing.
constexpr std::uint64_t kProbeCount = 1ULL << 32;

/// Of data in one DMA message. QEMU does not look how much of a reply the socket took; what fits
/// into one segment of a UNIX socket is taken whole or not at all.
constexpr std::size_t kMaxDmaData = 32U << 10;

}  // namespace

bool Session::message_read(std::uint64_t iova, std::span<std::byte> out,
                           const std::atomic<bool>& cancelled) {
    if (!find_layout(iova)) return false;
    while (!out.empty()) {
        if (cancelled.load()) return false;
        const auto part =
            out.first(std::min({out.size(), kMaxDmaData, std::size_t{limits_.max_transfer}}));
        const auto result = transfer(Command::kDmaRead, iova, part.size(), part, {});
        if (!result.replied || result.error != 0) return false;
        iova += part.size();
        out = out.subspan(part.size());
    }
    return true;
}

bool Session::message_write(std::uint64_t iova, std::span<const std::byte> in,
                            const std::atomic<bool>& cancelled) {
    if (!find_layout(iova)) return false;
    while (!in.empty()) {
        if (cancelled.load()) return false;
        const auto part =
            in.first(std::min({in.size(), kMaxDmaData, std::size_t{limits_.max_transfer}}));
        const auto result = transfer(Command::kDmaWrite, iova, part.size(), {}, part);
        if (!result.replied || result.error != 0) return false;
        iova += part.size();
        in = in.subspan(part.size());
    }
    return true;
}

bool Session::find_layout(std::uint64_t iova) {
    if (layout_.load() != DmaLayout::kUnknown) return true;
    const auto result = transfer(Command::kDmaRead, iova, kProbeCount, {}, {});
    if (!result.replied) return false;
    const bool is_short = result.error == 0;
    if (layout_.exchange(is_short ? DmaLayout::kShort : DmaLayout::kSpecified) ==
        DmaLayout::kUnknown)
        log(fmt::format("vfio-user: DMA by messages with a {}-bit count", is_short ? 32 : 64));
    return true;
}

Session::TransferResult Session::transfer(Command command, std::uint64_t address,
                                          std::uint64_t count, std::span<std::byte> read_into,
                                          std::span<const std::byte> data) {
    const bool owner = std::this_thread::get_id() == owner_;
    const auto deadline = Clock::now() + options_.dma_timeout;

    std::unique_lock lock(transfer_mutex_);
    Transfer* mine = owner ? transfers_.data() : nullptr;
    const auto find_free = [&] {
        const auto found = std::find_if(transfers_.begin() + 1, transfers_.end(),
                                        [](const Transfer& one) { return !one.in_use; });
        mine = found == transfers_.end() ? nullptr : &*found;
        return mine != nullptr || dead_.load();
    };
    if (!owner && !transfer_free_.wait_until(lock, deadline, find_free)) return {};
    if (dead_.load() || mine == nullptr) return {};
    const auto index = static_cast<std::uint16_t>(mine - transfers_.data());
    ++transfer_generation_;
    mine->id = static_cast<std::uint16_t>((transfer_generation_ << kTransferIdBits) | index);
    mine->command = command;
    mine->in_use = true;
    mine->finished = false;
    mine->failed = false;
    mine->error = 0;
    mine->address = address;
    mine->read_into = read_into;
    const Header header{
        .id = mine->id,
        .command = static_cast<std::uint16_t>(command),
        .size = static_cast<std::uint32_t>(sizeof(Header) + sizeof(DmaAccess) + data.size()),
        .flags = kTypeCommand,
        .error = 0};
    lock.unlock();

    const DmaAccess access{.address = address, .count = count};
    bool sent = false;
    if (layout_.load() == DmaLayout::kShort && command == Command::kDmaWrite) {
        // 12 bytes of fixed part, the data, and 4 bytes that only make up the size.
        std::vector<std::byte> shifted(data.begin(), data.end());
        shifted.resize(data.size() + sizeof(DmaAccess) - kShortDmaDataOffset);
        sent = send(header, bytes_of(access).first(kShortDmaDataOffset), shifted);
    } else {
        sent = send(header, bytes_of(access), data);
    }

    const auto over = [&] { return mine->finished || mine->failed; };
    if (sent && owner) {
        const auto locked_over = [&] {
            const std::lock_guard again(transfer_mutex_);
            return over();
        };
        [[maybe_unused]] const bool in_time = pump_until(locked_over, options_.dma_timeout);
    }
    lock.lock();
    if (sent && !owner) mine->changed.wait_until(lock, deadline, over);
    TransferResult result{.replied = sent && mine->finished, .error = mine->error};
    // Whatever comes for this id from now on is dropped: read_into is the caller's again.
    mine->in_use = false;
    mine->read_into = {};
    const bool silent = sent && !mine->finished && !mine->failed;
    lock.unlock();
    transfer_free_.notify_one();
    if (silent)
        log(fmt::format("vfio-user: no reply to DMA of {} bytes at {:#x} within {} ms", count,
                        address, options_.dma_timeout.count()));
    return result;
}

void Session::finish_transfer(const MessageView& view) {
    const std::lock_guard lock(transfer_mutex_);
    const std::size_t index = view.header.id & ((1U << kTransferIdBits) - 1);
    Transfer& mine = transfers_[index];
    if (!mine.in_use || mine.finished || mine.id != view.header.id ||
        static_cast<std::uint16_t>(mine.command) != view.header.command) {
        log(fmt::format("vfio-user: dropped a reply that nobody waits for (id {}, command {})",
                        view.header.id, view.header.command));
        return;
    }
    if ((view.header.flags & kFlagError) != 0) {
        mine.error = view.header.error != 0 ? view.header.error : EIO;
    } else if (mine.command == Command::kDmaRead) {
        const std::size_t offset =
            layout_.load() == DmaLayout::kShort ? kShortDmaDataOffset : sizeof(DmaAccess);
        const auto address = load<std::uint64_t>(view.payload);
        if (view.payload.size() != sizeof(DmaAccess) + mine.read_into.size() ||
            address != mine.address)
            mine.error = EPROTO;
        else if (!mine.read_into.empty())
            std::memcpy(mine.read_into.data(), view.payload.data() + offset, mine.read_into.size());
    }
    mine.finished = true;
    mine.changed.notify_one();
}

void Session::fail_transfers() {
    const std::lock_guard lock(transfer_mutex_);
    for (Transfer& one : transfers_) {
        one.failed = true;
        one.changed.notify_all();
    }
    transfer_free_.notify_all();
}
}  // namespace iaa::device::vfio_user
