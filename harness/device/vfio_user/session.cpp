// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace iaa::device::vfio_user {
namespace {

using std::chrono::milliseconds;

/// How long run() may take to see a stop or a deadline while the client is silent.
constexpr milliseconds kTick{200};
/// How often pump_until() looks again without being woken.
constexpr milliseconds kPumpTick{1};
/// Commands kept back during pump_until(); beyond this the socket is left unread.
constexpr std::size_t kMaxDeferredBytes = 16U << 20;
constexpr unsigned kMaxLogLines = 100;
/// Ids of our own commands: a transfer's index, and above it a number that tells one use of that
/// transfer from the one before.
constexpr unsigned kTransferIdBits = 5;
/// More than 32 bits can hold: a client that counts in 64 bits refuses it, and one that takes only
/// the low half sees a transfer of nothing.
constexpr std::uint64_t kProbeCount = 1ULL << 32;

/// Of data in one DMA message. QEMU does not look how much of a reply the socket took; what fits
/// into one segment of a UNIX socket is taken whole or not at all.
constexpr std::size_t kMaxDmaData = 32U << 10;

std::size_t message_limit(const ServerOptions& options) {
    return sizeof(Header) + sizeof(DmaAccess) + static_cast<std::size_t>(options.max_transfer);
}

int socket_error() {
    return errno != 0 ? errno : EIO;
}

}  // namespace

Session::Session(UniqueFd socket, Function& function, const ServerOptions& options,
                 const std::atomic<bool>& stop)
    : socket_(std::move(socket)),
      function_(function),
      options_(options),
      stop_(stop),
      owner_(std::this_thread::get_id()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reader_(message_limit(options)),
      limits_{.max_transfer = options.max_transfer, .max_dma_maps = options.max_dma_maps},
      dma_(*this, [this] { wake(); }),
      msix_(function.msix_vectors()) {
    if (!wake_fd_)
        throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
    const auto tick = std::chrono::duration_cast<std::chrono::microseconds>(kTick);
    const timeval timeout{.tv_sec = 0, .tv_usec = static_cast<suseconds_t>(tick.count())};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

Session::~Session() = default;

void Session::run() {
    log("vfio-user: a client has connected");
    const auto start = Clock::now();
    while (!dead_.load() && !stop_.load()) {
        if (!negotiated_ && Clock::now() - start > options_.handshake_timeout) {
            give_up("the client did not send VERSION in time");
            break;
        }
        if (!deferred_.empty()) {
            current_ = std::move(deferred_.front());
            deferred_.pop_front();
            deferred_bytes_ -= current_.payload.size() + sizeof(Request);
            dispatch(current_);
            continue;
        }
        MessageView view;
        const auto next = reader_.next(view);
        if (next == MessageReader::Next::kBroken) {
            give_up("the client sent a header with an impossible size or type");
        } else if (next == MessageReader::Next::kNone) {
            if (!receive()) break;
        } else if ((view.header.flags & kTypeMask) == kTypeReply) {
            finish_transfer(view);
        } else {
            take(view, current_);
            dispatch(current_);
        }
    }
    dead_.store(true);
    ::shutdown(socket_.get(), SHUT_RDWR);
    fail_transfers();
    if (negotiated_) function_.detach();
    log("vfio-user: the client has left");
}

bool Session::receive() {
    const auto got = reader_.receive(socket_.get(), 0);
    if (got == MessageReader::Received::kClosed) return false;
    if (got == MessageReader::Received::kAbuse) {
        give_up("the client sent file descriptors with every piece of a message");
        return false;
    }
    // Bytes that keep arriving do not extend the time that a message has.
    const auto now = Clock::now();
    if (!reader_.partial() || reader_.position() != partial_position_) {
        partial_position_ = reader_.position();
        partial_since_ = now;
    } else if (now - partial_since_ > options_.message_timeout) {
        give_up("the client left a message incomplete");
        return false;
    }
    return true;
}

void Session::take(MessageView& view, Request& request) {
    request.header = view.header;
    request.payload.assign(view.payload.begin(), view.payload.end());
    request.fds = std::move(view.fds);
    request.fds_lost = view.fds_lost;
}

void Session::defer(MessageView& view) {
    Request request;
    take(view, request);
    deferred_bytes_ += request.payload.size() + sizeof(Request);
    deferred_.push_back(std::move(request));
}

bool Session::drain_reader() {
    MessageView view;
    while (true) {
        switch (reader_.next(view)) {
            case MessageReader::Next::kNone:
                return true;
            case MessageReader::Next::kBroken:
                give_up("the client sent a header with an impossible size or type");
                return false;
            case MessageReader::Next::kMessage:
                if ((view.header.flags & kTypeMask) == kTypeReply)
                    finish_transfer(view);
                else
                    defer(view);
                break;
        }
    }
}

bool Session::receive_pumping() {
    switch (reader_.receive(socket_.get(), MSG_DONTWAIT)) {
        case MessageReader::Received::kClosed:
            dead_.store(true);
            fail_transfers();
            return false;
        case MessageReader::Received::kAbuse:
            give_up("the client sent file descriptors with every piece of a message");
            return false;
        case MessageReader::Received::kData:
        case MessageReader::Received::kNothing:
            break;
    }
    return drain_reader();
}

bool Session::pump_until(const std::function<bool()>& done, milliseconds limit) {
    if (std::this_thread::get_id() != owner_)
        throw std::logic_error("pump_until() was called outside the transport's thread");
    const auto deadline = Clock::now() + limit;
    pumping_.store(true);
    bool reading = !dead_.load() && drain_reader();
    bool result = true;
    while (!done()) {
        const auto now = Clock::now();
        if (now >= deadline) {
            result = false;
            break;
        }
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - now) + milliseconds(1);
        const bool listen = reading && !dead_.load() && deferred_bytes_ < kMaxDeferredBytes;
        std::array<pollfd, 2> ready{
            {{.fd = wake_fd_.get(), .events = POLLIN, .revents = 0},
             {.fd = listen ? socket_.get() : -1, .events = POLLIN, .revents = 0}}};
        ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, kPumpTick).count()));
        if (ready[0].revents != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake_fd_.get(), &count, sizeof(count));
        }
        if (ready[1].revents != 0) reading = receive_pumping();
    }
    pumping_.store(false);
    return result;
}

