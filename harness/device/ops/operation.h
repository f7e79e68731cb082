// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/descriptor.h"
#include "device/dma_memory.h"
#include "device/ops/codes.h"

namespace iaa::device {

/// What a device generation can do, as its capability registers say, and what the work queue that
/// took the descriptor is set to.
struct Capabilities {
    std::uint32_t version = 0x100;         ///< VERSION register
    bool header_generation = false;        ///< IAACAP bit 8
    bool decompress_aecs_format2 = false;  ///< IAACAP bit 0
    /// Bytes; the smaller one of WQCFG's and GENCAP's. No more than deflate::kMaxInput counts.
    std::uint64_t max_transfer_size = 1ULL << 21;
    bool block_on_fault = false;  ///< WQCFG: BOF enabled
    bool pasid_enabled = false;   ///< WQCFG: PASID enabled
    bool privileged = false;      ///< WQCFG: privileged, where PASID is enabled
    /// Opcodes that the work queue takes: OPCAP, less what its OPCFG leaves out. Bit n of word
    /// n / 64. An opcode that execute() does not know is refused whatever stands here.
    std::array<std::uint64_t, 4> opcodes{0x5, 0x1c, 0, 0};

    bool operator==(const Capabilities&) const = default;
};

/// How a descriptor ended.
struct Outcome {
    CompletionRecord record{};
    /// Which rule a rejected descriptor broke, in one line: the rule's name, a colon and the
    /// values. Empty where none.
    std::string rule;

    [[nodiscard]] Status status() const { return static_cast<Status>(record.status); }
};

/// Carries out one descriptor against guest memory, and returns the record that is to be written to
/// its completion address. Reads and writes guest memory, but never the completion record and no
/// interrupt: those are the engine's, as are the wait of a DRAIN and the check of the interrupt
/// handle (status 0x19). With kCompletionAlignment there is no place for a record: the engine
/// reports it elsewhere (SWERR). Reentrant; never throws but std::bad_alloc.
[[nodiscard]] Outcome execute(const Descriptor& descriptor, DmaMemory& memory,
                              const Capabilities& capabilities);

}  // namespace iaa::device
