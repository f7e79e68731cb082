// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iaa::device::control {

/// What one work queue, or the whole device, has done.
struct CounterValues {
    std::uint64_t accepted = 0;  ///< descriptors that the portal took into the queue
    std::uint64_t dropped = 0;  ///< descriptors that the portal did not take: full, disabled, fault
    std::uint64_t completed = 0;   ///< completion records written, and successes without one
    std::uint64_t bytes_in = 0;    ///< source bytes of completed descriptors
    std::uint64_t bytes_out = 0;   ///< output bytes of completed descriptors
    std::uint64_t interrupts = 0;  ///< completion interrupts sent
    std::uint64_t faults = 0;      ///< faults carried out

    bool operator==(const CounterValues&) const = default;
};

/// One reading of all counters. The parts are read one after another, not at one instant.
struct CounterSnapshot {
    CounterValues total;
    std::vector<CounterValues> per_wq;
    std::map<std::uint8_t, std::uint64_t> by_opcode;   ///< completed descriptors
    std::map<std::uint8_t, std::uint64_t> by_status;   ///< completed descriptors
    std::map<std::uint8_t, std::uint64_t> by_command;  ///< commands written to CMD, by their code
    std::uint64_t commands = 0;
    std::uint64_t other_interrupts = 0;  ///< interrupts that no descriptor asked for (vector 0)
};

/// The device's counters. Every call is safe from any thread and takes no lock.
class Counters {
  public:
    static constexpr std::size_t kMaxWqs = 128;

    explicit Counters(std::size_t wqs);

    void accepted(std::size_t wq);
    void dropped(std::size_t wq);
    /// Call it before the record can be seen, so that whoever sees it finds it counted.
    void completed(std::size_t wq, std::uint8_t opcode, std::uint8_t status, std::uint64_t bytes_in,
                   std::uint64_t bytes_out);
    /// Takes one such call back: the record could not be written.
    void not_completed(std::size_t wq, std::uint8_t opcode, std::uint8_t status,
                       std::uint64_t bytes_in, std::uint64_t bytes_out);
    void interrupt(std::size_t wq);
    void fault(std::size_t wq);
    void command(std::uint8_t code);
    void other_interrupt();

    [[nodiscard]] CounterSnapshot snapshot() const;
    void reset();

    /// A single value by its name: "accepted", "completed", "interrupts", ..., "commands",
    /// "other_interrupts", "wq.3.completed", "opcode.0x43", "status.0x01", "command.1"; numbers may
    /// be decimal or hexadecimal. Nothing where there is no counter of that name.
    [[nodiscard]] std::optional<std::uint64_t> value(std::string_view name) const;

  private:
    struct Cell {
        std::atomic<std::uint64_t> accepted{0};
        std::atomic<std::uint64_t> dropped{0};
        std::atomic<std::uint64_t> completed{0};
        std::atomic<std::uint64_t> bytes_in{0};
        std::atomic<std::uint64_t> bytes_out{0};
        std::atomic<std::uint64_t> interrupts{0};
        std::atomic<std::uint64_t> faults{0};

        [[nodiscard]] CounterValues read() const;
        void clear();
    };

    Cell& cell(std::size_t wq) { return cells_[wq < cells_.size() ? wq : 0]; }

    std::vector<Cell> cells_;
    std::array<std::atomic<std::uint64_t>, 256> by_opcode_{};
    std::array<std::atomic<std::uint64_t>, 256> by_status_{};
    std::array<std::atomic<std::uint64_t>, 256> by_command_{};
    std::atomic<std::uint64_t> other_interrupts_{0};
};

}  // namespace iaa::device::control
