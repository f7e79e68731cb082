// SPDX-License-Identifier: GPL-2.0
#include "unit/deflate/patterns.h"

#include <zlib.h>

#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "unit/deflate/foreign.h"

namespace iaa::test {
namespace {

constexpr std::size_t kPageSize = 4096;

Bytes repeat(std::string_view unit, std::size_t size) {
    Bytes bytes(size);
    for (std::size_t at = 0; at < size; ++at) {
        bytes[at] = static_cast<std::uint8_t>(unit[at % unit.size()]);
    }
    return bytes;
}

Bytes words(std::size_t size) {
    constexpr std::array<std::string_view, 12> kWords = {"the ", "page ", "of ",   "memory ",
                                                         "is ",  "kept ", "in ",   "queue ",
                                                         "and ", "then ", "read ", "back, "};
    Random random(7);
    Bytes bytes;
    while (bytes.size() < size) {
        const std::string_view word = kWords[random() % kWords.size()];
        bytes.insert(bytes.end(), word.begin(), word.end());
    }
    bytes.resize(size);
    return bytes;
}

// Eight-byte addresses close to each other.
Bytes pointers(std::size_t size) {
    Random random(11);
    Bytes bytes;
    while (bytes.size() < size) {
        std::uint64_t value = 0xffff888000000000ULL + (random() & 0xffffc0U);
        for (int byte = 0; byte < 8; ++byte, value >>= 8) {
            bytes.push_back(static_cast<std::uint8_t>(value));
        }
    }
    bytes.resize(size);
    return bytes;
}

Bytes half_far(std::size_t size) {
    Bytes bytes = random_bytes(size, 5);
    for (std::size_t at = size / 2; at < size; ++at) {
        bytes[at] = bytes[at - size / 2];
    }
    return bytes;
}

Bytes compressed(std::size_t size) {
    Bytes bytes;
    for (std::uint32_t seed = 0; bytes.size() < size; ++seed) {
        const Bytes part = zlib_deflate(words(4096 + seed), 9, Strategy::kDefault);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    bytes.resize(size);
    return bytes;
}

Bytes long_period(std::size_t period, std::size_t size) {
    const Bytes unit = random_bytes(period, static_cast<std::uint32_t>(period));
    Bytes bytes(size);
    for (std::size_t at = 0; at < size; ++at) {
        bytes[at] = unit[at % period];
    }
    return bytes;
}

}  // namespace

Bytes random_bytes(std::size_t size, std::uint32_t seed) {
    Random random(seed);
    Bytes bytes(size);
    for (std::uint8_t& byte : bytes) {
        byte = static_cast<std::uint8_t>(random());
    }
    return bytes;
}

Bytes unmatchable(std::size_t size, std::uint8_t lowest) {
    Random random(99);
    std::set<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>> seen;
    const unsigned values = 256U - lowest;
    Bytes bytes;
    while (bytes.size() < size) {
        const auto byte = static_cast<std::uint8_t>(lowest + random() % values);
        if (bytes.size() >= 2 &&
            !seen.emplace(bytes[bytes.size() - 2], bytes.back(), byte).second) {
            continue;
        }
        bytes.push_back(byte);
    }
    return bytes;
}

Bytes match_at_distance(std::size_t distance) {
    constexpr std::uint8_t kLowest = 192;
    Bytes bytes = unmatchable(distance, kLowest);
    for (int copied = 0; copied < 16; ++copied) {
        bytes.push_back(bytes[bytes.size() - distance]);
    }
    return bytes;
}

std::vector<Pattern> patterns(std::size_t size) {
    return {
        {"zero", Bytes(size)},
        {"same", Bytes(size, 0xa5)},
        {"period-2", repeat("ab", size)},
        {"period-3", repeat("abc", size)},
        {"period-7", repeat("abcdefg", size)},
        {"period-8", repeat("abcdefgh", size)},
        {"period-34", long_period(34, size)},
        {"period-35", long_period(35, size)},
        {"period-258", long_period(258, size)},
        {"period-259", long_period(259, size)},
        {"period-4095", long_period(4095, size)},
        {"period-4096", long_period(4096, size)},
        {"period-4097", long_period(4097, size)},
        {"words", words(size)},
        {"pointers", pointers(size)},
        {"random", random_bytes(size, 1)},
        {"high-random", unmatchable(std::min<std::size_t>(size, 65536), 144)},
        {"half-far", half_far(size)},
        {"compressed", compressed(size)},
    };
}

std::vector<std::size_t> interesting_sizes() {
    return {0,   1,    2,    3,    4,    5,    6,    7,    8,    9,     15,    16,
            17,  31,   32,   33,   34,   35,   64,   255,  256,  257,   258,   259,
            260, 1000, 2048, 4095, 4096, 4097, 4100, 8192, 8193, 16384, 65535, 65536};
}

std::vector<Bytes> sample_pages(std::size_t step) {
    const std::string path = IAA_TEST_DATA "/silesia7-sample.pages.gz";
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (!file) {
        throw std::runtime_error("cannot open " + path);
    }
    std::vector<Bytes> pages;
    Bytes page(kPageSize);
    for (std::size_t index = 0;
         gzread(file.get(), page.data(), kPageSize) == static_cast<int>(kPageSize); ++index) {
        if (index % step == 0) {
            pages.push_back(page);
        }
    }
    if (pages.empty()) {
        throw std::runtime_error("no page in " + path);
    }
    return pages;
}

std::string read_data(const std::string& name) {
    const std::string path = std::string(IAA_TEST_DATA) + "/" + name;
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot open " + path);
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

Bytes from_hex(const std::string& hex) {
    Bytes bytes;
    for (std::size_t at = 0; at + 2 <= hex.size(); at += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(at, 2), nullptr, 16)));
    }
    return bytes;
}

}  // namespace iaa::test
