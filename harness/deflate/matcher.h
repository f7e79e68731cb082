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

    Match() = default;
    Match(unsigned of, unsigned back) : length(of), distance(back) {}

    bool operator==(const Match&) const = default;
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

    /// Starts the numbering of positions elsewhere: at its end in 2^32, all is cleared and it
    /// starts over, which takes 4 GB of input to see.
    explicit MatchFinder(std::uint32_t origin) : MatchFinder() { origin_ = origin; }

    /// Splits data[start..] into literals and matches, which may refer back to data[0]. `usable`
    /// trims a match to what the tables have codes for; `sink` takes sink.literal(byte) and
    /// sink.match(length, distance), and stops the run by returning false. A value: it is given
    /// back as it then is.
    template <typename Usable, typename Sink>
    Sink run(std::span<const std::uint8_t> data, std::size_t start, const Usable& usable,
             Sink sink) {
        begin(data.size());
        const std::uint8_t* const bytes = data.data();
        const std::size_t end = data.size();
        // Positions from which a whole word, and from which four bytes can be read.
        const std::size_t wide = end < kWord ? 0 : end - kWord + 1;
        const std::size_t hashed = end < 4 ? 0 : end - 3;
        std::size_t at = 0;
        for (; at < std::min(start, hashed); ++at) {
            enter(load32(bytes + at), at);
        }
        at = start;
        while (at < end) {
            const Match match = usable(at < wide     ? find(bytes, at, end)
                                       : at < hashed ? find_at_end(bytes, at, end)
                                                     : find_last(bytes, at, end));
            if (match.length == 0) {
                if (!sink.literal(bytes[at])) {
                    return sink;
                }
                ++at;
                continue;
            }
            if (!sink.match(match.length, match.distance)) {
                return sink;
            }
            const std::size_t behind = at + match.length;
            const std::size_t last = std::min(behind, hashed);
            for (++at; at < last; ++at) {
                enter(load32(bytes + at), at);
            }
            at = behind;
        }
        return sink;
    }

  private:
    static constexpr std::size_t kWord = 8;
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
    Match find(const std::uint8_t* bytes, std::size_t at, std::size_t end) {
        const std::uint64_t word = load64(bytes + at);
        const auto next = static_cast<std::uint32_t>(word);
        const std::uint32_t now = number(at);
        const std::uint32_t by_four = now - std::exchange(long_[long_hash(next)], now);
        const std::uint32_t by_three = now - std::exchange(short_[short_hash(next)], now);
        const std::uint64_t differ_four = difference(bytes + at, by_four, word);
        const std::uint64_t differ_three = difference(bytes + at, by_three, word);
        const std::uint64_t take_four = mask_if((differ_four & low_mask(32)) == 0);
        const std::uint64_t differ = (differ_four & take_four) | (differ_three & ~take_four);
        const auto distance =
            static_cast<std::uint32_t>((by_four & take_four) | (by_three & ~take_four));
        if ((differ & low_mask(24)) != 0) {
            return {};
        }
        if (differ != 0) {
            return {static_cast<unsigned>(std::countr_zero(differ)) / 8, distance};
        }
        const std::size_t limit = std::min<std::size_t>(end - at, kMaxMatch);
        return {common(bytes + at, bytes + (at - distance), kWord, limit), distance};
    }

    // Which bits differ between the word here and the one a distance before it: all, where that is
    // outside the window. Chosen without a branch, which would be a coin toss.
    static std::uint64_t difference(const std::uint8_t* here, std::uint32_t distance,
                                    std::uint64_t word) {
        const std::uint64_t inside = mask_if(distance <= kWindow);
        return (load64(here - (distance & inside)) ^ word) | ~inside;
    }

    static std::uint64_t mask_if(bool condition) {
        return 0 - static_cast<std::uint64_t>(condition);
    }

    // The same where fewer than eight bytes are left.
    Match find_at_end(const std::uint8_t* bytes, std::size_t at, std::size_t end) {
        const std::uint32_t next = load32(bytes + at);
        const std::uint32_t now = number(at);
        const std::uint32_t by_four = now - std::exchange(long_[long_hash(next)], now);
        const std::uint32_t by_three = now - std::exchange(short_[short_hash(next)], now);
        const Match match = candidate(bytes, at, end, by_four, 4);
        return match.length != 0 ? match : candidate(bytes, at, end, by_three, 3);
    }

    // And where three are, or fewer.
    [[nodiscard]] Match find_last(const std::uint8_t* bytes, std::size_t at,
                                  std::size_t end) const {
        if (end - at < kMinMatch) {
            return {};
        }
        std::uint32_t next = 0;
        std::memcpy(&next, bytes + at, kMinMatch);
        return candidate(bytes, at, end, number(at) - short_[short_hash(next)], kMinMatch);
    }

    [[nodiscard]] static Match candidate(const std::uint8_t* bytes, std::size_t at, std::size_t end,
                                         std::uint32_t distance, unsigned least) {
        if (distance > kWindow) {
            return {};
        }
        const unsigned length = common(bytes + at, bytes + (at - distance), 0, end - at);
        return length >= least ? Match{length, distance} : Match{};
    }

    // How many bytes are alike, of which `length` are known to be.
    static unsigned common(const std::uint8_t* here, const std::uint8_t* there, std::size_t length,
                           std::size_t limit) {
        for (; length + kWord <= limit; length += kWord) {
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

    std::array<std::uint32_t, 1U << kLongBits> long_{};
    std::array<std::uint32_t, 1U << kShortBits> short_{};
    std::uint32_t origin_ = 0;  // number of the data's first byte
    std::uint32_t used_ = 0;    // positions of the current call
};

}  // namespace iaa::deflate
