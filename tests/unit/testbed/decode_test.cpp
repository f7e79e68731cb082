// SPDX-License-Identifier: GPL-2.0
// The decoder of 64-byte stores, checked against what the assembler makes of each form.
extern "C" {
#include "scripts/testbed/movdir64b/decode.h"
}

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kRax = 0;
constexpr std::size_t kRcx = 1;
constexpr std::size_t kRdx = 2;
constexpr std::size_t kRsi = 6;

using Code = std::span<const std::uint8_t>;

// FORM(NAME, INSTRUCTION): what the assembler makes of it, never executed.
#define FORM(name, instruction)                                                          \
    asm(".section .rodata\n" #name "_begin:\n" instruction "\n" #name "_end:\n.text\n"); \
    extern "C" const std::uint8_t name##_begin[];                                        \
    extern "C" const std::uint8_t name##_end[];

}  // namespace

FORM(kernels_own, "movdir64b (%rdx), %rax")
FORM(high_registers, "movdir64b (%r9), %r15")
FORM(displacement8, "movdir64b -64(%rsi), %rdi")
FORM(displacement32, "movdir64b 0x12345678(%rbx), %rcx")
FORM(stack_base, "movdir64b 8(%rsp), %rbp")
FORM(r12_base, "movdir64b (%r12), %rax")
FORM(rbp_base, "movdir64b (%rbp), %rax")
FORM(r13_base, "movdir64b (%r13), %rax")
FORM(scaled, "movdir64b 0x40(%rax,%rcx,8), %rdx")
FORM(scaled_high, "movdir64b (%r8,%r14,4), %r11")
FORM(r12_index, "movdir64b (%rax,%r12,2), %rbx")
FORM(rbp_base_scaled, "movdir64b (%rbp,%rax,1), %rbx")
FORM(no_base, "movdir64b 0x1000(,%rcx,4), %rdx")
FORM(absolute, "movdir64b 0x2000, %rdx")
FORM(rip, "movdir64b 0x100(%rip), %rax")
FORM(short_address, "movdir64b (%edx), %eax")
FORM(gs_segment, "movdir64b %gs:(%rdx), %rax")
FORM(ds_segment, ".byte 0x3e\nmovdir64b (%rdx), %rax")
FORM(enqueue, "enqcmd (%rdx), %rax")
FORM(enqueue_supervisor, "enqcmds 0x40(%r10), %r9")
FORM(other_instruction, "movdiri %rax, (%rdx)")
FORM(illegal, "ud2")

