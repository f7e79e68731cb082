// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "device/descriptor.h"
#include "device/model/registers.h"

namespace iaa::device {

/// An error that no completion record tells of.
struct ErrorReport {
    std::uint8_t code = 0;
    std::optional<std::uint32_t> wq;
    std::optional<Descriptor> descriptor;
    bool write = false;  ///< the access that failed was a write
    std::uint64_t fault_addr = 0;
    std::uint32_t info = 0;     ///< invalid flags, or the interrupt handle
    CompletionRecord record{};  ///< the record that could not be written
};

/// SWERR and the event log's registers and waiting reports. The device guards it with its own lock
/// and carries out what next_write() asks for without that lock; the log may end meanwhile.
class ErrorLog {
  public:
    using Entry = std::array<std::byte, 128>;

    struct Write {
        std::uint64_t address = 0;
        Entry entry{};
        std::uint64_t generation = 0;  ///< of the log that it is for
    };

    /// SWERR: takes the report where it is free, else notes the overflow.
    void record_software_error(const ErrorReport& report);
    [[nodiscard]] std::uint32_t software_error_word(std::size_t index) const;
    void acknowledge_software_error(std::uint32_t bits);

    /// EVLCFG, as four 32-bit words.
    [[nodiscard]] std::uint32_t config_word(std::size_t index) const;
    void set_config_word(std::size_t index, std::uint32_t value);
    [[nodiscard]] std::uint32_t ring_size() const;

    /// EVLSTATUS: word 0 is the head, word 1 the tail and the pending bit.
    [[nodiscard]] std::uint32_t status_word(std::size_t index) const;
    void set_head(std::uint32_t head) { head_ = head & 0xffff; }
    void clear_pending() { pending_ = false; }
    /// The log begins anew: head and tail go to the start of the ring, and what waits is forgotten.
    void restart();
    /// Forgets what waits, and what is being written: the ring is the guest's again.
    void forget();

    /// Queues a report for the event log. False where as many wait as the ring has entries.
    [[nodiscard]] bool queue(const ErrorReport& report);
    [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
    /// Reports queued so far, and how many of them are in the ring or elsewhere by now.
    [[nodiscard]] std::uint64_t queued() const { return queued_; }
    [[nodiscard]] std::uint64_t settled() const { return queued_ - waiting_.size(); }
    /// True where the ring has no room for an entry.
    [[nodiscard]] bool full() const;
    /// Takes the oldest of the waiting reports, which are not empty.
    [[nodiscard]] ErrorReport take_waiting();
    /// The oldest of them as an entry for guest memory; it waits until written() or
    /// take_waiting(). The ring is not full.
    [[nodiscard]] Write next_write() const;
    /// False where the log has ended or begun anew since: there is nothing to settle.
    [[nodiscard]] bool current(const Write& write) const { return write.generation == generation_; }
    /// The entry of the last next_write(), which is current(), is in guest memory. True where an
    /// interrupt is due.
    [[nodiscard]] bool written();

    /// Everything as after a reset.
    void reset();

  private:
    std::array<std::uint64_t, 4> software_error_{};
    std::array<std::uint64_t, 2> config_{};
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    bool pending_ = false;
    std::deque<ErrorReport> waiting_;
    std::uint64_t queued_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace iaa::device
