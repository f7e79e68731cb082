// SPDX-License-Identifier: GPL-2.0
#include "device/model/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

namespace iaa::test {
namespace {

using device::Log;
using device::LogLevel;

class LogTest : public ::testing::Test {
  protected:
    struct Close {
        void operator()(std::FILE* file) const { (void)std::fclose(file); }
    };

    std::string text() {
        std::rewind(file_.get());
        std::string result;
        std::array<char, 4096> chunk{};
        while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file_.get())) {
            result.append(chunk.data(), got);
        }
        return result;
    }
    static std::size_t lines(const std::string& text) {
        return static_cast<std::size_t>(std::ranges::count(text, '\n'));
    }

    std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
};

TEST_F(LogTest, LinesBelowTheLevelAreNotPrinted) {
    Log log(LogLevel::kInfo, file_.get());
    log.error("one {}", 1);
    log.info("two");
    log.debug("three");
    log.rule("four", "because of {}", 4);
    EXPECT_EQ(text(),
              "iaa-device: error: one 1\niaa-device: info: two\n"
              "iaa-device: warning: [four] because of 4\n");
}

TEST_F(LogTest, RulesAreCountedEvenWhereTheyAreNotPrinted) {
    Log log(LogLevel::kError, file_.get());
    log.rule("a", "x");
    log.rule("a", "x");
    log.rule("b", "x");
    EXPECT_EQ(text(), "");
    EXPECT_EQ(log.rule_count("a"), 2U);
    EXPECT_EQ(log.rule_count("c"), 0U);
    EXPECT_EQ(log.rules_broken(), (std::map<std::string, std::uint64_t>{{"a", 2}, {"b", 1}}));
}

TEST_F(LogTest, AFloodIsHeldBackAndCounted) {
    Log log(LogLevel::kInfo, file_.get());
    for (int i = 0; i < 10000; ++i) {
        log.rule("flood", "{}", i);
    }
    log.rule("other", "one");  // has its own limit
    const std::string first = text();
    EXPECT_LT(lines(first), 20U);
    EXPECT_NE(first.find("[other] one"), std::string::npos);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    log.rule("flood", "after");
    const std::string all = text();
    EXPECT_NE(all.find("[flood] after ("), std::string::npos);
    EXPECT_NE(all.find("like it held back)"), std::string::npos);
    EXPECT_EQ(log.rule_count("flood"), 10001U);
}

TEST_F(LogTest, EventsAreHeldBackToo) {
    Log log(LogLevel::kInfo, file_.get());
    for (int i = 0; i < 10000; ++i) {
        log.event("reset", "device reset");
    }
    const std::string printed = text();
    EXPECT_LT(lines(printed), 20U);
    EXPECT_TRUE(printed.starts_with("iaa-device: info: device reset\n"));
    EXPECT_TRUE(log.rules_broken().empty());
}

}  // namespace
}  // namespace iaa::test