namespace {

#define CODE(name) Code(name##_begin, static_cast<std::size_t>(name##_end - name##_begin))

// What was decoded, without the length: "mov rax <- rdx", in the instruction set's register names.
std::string describe(const store64_insn& insn) {
    static constexpr std::array<const char*, 16> kNames = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                           "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                           "r12", "r13", "r14", "r15"};
    static constexpr std::array<const char*, 3> kOps = {"mov", "enq", "enqs"};
    std::string text = fmt::format("{} {} <-", kOps.at(insn.op), kNames.at(insn.dst_reg));
    if (insn.segment) {
        text += " segment";
    }
    if (insn.rip_relative) {
        text += " rip";
    }
    if (insn.base != STORE64_NO_REG) {
        text += fmt::format(" {}", kNames.at(insn.base));
    }
    if (insn.index != STORE64_NO_REG) {
        text += fmt::format(" {}*{}", kNames.at(insn.index), 1 << insn.scale);
    }
    if (insn.disp != 0) {
        text += fmt::format(" {}", insn.disp);
    }
    return insn.short_address ? text + " short" : text;
}

std::vector<std::pair<Code, std::string>> forms() {
    return {
        {CODE(kernels_own), "mov rax <- rdx"},
        {CODE(high_registers), "mov r15 <- r9"},
        {CODE(displacement8), "mov rdi <- rsi -64"},
        {CODE(displacement32), "mov rcx <- rbx 305419896"},
        {CODE(stack_base), "mov rbp <- rsp 8"},
        {CODE(r12_base), "mov rax <- r12"},
        {CODE(rbp_base), "mov rax <- rbp"},
        {CODE(r13_base), "mov rax <- r13"},
        {CODE(scaled), "mov rdx <- rax rcx*8 64"},
        {CODE(scaled_high), "mov r11 <- r8 r14*4"},
        {CODE(r12_index), "mov rbx <- rax r12*2"},
        {CODE(rbp_base_scaled), "mov rbx <- rbp rax*1"},
        {CODE(no_base), "mov rdx <- rcx*4 4096"},
        {CODE(absolute), "mov rdx <- 8192"},
        {CODE(rip), "mov rax <- rip 256"},
        {CODE(short_address), "mov rax <- rdx short"},
        {CODE(gs_segment), "mov rax <- segment rdx"},
        {CODE(ds_segment), "mov rax <- rdx"},
        {CODE(enqueue), "enq rax <- rdx"},
        {CODE(enqueue_supervisor), "enqs r9 <- r10 64"},
    };
}

TEST(Store64Decode, KnowsWhatTheAssemblerMakes) {
    for (const auto& [code, text] : forms()) {
        SCOPED_TRACE(text);
        store64_insn insn{};
        ASSERT_TRUE(store64_decode(code.data(), code.size(), &insn));
        EXPECT_EQ(describe(insn), text);
        EXPECT_EQ(insn.length, code.size());
    }
}

TEST(Store64Decode, IgnoresWhatFollows) {
    for (const auto& [code, text] : forms()) {
        SCOPED_TRACE(text);
        std::vector<std::uint8_t> longer(code.begin(), code.end());
        longer.resize(STORE64_MAX_LENGTH + 5, 0xcc);
        store64_insn insn{};
        ASSERT_TRUE(store64_decode(longer.data(), longer.size(), &insn));
        EXPECT_EQ(insn.length, code.size());
    }
}

TEST(Store64Decode, RefusesEveryTruncation) {
    for (const auto& [code, text] : forms()) {
        for (std::size_t size = 0; size < code.size(); ++size) {
            SCOPED_TRACE(fmt::format("{} cut to {} bytes", text, size));
            const Code cut = code.first(size);
            // A copy of its own, so that a sanitizer sees a byte read too many.
            const std::vector<std::uint8_t> copy(cut.begin(), cut.end());
            store64_insn insn{};
            EXPECT_FALSE(store64_decode(copy.data(), copy.size(), &insn));
        }
    }
}

TEST(Store64Decode, RefusesOtherInstructions) {
    const std::vector<std::vector<std::uint8_t>> others = {
        {CODE(other_instruction).begin(), CODE(other_instruction).end()},
        {CODE(illegal).begin(), CODE(illegal).end()},
        {0x66, 0x0f, 0x38, 0xf8, 0xc2},        // a register where memory has to be
        {0x0f, 0x38, 0xf8, 0x02},              // no prefix that says which one
        {0xf0, 0x66, 0x0f, 0x38, 0xf8, 0x02},  // LOCK
        {0x66, 0x0f, 0x38, 0xf9, 0x02},
        {0x66, 0x0f, 0x3a, 0xf8, 0x02},
        std::vector<std::uint8_t>(20, 0x66),
    };
    for (const auto& code : others) {
        store64_insn insn{};
        EXPECT_FALSE(store64_decode(code.data(), code.size(), &insn));
    }
}

TEST(Store64Decode, RefusesMoreThanFifteenBytes) {
    std::vector<std::uint8_t> code(11, 0x66);
    code.insert(code.end(), {0x0f, 0x38, 0xf8, 0x02});
    store64_insn insn{};
    ASSERT_TRUE(store64_decode(code.data(), code.size(), &insn));
    EXPECT_EQ(insn.length, 15);
    code.insert(code.begin(), 0x66);
    EXPECT_FALSE(store64_decode(code.data(), code.size(), &insn));
}

TEST(Store64Decode, CountsARexPrefixOnlyInFrontOfTheOpcode) {
    const std::array<std::uint8_t, 6> before = {0x45, 0x66, 0x0f, 0x38, 0xf8, 0x02};
    const std::array<std::uint8_t, 6> behind = {0x66, 0x45, 0x0f, 0x38, 0xf8, 0x02};
    store64_insn insn{};
    ASSERT_TRUE(store64_decode(before.data(), before.size(), &insn));
    EXPECT_EQ(describe(insn), "mov rax <- rdx");
    ASSERT_TRUE(store64_decode(behind.data(), behind.size(), &insn));
    EXPECT_EQ(describe(insn), "mov r8 <- r10");
}

class Store64Address : public testing::Test {
  protected:
    Store64Address() {
        for (std::size_t i = 0; i < regs_.size(); ++i) {
            regs_[i] = 0xffff888000000000ULL + i * 0x100000;
        }
    }

    store64_insn decode(Code code) {
        store64_insn insn{};
        EXPECT_TRUE(store64_decode(code.data(), code.size(), &insn));
        return insn;
    }

    std::array<u64, 16> regs_{};
};

TEST_F(Store64Address, AddsBaseIndexAndDisplacement) {
    regs_[kRcx] = 5;
    const auto insn = decode(CODE(scaled));
    EXPECT_EQ(store64_source(&insn, regs_.data(), 0), regs_[kRax] + 0x68);
    EXPECT_EQ(store64_destination(&insn, regs_.data()), regs_[kRdx]);
}

TEST_F(Store64Address, SubtractsANegativeDisplacement) {
    const auto insn = decode(CODE(displacement8));
    EXPECT_EQ(store64_source(&insn, regs_.data(), 0), regs_[kRsi] - 64);
}

TEST_F(Store64Address, StartsFromTheNextInstruction) {
    const auto insn = decode(CODE(rip));
    EXPECT_EQ(store64_source(&insn, regs_.data(), 0xffffffff81000010ULL), 0xffffffff81000110ULL);
}

TEST_F(Store64Address, CutsShortAddresses) {
    const auto insn = decode(CODE(short_address));
    EXPECT_EQ(store64_source(&insn, regs_.data(), 0), regs_[kRdx] & 0xffffffffULL);
    EXPECT_EQ(store64_destination(&insn, regs_.data()), regs_[kRax] & 0xffffffffULL);
}

}  // namespace
