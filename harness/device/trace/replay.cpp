// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

#include "device/trace/trace.h"

namespace iaa::device {
namespace {

/// Guest memory made of what a record says: it reads what was read, and is mapped where it was.
class RecordedMemory final : public DmaMemory {
  public:
    explicit RecordedMemory(const TraceRecord& record) : record_(record) {}

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override {
        while (!out.empty()) {
            const TraceAccess* access = find(iova, [](const TraceAccess& a) {
                return a.kind == TraceAccess::Kind::kRead && a.ok;
            });
            if (access == nullptr) {
                return false;
            }
            const auto from = std::span(access->bytes).subspan(iova - access->iova);
            const std::size_t size = std::min(from.size(), out.size());
            std::ranges::copy(from.first(size), out.begin());
            out = out.subspan(size);
            iova += size;
        }
        return true;
    }

    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override {
        // Where the same write failed then (the guest unmapped the buffer), it fails now.
        const bool failed = std::ranges::any_of(record_.accesses, [&](const TraceAccess& a) {
            return a.kind == TraceAccess::Kind::kWrite && !a.ok && a.iova == iova &&
                   a.size == in.size();
        });
        const bool ok = !failed && mapped(iova, in.size(), true);
        writes_.push_back({.kind = TraceAccess::Kind::kWrite,
                           .ok = ok,
                           .iova = iova,
                           .size = in.size(),
                           .bytes = ok ? std::vector<std::byte>(in.begin(), in.end())
                                       : std::vector<std::byte>()});
        return ok;
    }

    [[nodiscard]] bool write_completion(std::uint64_t /*iova*/,
                                        std::span<const std::byte, 64> /*record*/) override {
        return true;
    }

    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override {
        // An answer that was given is given again; other ranges are mapped as far as answers and
        // accesses show.
        const auto question =
            write ? TraceAccess::Kind::kMappedForWrite : TraceAccess::Kind::kMappedForRead;
        for (const TraceAccess& a : record_.accesses) {
            if (a.kind == question && a.iova == iova && a.size == size) {
                return a.ok;
            }
        }
        const auto access = write ? TraceAccess::Kind::kWrite : TraceAccess::Kind::kRead;
        while (size != 0) {
            const TraceAccess* found = find(iova, [&](const TraceAccess& a) {
                return (a.kind == question || a.kind == access) && a.ok;
            });
            if (found == nullptr) {
                return false;
            }
            const std::uint64_t part = std::min(size, found->size - (iova - found->iova));
            iova += part;
            size -= part;
        }
        return true;
    }

    [[nodiscard]] const std::vector<TraceAccess>& writes() const { return writes_; }

  private:
    /// An access that takes in the byte at iova.
    template <typename Wanted>
    const TraceAccess* find(std::uint64_t iova, const Wanted& wanted) const {
        for (const TraceAccess& access : record_.accesses) {
            if (wanted(access) && iova - access.iova < access.size) {
                return &access;
            }
        }
        return nullptr;
    }

    const TraceRecord& record_;
    std::vector<TraceAccess> writes_;
};

struct Field {
    constexpr Field(std::string_view field, std::uint64_t (*value)(const CompletionRecord&))
        : name(field), get(value) {}

    std::string_view name;
    std::uint64_t (*get)(const CompletionRecord&);
};

constexpr auto kFields = std::to_array<Field>({
    {"status", [](const CompletionRecord& r) -> std::uint64_t { return r.status; }},
    {"error_code", [](const CompletionRecord& r) -> std::uint64_t { return r.error_code; }},
    {"fault_info", [](const CompletionRecord& r) -> std::uint64_t { return r.fault_info; }},
    {"reserved, byte 3", [](const CompletionRecord& r) -> std::uint64_t { return r.reserved0; }},
    {"bytes_completed",
     [](const CompletionRecord& r) -> std::uint64_t { return r.bytes_completed; }},
    {"fault_addr", [](const CompletionRecord& r) -> std::uint64_t { return r.fault_addr; }},
    {"invalid_flags", [](const CompletionRecord& r) -> std::uint64_t { return r.invalid_flags; }},
    {"reserved, byte 20", [](const CompletionRecord& r) -> std::uint64_t { return r.reserved1; }},
    {"output_size", [](const CompletionRecord& r) -> std::uint64_t { return r.output_size; }},
    {"output_bits", [](const CompletionRecord& r) -> std::uint64_t { return r.output_bits; }},
    {"reserved, byte 29", [](const CompletionRecord& r) -> std::uint64_t { return r.reserved2; }},
    {"xor_checksum", [](const CompletionRecord& r) -> std::uint64_t { return r.xor_checksum; }},
    {"crc", [](const CompletionRecord& r) -> std::uint64_t { return r.crc; }},
    {"min", [](const CompletionRecord& r) -> std::uint64_t { return r.min_first; }},
    {"max", [](const CompletionRecord& r) -> std::uint64_t { return r.max_last; }},
    {"sum", [](const CompletionRecord& r) -> std::uint64_t { return r.sum; }},
    {"reserved, byte 48",
     [](const CompletionRecord& r) -> std::uint64_t { return r.reserved3[0]; }},
    {"reserved, byte 56",
     [](const CompletionRecord& r) -> std::uint64_t { return r.reserved3[1]; }},
});

/// Compares one record's replay with it, and writes what differs.
class Comparison {
  public:
    Comparison(const TraceRecord& record, std::ostream& out) : record_(record), out_(out) {}

