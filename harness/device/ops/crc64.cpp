// SPDX-License-Identifier: GPL-2.0
#include "device/ops/crc64.h"

#include <array>
#include <bit>
#include <cstddef>

namespace iaa::device {
namespace {

constexpr std::uint64_t kTop = 1ULL << 63U;

std::uint64_t reverse_bits(std::uint64_t value) {
    std::uint64_t result = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        result = result << 1U | (value >> bit & 1U);
    }
    return result;
}

/// Remainders of each byte value, for one bit order.
std::array<std::uint64_t, 256> make_table(std::uint64_t polynomial, bool bit_order) {
    std::array<std::uint64_t, 256> table{};
    for (std::size_t value = 0; value < table.size(); ++value) {
        std::uint64_t crc = bit_order ? value : static_cast<std::uint64_t>(value) << 56U;
        for (unsigned bit = 0; bit < 8; ++bit) {
            const bool carry = (crc & (bit_order ? 1 : kTop)) != 0;
            crc = bit_order ? crc >> 1U : crc << 1U;
            crc ^= carry ? polynomial : 0;
        }
        table[value] = crc;
    }
    return table;
}

}  // namespace

std::uint64_t crc64(std::span<const std::uint8_t> data, const Crc64Options& options) {
    std::uint64_t polynomial = options.polynomial;
    // The bits that the CRC is made of: from the polynomial's lowest term up. A shorter CRC is
    // inverted in those only.
    std::uint64_t mask =
        polynomial == 0 ? 0 : ~0ULL << static_cast<unsigned>(std::countr_zero(polynomial));
    if (options.bit_order) {
        polynomial = reverse_bits(polynomial);
        mask = reverse_bits(mask);
    }
    if (!options.invert) {
        mask = 0;
    }

    const auto table = make_table(polynomial, options.bit_order);
    std::uint64_t crc = mask;
    for (const std::uint8_t byte : data) {
        crc = options.bit_order ? table[(crc ^ byte) & 0xffU] ^ crc >> 8U
                                : table[(crc >> 56U) ^ byte] ^ crc << 8U;
    }
    return crc ^ mask;
}

}  // namespace iaa::device
