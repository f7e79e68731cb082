// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/descriptor.h"
#include "device/dma_memory.h"
#include "device/ops/operation.h"

/// A trace of descriptors: what each one read, what it wrote and how it ended; enough to run it
/// again without a guest.
///
/// File format, version 2. All numbers are little-endian.
///
///   file header, 32 bytes:
///     0  8  "IAATRACE"
///     8  4  version, 2
///    12  4  size of this header, 32
///    16 12  zero
///    28  4  CRC-32 of bytes 0 to 27
///   then records, one behind the other, each with a header of 16 bytes:
///     0  4  0x52414149 ("IAAR")
///     4  4  size of the body in bytes, at most kMaxBody
///     8  4  CRC-32 of the body
///    12  4  CRC-32 of bytes 0 to 11
///   body:
///     0  8  number of the record, counted from 0
///     8  8  nanoseconds since the trace was opened
///    16  4  work queue
///    20  4  flags: bit 0, a fault rule fired; bit 1, execute() did not see the descriptor; bit 2,
///           the descriptor completed
///    24 56  capabilities: version u32; u32 with bits header_generation 0, format 2 1,
///           block_on_fault 2, pasid_enabled 3, privileged 4; max_transfer_size u64; opcodes
///           4 x u64; 8 bytes zero
///    80 64  descriptor
///   144 64  completion record as execute() made it (before any fault injection)
///   208 64  completion record that the descriptor ended with, faults included: the guest saw it
///           where it had asked for a record and that could be written; zero without flag bit 2
///   272  4  length of the rule's text
///   276  4  number of accesses
///   280     the text, then the accesses in the order in which they were made:
///     0  1  kind: 0 read, 1 write, 2 the question whether a range is mapped for reading, 3 for
///           writing
///     1  1  1 where it succeeded
///     2  6  zero
///     8  8  address
///    16  8  size
///    24     size bytes: what was read or written; none for kinds 2 and 3 or where it failed
///
/// A file that ends inside a record (the writer was killed) is told apart from a corrupt one.
namespace iaa::device {

/// One access to guest memory.
struct TraceAccess {
    enum class Kind : std::uint8_t { kRead, kWrite, kMappedForRead, kMappedForWrite };

    Kind kind = Kind::kRead;
    bool ok = false;
    std::uint64_t iova = 0;
    std::uint64_t size = 0;
    std::vector<std::byte> bytes;

    bool operator==(const TraceAccess&) const = default;
};

/// One descriptor.
struct TraceRecord {
    std::uint64_t number = 0;       ///< set by TraceWriter
    std::uint64_t nanoseconds = 0;  ///< set by TraceWriter
    std::uint32_t work_queue = 0;
    bool fault_injected = false;  ///< a fault rule fired
    /// False where execute() did not see the descriptor: a wrong interrupt handle, or a fault.
    bool executed = true;
    /// What the descriptor ended with, faults included. None where a fault keeps it from
    /// completing; should a drain have it carried out after all, another record follows.
    std::optional<CompletionRecord> completion = std::nullopt;
    Capabilities capabilities{};
    Descriptor descriptor{};
    Outcome outcome{};  ///< as execute() returned it, or the engine in its stead
    std::vector<TraceAccess> accesses;
};

/// Guest memory that writes down what is done with it. One object a descriptor:
///
///     TraceMemory recording(memory);
///     Outcome outcome = execute(descriptor, recording, capabilities);
///     writer.append(recording.record(descriptor, capabilities, outcome, wq, fault_injected));
class TraceMemory final : public DmaMemory {
  public:
    explicit TraceMemory(DmaMemory& memory) : memory_(memory) {}

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override;
    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override;
    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override;

    /// Passed on, and not part of the record: the completion record is the engine's.
    [[nodiscard]] bool write_completion(std::uint64_t iova,
                                        std::span<const std::byte, 64> record) override;

    /// The record of what was done since the object was made. Takes the accesses with it.
    [[nodiscard]] TraceRecord record(const Descriptor& descriptor, const Capabilities& capabilities,
                                     const Outcome& outcome, std::uint32_t work_queue,
                                     bool fault_injected);

  private:
    DmaMemory& memory_;
    std::vector<TraceAccess> accesses_;
};

/// What is wrong with a trace file, and at which offset.
class TraceError : public std::runtime_error {
  public:
    TraceError(const std::string& what, std::uint64_t offset);

    [[nodiscard]] std::uint64_t offset() const { return offset_; }

  private:
    std::uint64_t offset_;
};

/// Writes a trace. Nothing is kept back: a record is with the kernel when append() returns, so that
/// a killed process loses none. Thread-safe.
class TraceWriter {
  public:
    static constexpr std::uint32_t kVersion = 2;
    static constexpr std::uint32_t kMaxBody = 64U << 20U;

    /// Creates the file, or empties it. Throws std::system_error.
    explicit TraceWriter(const std::filesystem::path& path);
    ~TraceWriter();
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;
    TraceWriter(TraceWriter&&) = delete;
    TraceWriter& operator=(TraceWriter&&) = delete;

    /// Appends one record and numbers it. False where it could not be written (disk full, record
    /// larger than kMaxBody): the file then ends with the last whole record, and this and every
    /// later call fails.
    [[nodiscard]] bool append(TraceRecord record);

    /// Why append() failed; empty where it has not.
    [[nodiscard]] std::string error() const;

    /// Records written.
    [[nodiscard]] std::uint64_t records() const;

  private:
    mutable std::mutex mutex_;
    std::filesystem::path path_;
    int fd_ = -1;
    std::uint64_t size_ = 0;  ///< bytes, whole records only
    std::uint64_t records_ = 0;
    std::uint64_t opened_ = 0;  ///< steady clock, nanoseconds
    std::string error_;
};

/// Reads a trace. Believes nothing: every length is checked against the file's size first.
class TraceReader {
  public:
    /// Throws std::system_error where the file cannot be opened, TraceError for a bad header.
    explicit TraceReader(const std::filesystem::path& path);

    /// The next record; none at the end of the file. Throws TraceError where the file is corrupt.
    [[nodiscard]] std::optional<TraceRecord> next();

    /// True, once next() has returned none, where the file ends inside a record.
    [[nodiscard]] bool cut() const { return cut_; }

    /// Offset of the record that next() will read, or at which the file is cut.
    [[nodiscard]] std::uint64_t offset() const { return offset_; }

  private:
    std::ifstream file_;
    std::uint64_t size_ = 0;
    std::uint64_t offset_ = 0;
    std::uint64_t expected_ = 0;  ///< number of the next record
    bool cut_ = false;
};

/// Runs every record of a trace through execute() again, against a memory made of what the record
/// read, and writes every difference to out: the record's number, the field, both values. Records
/// of descriptors that were not executed are only counted. Ends with one line that counts. Returns
/// the exit code of `iaa-device replay`: 0 no differences, 1 differences, 2 the file could not be
/// read.
[[nodiscard]] int replay(const std::filesystem::path& path, std::ostream& out);

}  // namespace iaa::device