    /// The number of differences.
    std::size_t run() {
        RecordedMemory memory(record_);
        const Outcome outcome = execute(record_.descriptor, memory, record_.capabilities);
        for (const Field& field : kFields) {
            const std::uint64_t then = field.get(record_.outcome.record);
            const std::uint64_t now = field.get(outcome.record);
            if (then != now) {
                report(fmt::format("{}: recorded {:#x}, replayed {:#x}", field.name, then, now));
            }
        }
        if (outcome.rule != record_.outcome.rule) {
            report(fmt::format(R"(rule: recorded "{}", replayed "{}")", record_.outcome.rule,
                               outcome.rule));
        }
        compare_writes(memory.writes());
        return differences_;
    }

  private:
    void compare_writes(const std::vector<TraceAccess>& now) {
        std::vector<std::reference_wrapper<const TraceAccess>> then;
        for (const TraceAccess& access : record_.accesses) {
            if (access.kind == TraceAccess::Kind::kWrite) {
                then.emplace_back(access);
            }
        }
        if (then.size() != now.size()) {
            report(fmt::format("writes: recorded {}, replayed {}", then.size(), now.size()));
        }
        for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) {
            compare_write(i, then[i], now[i]);
        }
    }

    void compare_write(std::size_t index, const TraceAccess& then, const TraceAccess& now) {
        if (then.iova != now.iova || then.size != now.size || then.ok != now.ok) {
            report(
                fmt::format("write {}: recorded {} bytes at {:#x} ({}), replayed {} at {:#x} "
                            "({})",
                            index, then.size, then.iova, then.ok ? "done" : "failed", now.size,
                            now.iova, now.ok ? "done" : "failed"));
            return;
        }
        const auto [a, b] = std::ranges::mismatch(then.bytes, now.bytes);
        if (a == then.bytes.end()) {
            return;
        }
        std::size_t count = 0;
        for (std::size_t i = 0; i < then.bytes.size(); ++i) {
            count += static_cast<std::size_t>(then.bytes[i] != now.bytes[i]);
        }
        report(
            fmt::format("write {} at {:#x}: byte {} recorded {:#04x}, replayed {:#04x}; {} of {} "
                        "bytes differ",
                        index, then.iova, a - then.bytes.begin(), std::to_integer<unsigned>(*a),
                        std::to_integer<unsigned>(*b), count, then.size));
    }

    void report(const std::string& text) {
        ++differences_;
        out_ << fmt::format("record {} (opcode {:#04x}, work queue {}{}): {}\n", record_.number,
                            record_.descriptor.opcode(), record_.work_queue,
                            record_.fault_injected ? ", fault injected afterwards" : "", text);
    }

    const TraceRecord& record_;
    std::ostream& out_;
    std::size_t differences_ = 0;
};

/// A descriptor whose buffers no record can hold was not recorded by this program, and is not let
/// make execute() reserve the memory.
void check_sizes(const TraceRecord& record, std::uint64_t offset) {
    const std::uint64_t largest = std::min<std::uint64_t>(
        std::max(record.descriptor.src1_size, record.descriptor.max_dst_size),
        record.capabilities.max_transfer_size);
    if (largest > TraceWriter::kMaxBody) {
        throw TraceError(fmt::format("a buffer of {} bytes", largest), offset);
    }
}

}  // namespace

int replay(const std::filesystem::path& path, std::ostream& out) {
    constexpr int kSame = 0;
    constexpr int kDifferent = 1;
    constexpr int kUnreadable = 2;

    std::uint64_t records = 0;
    std::uint64_t injected = 0;
    std::uint64_t not_executed = 0;
    std::uint64_t differing = 0;
    std::uint64_t differences = 0;
    std::string failure;
    bool cut = false;
    std::uint64_t end = 0;
    try {
        TraceReader reader(path);
        std::uint64_t offset = reader.offset();
        while (const auto record = reader.next()) {
            if (!record->executed) {
                offset = reader.offset();
                ++not_executed;
                continue;
            }
            check_sizes(*record, offset);
            offset = reader.offset();
            ++records;
            injected += static_cast<std::uint64_t>(record->fault_injected);
            const std::size_t found = Comparison(*record, out).run();
            differences += found;
            differing += static_cast<std::uint64_t>(found != 0);
        }
        cut = reader.cut();
        end = reader.offset();
    } catch (const std::exception& error) {
        failure = error.what();
    }
    if (!failure.empty()) {
        out << "error: " << failure << '\n';
    }
    if (cut) {
        out << fmt::format(
            "note: the trace ends inside a record, at offset {}: its writer was "
            "stopped\n",
            end);
    }
    if (not_executed != 0) {
        out << fmt::format("note: {} records are of descriptors that were not carried out\n",
                           not_executed);
    }
    out << fmt::format(
        "{} records replayed ({} with an injected fault), {} differences in {} of "
        "them\n",
        records, injected, differences, differing);
    if (!failure.empty()) {
        return kUnreadable;
    }
    return differences == 0 ? kSame : kDifferent;
}

}  // namespace iaa::device
