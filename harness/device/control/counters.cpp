// SPDX-License-Identifier: GPL-2.0
#include "device/control/counters.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace iaa::device::control {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

using Field = std::uint64_t CounterValues::*;
constexpr std::array<std::pair<std::string_view, Field>, 7> kFields{{
    {"accepted", &CounterValues::accepted},
    {"dropped", &CounterValues::dropped},
    {"completed", &CounterValues::completed},
    {"bytes_in", &CounterValues::bytes_in},
    {"bytes_out", &CounterValues::bytes_out},
    {"interrupts", &CounterValues::interrupts},
    {"faults", &CounterValues::faults},
}};

std::optional<std::uint64_t> field(const CounterValues& values, std::string_view name) {
    const auto* const found =
        std::ranges::find(kFields, name, &decltype(kFields)::value_type::first);
    if (found == kFields.end()) return std::nullopt;
    return values.*(found->second);
}

std::optional<std::size_t> index(std::string_view text, std::size_t limit) {
    int base = 10;
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        base = 16;
    }
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || value >= limit)
        return std::nullopt;
    return value;
}

using Table = std::array<std::atomic<std::uint64_t>, 256>;

std::optional<std::uint64_t> entry(const Table& table, std::string_view number) {
    const auto at = index(number, table.size());
    if (!at) return std::nullopt;
    return table[*at].load(kRelaxed);
}

std::map<std::uint8_t, std::uint64_t> nonzero(const Table& table) {
    std::map<std::uint8_t, std::uint64_t> result;
    for (std::size_t i = 0; i < table.size(); ++i)
        if (const auto value = table[i].load(kRelaxed); value != 0)
            result[static_cast<std::uint8_t>(i)] = value;
    return result;
}

void add(CounterValues& sum, const CounterValues& values) {
    for (const auto& [name, member] : kFields) sum.*member += values.*member;
}

// Never below zero: a reset may have come between.
void take_back(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    std::uint64_t now = counter.load(kRelaxed);
    while (!counter.compare_exchange_weak(now, now - std::min(now, amount), kRelaxed)) {
    }
}

std::uint64_t sum(const Table& table) {
    std::uint64_t total = 0;
    for (const auto& value : table) total += value.load(kRelaxed);
    return total;
}

}  // namespace

Counters::Counters(std::size_t wqs) : cells_(std::clamp<std::size_t>(wqs, 1, kMaxWqs)) {}

void Counters::accepted(std::size_t wq) {
    cell(wq).accepted.fetch_add(1, kRelaxed);
}
void Counters::dropped(std::size_t wq) {
    cell(wq).dropped.fetch_add(1, kRelaxed);
}
void Counters::interrupt(std::size_t wq) {
    cell(wq).interrupts.fetch_add(1, kRelaxed);
}
void Counters::fault(std::size_t wq) {
    cell(wq).faults.fetch_add(1, kRelaxed);
}
void Counters::command(std::uint8_t code) {
    by_command_[code].fetch_add(1, kRelaxed);
}
void Counters::other_interrupt() {
    other_interrupts_.fetch_add(1, kRelaxed);
}

void Counters::completed(std::size_t wq, std::uint8_t opcode, std::uint8_t status,
                         std::uint64_t bytes_in, std::uint64_t bytes_out) {
    Cell& at = cell(wq);
    at.bytes_in.fetch_add(bytes_in, kRelaxed);
    at.bytes_out.fetch_add(bytes_out, kRelaxed);
    by_opcode_[opcode].fetch_add(1, kRelaxed);
    by_status_[status].fetch_add(1, kRelaxed);
    at.completed.fetch_add(1, std::memory_order_release);
}

void Counters::not_completed(std::size_t wq, std::uint8_t opcode, std::uint8_t status,
                             std::uint64_t bytes_in, std::uint64_t bytes_out) {
    Cell& at = cell(wq);
    take_back(at.completed, 1);
    take_back(at.bytes_in, bytes_in);
    take_back(at.bytes_out, bytes_out);
    take_back(by_opcode_[opcode], 1);
    take_back(by_status_[status], 1);
}

CounterValues Counters::Cell::read() const {
    CounterValues values;
    values.completed = completed.load(std::memory_order_acquire);
    values.accepted = accepted.load(kRelaxed);
    values.dropped = dropped.load(kRelaxed);
    values.bytes_in = bytes_in.load(kRelaxed);
    values.bytes_out = bytes_out.load(kRelaxed);
    values.interrupts = interrupts.load(kRelaxed);
    values.faults = faults.load(kRelaxed);
    return values;
}

void Counters::Cell::clear() {
    for (auto* value :
         {&accepted, &dropped, &completed, &bytes_in, &bytes_out, &interrupts, &faults})
        value->store(0, kRelaxed);
}

CounterSnapshot Counters::snapshot() const {
    CounterSnapshot result;
    result.per_wq.reserve(cells_.size());
    for (const Cell& one : cells_) {
        result.per_wq.push_back(one.read());
        add(result.total, result.per_wq.back());
    }
    result.by_opcode = nonzero(by_opcode_);
    result.by_status = nonzero(by_status_);
    result.by_command = nonzero(by_command_);
    result.commands = sum(by_command_);
    result.other_interrupts = other_interrupts_.load(kRelaxed);
    return result;
}

void Counters::reset() {
    for (Cell& one : cells_) one.clear();
    for (auto* table : {&by_opcode_, &by_status_, &by_command_})
        for (auto& value : *table) value.store(0, kRelaxed);
    other_interrupts_.store(0, kRelaxed);
}

std::optional<std::uint64_t> Counters::value(std::string_view name) const {
    if (name == "commands") return sum(by_command_);
    if (name == "other_interrupts") return other_interrupts_.load(kRelaxed);
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) {
        CounterValues total;
        for (const Cell& one : cells_) add(total, one.read());
        return field(total, name);
    }
    const std::string_view kind = name.substr(0, dot);
    const std::string_view rest = name.substr(dot + 1);
    if (kind == "opcode") return entry(by_opcode_, rest);
    if (kind == "status") return entry(by_status_, rest);
    if (kind == "command") return entry(by_command_, rest);
    if (kind != "wq") return std::nullopt;
    const std::size_t second = rest.find('.');
    if (second == std::string_view::npos) return std::nullopt;
    const auto wq = index(rest.substr(0, second), cells_.size());
    if (!wq) return std::nullopt;
    return field(cells_[*wq].read(), rest.substr(second + 1));
}

}  // namespace iaa::device::control
