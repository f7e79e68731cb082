// SPDX-License-Identifier: GPL-2.0
#include "insn_kind.h"

#include <algorithm>
#include <array>

namespace iaa::bench {
namespace {

// nopl 0x414149NN(%rax): NN says which mark it is.
constexpr std::array<std::uint8_t, 3> kMarkHead{0x0f, 0x1f, 0x80};
constexpr std::array<std::uint8_t, 3> kMarkTail{0x49, 0x41, 0x41};
constexpr std::array kMarks{Kind::kCase, Kind::kBegin, Kind::kEnd, Kind::kCaseEnd};

constexpr std::array<std::uint8_t, 10> kPrefixes{0x26, 0x2e, 0x36, 0x3e, 0x64,
                                                 0x65, 0x66, 0x67, 0xf2, 0xf3};
constexpr std::array<std::uint8_t, 3> kMovdir64bOpcode{0x0f, 0x38, 0xf8};
constexpr std::uint8_t kIretOpcode = 0xcf;

bool is_prefix(std::uint8_t byte) {
    return std::ranges::find(kPrefixes, byte) != kPrefixes.end();
}

// INS and OUTS; MOVS and CMPS; STOS, LODS and SCAS.
bool is_string_opcode(std::uint8_t byte) {
    return (byte >= 0x6c && byte <= 0x6f) || (byte >= 0xa4 && byte <= 0xa7) ||
           (byte >= 0xaa && byte <= 0xaf);
}

bool starts_with(std::span<const std::uint8_t> code, std::span<const std::uint8_t> what) {
    return code.size() >= what.size() && std::ranges::equal(code.first(what.size()), what);
}

bool is_mark(std::span<const std::uint8_t> code) {
    return code.size() == 7 && starts_with(code, kMarkHead) && code[3] < kMarks.size() &&
           starts_with(code.subspan(4), kMarkTail);
}

}  // namespace

Kind kind_of(std::span<const std::uint8_t> code) {
    if (is_mark(code)) {
        return kMarks[code[3]];
    }
    bool repeats = false;
    bool operand_size = false;
    for (; !code.empty() && is_prefix(code.front()); code = code.subspan(1)) {
        repeats = repeats || code.front() == 0xf2 || code.front() == 0xf3;
        operand_size = operand_size || code.front() == 0x66;
    }
    if (!code.empty() && (code.front() & 0xf0) == 0x40) {
        code = code.subspan(1);  // REX
    }
    if (code.empty()) {
        return Kind::kPlain;
    }
    if (repeats && is_string_opcode(code.front())) {
        return Kind::kRep;
    }
    if (operand_size && !repeats && starts_with(code, kMovdir64bOpcode)) {
        return Kind::kMovdir64b;
    }
    return code.front() == kIretOpcode ? Kind::kIret : Kind::kPlain;
}

}  // namespace iaa::bench
