// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "device/dma_memory.h"

namespace iaa::device {

/// Lets the work of one descriptor reach guest memory until it is shut. After shut(), and once
/// empty() is true, that work touches guest memory no more, however long it still goes on.
class AccessGate {
  public:
    /// True where the access may be made; leave() must follow. False where the gate is shut.
    [[nodiscard]] bool enter() {
        inside_.fetch_add(1);
        if (!shut_.load()) {
            return true;
        }
        leave();
        return false;
    }
    void leave() { inside_.fetch_sub(1); }

    void shut() { shut_.store(true); }
    [[nodiscard]] bool is_shut() const { return shut_.load(); }
    [[nodiscard]] bool empty() const { return inside_.load() == 0; }

  private:
    // Sequentially consistent on purpose: enter() counts itself before it looks at shut_, shut()
    // comes before the look at inside_, so one of the two always sees the other.
    std::atomic<std::uint32_t> inside_{0};
    std::atomic<bool> shut_{false};
};

/// Guest memory through a gate: every access fails as an unmapped one does once the gate is shut. A
/// long access is made in pieces, so that whoever waits for the gate to be empty waits for a piece.
class GatedMemory final : public DmaMemory {
  public:
    /// Bytes: what the transport moves in one message.
    static constexpr std::size_t kPiece = std::size_t{32} << 10;

    GatedMemory(DmaMemory& memory, AccessGate& gate) : memory_(memory), gate_(gate) {}

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override {
        while (out.size() > kPiece) {
            if (!through([&] { return memory_.read(iova, out.first(kPiece)); })) {
                return false;
            }
            iova += kPiece;
            out = out.subspan(kPiece);
        }
        return through([&] { return memory_.read(iova, out); });
    }
    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override {
        // Nothing is to be written where a part is not mapped.
        if (in.size() > kPiece && !mapped(iova, in.size(), true)) {
            return false;
        }
        while (in.size() > kPiece) {
            if (!through([&] { return memory_.write(iova, in.first(kPiece)); })) {
                return false;
            }
            iova += kPiece;
            in = in.subspan(kPiece);
        }
        return through([&] { return memory_.write(iova, in); });
    }
    [[nodiscard]] bool write_completion(std::uint64_t iova,
                                        std::span<const std::byte, 64> record) override {
        return through([&] { return memory_.write_completion(iova, record); });
    }
    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override {
        return through([&] { return memory_.mapped(iova, size, write); });
    }

  private:
    template <typename Access>
    bool through(Access access) {
        if (!gate_.enter()) {
            return false;
        }
        const Leave leave(gate_);
        return access();
    }

    class Leave {
      public:
        explicit Leave(AccessGate& gate) : gate_(gate) {}
        Leave(const Leave&) = delete;
        Leave& operator=(const Leave&) = delete;
        Leave(Leave&&) = delete;
        Leave& operator=(Leave&&) = delete;
        ~Leave() { gate_.leave(); }

      private:
        AccessGate& gate_;
    };

    DmaMemory& memory_;
    AccessGate& gate_;
};

}  // namespace iaa::device
