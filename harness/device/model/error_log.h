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

/// SWERR and the event log's registers and waiting entries. The device guards it with its own lock
/// and carries out what next_write() asks for without that lock.
class ErrorLog {
  public:
    using Entry = std::array<std::byte, 128>;

    struct Write {
        std::uint64_t address = 0;
        Entry entry{};
        ErrorReport report;
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
    /// Head and tail go back to the start of the ring.
    void restart();

    /// Queues an entry for the event log.
    void queue(const ErrorReport& report) { waiting_.push_back(report); }
    [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
    /// True where the ring has no room for an entry.
    [[nodiscard]] bool full() const;
    /// Takes the oldest of the waiting reports, which are not empty.
    [[nodiscard]] ErrorReport take_waiting();
    /// The same, as the entry to write to guest memory; the ring is not full.
    [[nodiscard]] Write next_write();
    /// The entry of the last next_write() is in guest memory. True where an interrupt is due.
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
};

}  // namespace iaa::device
