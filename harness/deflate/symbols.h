// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "deflate/huffman.h"

/// Lengths and distances of matches as symbols with extra bits (RFC 1951 3.2.5).
namespace iaa::deflate {

inline constexpr unsigned kFirstLengthSymbol = 257;

struct SymbolRange {
    std::uint16_t base;
    std::uint8_t extra;  ///< extra bits

    constexpr SymbolRange(unsigned first, unsigned bits)
        : base(static_cast<std::uint16_t>(first)), extra(static_cast<std::uint8_t>(bits)) {}
};

inline constexpr std::array<SymbolRange, kLlSymbols - kFirstLengthSymbol> kLengthRanges = {{
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1},  {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3},  {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0},
}};

inline constexpr std::array<SymbolRange, kDSymbols> kDistanceRanges = {{
    {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
    {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
    {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
    {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13},
}};

/// Symbol of a match length 3 to 258. 258 has one of its own; the one before ends at 257.
constexpr unsigned length_symbol(unsigned length) {
    unsigned symbol = static_cast<unsigned>(kLengthRanges.size()) - 1;
    while (kLengthRanges[symbol].base > length) {
        --symbol;
    }
    return symbol + kFirstLengthSymbol;
}

/// Symbol of a distance of 1 to 32768: two symbols for each power of two.
constexpr unsigned distance_symbol(unsigned distance) {
    const unsigned value = distance - 1;
    if (value < 4) {
        return value;
    }
    const auto top = static_cast<unsigned>(std::bit_width(value)) - 1;
    return 2 * top + (value >> (top - 1) & 1);
}

}  // namespace iaa::deflate
