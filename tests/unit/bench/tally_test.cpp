// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <gtest/gtest.h>

namespace iaa::bench {
namespace {

Insn plain(std::uint64_t address) {
    return {.address = address};
}

class TallyTest : public testing::Test {
  protected:
    void run(Insn& insn, int times = 1) {
        for (int i = 0; i < times; ++i) {
            tally_.execute(insn);
        }
    }

    Tally tally_;
    Insn first_ = plain(0x1000);
    Insn second_ = plain(0x1004);
};

TEST_F(TallyTest, CountsWhatIsExecutedAndWhere) {
    tally_.begin();
    run(first_, 3);
    run(second_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.raw, 4U);
    EXPECT_EQ(operation.emulated, 0U);
    EXPECT_EQ(operation.folded, 4U);
    ASSERT_EQ(operation.counts.size(), 2U);
    EXPECT_EQ(operation.counts[0].address, first_.address);
    EXPECT_EQ(operation.counts[0].executed, 3U);
    EXPECT_EQ(operation.counts[0].first, 0U);
    EXPECT_EQ(operation.counts[1].executed, 1U);
    EXPECT_EQ(operation.counts[1].first, 3U);
}

TEST_F(TallyTest, EveryOperationBeginsAtNothing) {
    tally_.begin();
    run(first_, 3);
    tally_.begin();
    run(first_);
    EXPECT_EQ(tally_.end().folded, 1U);
    tally_.begin();
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.raw, 0U);
    EXPECT_TRUE(operation.counts.empty());
}

TEST_F(TallyTest, ARepeatedInstructionIsOne) {
    Insn rep{.address = 0x2000, .kind = Kind::kRep};
    tally_.begin();
    run(first_);
    run(rep, 4096);
    run(second_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.raw, 4098U);
    EXPECT_EQ(operation.folded, 3U);
}

TEST_F(TallyTest, TheSameOneAgainIsAnother) {
    Insn rep{.address = 0x2000, .kind = Kind::kRep};
    tally_.begin();
    run(rep, 10);
    run(first_);
    run(rep, 10);
    EXPECT_EQ(tally_.end().folded, 3U);
    // What the last operation ended with does not fold into the next one.
    tally_.begin();
    run(rep, 10);
    EXPECT_EQ(tally_.end().folded, 1U);
}

TEST_F(TallyTest, PlainInstructionsInARowAreNotFolded) {
    tally_.begin();
    run(first_, 5);
    EXPECT_EQ(tally_.end().folded, 5U);
}

class EmulationTest : public TallyTest {
  protected:
    Insn movdir64b_{.address = 0x1000, .kind = Kind::kMovdir64b};
    Insn behind_ = plain(0x1005);
    Insn handler_ = plain(0x9000);
    Insn rep_{.address = 0x9004, .kind = Kind::kRep};
    Insn iret_{.address = 0x9008, .kind = Kind::kIret};
    Insn irq_ = plain(0x8000);
    Insn irq_iret_{.address = 0x8004, .kind = Kind::kIret};
};

TEST_F(EmulationTest, TheHandlerIsApart) {
    tally_.begin();
    run(movdir64b_);
    run(handler_, 700);
    run(rep_, 8);
    run(iret_);
    run(behind_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.raw, 711U);
    EXPECT_EQ(operation.emulated, 709U);
    EXPECT_EQ(operation.folded, 2U);
    EXPECT_EQ(operation.counts.size(), 2U);
}

TEST_F(EmulationTest, AnInterruptRightBehindIsNotTheHandlers) {
    tally_.begin();
    run(movdir64b_);
    run(handler_, 700);
    run(iret_);
    run(irq_, 300);
    run(irq_iret_);
    run(behind_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.emulated, 701U);
    EXPECT_EQ(operation.folded, 303U);
}

TEST_F(EmulationTest, AnIretWithoutEmulationIsLikeAnyOther) {
    tally_.begin();
    run(first_);
    run(irq_, 300);
    run(irq_iret_);
    run(second_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.emulated, 0U);
    EXPECT_EQ(operation.folded, 303U);
}

TEST_F(EmulationTest, WhereTheInstructionIsKnownNothingIsEmulated) {
    tally_.begin();
    run(movdir64b_);
    run(behind_);
    run(first_);
    const Operation operation = tally_.end();
    EXPECT_EQ(operation.emulated, 0U);
    EXPECT_EQ(operation.folded, 3U);
}

TEST_F(EmulationTest, AnOperationThatEndsInTheHandlerLeavesNothingBehind) {
    tally_.begin();
    run(movdir64b_);
    run(handler_);
    tally_.begin();
    run(handler_, 2);
    EXPECT_EQ(tally_.end().emulated, 0U);
}

}  // namespace
}  // namespace iaa::bench
