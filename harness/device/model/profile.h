// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/ops/operation.h"

namespace iaa::device {

/// What one device is: its generation and its sizes, as the capability registers show them.
struct Profile {
    std::string name = "spr";
    std::uint32_t version = 0x100;  ///< VERSION
    std::uint64_t iaa_cap = 0;      ///< IAACAP; read by drivers where version is 0x200 or more
    std::uint32_t wqs = 8;
    std::uint32_t engines = 8;
    std::uint32_t groups = 4;
    std::uint32_t total_wq_size = 128;  ///< entries, shared out by WQCFG
    std::uint32_t max_transfer_shift =
        kMaxTransferShift;          ///< GENCAP: log2 of the largest transfer, bytes
    bool block_on_fault = true;     ///< GENCAP: WQs may be set to it
    bool interrupt_handles = true;  ///< CMDCAP has REQUEST_INT_HANDLE and RELEASE_INT_HANDLE

    static constexpr std::uint32_t kMaxWqs = 64;
    static constexpr std::uint32_t kMaxEngines = 16;
    static constexpr std::uint32_t kMaxGroups = 16;
    static constexpr std::uint32_t kMaxTotalWqSize = 0xffff;
    /// 2 MB, as drivers set their WQs to. An engine holds a descriptor's buffers whole, and a trace
    /// keeps them.
    static constexpr std::uint32_t kMaxTransferShift = 21;
    static constexpr std::uint32_t kReadBuffers = 96;
    static constexpr std::uint32_t kReadBuffersPerEngine = 4;
    static constexpr std::uint32_t kEvlEntrySize = 128;

    /// The named generation: "spr" (version 1) or "gnr" (version 2, header generation). Throws
    /// std::invalid_argument where the name is another.
    static Profile named(const std::string& name);

    /// Throws std::invalid_argument with the offending value where a size is out of range.
    void check() const;

    [[nodiscard]] std::uint32_t vectors() const { return wqs + 1; }
    [[nodiscard]] std::uint64_t gen_cap() const;
    [[nodiscard]] std::uint64_t wq_cap() const;
    [[nodiscard]] std::uint64_t grp_cap() const;
    [[nodiscard]] std::uint64_t eng_cap() const { return engines; }
    [[nodiscard]] std::array<std::uint64_t, 4> op_cap() const;
    [[nodiscard]] std::uint32_t cmd_cap() const;
    [[nodiscard]] std::array<std::uint64_t, 2> offsets() const;

    // Tables in BAR0, and the portals' BAR.
    [[nodiscard]] std::uint64_t msix_perm_offset() const;
    [[nodiscard]] std::uint64_t wqcfg_offset() const;
    [[nodiscard]] std::uint64_t bar2_size() const;

    /// What descriptors may ask for, as far as the generation decides it.
    [[nodiscard]] Capabilities capabilities() const;
};

}  // namespace iaa::device
