// SPDX-License-Identifier: GPL-2.0
#include "deflate/huffman.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace iaa::deflate {
namespace {

// Symbols that occur, by how often, then by symbol. Weights end with one above all others.
struct Leaves {
    std::array<std::uint64_t, kLlLengths + 1> weight{};
    std::array<std::uint16_t, kLlLengths> symbol{};
    std::size_t count = 0;
};

constexpr std::uint64_t kHeaviest = std::numeric_limits<std::uint64_t>::max();
constexpr unsigned kSymbolBits = 16;

// Sorts keys by their upper part, count by count of eight bits; they come in order of the lower.
void radix_sort(std::span<std::uint64_t> keys, std::uint32_t highest) {
    std::array<std::uint64_t, kLlLengths> other{};
    std::span<std::uint64_t> from = keys;
    std::span<std::uint64_t> to = std::span(other).first(keys.size());
    for (unsigned shift = 0; shift < 32 && highest >> shift != 0; shift += 8) {
        std::array<std::uint16_t, 257> first{};
        for (const std::uint64_t key : from) {
            ++first[(key >> (kSymbolBits + shift) & 0xff) + 1];
        }
        for (std::size_t digit = 1; digit < 256; ++digit) {
            first[digit] = static_cast<std::uint16_t>(first[digit] + first[digit - 1]);
        }
        for (const std::uint64_t key : from) {
            to[first[key >> (kSymbolBits + shift) & 0xff]++] = key;
        }
        std::swap(from, to);
    }
    if (from.data() != keys.data()) {
        std::ranges::copy(from, keys.begin());
    }
}

void sort_leaves(std::span<const std::uint32_t> counts, Leaves& leaves) {
    constexpr std::size_t kFew = 32;
    std::array<std::uint64_t, kLlLengths> keys;  // NOLINT: filled as far as it is used
    std::uint32_t highest = 0;
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
        keys[leaves.count] = std::uint64_t{counts[symbol]} << kSymbolBits | symbol;
        leaves.count += counts[symbol] != 0 ? 1U : 0U;
        highest = std::max(highest, counts[symbol]);
    }
    const std::span used = std::span(keys).first(leaves.count);
    if (leaves.count < kFew) {
        std::ranges::sort(used);
    } else {
        radix_sort(used, highest);
    }
    for (std::size_t leaf = 0; leaf < leaves.count; ++leaf) {
        leaves.weight[leaf] = keys[leaf] >> kSymbolBits;
        leaves.symbol[leaf] = static_cast<std::uint16_t>(keys[leaf]);
    }
    leaves.weight[leaves.count] = kHeaviest;
}

CodeLengths make_fixed_lengths() {
    CodeLengths lengths;
    for (std::size_t symbol = 0; symbol < kLlLengths; ++symbol) {
        const unsigned length = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
        lengths.ll[symbol] = static_cast<std::uint8_t>(length);
    }
    lengths.d.fill(5);
    return lengths;
}

CodeTables make_fixed_tables() {
    CodeTables tables;
    (void)make_tables(fixed_lengths(), tables);
    return tables;
}

using Depths = std::array<std::uint16_t, kLlLengths>;

// Code length of each leaf (there are two at least) without a limit, and the greatest. The tree is
// built by merging two queues: leaves, and inner nodes, which come out in order of weight by
// themselves. The choice between the two is left to conditional moves: as a branch it would be a
// coin toss.
unsigned unlimited_depths(const Leaves& leaves, Depths& depths) {
    const std::size_t count = leaves.count;
    const std::size_t root = count - 2;
    std::array<std::uint64_t, kLlLengths> weight;      // NOLINT: of inner nodes, filled below
    std::array<std::uint16_t, 2 * kLlLengths> parent;  // NOLINT: of leaves, then of inner nodes
    std::fill_n(weight.begin(), count, kHeaviest);
    std::size_t leaf = 0;
    std::size_t done = 0;  // inner nodes that have a parent
    for (std::size_t inner = 0; inner <= root; ++inner) {
        std::uint64_t sum = 0;
        for (int child = 0; child < 2; ++child) {
            const bool take_leaf = leaves.weight[leaf] <= weight[done];
            sum += take_leaf ? leaves.weight[leaf] : weight[done];
            parent[take_leaf ? leaf : count + done] = static_cast<std::uint16_t>(inner);
            leaf += take_leaf ? 1 : 0;
            done += take_leaf ? 0 : 1;
        }
        weight[inner] = sum;
    }
    Depths inner_depth;  // NOLINT: filled from the root down
    inner_depth[root] = 0;
    for (std::size_t inner = root; inner-- > 0;) {
        inner_depth[inner] = static_cast<std::uint16_t>(inner_depth[parent[count + inner]] + 1);
    }
    for (std::size_t node = 0; node < count; ++node) {
        depths[node] = static_cast<std::uint16_t>(inner_depth[parent[node]] + 1);
    }
    return depths[0];  // the rarest symbol has the longest code
}

