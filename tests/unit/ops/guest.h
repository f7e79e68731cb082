// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deflate/huffman.h"
#include "device/ops/aecs.h"
#include "device/ops/operation.h"
#include "device/ops/rules.h"

/// A guest for tests: memory made of separate buffers, and the descriptors that drivers send.
namespace iaa::device::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_of(std::string_view text) {
    return {text.begin(), text.end()};
}

/// Memory of separate buffers with unmapped space between them. Every access is kept, those that
/// fail too.
class GuestMemory final : public DmaMemory {
  public:
    struct Buffer {
        std::uint64_t address = 0;
        Bytes bytes;
        bool readable = true;
        bool writable = true;
    };

    struct Access {
        Range range;
        bool write = false;
        bool ok = false;
    };

    /// Maps a buffer at an address of its own, `offset` bytes into a page.
    Buffer& map(Bytes bytes, std::uint64_t offset = 0) {
        const std::uint64_t size = bytes.size();
        Buffer& buffer = buffers_.emplace_back();
        buffer.address = next_ + offset;
        buffer.bytes = std::move(bytes);
        next_ += (offset + size + 0x1fff) & ~std::uint64_t{0xfff};
        return buffer;
    }
    Buffer& map(std::size_t size, std::uint64_t offset = 0) { return map(Bytes(size), offset); }

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override {
        const Buffer* buffer = find(iova, out.size(), false);
        note({iova, out.size()}, false, buffer != nullptr);
        if (buffer == nullptr) {
            return false;
        }
        std::memcpy(out.data(), buffer->bytes.data() + (iova - buffer->address), out.size());
        return true;
    }

    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override {
        Buffer* buffer = find(iova, in.size(), true);
        note({iova, in.size()}, true, buffer != nullptr);
        if (buffer == nullptr) {
            return false;
        }
        std::memcpy(buffer->bytes.data() + (iova - buffer->address), in.data(), in.size());
        return true;
    }

    [[nodiscard]] bool write_completion(std::uint64_t /*iova*/,
                                        std::span<const std::byte, 64> /*record*/) override {
        completion_written_ = true;
        return true;
    }

    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override {
        return find(iova, size, write) != nullptr;
    }

    [[nodiscard]] const std::vector<Access>& accesses() const { return accesses_; }
    [[nodiscard]] bool completion_written() const { return completion_written_; }
    void forget() { accesses_.clear(); }

    /// All buffers with their contents, to compare memory before and after.
    [[nodiscard]] std::vector<Bytes> contents() const {
        std::vector<Bytes> all;
        all.reserve(buffers_.size());
        for (const Buffer& buffer : buffers_) {
            all.push_back(buffer.bytes);
        }
        return all;
    }

  private:
    void note(const Range& range, bool write, bool ok) {
        accesses_.push_back({.range = range, .write = write, .ok = ok});
    }

    Buffer* find(std::uint64_t iova, std::uint64_t size, bool write) {
        for (Buffer& buffer : buffers_) {
            const std::uint64_t offset = iova - buffer.address;
            if (offset <= buffer.bytes.size() && size <= buffer.bytes.size() - offset &&
                (write ? buffer.writable : buffer.readable)) {
                return &buffer;
            }
        }
        return nullptr;
    }

    std::deque<Buffer> buffers_;
    std::uint64_t next_ = 0x100000;
    std::vector<Access> accesses_;
    bool completion_written_ = false;
};

/// Both areas of a decompression AECS, bytes.
inline constexpr std::size_t kTwoAreas = std::size_t{2} * kDecompressAecsSize;

inline constexpr std::uint64_t kRecordAddress = 0x40;  ///< of completion records: below all buffers

inline std::uint32_t flags_opcode(std::uint32_t flags, Opcode opcode) {
    return static_cast<std::uint32_t>(opcode) << 24U | flags;
}

// What the kernel's driver sends.
inline constexpr std::uint32_t kLinuxCompress = 0x1010c;
inline constexpr std::uint16_t kLinuxCompressFlags = 0x6;
inline constexpr std::uint32_t kLinuxDecompress = 0x10c;
inline constexpr std::uint16_t kLinuxDecompressFlags = 0xf;
inline constexpr std::uint16_t kLinuxVerifyFlags = 0x20f;

/// An AECS for fixed mode: fixed tables, and the block header in the accumulator.
inline CompressAecs fixed_aecs(bool final = true) {
    CompressAecs aecs;
    aecs.tables = deflate::fixed_tables();
    (void)deflate::write_fixed_header(final, aecs.accumulator);
    return aecs;
}

inline Bytes image_of(const CompressAecs& aecs) {
    Bytes image(kCompressAecsSize);
    store(aecs, std::span(image).first<kCompressAecsSize>());
    return image;
}

inline Descriptor compress_descriptor(const GuestMemory::Buffer& source,
                                      const GuestMemory::Buffer& destination,
                                      const GuestMemory::Buffer& aecs) {
    Descriptor d{};
    d.flags_opcode = flags_opcode(kLinuxCompress, Opcode::kCompress);
    d.completion_addr = kRecordAddress;
    d.op_flags = kLinuxCompressFlags;
    d.src1_addr = source.address;
    d.src1_size = static_cast<std::uint32_t>(source.bytes.size());
    d.dst_addr = destination.address;
    d.max_dst_size = static_cast<std::uint32_t>(destination.bytes.size());
    d.src2_addr = aecs.address;
    d.src2_size = kCompressAecsSize;
    return d;
}

inline Descriptor decompress_descriptor(const GuestMemory::Buffer& source,
                                        const GuestMemory::Buffer& destination) {
    Descriptor d{};
    d.flags_opcode = flags_opcode(kLinuxDecompress, Opcode::kDecompress);
    d.completion_addr = kRecordAddress;
    d.op_flags = kLinuxDecompressFlags;
    d.src1_addr = source.address;
    d.src1_size = static_cast<std::uint32_t>(source.bytes.size());
    d.dst_addr = destination.address;
    d.max_dst_size = static_cast<std::uint32_t>(destination.bytes.size());
    return d;
}

inline void set_flags(Descriptor& d, std::uint32_t flags) {
    d.flags_opcode |= flags;
}

/// Compresses in fixed mode as the kernel's driver does. Empty where that failed.
inline Bytes compress_fixed(const Bytes& data) {
    GuestMemory memory;
    auto& source = memory.map(data);
    auto& destination = memory.map(2 * data.size() + 64);
    auto& aecs = memory.map(image_of(fixed_aecs()));
    const Outcome outcome = execute(compress_descriptor(source, destination, aecs), memory, {});
    if (outcome.status() != Status::kSuccess) {
        return {};
    }
    destination.bytes.resize(outcome.record.output_size);
    return destination.bytes;
}

/// A generator whose numbers are the same in every run.
inline std::mt19937_64 seeded(std::uint64_t seed) {
    return std::mt19937_64(seed);
}

/// Data that compresses somewhat: words out of a small list, and some noise.
template <typename Random>
Bytes text_like(Random& random, std::size_t size) {
    static constexpr std::array<std::string_view, 8> kWords{"the ",  "page ", "of a ", "swap ",
                                                            "table", "\n\t",  "0x00",  "engine "};
    Bytes data;
    while (data.size() < size) {
        if (random() % 7 == 0) {
            data.push_back(static_cast<std::uint8_t>(random()));
        } else {
            const auto word = kWords[random() % kWords.size()];
            data.insert(data.end(), word.begin(), word.end());
        }
    }
    data.resize(size);
    return data;
}

}  // namespace iaa::device::test
