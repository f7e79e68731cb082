// SPDX-License-Identifier: GPL-2.0
#include "deflate/accumulator.h"

namespace iaa::deflate {

bool Accumulator::append(std::uint32_t value, unsigned count) {
    if (count > 32 || count > kMaxBits - bits) {
        return false;
    }
    const std::uint64_t masked = value & ((std::uint64_t{1} << count) - 1);
    std::uint64_t shifted = masked << (bits % 8);
    // At most 7 + 32 bits from the current byte on.
    for (std::uint32_t byte = bits / 8; shifted != 0; ++byte, shifted >>= 8) {
        bytes[byte] = static_cast<std::uint8_t>(bytes[byte] | (shifted & 0xff));
    }
    bits += count;
    return true;
}

}  // namespace iaa::deflate
