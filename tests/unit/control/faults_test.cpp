// SPDX-License-Identifier: GPL-2.0
#include "device/control/faults.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "control/fake_target.h"

namespace iaa::test {
namespace {

using device::control::FaultRule;
using device::control::FaultTable;

FaultRule rule(device::control::FaultTrigger trigger = {}, device::control::FaultMatch match = {}) {
    FaultRule result{.match = match, .trigger = trigger, .actions = {}};
    result.actions.never_complete = true;
    return result;
}

/// Which of the next `count` descriptors a rule hits, counted from 1.
std::vector<int> hits(FaultTable& table, int count,
                      const device::Descriptor& what = descriptor(kCompress)) {
    std::vector<int> result;
    for (int i = 1; i <= count; ++i)
        if (table.decide(what, 0)) result.push_back(i);
    return result;
}

TEST(Faults, WithoutRulesNothingHappens) {
    FaultTable table;
    EXPECT_FALSE(table.decide(descriptor(kCompress), 0));
    EXPECT_FALSE(table.at_portal(descriptor(kCompress), 0));
}

TEST(Faults, Triggers) {
    FaultTable table;
    const auto of = [&](device::control::FaultTrigger trigger) {
        table.clear();
        table.add(rule(trigger));
        return hits(table, 10);
    };
    using V = std::vector<int>;
    EXPECT_EQ(of({}), (V{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    EXPECT_EQ(of({.count = 1}), (V{1}));
    EXPECT_EQ(of({.every = 3}), (V{3, 6, 9}));
    EXPECT_EQ(of({.every = 0}), (V{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    EXPECT_EQ(of({.after = 7}), (V{8, 9, 10}));
    EXPECT_EQ(of({.after = 2, .every = 3, .count = 2}), (V{5, 8}));
    EXPECT_EQ(of({.after = 4, .count = 1}), (V{5}));
    EXPECT_EQ(of({.probability = 0}), V{});
}

TEST(Faults, ProbabilityIsRepeatableAndRoughlyRight) {
    FaultTable table;
    table.add(rule({.probability = 0.25, .seed = 42}));
    const auto first = hits(table, 4000);
    EXPECT_GT(first.size(), 850U);
    EXPECT_LT(first.size(), 1150U);
    table.reset();
    EXPECT_EQ(hits(table, 4000), first);
    FaultTable other;
    other.add(rule({.probability = 0.25, .seed = 43}));
    EXPECT_NE(hits(other, 4000), first);
}

TEST(Faults, Matching) {
    const auto matches = [](device::control::FaultMatch match, const device::Descriptor& what,
                            std::uint32_t wq = 0) { return match.matches(what, wq); };
    EXPECT_TRUE(matches({}, descriptor(0xff)));
    EXPECT_TRUE(matches({.opcode = kCompress}, descriptor(kCompress)));
    EXPECT_FALSE(matches({.opcode = kCompress}, descriptor(kDecompress)));
    EXPECT_TRUE(matches({.wq = 2}, descriptor(kCompress), 2));
    EXPECT_FALSE(matches({.wq = 2}, descriptor(kCompress), 1));
    EXPECT_TRUE(matches({.verify = true}, descriptor(kDecompress, 1, kSuppress | 0xf)));
    EXPECT_FALSE(matches({.verify = true}, descriptor(kDecompress, 1, 0xf)));
    EXPECT_FALSE(matches({.verify = true}, descriptor(kCompress, 1, kSuppress)))
        << "not that flag there";
    EXPECT_TRUE(matches({.verify = false}, descriptor(kCompress, 1, kSuppress)));
    EXPECT_FALSE(matches({.verify = false}, descriptor(kDecompress, 1, kSuppress)));
    EXPECT_TRUE(matches({.min_size = 10, .max_size = 20}, descriptor(1, 10)));
    EXPECT_TRUE(matches({.min_size = 10, .max_size = 20}, descriptor(1, 20)));
    EXPECT_FALSE(matches({.min_size = 10, .max_size = 20}, descriptor(1, 9)));
    EXPECT_FALSE(matches({.min_size = 10, .max_size = 20}, descriptor(1, 21)));
}

TEST(Faults, OnlyWhatMatchesIsCounted) {
    FaultTable table;
    table.add(rule({.every = 2}, {.opcode = kDecompress}));
    EXPECT_TRUE(hits(table, 10, descriptor(kCompress)).empty());
    EXPECT_EQ(hits(table, 4, descriptor(kDecompress)), (std::vector<int>{2, 4}));
    const auto list = table.list();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].matched, 4U);
    EXPECT_EQ(list[0].fired, 2U);
    EXPECT_FALSE(list[0].spent);
}

TEST(Faults, TheFirstThatFiresWins) {
    FaultTable table;
    const auto once = table.add(rule({.count = 1}));
    const auto always = table.add(rule());
    EXPECT_EQ(table.decide(descriptor(1), 0).rule, once);
    EXPECT_EQ(table.decide(descriptor(1), 0).rule, always);
    EXPECT_TRUE(table.list()[0].spent);
    EXPECT_EQ(table.list()[1].matched, 1U);
}

TEST(Faults, DropsAreForThePortalAlone) {
    FaultTable table;
    FaultRule drop;
    drop.actions.drop = true;
    table.add(drop);
    EXPECT_FALSE(table.decide(descriptor(1), 0));
    EXPECT_TRUE(table.at_portal(descriptor(1), 0));
    table.clear();
    table.add(rule());
    EXPECT_FALSE(table.at_portal(descriptor(1), 0));
    EXPECT_TRUE(table.decide(descriptor(1), 0));
}

TEST(Faults, ClearAndReset) {
    FaultTable table;
    const auto a = table.add(rule({.count = 1}));
    const auto b = table.add(rule());
    EXPECT_NE(a, b);
    EXPECT_TRUE(table.decide(descriptor(1), 0));
    table.reset();
    EXPECT_EQ(table.decide(descriptor(1), 0).rule, a);
    EXPECT_TRUE(table.clear(a));
    EXPECT_FALSE(table.clear(a));
    EXPECT_EQ(table.decide(descriptor(1), 0).rule, b);
    table.clear();
    EXPECT_FALSE(table.decide(descriptor(1), 0));
    EXPECT_GT(table.add(rule()), b) << "an id has been used again";
}

TEST(Faults, FromManyThreads) {
    FaultTable table;
    table.add(rule({.every = 10, .count = 100}));
    std::atomic<int> fired{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (int n = 0; n < 1000; ++n)
                    if (table.decide(descriptor(kCompress), 0)) ++fired;
            });
        for (int n = 0; n < 100; ++n) (void)table.list();
    }
    EXPECT_EQ(fired, 100);
}

}  // namespace
}  // namespace iaa::test
