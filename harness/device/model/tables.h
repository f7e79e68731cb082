// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/model/log.h"
#include "device/model/profile.h"
#include "device/model/registers.h"

namespace iaa::device {

/// The configuration tables in BAR0: WQCFG, GRPCFG and MSIXPERM, with what may be written to them
/// when. The device guards it with its lock.
class Tables {
  public:
    Tables(const Profile& profile, Log& log);

    // WQCFG. `word` counts 32-bit words in the WQ's entry, 0 to 15. The state and occupancy in word
    // 6 are the device's to fill in.
    [[nodiscard]] std::uint32_t wq_word(std::uint32_t wq, std::uint32_t word) const;
    void write_wq_word(std::uint32_t wq, std::uint32_t word, std::uint32_t value,
                       bool device_enabled, bool wq_enabled);

    [[nodiscard]] std::uint32_t wq_size(std::uint32_t wq) const { return word(wq, 0) & 0xffff; }
    [[nodiscard]] bool wq_dedicated(std::uint32_t wq) const { return (word(wq, 2) & 1) != 0; }
    [[nodiscard]] std::uint32_t wq_priority(std::uint32_t wq) const {
        return word(wq, 2) >> 4 & 0xf;
    }
    [[nodiscard]] bool wq_pasid_enabled(std::uint32_t wq) const {
        return (word(wq, 2) >> 28 & 1) != 0;
    }
    /// Narrows what the generation can do to what this WQ is set to.
    void describe_wq(std::uint32_t wq, Capabilities& capabilities) const;

    // GRPCFG, by 32-bit words 0 to 15 of a group's entry.
    [[nodiscard]] std::uint32_t group_word(std::uint32_t group, std::uint32_t word) const;
    void write_group_word(std::uint32_t group, std::uint32_t word, std::uint32_t value,
                          bool device_enabled);
    [[nodiscard]] std::uint64_t group_wqs(std::uint32_t group) const {
        return groups_.at(group)[0];
    }
    [[nodiscard]] std::uint64_t group_engines(std::uint32_t group) const {
        return groups_.at(group)[4];
    }
    /// The group that a WQ or an engine is in; nothing where it is in none.
    [[nodiscard]] std::optional<std::uint32_t> group_of_wq(std::uint32_t wq) const;
    [[nodiscard]] std::optional<std::uint32_t> group_of_engine(std::uint32_t engine) const;

    // MSIXPERM.
    [[nodiscard]] std::uint32_t permission(std::uint32_t vector) const {
        return permissions_.at(vector);
    }
    void write_permission(std::uint32_t vector, std::uint32_t value);

    /// The checks in front of ENABLE_DEVICE that look at the tables, and of ENABLE_WQ.
    [[nodiscard]] reg::CommandError check_device() const;
    [[nodiscard]] reg::CommandError check_wq(std::uint32_t wq) const;

    /// RESET_WQ: all but the WQ's size, which belongs to the device's configuration.
    void reset_wq(std::uint32_t wq);
    void reset();

  private:
    using WqConfig = std::array<std::uint32_t, 16>;
    using GroupConfig = std::array<std::uint64_t, 8>;

    [[nodiscard]] std::uint32_t word(std::uint32_t wq, std::uint32_t index) const {
        return wqs_.at(wq).at(index);
    }
    [[nodiscard]] WqConfig default_wq() const;
    [[nodiscard]] std::uint64_t group_mask(std::uint32_t qword) const;

    const Profile& profile_;
    Log& log_;
    std::vector<WqConfig> wqs_;
    std::vector<GroupConfig> groups_;
    std::vector<std::uint32_t> permissions_;
};

}  // namespace iaa::device
