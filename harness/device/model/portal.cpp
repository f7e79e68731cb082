// SPDX-License-Identifier: GPL-2.0
#include "device/model/portal.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace iaa::device {
namespace {

constexpr std::uint64_t kWqStride = reg::kPortalPages * reg::kPageSize;

std::uint64_t byte_mask(std::size_t first, std::size_t count) {
    const std::uint64_t low = count == 64 ? ~0ULL : (1ULL << count) - 1;
    return low << first;
}

}  // namespace

PortalAddress PortalAddress::of(std::uint64_t bar_offset) {
    const std::uint64_t page = bar_offset / reg::kPageSize % reg::kPortalPages;
    const std::uint64_t in_page = bar_offset % reg::kPageSize;
    return {.wq = static_cast<std::uint32_t>(bar_offset / kWqStride),
            .limited = (page & 1) != 0,
            .ims = (page & 2) != 0,
            .slot = static_cast<std::uint32_t>(in_page - in_page % reg::kSlotSize)};
}

void PortalAssembler::store(std::uint64_t bar_offset, std::span<const std::byte> in,
                            const Sink& sink) {
    while (!in.empty()) {
        const std::size_t first = bar_offset % reg::kSlotSize;
        const std::size_t count = std::min<std::size_t>(in.size(), reg::kSlotSize - first);
        store_in_slot(bar_offset - first, first, in.first(count), sink);
        bar_offset += count;
        in = in.subspan(count);
    }
}

void PortalAssembler::store_in_slot(std::uint64_t slot_offset, std::size_t first,
                                    std::span<const std::byte> in, const Sink& sink) {
    Slot& slot = slots_[slot_offset];
    const std::uint64_t stored = byte_mask(first, in.size());
    if (slot.most == 1 && (slot.mask & stored) != 0) {
        for (std::size_t i = 0; i < reg::kSlotSize; ++i) {
            slot.times.at(i) = static_cast<std::uint32_t>(slot.mask >> i & 1);
        }
    }
    if (slot.most > 1 || (slot.mask & stored) != 0) {
        mix(slot_offset, slot, first, in.size(), sink);
        return;
    }
    std::ranges::copy(in, slot.bytes.begin() + static_cast<std::ptrdiff_t>(first));
    slot.mask |= stored;
    if (slot.mask != ~0ULL) {
        return;
    }
    Descriptor descriptor{};
    std::memcpy(&descriptor, slot.bytes.data(), sizeof(descriptor));
    slots_.erase(slot_offset);
    sink.complete(PortalAddress::of(slot_offset), descriptor);
}

void PortalAssembler::mix(std::uint64_t slot_offset, Slot& slot, std::size_t first,
                          std::size_t count, const Sink& sink) {
    const PortalAddress address = PortalAddress::of(slot_offset);
    for (std::size_t i = first; i < first + count; ++i) {
        if (++slot.times.at(i) > slot.most) {
            slot.most = slot.times.at(i);
            sink.overwritten(address, i);
        }
    }
    // Every descriptor stores each byte once, so the mix is over when all bytes are even.
    const bool even = std::ranges::all_of(
        slot.times, [&slot](std::uint32_t times) { return times == slot.most; });
    if (even) {
        const std::size_t lost = slot.most;
        slots_.erase(slot_offset);
        sink.lost(address, lost);
    }
}

std::size_t PortalAssembler::forget(std::uint32_t wq) {
    return std::erase_if(slots_, [wq](const auto& entry) { return entry.first / kWqStride == wq; });
}

std::size_t PortalAssembler::forget_all() {
    const std::size_t count = slots_.size();
    slots_.clear();
    return count;
}

}  // namespace iaa::device
