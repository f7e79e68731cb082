// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

#include "device/descriptor.h"
#include "device/model/registers.h"

namespace iaa::device {

/// Which portal of a WQ a store went to, from its page in BAR2.
struct PortalAddress {
    std::uint32_t wq = 0;
    bool limited = false;
    bool ims = false;        ///< interrupt handles name interrupt message storage, not MSI-X
    std::uint32_t slot = 0;  ///< offset of the 64-byte slot in the page

    static PortalAddress of(std::uint64_t bar_offset);
};

/// Puts descriptors together from stores to the portals. The device sees MOVDIR64B as one store of
/// 64 bytes; through an emulated instruction it arrives as several smaller ones, of any size and in
/// any order, and those of two descriptors may even mix in one slot. A byte that comes a second
/// time before its descriptor is whole is such a mix: none of the descriptors in it can be told
/// apart from the others, so all of them are given up and reported.
class PortalAssembler {
  public:
    struct Sink {
        std::function<void(const PortalAddress&, const Descriptor&)> complete;
        /// This byte of the slot came once more than any byte of it should have: a mix began, or
        /// one more descriptor joined it.
        std::function<void(const PortalAddress&, std::size_t byte)> overwritten;
        /// The mix in the slot is over; so many descriptors were lost in it.
        std::function<void(const PortalAddress&, std::size_t lost)> lost;
    };

    /// A store to BAR2; may cross slots.
    void store(std::uint64_t bar_offset, std::span<const std::byte> in, const Sink& sink);

    /// Forgets what is half stored to the portals of one WQ, or to all; returns how many slots that
    /// were.
    std::size_t forget(std::uint32_t wq);
    std::size_t forget_all();

    /// Slots that hold a part of a descriptor.
    [[nodiscard]] std::size_t partial() const { return slots_.size(); }

  private:
    struct Slot {
        std::array<std::byte, reg::kSlotSize> bytes{};
        std::uint64_t mask = 0;
        std::uint32_t most = 1;  ///< how often a byte was stored; above 1 the slot is a mix
        std::array<std::uint32_t, reg::kSlotSize> times{};  ///< that each byte was stored, in a mix
    };

    void store_in_slot(std::uint64_t slot_offset, std::size_t first, std::span<const std::byte> in,
                       const Sink& sink);
    void mix(std::uint64_t slot_offset, Slot& slot, std::size_t first, std::size_t count,
             const Sink& sink);

    std::unordered_map<std::uint64_t, Slot> slots_;  ///< by offset in BAR2; only those in progress
};

}  // namespace iaa::device
