// SPDX-License-Identifier: GPL-2.0
#include "insn_kind.h"

#include <gtest/gtest.h>

#include <vector>

namespace iaa::bench {
namespace {

using Code = std::vector<std::uint8_t>;

TEST(InsnKind, StringInstructionsRepeatOnlyWithThePrefix) {
    EXPECT_EQ(kind_of(Code{0xf3, 0xa4}), Kind::kRep);              // rep movsb
    EXPECT_EQ(kind_of(Code{0xf3, 0x48, 0xa5}), Kind::kRep);        // rep movsq
    EXPECT_EQ(kind_of(Code{0xf3, 0x48, 0xab}), Kind::kRep);        // rep stosq
    EXPECT_EQ(kind_of(Code{0xf2, 0xae}), Kind::kRep);              // repne scasb
    EXPECT_EQ(kind_of(Code{0x65, 0xf3, 0x66, 0xa7}), Kind::kRep);  // repe cmpsw, %gs
    EXPECT_EQ(kind_of(Code{0xa4}), Kind::kPlain);                  // movsb
    EXPECT_EQ(kind_of(Code{0x48, 0xa5}), Kind::kPlain);            // movsq
}

TEST(InsnKind, ThePrefixesMeanOtherThingsElsewhere) {
    EXPECT_EQ(kind_of(Code{0xf3, 0x90}), Kind::kPlain);                    // pause
    EXPECT_EQ(kind_of(Code{0xf3, 0x0f, 0x1e, 0xfa}), Kind::kPlain);        // endbr64
    EXPECT_EQ(kind_of(Code{0xf3, 0x48, 0x0f, 0xbc, 0xc7}), Kind::kPlain);  // tzcnt
    EXPECT_EQ(kind_of(Code{0x48, 0x89, 0xa4, 0x24, 0, 0, 0, 0}), Kind::kPlain);
}

TEST(InsnKind, Movdir64bIsKnownByItsBeginning) {
    EXPECT_EQ(kind_of(Code{0x66, 0x0f, 0x38, 0xf8, 0x02}), Kind::kMovdir64b);
    EXPECT_EQ(kind_of(Code{0x66, 0x0f, 0x38, 0xf8}), Kind::kMovdir64b);
    EXPECT_EQ(kind_of(Code{0x66, 0x41, 0x0f, 0x38, 0xf8, 0x02}), Kind::kMovdir64b);
    EXPECT_EQ(kind_of(Code{0xf3, 0x0f, 0x38, 0xf8, 0x02}), Kind::kPlain);  // enqcmds
    EXPECT_EQ(kind_of(Code{0x0f, 0x38, 0xf8, 0x02}), Kind::kPlain);
}

TEST(InsnKind, IretOfAnySize) {
    EXPECT_EQ(kind_of(Code{0x48, 0xcf}), Kind::kIret);
    EXPECT_EQ(kind_of(Code{0xcf}), Kind::kIret);
}

TEST(InsnKind, MarksAreTheirDisplacement) {
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 0, 0x49, 0x41, 0x41}), Kind::kCase);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 1, 0x49, 0x41, 0x41}), Kind::kBegin);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 2, 0x49, 0x41, 0x41}), Kind::kEnd);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 3, 0x49, 0x41, 0x41}), Kind::kCaseEnd);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 4, 0x49, 0x41, 0x41}), Kind::kPlain);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 0, 0, 0, 0}),
              Kind::kPlain);  // what compilers pad with
}

TEST(InsnKind, WhatIsCutShortIsPlain) {
    EXPECT_EQ(kind_of(Code{}), Kind::kPlain);
    EXPECT_EQ(kind_of(Code{0xf3}), Kind::kPlain);
    EXPECT_EQ(kind_of(Code{0xf3, 0x48}), Kind::kPlain);
    EXPECT_EQ(kind_of(Code{0x66, 0x0f, 0x38}), Kind::kPlain);
    EXPECT_EQ(kind_of(Code{0x0f, 0x1f, 0x80, 1, 0x49}), Kind::kPlain);
}

}  // namespace
}  // namespace iaa::bench
