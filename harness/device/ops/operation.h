// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>

#include "device/descriptor.h"
#include "device/dma_memory.h"

namespace iaa::device {

/// What a device generation can do, as its capability registers say.
struct Capabilities {
    std::uint32_t version = 0x100;          ///< VERSION register
    bool header_generation = false;         ///< IAACAP bit 8
    std::uint64_t max_transfer_size = 1ULL << 21;  ///< bytes, of the WQ that took the descriptor
};

/// How a descriptor ended.
struct Outcome {
    CompletionRecord record{};
    std::string rule;  ///< which rule a rejected descriptor broke; empty where none
};

/// Carries out one descriptor against guest memory, and returns the record that is to be written to
/// its completion address. Reads and writes guest memory, but never the completion record and no
/// interrupt: those are the engine's. Reentrant.
[[nodiscard]] Outcome execute(const Descriptor& descriptor, DmaMemory& memory,
                              const Capabilities& capabilities);

}  // namespace iaa::device
