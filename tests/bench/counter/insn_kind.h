// SPDX-License-Identifier: GPL-2.0
#ifndef IAA_BENCH_INSN_KIND_H
#define IAA_BENCH_INSN_KIND_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace iaa::bench {

// No x86 instruction is longer.
inline constexpr std::size_t kMaxInsnLength = 15;

// What an instruction is to the counter.
enum class Kind : std::uint8_t {
    kPlain,
    kRep,        // a string instruction that repeats itself
    kMovdir64b,  // raises the invalid-opcode exception, whose handler carries it out
    kIret,       // the end of an interrupt or an exception
    kCase,       // the marks of tests/vm/modules/acomp_count/mark.h
    kBegin,
    kEnd,
    kCaseEnd,
};

// The kind of an instruction of 64-bit code; of one that QEMU does not know, its beginning is
// enough.
Kind kind_of(std::span<const std::uint8_t> code);

}  // namespace iaa::bench

#endif
