// SPDX-License-Identifier: GPL-2.0
#include "deflate/huffman.h"

#include <algorithm>
#include <vector>

namespace iaa::deflate {
namespace {

struct Leaf {
    std::uint64_t weight;
    std::size_t symbol;
};

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

// Code length of each leaf (sorted by weight, at least two) without a limit. The tree is built by
// merging two queues: leaves, and inner nodes, which come out in order of weight by themselves.
std::vector<unsigned> unlimited_depths(std::span<const Leaf> leaves) {
    const std::size_t count = leaves.size();
    std::vector<std::uint64_t> weight(count - 1);
    std::vector<std::size_t> leaf_parent(count);
    std::vector<std::size_t> inner_parent(count - 1);
    std::size_t next_leaf = 0;
    std::size_t next_inner = 0;
    for (std::size_t inner = 0; inner < count - 1; ++inner) {
        for (int child = 0; child < 2; ++child) {
            if (next_leaf < count &&
                (next_inner == inner || leaves[next_leaf].weight <= weight[next_inner])) {
                weight[inner] += leaves[next_leaf].weight;
                leaf_parent[next_leaf++] = inner;
            } else {
                weight[inner] += weight[next_inner];
                inner_parent[next_inner++] = inner;
            }
        }
    }
    std::vector<unsigned> inner_depth(count - 1);
    for (std::size_t inner = count - 2; inner-- > 0;) {
        inner_depth[inner] = inner_depth[inner_parent[inner]] + 1;
    }
    std::vector<unsigned> depths(count);
    for (std::size_t leaf = 0; leaf < count; ++leaf) {
        depths[leaf] = inner_depth[leaf_parent[leaf]] + 1;
    }
    return depths;
}

// The same with at most `limit` bits: package-merge. Level by level, pairs of the list before
// become packages, and are merged by weight with the leaves; only whether an item is a leaf has to
// be kept. Of the last list the cheapest 2n-2 items are taken; every leaf inside them is one bit of
// length.
std::vector<unsigned> limited_depths(std::span<const Leaf> leaves, unsigned limit) {
    const std::size_t count = leaves.size();
    std::vector<std::vector<bool>> is_leaf(limit);
    std::vector<std::uint64_t> list;
    for (unsigned level = 0; level < limit; ++level) {
        std::vector<std::uint64_t> merged;
        const std::size_t packages = list.size() / 2;
        std::size_t leaf = 0;
        std::size_t package = 0;
        while (leaf < count || package < packages) {
            const std::uint64_t packed =
                package < packages ? list[2 * package] + list[2 * package + 1] : 0;
            const bool take_leaf =
                leaf < count && (package == packages || leaves[leaf].weight <= packed);
            is_leaf[level].push_back(take_leaf);
            merged.push_back(take_leaf ? leaves[leaf].weight : packed);
            take_leaf ? ++leaf : ++package;
        }
        list = std::move(merged);
    }
    std::vector<unsigned> depths(count);
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
    return depths;
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
    static const CodeLengths kLengths = make_fixed_lengths();
    return kLengths;
}

const CodeTables& fixed_tables() {
    static const CodeTables kTables = make_fixed_tables();
    return kTables;
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
    std::vector<Leaf> leaves;
    leaves.reserve(counts.size());
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
        if (counts[symbol] != 0) {
            leaves.push_back({counts[symbol], symbol});
        }
    }
    if (leaves.size() < 2) {
        for (const Leaf& leaf : leaves) {
            lengths[leaf.symbol] = 1;
        }
        return;
    }
    std::ranges::sort(leaves, [](const Leaf& left, const Leaf& right) {
        return left.weight != right.weight ? left.weight < right.weight
                                           : left.symbol < right.symbol;
    });
    std::vector<unsigned> depths = unlimited_depths(leaves);
    if (std::ranges::max(depths) > limit) {
        depths = limited_depths(leaves, limit);
    }
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        lengths[leaves[leaf].symbol] = static_cast<std::uint8_t>(depths[leaf]);
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
