// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

namespace iaa::device::vfio_user {

struct ServerOptions {
    std::uint64_t max_transfer = 1U << 20;  ///< bytes of data in one message
    /// Each takes one of the process's mappings, of which the kernel allows 65530 by default
    /// (vm.max_map_count); threads and large buffers need some as well.
    std::uint64_t max_dma_maps = 60000;
    /// A client that has not begun with VERSION by then is sent away.
    std::chrono::milliseconds handshake_timeout{10'000};
    /// A message must be complete this long after its beginning.
    std::chrono::milliseconds message_timeout{30'000};
    /// A client that takes no data for this long is sent away.
    std::chrono::milliseconds send_timeout{5'000};
    /// Of the reply to a DMA message. Below QEMU's own limit of 5 s: QEMU answers no DMA while it
    /// waits for us.
    std::chrono::milliseconds dma_timeout{2'000};
    /// One line, without a newline; from any thread, one at a time. Standard error where empty.
    std::function<void(std::string_view)> log = nullptr;
};

}  // namespace iaa::device::vfio_user
