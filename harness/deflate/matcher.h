// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "deflate/bits.h"
#include "deflate/encoder.h"

/// The match finder, for the encoder's own use.
namespace iaa::deflate {

struct Match {
    unsigned length = 0;  ///< 0: none
    unsigned distance = 0;
};

/// Greedy: takes the match that the latest earlier position with the same next four bytes gives,
/// else the one with the same next three, and enters every position.
///
/// A hash table holds the latest position of each hash, as a number that grows over all calls: an
/// entry of an earlier call is then more than a window away and falls out like any other that is
/// too far, and nothing has to be cleared between calls.
class MatchFinder {
  public:
    MatchFinder() { clear(); }

    /// Splits data[start..] into literals and matches, which may refer back to data[0]. `usable`
    /// trims a match to what the tables have codes for; `sink` takes sink.literal(byte) and
    /// sink.match(length, distance), and stops the run by returning false.
    template <typename Usable, typename Sink>
    void run(std::span<const std::uint8_t> data, std::size_t start, const Usable& usable,
             Sink& sink) {
        begin(data.size());
        const std::uint8_t* const bytes = data.data();
        const std::size_t end = data.size();
        // Positions from which four bytes can be read.
        const std::size_t hashed = end < 4 ? 0 : end - 3;
        std::size_t at = 0;
        for (; at < std::min(start, hashed); ++at) {
            enter(load32(bytes + at), at);
        }
        for (at = start; at < hashed;) {
            const std::uint32_t next = load32(bytes + at);
            const Match match = usable(find(bytes, at, end, next));
            if (match.length == 0) {
                if (!sink.literal(bytes[at])) {
                    return;
                }
                ++at;
                continue;
            }
            if (!sink.match(match.length, match.distance)) {
                return;
            }
            const std::size_t behind = at + match.length;
            const std::size_t last = std::min(behind, hashed);
            for (++at; at < last; ++at) {
                enter(load32(bytes + at), at);
            }
            at = behind;
        }
        // Three bytes are still enough for a match.
        if (at + kMinMatch == end) {
            const std::uint32_t next =
                bytes[at] | bytes[at + 1] << 8 | static_cast<std::uint32_t>(bytes[at + 2]) << 16;
            const Match match = usable(candidate(bytes, at, end, short_[short_hash(next)], 3));
            if (match.length != 0) {
                (void)sink.match(match.length, match.distance);
                return;
            }
        }
        for (; at < end; ++at) {
            if (!sink.literal(bytes[at])) {
                return;
            }
        }
    }

  private:
    static constexpr unsigned kLongBits = 12;
    static constexpr unsigned kShortBits = 11;

    static std::uint32_t long_hash(std::uint32_t four) {
        return (four * 0x9e3779b1U) >> (32 - kLongBits);
    }
    static std::uint32_t short_hash(std::uint32_t three) {
        return ((three << 8) * 0x9e3779b1U) >> (32 - kShortBits);
    }

    void clear() {
        long_.fill(0);
        short_.fill(0);
        origin_ = kWindow + 1;
        used_ = 0;
    }

    void begin(std::size_t size) {
        // Far enough from all that earlier calls have entered.
        const std::uint64_t next = std::uint64_t{origin_} + used_ + kWindow + 1;
        if (next + size > UINT32_MAX) {
            clear();
        } else {
            origin_ = static_cast<std::uint32_t>(next);
        }
        used_ = static_cast<std::uint32_t>(size);
    }

    [[nodiscard]] std::uint32_t number(std::size_t at) const {
        return origin_ + static_cast<std::uint32_t>(at);
    }

    void enter(std::uint32_t next, std::size_t at) {
        long_[long_hash(next)] = number(at);
        short_[short_hash(next)] = number(at);
    }

    // Enters a position, and gives the best match at it.
    Match find(const std::uint8_t* bytes, std::size_t at, std::size_t end, std::uint32_t next) {
        const std::uint32_t by_four = std::exchange(long_[long_hash(next)], number(at));
        const std::uint32_t by_three = std::exchange(short_[short_hash(next)], number(at));
        const Match match = candidate(bytes, at, end, by_four, 4);
        return match.length != 0 ? match : candidate(bytes, at, end, by_three, 3);
    }

    // The match with an earlier position, if it is in the window and at least `least` bytes long.
    [[nodiscard]] Match candidate(const std::uint8_t* bytes, std::size_t at, std::size_t end,
                                  std::uint32_t earlier, unsigned least) const {
        const std::uint32_t distance = number(at) - earlier;
        if (distance > kWindow) {
            return {};
        }
        const unsigned length =
            common(bytes + at, bytes + (at - distance), std::min<std::size_t>(end - at, kMaxMatch));
        return length >= least ? Match{length, distance} : Match{};
    }

    static unsigned common(const std::uint8_t* here, const std::uint8_t* there, std::size_t limit) {
        std::size_t length = 0;
        for (; length + 8 <= limit; length += 8) {
            const std::uint64_t differ = load64(here + length) ^ load64(there + length);
            if (differ != 0) {
                return static_cast<unsigned>(length) +
                       static_cast<unsigned>(std::countr_zero(differ)) / 8;
            }
        }
        while (length < limit && here[length] == there[length]) {
            ++length;
        }
        return static_cast<unsigned>(length);
    }

    std::array<std::uint32_t, 1U << kLongBits> long_;
    std::array<std::uint32_t, 1U << kShortBits> short_;
    std::uint32_t origin_ = 0;  // number of the data's first byte
    std::uint32_t used_ = 0;    // positions of the current call
};

}  // namespace iaa::deflate
