// SPDX-License-Identifier: GPL-2.0
#include "device/model/tables.h"

#include <algorithm>
#include <bit>

namespace iaa::device {
namespace {

constexpr std::uint32_t kOpConfigFirstWord = 8;
constexpr std::uint32_t kStateWord = 6;
constexpr std::uint64_t kGroupFlagsMask = 0x7 | 0x7 << 3 | 1U << 7 | 0xff << 8 | 0xff << 20;

std::uint32_t reserved_rdbufs(std::uint64_t flags) {
    return static_cast<std::uint32_t>(flags >> 8 & 0xff);
}
std::uint32_t allowed_rdbufs(std::uint64_t flags) {
    return static_cast<std::uint32_t>(flags >> 20 & 0xff);
}

std::uint64_t low_bits(std::uint32_t count) {
    return count >= 64 ? ~0ULL : (1ULL << count) - 1;
}

}  // namespace

Tables::Tables(const Profile& profile, Log& log)
    : profile_(profile),
      log_(log),
      wqs_(profile.wqs, default_wq()),
      groups_(profile.groups),
      permissions_(profile.vectors()) {}

Tables::WqConfig Tables::default_wq() const {
    WqConfig config{};
    const std::array<std::uint64_t, 4> ops = profile_.op_cap();
    for (std::uint32_t i = 0; i < 8; ++i) {
        config.at(kOpConfigFirstWord + i) =
            static_cast<std::uint32_t>(ops.at(i / 2) >> (i % 2 * 32));
    }
    return config;
}

std::uint32_t Tables::wq_word(std::uint32_t wq, std::uint32_t index) const {
    return word(wq, index);
}

void Tables::write_wq_word(std::uint32_t wq, std::uint32_t index, std::uint32_t value,
                           bool device_enabled, bool wq_enabled) {
    // Of each word, the bits that software may set at all. Modes and features that this device
    // lacks can be asked for all the same: ENABLE_WQ is what refuses them.
    static constexpr std::array<std::uint32_t, kOpConfigFirstWord> kWritable{
        0xffff, 0xffff, 0x3fffffff, 0x1ff, 0, 0, 0, 0};
    std::uint32_t& current = wqs_.at(wq).at(index);
    if (index == kStateWord) {
        return;  // occupancy and state: read only, and written back by drivers that read them
    }
    const std::uint32_t writable =
        index < kOpConfigFirstWord
            ? kWritable.at(index)
            : static_cast<std::uint32_t>(profile_.op_cap().at((index - kOpConfigFirstWord) / 2) >>
                                         (index % 2 * 32));
    if ((value & ~writable) != 0) {
        log_.rule("wqcfg-reserved", "WQCFG {} word {}: reserved bits {:#x} set; they stay 0", wq,
                  index, value & ~writable);
    }
    const std::uint32_t next = value & writable;
    if (next == current) {
        return;
    }
    if (index == 0 && device_enabled) {
        log_.rule("wqcfg-locked", "WQCFG {}: the size is fixed while the device is enabled", wq);
        return;
    }
    if (wq_enabled) {
        log_.rule("wqcfg-locked", "WQCFG {} word {}: read only while the WQ is enabled", wq, index);
        return;
    }
    current = next;
}

void Tables::describe_wq(std::uint32_t wq, Capabilities& capabilities) const {
    capabilities.max_transfer_size =
        std::min(capabilities.max_transfer_size, std::uint64_t{1} << (word(wq, 3) & 0x1f));
    capabilities.block_on_fault = (word(wq, 2) >> 1 & 1) != 0;
    capabilities.pasid_enabled = wq_pasid_enabled(wq);
    capabilities.privileged = (word(wq, 2) >> 29 & 1) != 0;
    for (std::uint32_t i = 0; i < capabilities.opcodes.size(); ++i) {
        capabilities.opcodes.at(i) &= word(wq, kOpConfigFirstWord + 2 * i) |
                                      std::uint64_t{word(wq, kOpConfigFirstWord + 2 * i + 1)} << 32;
    }
}

std::uint64_t Tables::group_mask(std::uint32_t qword) const {
    switch (qword) {
        case 0:
            return low_bits(profile_.wqs);
        case 4:
            return low_bits(profile_.engines);
        case 5:
            return kGroupFlagsMask;
        default:
            return 0;
    }
}

std::uint32_t Tables::group_word(std::uint32_t group, std::uint32_t index) const {
    return static_cast<std::uint32_t>(groups_.at(group).at(index / 2) >> (index % 2 * 32));
}

void Tables::write_group_word(std::uint32_t group, std::uint32_t index, std::uint32_t value,
                              bool device_enabled) {
    const unsigned shift = index % 2 * 32;
    const auto writable = static_cast<std::uint32_t>(group_mask(index / 2) >> shift);
    if ((value & ~writable) != 0) {
        log_.rule("grpcfg-reserved", "GRPCFG {} word {}: bits {:#x} name nothing here; they stay 0",
                  group, index, value & ~writable);
    }
    if ((value & writable) == group_word(group, index)) {
        return;
    }
    if (device_enabled) {
        log_.rule("grpcfg-locked", "GRPCFG {} word {}: read only while the device is enabled",
                  group, index);
        return;
    }
    std::uint64_t& current = groups_.at(group).at(index / 2);
    current = (current & ~(0xffffffffULL << shift)) | std::uint64_t{value & writable} << shift;
}

std::optional<std::uint32_t> Tables::group_of_wq(std::uint32_t wq) const {
    for (std::uint32_t group = 0; group < profile_.groups; ++group) {
        if ((group_wqs(group) >> wq & 1) != 0) {
            return group;
        }
    }
    return std::nullopt;
}

std::optional<std::uint32_t> Tables::group_of_engine(std::uint32_t engine) const {
    for (std::uint32_t group = 0; group < profile_.groups; ++group) {
        if ((group_engines(group) >> engine & 1) != 0) {
            return group;
        }
    }
    return std::nullopt;
}

void Tables::write_permission(std::uint32_t vector, std::uint32_t value) {
    if ((value & ~reg::kPermMask) != 0) {
        log_.rule("msixperm-reserved", "MSIXPERM {}: reserved bits {:#x} set; they stay 0", vector,
                  value & ~reg::kPermMask);
    }
    permissions_.at(vector) = value & reg::kPermMask;
}

reg::CommandError Tables::check_device() const {
    using enum reg::CommandError;
    std::uint64_t sizes = 0;
    for (std::uint32_t wq = 0; wq < profile_.wqs; ++wq) {
        sizes += wq_size(wq);
    }
    if (sizes > profile_.total_wq_size) {
        log_.rule("wq-size-sum", "the WQs' sizes add up to {}: at most {} entries are there", sizes,
                  profile_.total_wq_size);
        return kWqSizeSum;
    }
    std::uint64_t wqs_seen = 0;
    std::uint64_t engines_seen = 0;
    std::uint32_t reserved = 0;
    for (std::uint32_t group = 0; group < profile_.groups; ++group) {
        const std::uint64_t wqs = group_wqs(group);
        const std::uint64_t engines = group_engines(group);
        if ((wqs == 0) != (engines == 0)) {
            log_.rule("group-incomplete",
                      "group {} has WQs {:#x} and engines {:#x}: give it both or none", group, wqs,
                      engines);
            return kGroupIncomplete;
        }
        if ((wqs & wqs_seen) != 0) {
            log_.rule("group-wq", "WQs {:#x} of group {} are in another group too", wqs & wqs_seen,
                      group);
            return kGroupWq;
        }
        if ((engines & engines_seen) != 0) {
            log_.rule("group-engine", "engines {:#x} of group {} are in another group too",
                      engines & engines_seen, group);
            return kGroupEngine;
        }
        wqs_seen |= wqs;
        engines_seen |= engines;
        reserved += reserved_rdbufs(groups_.at(group)[5]);
    }
    if (reserved > Profile::kReadBuffers) {
        log_.rule("group-read-buffers", "{} read buffers are reserved: {} are there", reserved,
                  Profile::kReadBuffers);
        return kGroupReadBuffers;
    }
    for (std::uint32_t group = 0; group < profile_.groups; ++group) {
        const auto engines = static_cast<std::uint32_t>(std::popcount(group_engines(group)));
        const std::uint64_t flags = groups_.at(group)[5];
        const std::uint32_t most = reserved_rdbufs(flags) + Profile::kReadBuffers - reserved;
        const std::uint32_t allowed = allowed_rdbufs(flags);
        if (engines != 0 &&
            (allowed < engines * Profile::kReadBuffersPerEngine || allowed > most)) {
            log_.rule("group-read-buffers", "group {} may use {} read buffers: {} to {} are right",
                      group, allowed, engines * Profile::kReadBuffersPerEngine, most);
            return kGroupReadBuffers;
        }
    }
    return kSuccess;
}

reg::CommandError Tables::check_wq(std::uint32_t wq) const {
    using enum reg::CommandError;
    const auto refuse = [&](reg::CommandError error, const char* why) {
        log_.rule("wq-config", "WQ {} cannot be enabled: {}", wq, why);
        return error;
    };
    const std::uint32_t mode = word(wq, 2);
    if (wq_size(wq) == 0) {
        return refuse(kWqSize, "its size is 0");
    }
    if (wq_priority(wq) == 0) {
        return refuse(kWqPriority, "its priority is 0");
    }
    if (!wq_dedicated(wq)) {
        return refuse(kWqMode, "shared mode is not there (WQCAP)");
    }
    if ((mode >> 1 & 1) != 0 && !profile_.block_on_fault) {
        return refuse(kWqBlockOnFault, "block on fault is not there (GENCAP)");
    }
    if (wq_pasid_enabled(wq)) {
        return refuse(kWqPasid, "PASID is not there (no PASID capability)");
    }
    if ((word(wq, 3) >> 5 & 0xf) != 0) {
        return refuse(kWqMaxBatch, "its batch size is not 0");
    }
    if ((word(wq, 3) & 0x1f) > profile_.max_transfer_shift) {
        return refuse(kWqMaxTransfer, "its transfer size is above GENCAP's");
    }
    return kSuccess;
}

void Tables::reset_wq(std::uint32_t wq) {
    const std::uint32_t size = word(wq, 0);
    wqs_.at(wq) = default_wq();
    wqs_.at(wq)[0] = size;
}

void Tables::reset() {
    wqs_.assign(profile_.wqs, default_wq());
    groups_.assign(profile_.groups, GroupConfig{});
    permissions_.assign(profile_.vectors(), 0);
}

}  // namespace iaa::device
