// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "device/ops/buffers.h"
#include "device/ops/operation.h"

/// What a descriptor must keep to before anything is done for it. Everything here is decided from
/// the descriptor and the capabilities alone; memory and AECS contents come later.
namespace iaa::device {

/// Where one-pass header generation ends: the engine holds this much input, in bytes.
inline constexpr std::uint32_t kOnePassLimit = 4096;

/// Bytes that statistics mode writes: 286 counts, 2 reserved, 30 counts, 2 reserved, 4 bytes each.
inline constexpr std::uint32_t kHistogramSize = 1280;

/// A descriptor with its fields taken apart.
class Request {
  public:
    Request(const Descriptor& descriptor, const Capabilities& capabilities)
        : descriptor_(descriptor), capabilities_(capabilities) {}

    [[nodiscard]] const Descriptor& descriptor() const { return descriptor_; }
    [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
    [[nodiscard]] Opcode opcode() const { return static_cast<Opcode>(descriptor_.opcode()); }

    /// Bits that are set: of the operation's flags, and of its compress, decompress or CRC64 flags.
    [[nodiscard]] std::uint32_t flag(std::uint32_t mask) const {
        return descriptor_.flags() & mask;
    }
    [[nodiscard]] unsigned codec_flag(unsigned mask) const { return descriptor_.op_flags & mask; }

    [[nodiscard]] bool reads_aecs() const {
        return flag(op_flag::kReadSource2) == op_flag::kReadAecs;
    }
    /// Whether the AECS may be written: always on completion, or only on output overflow.
    [[nodiscard]] bool writes_aecs() const { return flag(op_flag::kWriteSource2) != 0; }

    /// The two adjacent areas: one is read, the other one written.
    [[nodiscard]] Range aecs_read() const { return area(flag(op_flag::kAecsToggle) != 0); }
    [[nodiscard]] Range aecs_write() const { return area(flag(op_flag::kAecsToggle) == 0); }

    [[nodiscard]] Range source() const { return {descriptor_.src1_addr, descriptor_.src1_size}; }

    // COMPRESS.
    [[nodiscard]] unsigned header_generation() const {
        return codec_flag(compress_flag::kHeaderGeneration) >>
               compress_flag::kHeaderGenerationShift;
    }
    [[nodiscard]] bool statistics() const { return codec_flag(compress_flag::kStatistics) != 0; }
    [[nodiscard]] bool one_pass() const { return (header_generation() & 6U) == 2; }
    [[nodiscard]] bool two_pass() const { return (header_generation() & 6U) == 6; }

    // DECOMPRESS.
    [[nodiscard]] bool suppressed() const {
        return codec_flag(decompress_flag::kSuppressOutput) != 0;
    }
    /// What the field says.
    [[nodiscard]] unsigned end_bits() const {
        const unsigned low =
            codec_flag(decompress_flag::kIgnoreEndBits) >> decompress_flag::kIgnoreEndBitsShift;
        return low | (codec_flag(decompress_flag::kIgnoreEndBitsHigh) != 0 ? 8U : 0U);
    }
    /// Bits of source 1 that are not looked at: no more than it has.
    [[nodiscard]] unsigned ignored_end_bits() const {
        return static_cast<unsigned>(
            std::min<std::uint64_t>(end_bits(), std::uint64_t{descriptor_.src1_size} * 8));
    }

  private:
    [[nodiscard]] Range area(bool second) const {
        return {descriptor_.src2_addr + (second ? descriptor_.src2_size : 0),
                descriptor_.src2_size};
    }

    const Descriptor& descriptor_;
    const Capabilities& capabilities_;
};

/// How a rule was broken.
struct Breach {
    explicit Breach(std::string values, std::uint32_t invalid_flags = 0)
        : text(std::move(values)), flags(invalid_flags) {}

    std::string text;         ///< the values, for the log line
    std::uint32_t flags = 0;  ///< for the record's invalid_flags
};

/// One rule.
struct Rule {
    constexpr Rule(std::string_view rule, Status broken, bool (*operations)(Opcode),
                   std::optional<Breach> (*breach)(const Request&))
        : name(rule), status(broken), applies(operations), check(breach) {}

    std::string_view name;
    Status status;
    bool (*applies)(Opcode);
    std::optional<Breach> (*check)(const Request&);
};

/// All rules, in the order in which they are checked: the first one broken is reported.
[[nodiscard]] std::span<const Rule> rules();

/// The outcome of the first rule that the descriptor breaks; none where it keeps to all.
[[nodiscard]] std::optional<Outcome> check_rules(const Request& request);

}  // namespace iaa::device
