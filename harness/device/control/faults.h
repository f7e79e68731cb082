// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "device/descriptor.h"
#include "device/dma_memory.h"

namespace iaa::device::control {

/// Which descriptors a rule is about. Every condition that is set must hold.
struct FaultMatch {
    std::optional<std::uint8_t> opcode = std::nullopt;
    std::optional<std::uint32_t> wq = std::nullopt;
    /// Decompression that suppresses its output (decompress flag bit 9).
    std::optional<bool> verify = std::nullopt;
    std::uint32_t min_size = 0;  ///< of source 1, bytes
    std::uint32_t max_size = std::numeric_limits<std::uint32_t>::max();

    [[nodiscard]] bool matches(const Descriptor& descriptor, std::uint32_t on_wq) const;
};

/// When a rule fires, counted over the descriptors that match it. The parts combine: the rule skips
/// `after` matches, then looks at every `every`-th, fires with `probability`, and ends after
/// `count`.
struct FaultTrigger {
    std::uint64_t after = 0;
    std::uint64_t every = 1;   ///< 0 is the same as 1
    double probability = 1.0;  ///< 0 to 1
    std::uint64_t seed = 1;    ///< of the rule's own generator, so that a run can be repeated
    std::uint64_t count = 0;   ///< firings until the rule is spent; 0: until cleared
};

enum class InterruptFault : std::uint8_t { kNone, kLost, kDoubled };

enum class CrcFault : std::uint8_t {
    kStale,    ///< the record keeps the CRC of the right output: a reader that checks sees it
    kMatching  ///< CRC and XOR checksum are those of the corrupted output
};

struct Corruption {
    std::optional<std::uint32_t> offset =
        std::nullopt;          ///< of the byte in the output; a random one where unset
    std::uint8_t flip = 0xff;  ///< XORed into the byte; never 0
    CrcFault crc = CrcFault::kStale;
};

struct StatusFault {
    std::uint8_t status = 0;
    std::uint8_t error_code = 0;
    bool execute = false;  ///< do the work first, and only report this status
};

/// What a DRAIN or DISABLE command does about a descriptor that never completes.
enum class DrainFault : std::uint8_t {
    kForgets,    ///< counts it as ended, without a completion
    kCompletes,  ///< has it carried out and completed
    kWaits       ///< waits for it as hardware would, until a reset takes it away
};

/// What happens to one descriptor. Independent parts, so that one rule may ask for several.
struct FaultActions {
    /// Not taken at the portal: neither queued nor completed, as if it had never been written.
    bool drop = false;
    /// Taken, and not completed, ever. Its WQ entry stays in use until the WQ is reset.
    bool never_complete = false;
    DrainFault on_drain = DrainFault::kForgets;  ///< where never_complete is set
    /// The device goes into HALT when an engine takes the descriptor, which stays uncompleted.
    bool halt = false;
    std::optional<StatusFault> status = std::nullopt;
    std::optional<Corruption> corrupt = std::nullopt;
    std::optional<std::uint32_t> output_size = std::nullopt;  ///< reported in place of the true one
    InterruptFault interrupt = InterruptFault::kNone;
    bool complete_twice = false;  ///< the record is written, and written again after `twice_gap`
    std::chrono::milliseconds twice_gap{1};
    /// An engine holds the descriptor for this long before it starts.
    std::chrono::milliseconds delay{0};
    /// Hostile: the completion record is written this long after the work ended, from outside the
    /// engine and whatever the guest did meanwhile, a reset or a disable included. Real hardware
    /// does not do this; it is for tests of what a driver's memory is still open to.
    std::optional<std::chrono::milliseconds> late = std::nullopt;
};

struct FaultRule {
    FaultMatch match;
    FaultTrigger trigger;
    FaultActions actions;
};

struct FaultRuleState {
    std::uint64_t id = 0;
    FaultRule rule;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
    bool spent = false;
};

/// What decide() found: the actions of the first rule that fired, and a number for whatever the
/// action leaves to chance.
struct Decision {
    std::uint64_t rule = 0;  ///< id; 0 where none fired
    FaultActions actions;
    std::uint64_t random = 0;

    [[nodiscard]] explicit operator bool() const { return rule != 0; }
};

/// The rules in force, in the order they were added. Every call is safe from any thread.
///
/// The model asks twice: at_portal() before it queues a descriptor, decide() when an engine has
/// taken it. Rules with `drop` are seen by the first alone, all others by the second alone.
class FaultTable {
  public:
    /// Returns the rule's id, from 1 upwards and never used again.
    std::uint64_t add(const FaultRule& rule);
    bool clear(std::uint64_t id);  ///< false where there is no such rule
    void clear();
    /// Sets the rules back to how they were when added: nothing matched, nothing fired, same seed.
    void reset();
    [[nodiscard]] std::vector<FaultRuleState> list() const;

    /// True where the portal is to drop the descriptor.
    [[nodiscard]] bool at_portal(const Descriptor& descriptor, std::uint32_t wq);
    [[nodiscard]] Decision decide(const Descriptor& descriptor, std::uint32_t wq);

  private:
    struct Entry {
        FaultRuleState state;
        std::mt19937_64 generator;
    };

    Decision fire(const Descriptor& descriptor, std::uint32_t wq, bool portal);

    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
    std::uint64_t next_id_ = 1;
};

/// Carries out the part of a decision that changes results: the corrupted byte in the output, its
/// checksums, the reported size, the status. To be called with the record that execute() returned,
/// before it is written. Where `status` is set without `execute` the caller skips execute() and
/// passes an empty record. Timing, interrupts, halt and repetition are the caller's.
void apply_to_result(const Decision& decision, const Descriptor& descriptor, DmaMemory& memory,
                     CompletionRecord& record);

}  // namespace iaa::device::control
