// SPDX-License-Identifier: GPL-2.0
#include "deflate/decode_table.h"

#include <algorithm>
#include <array>

#include "deflate/bits.h"
#include "deflate/encoder.h"
#include "deflate/symbols.h"

namespace iaa::deflate {
namespace {

// What a symbol's entry holds apart from the length of its code.
constexpr auto kLlTemplates = [] {
    std::array<std::uint32_t, kLlLengths> words{};
    words.fill(entry::kSpecial);
    for (std::uint32_t symbol = 0; symbol < kLlSymbols; ++symbol) {
        if (symbol < kEobSymbol) {
            words[symbol] = entry::kLiteral | symbol << entry::kValueShift;
        } else if (symbol == kEobSymbol) {
            words[symbol] = entry::kSpecial | entry::kEob;
        } else {
            const SymbolRange range = kLengthRanges[symbol - kFirstLengthSymbol];
            words[symbol] =
                static_cast<std::uint32_t>(range.base) << entry::kValueShift | range.extra;
        }
    }
    return words;
}();

constexpr auto kDTemplates = [] {
    std::array<std::uint32_t, kDSymbols> words{};
    for (std::size_t symbol = 0; symbol < kDSymbols; ++symbol) {
        const SymbolRange range = kDistanceRanges[symbol];
        words[symbol] =
            range.base > kWindow
                ? entry::kSpecial | entry::kFar | range.extra
                : static_cast<std::uint32_t>(range.base) << entry::kValueShift | range.extra;
    }
    return words;
}();

constexpr std::uint32_t with_code_bits(std::uint32_t word, unsigned bits) {
    return word + bits * 0x101;
}

class Builder {
  public:
    Builder(std::span<const std::uint8_t> lengths, std::span<const std::uint32_t> templates,
            unsigned index_bits)
        : templates_(templates), index_bits_(index_bits) {
        std::array<std::uint16_t, kMaxCodeLength + 2> first{};
        for (const std::uint8_t length : lengths) {
            ++counts_[length];
        }
        counts_[0] = 0;
        for (unsigned length = 1; length <= kMaxCodeLength; ++length) {
            first[length + 1] = static_cast<std::uint16_t>(first[length] + counts_[length]);
        }
        total_ = first[kMaxCodeLength + 1];
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
            if (lengths[symbol] != 0) {
                sorted_[first[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
            }
        }
    }

    void build(std::vector<std::uint32_t>& table) {
        table.assign(std::size_t{1} << index_bits_, entry::kSpecial);
        std::uint32_t code = 0;
        std::size_t at = 0;
        unsigned length = 1;
        for (; length <= index_bits_; ++length, code <<= 1) {
            for (unsigned left = counts_[length]; left != 0; --left, ++code, ++at) {
                fill(std::span(table), reverse_bits(code, length), length,
                     with_code_bits(templates_[sorted_[at]], length));
            }
        }
        build_second(table, code, at, length);
    }

  private:
    static void fill(std::span<std::uint32_t> table, std::size_t from, unsigned bits,
                     std::uint32_t word) {
        for (; from < table.size(); from += std::size_t{1} << bits) {
            table[from] = word;
        }
    }

    // Codes longer than the index. Those with the same first bits follow each other, the longest
    // last, which gives the size of the table that they share.
    void build_second(std::vector<std::uint32_t>& table, std::uint32_t code, std::size_t at,
                      unsigned length) {
        unsigned used = 0;  // codes of this length that are done
        while (at < total_) {
            while (used == counts_[length]) {
                code <<= 1;
                ++length;
                used = 0;
            }
            const std::uint32_t prefix = code >> (length - index_bits_);
            const std::size_t group = at;
            std::array<std::uint32_t, std::size_t{1} << (kMaxCodeLength - kDIndexBits)> codes{};
            std::array<std::uint8_t, codes.size()> code_lengths{};
            std::size_t count = 0;
            while (at < total_ && code >> (length - index_bits_) == prefix) {
                codes[count] = code++;
                code_lengths[count++] = static_cast<std::uint8_t>(length);
                ++at;
                ++used;
                while (at < total_ && used == counts_[length]) {
                    code <<= 1;
                    ++length;
                    used = 0;
                }
            }
            const unsigned index = code_lengths[count - 1] - index_bits_;
            const std::size_t offset = table.size();
            table.resize(offset + (std::size_t{1} << index), entry::kSpecial);
            table[reverse_bits(prefix, index_bits_)] =
                entry::kSpecial | entry::kSecond |
                static_cast<std::uint32_t>(offset) << entry::kValueShift | index;
            const std::span second = std::span(table).subspan(offset);
            for (std::size_t item = 0; item < count; ++item) {
                const unsigned rest = code_lengths[item] - index_bits_;
                const std::uint32_t low = codes[item] & static_cast<std::uint32_t>(low_mask(rest));
                fill(second, reverse_bits(low, rest), rest,
                     with_code_bits(templates_[sorted_[group + item]], rest));
            }
        }
    }

    std::span<const std::uint32_t> templates_;
    unsigned index_bits_;
    std::array<std::uint16_t, kMaxCodeLength + 1> counts_{};
    std::array<std::uint16_t, kLlLengths> sorted_{};
    std::size_t total_ = 0;
};

bool makes_code(std::span<const std::uint8_t> lengths) {
    return std::ranges::max(lengths) <= kMaxCodeLength &&
           kraft_sum(lengths) <= 1U << kMaxCodeLength;
}

}  // namespace

bool DecodeTable::prepare(const CodeLengths& lengths) {
    if (built_for(lengths)) {
        return true;
    }
    valid_ = makes_code(lengths.ll) && makes_code(lengths.d);
    if (!valid_) {
        return false;
    }
    lengths_ = lengths;
    Builder(lengths.ll, kLlTemplates, kLlIndexBits).build(ll_);
    Builder(lengths.d, kDTemplates, kDIndexBits).build(d_);
    return true;
}

}  // namespace iaa::deflate