void Session::wake() {
    if (!pumping_.load()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_fd_.get(), &one, sizeof(one));
}

void Session::dispatch(Request& request) {
    int error = 0;
    try {
        error = handle(request);
    } catch (const std::exception& failure) {
        log(fmt::format("vfio-user: command {} failed: {}", request.header.command,
                        failure.what()));
        error = EIO;
    }
    if (error != 0) {
        log(fmt::format("vfio-user: command {} refused: {}", request.header.command,
                        std::strerror(error)));
        reply_error(request, error);
    }
    request.fds.clear();
}

int Session::handle(Request& request) {
    const auto command = static_cast<Command>(request.header.command);
    if (request.fds_lost) return EMFILE;
    if (!request.fds.empty() && command != Command::kDmaMap && command != Command::kDeviceSetIrqs)
        return EINVAL;
    if (negotiated_ == (command == Command::kVersion)) {
        if (negotiated_) return EINVAL;
        reply_error(request, EINVAL);
        give_up("the client's first command was not VERSION");
        return 0;
    }
    switch (command) {
        case Command::kVersion:
            return version(request);
        case Command::kDmaMap:
            return dma_map(request);
        case Command::kDmaUnmap:
            return dma_unmap(request);
        case Command::kDeviceGetInfo:
            return get_info(request);
        case Command::kDeviceGetRegionInfo:
            return get_region_info(request);
        case Command::kDeviceGetRegionIoFds:
            return get_region_io_fds(request);
        case Command::kDeviceGetIrqInfo:
            return get_irq_info(request);
        case Command::kDeviceSetIrqs:
            return set_irqs(request);
        case Command::kRegionRead:
            return region_read(request);
        case Command::kRegionWrite:
            return region_write(request);
        case Command::kRegionWriteMulti:
            return region_write_multi(request);
        case Command::kDeviceReset:
            if (!request.payload.empty()) return EINVAL;
            function_.reset();
            reply(request, {});
            return 0;
        case Command::kDeviceFeature:
            return ENOTTY;  // as a vfio device answers for a feature that it does not have
        case Command::kDmaRead:
        case Command::kDmaWrite:
        case Command::kMigDataRead:
        case Command::kMigDataWrite:
            return ENOTSUP;
    }
    return ENOSYS;
}

