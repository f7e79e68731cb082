// SPDX-License-Identifier: GPL-2.0
// The commands of a client.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "device/vfio_user/session.h"

namespace iaa::device::vfio_user {

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
                        std::generic_category().message(error)));
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
    const auto limit = options_.dma_timeout + options_.send_timeout + std::chrono::seconds(1);
    if (!idle() && !pump_until(idle, limit)) {
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
        const auto one = load<MultiWrite>(writes, at);
        if (!one || one->access.count > one->data.size()) return EINVAL;
        if (const int error = check_access(one->access, true); error != 0) return error;
    }
    for (std::size_t at = 0; at < writes.size(); at += sizeof(MultiWrite)) {
        if (const auto one = load<MultiWrite>(writes, at))
            function_.region_write(one->access.region, one->access.offset,
                                   std::span(one->data).first(one->access.count));
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
}  // namespace iaa::device::vfio_user
