// SPDX-License-Identifier: GPL-2.0
#include "device/ops/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace iaa::device {
namespace {

constexpr std::uint64_t kPageSize = 4096;

}  // namespace

std::optional<Outcome> Buffers::check(const Range& range, bool write, std::string_view what) {
    if (range.size == 0) {
        return std::nullopt;
    }
    // A range that wraps is never mapped, and no DmaMemory is asked about one.
    if (range.address + (range.size - 1) >= range.address &&
        memory_.mapped(range.address, range.size, write)) {
        return std::nullopt;
    }
    return fault(range, write, what);
}

std::optional<Outcome> Buffers::read(std::uint64_t address, std::span<std::uint8_t> out,
                                     std::string_view what) {
    if (out.empty()) {
        return std::nullopt;
    }
    if (memory_.read(address, std::as_writable_bytes(out))) {
        return std::nullopt;
    }
    return fault({address, out.size()}, false, what);
}

std::optional<Outcome> Buffers::write(std::uint64_t address, std::span<const std::uint8_t> in,
                                      std::string_view what) {
    if (in.empty()) {
        return std::nullopt;
    }
    if (memory_.write(address, std::as_bytes(in))) {
        return std::nullopt;
    }
    return fault({address, in.size()}, true, what);
}

Outcome Buffers::fault(const Range& range, bool write, std::string_view what) {
    // The first page that is not there. Where all are by now (the guest mapped it meanwhile), the
    // first one is named.
    std::uint64_t faulted = range.address;
    std::uint64_t at = range.address;
    std::uint64_t left = range.size;
    while (left != 0) {
        const std::uint64_t part = std::min(left, kPageSize - at % kPageSize);
        if (!memory_.mapped(at, part, write)) {
            faulted = at;
            break;
        }
        at += part;
        left -= part;
    }
    faulted &= ~(kPageSize - 1);

    Outcome outcome;
    outcome.record.status =
        static_cast<std::uint8_t>(write ? Status::kPageFaultWrite : Status::kPageFault);
    outcome.record.fault_addr = faulted;
    outcome.record.fault_info = capabilities_.version >= 0x200 ? 1 : 0;
    outcome.rule =
        fmt::format("{}-mapped: {} bytes at {:#x} are not mapped for {} from {:#x} on", what,
                    range.size, range.address, write ? "writing" : "reading", faulted);
    return outcome;
}

}  // namespace iaa::device