int Session::version(const Request& request) {
    std::string problem;
    const Limits own{.max_transfer = options_.max_transfer, .max_dma_maps = options_.max_dma_maps};
    const auto negotiation = negotiate(request.payload, own, problem);
    if (!negotiation) {
        reply_error(request, EINVAL);
        give_up(problem);
        return 0;
    }
    limits_ = negotiation->limits;
    negotiated_ = true;
    function_.attach(*this);
    reply(request, negotiation->payload);
    return 0;
}

int Session::dma_map(Request& request) {
    const auto map = load<DmaMap>(request.payload);
    constexpr std::uint32_t kAccess{VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE};
    if (!map || request.payload.size() != sizeof(DmaMap) || map->argsz < sizeof(DmaMap))
        return EINVAL;
    if ((map->flags & ~kAccess) != 0 || (map->flags & kAccess) == 0) return EINVAL;
    if (request.fds.size() > 1) return EINVAL;
    const UniqueFd fd = request.fds.empty() ? UniqueFd() : std::move(request.fds.front());
    const int error = dma_.map(map->address, map->size, (map->flags & VFIO_DMA_MAP_FLAG_READ) != 0,
                               (map->flags & VFIO_DMA_MAP_FLAG_WRITE) != 0, fd, map->offset,
                               limits_.max_dma_maps);
    if (error == 0) reply(request, {});
    return error;
}

int Session::dma_unmap(const Request& request) {
    const auto unmap = load<DmaUnmap>(request.payload);
    if (!unmap || request.payload.size() != sizeof(DmaUnmap) || unmap->argsz < sizeof(DmaUnmap))
        return EINVAL;
    if (unmap->flags != 0 && unmap->flags != VFIO_DMA_UNMAP_FLAG_ALL) return EINVAL;

    std::vector<std::unique_ptr<DmaRegion>> regions;
    if (unmap->flags == VFIO_DMA_UNMAP_FLAG_ALL) {
        if (unmap->address != 0 || unmap->size != 0) return EINVAL;
        regions = dma_.take_all();
    } else {
        auto region = dma_.take(unmap->address, unmap->size);
        if (!region) return ENOENT;
        regions.push_back(std::move(region));
    }
    const auto idle = [&regions] {
        return std::ranges::none_of(regions, [](const auto& region) { return region->busy(); });
    };
    // An access in progress is a copy, or at most one DMA message until it sees that it is
    // cancelled.
    if (!idle() && !pump_until(idle, options_.dma_timeout + options_.send_timeout + kTick)) {
        dma_.keep(std::move(regions));
        give_up("an access to memory that the client takes away did not end");
        return ETIMEDOUT;
    }
    regions.clear();
    reply(request, request.payload);
    return 0;
}

int Session::get_info(const Request& request) {
    const auto info = load<DeviceInfo>(request.payload);
    if (!info || info->argsz < sizeof(DeviceInfo)) return EINVAL;
    const DeviceInfo answer{.argsz = sizeof(DeviceInfo),
                            .flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI,
                            .num_regions = VFIO_PCI_NUM_REGIONS,
                            .num_irqs = VFIO_PCI_NUM_IRQS};
    reply(request, bytes_of(answer));
    return 0;
}

