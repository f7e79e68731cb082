// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/model/iaa_device.h"
#include "device/model/log.h"
#include "device/model/profile.h"
#include "device/model/registers.h"
#include "fuzz/vfio_user/client.h"

namespace iaa::test {
namespace {

namespace reg = device::reg;

std::filesystem::path seed_path(const std::string& name) {
    return std::filesystem::path(IAA_SEEDS) / name;
}

/// A device that one of the fuzzers' first inputs has been played to, as fuzz_device does.
struct Played {
    explicit Played(const std::string& name)
        : nowhere(std::fopen("/dev/null", "w"), &std::fclose),
          log(device::LogLevel::kError, nowhere.get()) {
        std::ifstream file(seed_path(name), std::ios::binary);
        const std::vector<std::uint8_t> input{std::istreambuf_iterator<char>(file),
                                              std::istreambuf_iterator<char>()};
        const std::uint8_t first = input.empty() ? 0 : input[0];
        device::IaaDevice::Options options;
        options.inline_execution = (first & 0x40U) == 0;
        device = std::make_unique<device::IaaDevice>(
            device::Profile::named((first & 0x80U) != 0 ? "gnr" : "spr"), log, options);
        fuzz::play(*device, input);
    }

    [[nodiscard]] device::control::CounterSnapshot counters() {
        return device->counters().snapshot();
    }
    [[nodiscard]] std::uint32_t read32(std::uint64_t offset) {
        std::array<std::byte, 4> bytes{};
        device->region_read(0, offset, bytes);
        return std::bit_cast<std::uint32_t>(bytes);
    }

    std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere;
    device::Log log;
    std::unique_ptr<device::IaaDevice> device;
};

using Counts = std::map<std::uint8_t, std::uint64_t>;

struct Expected {
    Counts opcodes;
    Counts statuses;
};

// A seed that breaks a rule on its way to what it is for fuzzes that rule and nothing else.
TEST(Seeds, DescriptorsEndAsTheirNamesSay) {
    const std::map<std::string, Expected> all{
        {"noop", {{{0x00, 1}}, {{0x01, 1}}}},
        {"crc64", {{{0x44, 1}}, {{0x01, 1}}}},
        {"statistics", {{{0x43, 1}}, {{0x01, 1}}}},
        {"compress", {{{0x43, 1}}, {{0x01, 1}}}},
        {"decompress", {{{0x42, 1}, {0x43, 1}}, {{0x01, 2}}}},
        {"wrong-handle", {{{0x00, 1}}, {{0x19, 1}}}},
    };
    for (const auto& [name, expected] : all) {
        Played played(name);
        EXPECT_EQ(played.counters().by_opcode, expected.opcodes) << name;
        EXPECT_EQ(played.counters().by_status, expected.statuses) << name;
        EXPECT_EQ(played.read32(reg::kGenSts) & 3, 1U) << name;
    }
}

TEST(Seeds, MessagesOfNobodyAreAFault) {
    // The client has sent all that it has to say, and answers no DMA.
    Played played("crc64-by-messages");
    EXPECT_EQ(played.counters().by_status, (Counts{{0x03, 1}}));
}

TEST(Seeds, CommandsAreCommands) {
    Played played("commands");
    EXPECT_EQ(
        played.counters().by_command,
        (Counts{
            {1, 1}, {2, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}, {10, 1}, {12, 1}, {13, 1}, {31, 1}}));
}

TEST(Seeds, TheEventLogHasItsEntry) {
    Played played("event-log");
    EXPECT_EQ(played.read32(reg::kEvlStatus + 4) & 0xffff, 1U);
    EXPECT_EQ(played.read32(reg::kSwErr), 0U);
}

TEST(Seeds, ThePortalIsReached) {
    Played played("portal");
    EXPECT_EQ(played.counters().total.dropped, 1U);
    EXPECT_EQ(played.log.rule_count("portal-disabled"), 1U);
}

TEST(Seeds, EngineThreadsAreReached) {
    Played played("threads");
    EXPECT_EQ(played.counters().total.accepted, 9U);
}

TEST(Seeds, RegistersAreRead) {
    EXPECT_TRUE(Played("registers").log.rules_broken().empty());
}

TEST(Seeds, AllOfThemCanBePlayed) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(IAA_SEEDS)) {
        Played played(entry.path().filename().string());
        ++count;
    }
    EXPECT_GE(count, 20U);
}

}  // namespace
}  // namespace iaa::test
