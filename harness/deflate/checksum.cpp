// SPDX-License-Identifier: GPL-2.0
#include "deflate/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace iaa::deflate {
namespace {

std::uint32_t crc_of(CrcKind kind, std::uint32_t crc, std::span<const std::uint8_t> bytes) {
    if (kind == CrcKind::kCrc32) {
        return crc32_gzip_refl(crc, bytes.data(), bytes.size());
    }
    // This one counts in int and inverts nothing; it reads only, whatever its signature says.
    constexpr std::size_t kChunk = std::size_t{1} << 30;
    std::uint32_t value = ~crc;
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), kChunk);
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
        value =
            crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(size), value);
        bytes = bytes.subspan(size);
    }
    return ~value;
}

std::uint16_t xor_words(std::span<const std::uint8_t> bytes) {
    std::uint64_t wide = 0;
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, &bytes[at], 8);
        wide ^= word;
    }
    static_assert(std::endian::native == std::endian::little);
    auto sum = static_cast<std::uint32_t>(wide ^ (wide >> 32));
    sum = (sum ^ (sum >> 16)) & 0xffff;
    for (; at < bytes.size(); ++at) {
        sum ^= static_cast<std::uint32_t>(bytes[at]) << (at % 2 * 8);
    }
    return static_cast<std::uint16_t>(sum);
}

}  // namespace

void Checksums::update(std::span<const std::uint8_t> bytes) {
    crc_ = crc_of(kind_, crc_, bytes);
    if (bytes.empty()) {
        return;
    }
    if (odd_) {
        xor_ = static_cast<std::uint16_t>(xor_ ^ (bytes[0] << 8));
        bytes = bytes.subspan(1);
        odd_ = false;
    }
    xor_ ^= xor_words(bytes);
    odd_ = bytes.size() % 2 != 0;
}

}  // namespace iaa::deflate