int Session::get_region_info(const Request& request) {
    const auto info = load<vfio_region_info>(request.payload);
    if (!info || info->argsz < sizeof(vfio_region_info) || info->index >= VFIO_PCI_NUM_REGIONS)
        return EINVAL;
    const RegionInfo region = function_.region_info(info->index);
    vfio_region_info answer{};
    answer.argsz = sizeof(answer);
    answer.index = info->index;
    answer.size = region.size;
    if (region.size != 0 && region.readable) answer.flags |= VFIO_REGION_INFO_FLAG_READ;
    if (region.size != 0 && region.writable) answer.flags |= VFIO_REGION_INFO_FLAG_WRITE;
    reply(request, bytes_of(answer));
    return 0;
}

int Session::get_region_io_fds(const Request& request) {
    const auto info = load<RegionIoFds>(request.payload);
    if (!info || info->argsz < sizeof(RegionIoFds) || info->index >= VFIO_PCI_NUM_REGIONS ||
        info->flags != 0)
        return EINVAL;
    const RegionIoFds none{
        .argsz = sizeof(RegionIoFds), .flags = 0, .index = info->index, .count = 0};
    reply(request, bytes_of(none));
    return 0;
}

int Session::get_irq_info(const Request& request) {
    const auto info = load<vfio_irq_info>(request.payload);
    if (!info || info->argsz < sizeof(vfio_irq_info) || info->index >= VFIO_PCI_NUM_IRQS)
        return EINVAL;
    vfio_irq_info answer{};
    answer.argsz = sizeof(answer);
    answer.index = info->index;
    if (info->index == VFIO_PCI_MSIX_IRQ_INDEX) {
        answer.flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE;
        answer.count = msix_.count();
    }
    reply(request, bytes_of(answer));
    return 0;
}

int Session::set_irqs(Request& request) {
    const auto set = load<IrqSet>(request.payload);
    if (!set || set->argsz < sizeof(IrqSet) || set->argsz > request.payload.size() ||
        set->index >= VFIO_PCI_NUM_IRQS)
        return EINVAL;
    const auto data = std::span(request.payload).first(set->argsz).subspan(sizeof(IrqSet));
    IrqTable none(0);
    IrqTable& table = set->index == VFIO_PCI_MSIX_IRQ_INDEX ? msix_ : none;
    const int error = table.set(set->flags, set->start, set->count, data, request.fds);
    if (error == 0) reply(request, {});
    return error;
}

int Session::check_access(const RegionAccess& access, bool write) const {
    if (access.region >= VFIO_PCI_NUM_REGIONS || access.count == 0) return EINVAL;
    if (access.count > options_.max_transfer) return E2BIG;
    const RegionInfo region = function_.region_info(access.region);
    if (access.offset >= region.size || access.count > region.size - access.offset) return EINVAL;
    if (write ? !region.writable : !region.readable) return EPERM;
    return 0;
}

int Session::region_read(const Request& request) {
    const auto access = load<RegionAccess>(request.payload);
    if (!access || request.payload.size() != sizeof(RegionAccess)) return EINVAL;
    if (const int error = check_access(*access, false); error != 0) return error;
    read_buffer_.assign(access->count, std::byte{0});
    function_.region_read(access->region, access->offset, read_buffer_);
    reply(request, bytes_of(*access), read_buffer_);
    return 0;
}

int Session::region_write(const Request& request) {
    const auto access = load<RegionAccess>(request.payload);
    if (!access || request.payload.size() - sizeof(RegionAccess) != access->count) return EINVAL;
    if (const int error = check_access(*access, true); error != 0) return error;
    function_.region_write(access->region, access->offset,
                           std::span(request.payload).subspan(sizeof(RegionAccess)));
    reply(request, bytes_of(*access));
    return 0;
}