// The same with at most `limit` bits: package-merge. Level by level, pairs of the list before
// become packages, and are merged by weight with the leaves; only whether an item is a leaf has to
// be kept. Of the last list the cheapest 2n-2 items are taken; every leaf inside them is one bit of
// length.
void limited_depths(const Leaves& leaves, unsigned limit, Depths& depths) {
    const std::size_t count = leaves.count;
    std::vector<std::vector<bool>> is_leaf(limit);
    std::vector<std::uint64_t> list;
    for (unsigned level = 0; level < limit; ++level) {
        std::vector<std::uint64_t> merged;
        const std::size_t packages = list.size() / 2;
        std::size_t leaf = 0;
        std::size_t package = 0;
        while (leaf < count || package < packages) {
            const std::uint64_t packed =
                package < packages ? list[2 * package] + list[2 * package + 1] : kHeaviest;
            const bool take_leaf = leaves.weight[leaf] <= packed && leaf < count;
            is_leaf[level].push_back(take_leaf);
            merged.push_back(take_leaf ? leaves.weight[leaf] : packed);
            leaf += take_leaf ? 1 : 0;
            package += take_leaf ? 0 : 1;
        }
        list = std::move(merged);
    }
    std::fill_n(depths.begin(), count, std::uint16_t{0});
    std::size_t taken = 2 * count - 2;
    for (unsigned level = limit; level-- > 0;) {
        std::size_t leaves_taken = 0;
        for (std::size_t item = 0; item < taken; ++item) {
            leaves_taken += is_leaf[level][item] ? 1U : 0U;
        }
        for (std::size_t leaf = 0; leaf < leaves_taken; ++leaf) {
            ++depths[leaf];
        }
        taken = 2 * (taken - leaves_taken);
    }
}

template <std::size_t kSize>
void use_two_symbols(std::array<std::uint32_t, kSize>& counts) {
    auto used = static_cast<std::size_t>(
        std::ranges::count_if(counts, [](std::uint32_t count) { return count != 0; }));
    for (std::size_t symbol = 0; used < 2; ++symbol) {
        if (counts[symbol] == 0) {
            counts[symbol] = 1;
            ++used;
        }
    }
}

void lengths_of_entries(std::span<const std::uint32_t> entries, std::span<std::uint8_t> lengths) {
    std::ranges::transform(entries, lengths.begin(), [](std::uint32_t entry) {
        const unsigned length = entry_length(entry);
        return static_cast<std::uint8_t>(length <= kMaxCodeLength ? length : 0);
    });
}

}  // namespace

const CodeLengths& fixed_lengths() {
    static const CodeLengths lengths = make_fixed_lengths();
    return lengths;
}

const CodeTables& fixed_tables() {
    static const CodeTables tables = make_fixed_tables();
    return tables;
}

std::uint32_t kraft_sum(std::span<const std::uint8_t> lengths) {
    std::uint32_t sum = 0;
    for (const std::uint8_t length : lengths) {
        if (length != 0) {
            sum += 1U << (kMaxCodeLength - length);
        }
    }
    return sum;
}

bool canonical_codes(std::span<const std::uint8_t> lengths, std::span<std::uint32_t> entries) {
    std::array<std::uint32_t, kMaxCodeLength + 1> used{};
    for (const std::uint8_t length : lengths) {
        ++used[length];
    }
    used[0] = 0;
    std::array<std::uint32_t, kMaxCodeLength + 1> next{};
    for (unsigned length = 1; length <= kMaxCodeLength; ++length) {
        next[length] = (next[length - 1] + used[length - 1]) << 1;
        if (next[length] + used[length] > 1U << length) {
            return false;
        }
    }
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        const unsigned length = lengths[symbol];
        entries[symbol] = length == 0 ? 0 : (length << kEntryLengthShift) | next[length]++;
    }
    return true;
}

ErrorCode make_tables(const CodeLengths& lengths, CodeTables& tables) {
    std::array<std::uint32_t, kLlLengths> ll{};
    if (!canonical_codes(lengths.ll, ll)) {
        return ErrorCode::kOversubscribedLl;
    }
    std::ranges::copy(std::span(ll).first<kLlSymbols>(), tables.ll.begin());
    if (!canonical_codes(lengths.d, tables.d)) {
        return ErrorCode::kOversubscribedD;
    }
    return ErrorCode::kNone;
}

CodeLengths lengths_of(const CodeTables& tables) {
    if (tables == fixed_tables()) {
        return fixed_lengths();
    }
    CodeLengths lengths;
    lengths_of_entries(tables.ll, lengths.ll);
    lengths_of_entries(tables.d, lengths.d);
    return lengths;
}

void limited_lengths(std::span<const std::uint32_t> counts, unsigned limit,
                     std::span<std::uint8_t> lengths) {
    std::ranges::fill(lengths, std::uint8_t{0});
    Leaves leaves;
    sort_leaves(counts, leaves);
    if (leaves.count < 2) {
        for (std::size_t leaf = 0; leaf < leaves.count; ++leaf) {
            lengths[leaves.symbol[leaf]] = 1;
        }
        return;
    }
    Depths depths;  // NOLINT: filled as far as it is used
    if (unlimited_depths(leaves, depths) > limit) {
        limited_depths(leaves, limit, depths);
    }
    for (std::size_t leaf = 0; leaf < leaves.count; ++leaf) {
        lengths[leaves.symbol[leaf]] = static_cast<std::uint8_t>(depths[leaf]);
    }
}

CodeLengths lengths_from(const Histogram& histogram) {
    Histogram counts = histogram;
    use_two_symbols(counts.ll);
    use_two_symbols(counts.d);
    CodeLengths lengths;
    limited_lengths(counts.ll, kMaxCodeLength, std::span(lengths.ll).first<kLlSymbols>());
    limited_lengths(counts.d, kMaxCodeLength, lengths.d);
    return lengths;
}

}  // namespace iaa::deflate
