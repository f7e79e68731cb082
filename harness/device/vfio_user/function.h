// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "device/dma_memory.h"

namespace iaa::device {

/// A region of the function: a BAR or config space, by its vfio index.
struct RegionInfo {
    std::uint64_t size = 0;  ///< bytes; 0 where the function has no such region
    bool readable = false;
    bool writable = false;
};

/// What a transport gives the function that it serves. All calls are safe from any thread, but for
/// pump_until(), which is for the thread that the transport calls the function on.
class Host {
  public:
    virtual ~Host() = default;

    /// Guest memory, as the client maps and unmaps it.
    virtual DmaMemory& memory() = 0;

    /// Signals MSI-X vector `vector`; dropped where the guest has not attached one.
    /// Pending, and signalled when unmasked, where the client has masked it
    /// (VFIO_IRQ_SET_ACTION_MASK).
    virtual void trigger_msix(std::uint32_t vector) = 0;

    /// Waits until done() is true, for a function that must see its own threads come to rest while
    /// they may be in the middle of a DMA access that the transport has to answer. New requests of
    /// the client are kept back, in order, until it returns. done() is looked at again at least
    /// every millisecond, and at once after wake(). Where the client goes away meanwhile, or the
    /// transport is stopped, DMA accesses fail at once and the wait goes on. False where limit
    /// passed first.
    [[nodiscard]] virtual bool pump_until(const std::function<bool()>& done,
                                          std::chrono::milliseconds limit) = 0;

    /// Makes a pump_until() that is under way look at done() now.
    virtual void wake() = 0;

    /// Sends the client away, for a reason that is logged: DMA accesses by messages fail from here
    /// on. detach() follows once the call that is under way has returned.
    virtual void disconnect(std::string_view why) = 0;

  protected:
    Host() = default;
    Host(const Host&) = default;
    Host& operator=(const Host&) = default;
    Host(Host&&) = default;
    Host& operator=(Host&&) = default;
};

/// A PCI function behind the transport. The transport has checked that a region access lies inside
/// the region and is allowed; all calls come from one thread.
class Function {
  public:
    virtual ~Function() = default;

    [[nodiscard]] virtual RegionInfo region_info(std::uint32_t index) const = 0;
    [[nodiscard]] virtual std::uint32_t msix_vectors() const = 0;

    virtual void region_read(std::uint32_t index, std::uint64_t offset,
                             std::span<std::byte> out) = 0;
    virtual void region_write(std::uint32_t index, std::uint64_t offset,
                              std::span<const std::byte> in) = 0;

    /// A client has attached; host stays valid until detach() returns.
    virtual void attach(Host& host) = 0;

    /// DEVICE_RESET: on return nothing that was in flight touches guest memory any more.
    virtual void reset() = 0;

    /// The client has gone. On return the function no longer uses the host. Device state is kept.
    virtual void detach() = 0;

  protected:
    Function() = default;
    Function(const Function&) = default;
    Function& operator=(const Function&) = default;
    Function(Function&&) = default;
    Function& operator=(Function&&) = default;
};

}  // namespace iaa::device