int Session::region_write_multi(const Request& request) {
    const auto count = load<std::uint64_t>(request.payload);
    if (!count) return EINVAL;
    const auto writes = std::span<const std::byte>(request.payload).subspan(sizeof(std::uint64_t));
    if (*count != writes.size() / sizeof(MultiWrite) || writes.size() % sizeof(MultiWrite) != 0)
        return EINVAL;
    // All or none: a client could not tell where a message stopped half way.
    for (std::size_t at = 0; at < writes.size(); at += sizeof(MultiWrite)) {
        const auto one = *load<MultiWrite>(writes, at);
        if (one.access.count > sizeof(one.data)) return EINVAL;
        if (const int error = check_access(one.access, true); error != 0) return error;
    }
    for (std::size_t at = 0; at < writes.size(); at += sizeof(MultiWrite)) {
        const auto one = *load<MultiWrite>(writes, at);
        function_.region_write(one.access.region, one.access.offset,
                               std::span(one.data).first(one.access.count));
    }
    reply(request, bytes_of(*count));
    return 0;
}

void Session::reply(const Request& request, std::span<const std::byte> payload,
                    std::span<const std::byte> data) {
    if ((request.header.flags & kFlagNoReply) != 0) return;
    const Header header{
        .id = request.header.id,
        .command = request.header.command,
        .size = static_cast<std::uint32_t>(sizeof(Header) + payload.size() + data.size()),
        .flags = kTypeReply,
        .error = 0};
    [[maybe_unused]] const bool sent = send(header, payload, data);
}

void Session::reply_error(const Request& request, int error) {
    if ((request.header.flags & kFlagNoReply) != 0) return;
    const Header header{.id = request.header.id,
                        .command = request.header.command,
                        .size = sizeof(Header),
                        .flags = kTypeReply | kFlagError,
                        .error = static_cast<std::uint32_t>(error)};
    [[maybe_unused]] const bool sent = send(header, {}, {});
}

bool Session::send(const Header& header, std::span<const std::byte> payload,
                   std::span<const std::byte> data) {
    const auto part = [](std::span<const std::byte> bytes) {
        // sendmsg() only reads what it is given.
        return iovec{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    };
    std::array<iovec, 3> parts{part(bytes_of(header)), part(payload), part(data)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();

    const std::lock_guard lock(send_mutex_);
    const auto deadline = Clock::now() + options_.send_timeout;
    while (!dead_.load()) {
        const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            auto left = static_cast<std::size_t>(sent);
            while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
                left -= message.msg_iov->iov_len;
                ++message.msg_iov;
                --message.msg_iovlen;
            }
            if (message.msg_iovlen == 0) return true;
            message.msg_iov->iov_base = static_cast<std::byte*>(message.msg_iov->iov_base) + left;
            message.msg_iov->iov_len -= left;
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            give_up(fmt::format("cannot send to the client: {}", std::strerror(socket_error())));
            return false;
        }
        const auto now = Clock::now();
        if (now >= deadline) {
            give_up("the client does not read what it is sent");
            return false;
        }
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - now) + milliseconds(1);
        pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
        ::poll(&ready, 1, static_cast<int>(std::min(left, kTick).count()));
    }
    return false;
}

void Session::give_up(std::string_view why) {
    if (dead_.exchange(true)) return;
    log(fmt::format("vfio-user: disconnecting: {}", why));
    ::shutdown(socket_.get(), SHUT_RDWR);
    fail_transfers();
}

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
    mine->probe = count == kProbeCount;
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

void Session::log(std::string_view text) {
    const std::lock_guard lock(log_mutex_);
    if (logged_ >= kMaxLogLines) return;
    options_.log(text);
    if (++logged_ == kMaxLogLines)
        options_.log("vfio-user: too many messages about this client; the rest is left out");
}

}  // namespace iaa::device::vfio_user
