// SPDX-License-Identifier: GPL-2.0
#include "unit/deflate/stream_builder.h"

#include "deflate/symbols.h"

namespace iaa::test {
namespace {

constexpr std::array<unsigned, 19> kClOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};

// A complete code of `used` symbols: the first ones one bit shorter than the rest.
void fill_flat(std::span<std::uint8_t> lengths, unsigned used) {
    unsigned bits = 1;
    while (1U << bits < used) {
        ++bits;
    }
    const unsigned shorter = (1U << bits) - used;
    for (unsigned symbol = 0; symbol < used; ++symbol) {
        lengths[symbol] = static_cast<std::uint8_t>(symbol < shorter ? bits - 1 : bits);
    }
}

}  // namespace

StreamBuilder& StreamBuilder::bits(std::uint32_t value, unsigned count) {
    for (unsigned index = 0; index < count; ++index, ++count_) {
        if (count_ % 8 == 0) {
            bytes_.push_back(0);
        }
        const unsigned bit = value >> index & 1;
        bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | bit << (count_ % 8));
    }
    return *this;
}

StreamBuilder& StreamBuilder::code(std::uint32_t entry) {
    for (unsigned left = deflate::entry_length(entry); left-- > 0;) {
        bits(deflate::entry_code(entry) >> left & 1, 1);
    }
    return *this;
}

StreamBuilder& StreamBuilder::align() {
    while (count_ % 8 != 0) {
        bits(0, 1);
    }
    return *this;
}

StreamBuilder& StreamBuilder::stored(bool final, const Bytes& bytes) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    block(final, 0).align().bits(length, 16).bits(~length, 16);
    for (const std::uint8_t byte : bytes) {
        bits(byte, 8);
    }
    return *this;
}

StreamBuilder& StreamBuilder::dynamic(bool final, unsigned ll_count, unsigned d_count,
                                      const std::array<std::uint8_t, 19>& cl_lengths,
                                      const std::array<std::uint8_t, 19>& coded_with,
                                      const std::vector<ClToken>& tokens) {
    block(final, 2).bits(ll_count - 257, 5).bits(d_count - 1, 5).bits(19 - 4, 4);
    for (const unsigned symbol : kClOrder) {
        bits(cl_lengths[symbol], 3);
    }
    std::array<std::uint32_t, 19> codes{};
    (void)deflate::canonical_codes(coded_with, codes);
    for (const ClToken& token : tokens) {
        code(codes[token.symbol]);
        bits(token.extra, token.symbol == 16   ? 2
                          : token.symbol == 17 ? 3
                          : token.symbol == 18 ? 7
                                               : 0);
    }
    return *this;
}

StreamBuilder& StreamBuilder::dynamic(bool final, unsigned ll_count, unsigned d_count,
                                      const std::array<std::uint8_t, 19>& cl_lengths,
                                      const std::vector<ClToken>& tokens) {
    return dynamic(final, ll_count, d_count, cl_lengths, cl_lengths, tokens);
}

StreamBuilder& StreamBuilder::dynamic(bool final, const deflate::CodeLengths& lengths) {
    std::vector<ClToken> tokens = plain_tokens(std::span(lengths.ll).first<deflate::kLlSymbols>());
    const std::vector<ClToken> d_tokens = plain_tokens(lengths.d);
    tokens.insert(tokens.end(), d_tokens.begin(), d_tokens.end());
    return dynamic(final, deflate::kLlSymbols, deflate::kDSymbols, flat_cl_lengths(), tokens);
}

StreamBuilder& StreamBuilder::use(const deflate::CodeLengths& lengths) {
    (void)deflate::make_tables(lengths, tables_);
    return *this;
}

StreamBuilder& StreamBuilder::literals(const Bytes& bytes) {
    for (const std::uint8_t byte : bytes) {
        literal(byte);
    }
    return *this;
}

StreamBuilder& StreamBuilder::match(unsigned length, unsigned distance) {
    const unsigned ll = deflate::length_symbol(length);
    const deflate::SymbolRange range = deflate::kLengthRanges[ll - deflate::kFirstLengthSymbol];
    const unsigned d = deflate::distance_symbol(distance);
    const deflate::SymbolRange d_range = deflate::kDistanceRanges[d];
    return code(tables_.ll[ll])
        .bits(length - range.base, range.extra)
        .code(tables_.d[d])
        .bits(distance - d_range.base, d_range.extra);
}

std::array<std::uint8_t, 19> flat_cl_lengths() {
    std::array<std::uint8_t, 19> lengths{};
    fill_flat(lengths, 19);
    return lengths;
}

std::vector<ClToken> plain_tokens(std::span<const std::uint8_t> lengths) {
    std::vector<ClToken> tokens;
    for (const std::uint8_t length : lengths) {
        tokens.emplace_back(length);
    }
    return tokens;
}

deflate::CodeLengths flat_lengths(unsigned ll_used, unsigned d_used) {
    deflate::CodeLengths lengths;
    fill_flat(lengths.ll, ll_used);
    fill_flat(lengths.d, d_used);
    return lengths;
}

}  // namespace iaa::test
