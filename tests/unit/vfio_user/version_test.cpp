// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/version.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "device/vfio_user/protocol.h"
#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using device::vfio_user::Limits;
using device::vfio_user::negotiate;
using device::vfio_user::Negotiation;

constexpr Limits kOwn{.max_transfer = 1U << 20, .max_dma_maps = 1000};

std::vector<std::byte> request(std::uint16_t major, std::uint16_t minor, std::string_view text) {
    std::vector<std::byte> payload(4);
    std::memcpy(payload.data(), &major, 2);
    std::memcpy(payload.data() + 2, &minor, 2);
    for (const char c : text) payload.push_back(static_cast<std::byte>(c));
    return payload;
}

std::optional<Negotiation> ask(std::string_view json, std::string* why = nullptr) {
    std::string problem;
    std::string text(json);
    text.push_back('\0');
    auto result = negotiate(request(0, 0, text), kOwn, problem);
    EXPECT_EQ(result.has_value(), problem.empty());
    if (why != nullptr) *why = problem;
    return result;
}

nlohmann::json json_of(const Negotiation& negotiation) {
    const auto* text = reinterpret_cast<const char*>(negotiation.payload.data()) + 4;
    EXPECT_EQ(std::to_integer<int>(negotiation.payload.back()), 0);
    return nlohmann::json::parse(std::string_view(text));
}

TEST(Version, AnswersQemuWithinTheLengthOfItsRequest) {
    constexpr std::string_view kRequest =
        R"({"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, )"
        R"("max_msg_fds": 16, "max_data_xfer_size": 1048576, "pgsizes": 4096, )"
        R"("max_dma_maps": 65535, "write_multiple": true}})";
    const auto result = ask(kRequest);
    ASSERT_TRUE(result);
    EXPECT_LE(result->payload.size(), 4 + kRequest.size() + 1);
    const auto capabilities = json_of(*result)["capabilities"];
    EXPECT_EQ(capabilities["max_msg_fds"], 16);
    EXPECT_EQ(capabilities["write_multiple"], true);
    EXPECT_EQ(capabilities["max_dma_maps"], 1000);
    EXPECT_EQ(capabilities["max_data_xfer_size"], 1048576);
    EXPECT_EQ(result->limits.max_dma_maps, 1000U);
}

TEST(Version, TakesTheSmallerLimit) {
    const auto result = ask(R"({"capabilities":{"max_data_xfer_size":65536,"max_dma_maps":3}})");
    ASSERT_TRUE(result);
    EXPECT_EQ(result->limits.max_transfer, 65536U);
    EXPECT_EQ(result->limits.max_dma_maps, 3U);
}

TEST(Version, OffersWriteMultipleOnlyToThoseWhoAsk) {
    const auto without =
        ask(R"({"capabilities":{"max_msg_fds":8,"write_multiple":false,"pgsizes":4096}})");
    ASSERT_TRUE(without);
    EXPECT_FALSE(json_of(*without)["capabilities"].contains("write_multiple"));
}

TEST(Version, ReplyNeverOutgrowsTheRequest) {
    for (const std::string_view json :
         {"{}", R"({"a":1})", R"({"capabilities":{}})", R"({"capabilities":{"max_msg_fds":1}})"}) {
        const auto result = ask(json);
        ASSERT_TRUE(result) << json;
        EXPECT_LE(result->payload.size(), 4 + json.size() + 1) << json;
        EXPECT_NO_THROW(json_of(*result)) << json;
    }
    std::string problem;
    const auto bare = negotiate(request(0, 0, ""), kOwn, problem);
    ASSERT_TRUE(bare);
    EXPECT_EQ(bare->payload.size(), 4U);
    EXPECT_EQ(bare->limits.max_transfer, 1U << 20);
}

TEST(Version, AnswersANewerMinorWithItsOwn) {
    std::string problem;
    const auto result = negotiate(request(0, 7, ""), kOwn, problem);
    ASSERT_TRUE(result);
    EXPECT_EQ(*device::vfio_user::load<std::uint16_t>(result->payload, 2), 0);
}

TEST(Version, RefusesAnotherMajor) {
    std::string problem;
    EXPECT_FALSE(negotiate(request(1, 0, ""), kOwn, problem));
    EXPECT_NE(problem.find("version 1.0"), std::string::npos);
}

TEST(Version, RefusesWhatIsMalformed) {
    std::string problem;
    EXPECT_FALSE(negotiate({}, kOwn, problem));
    EXPECT_FALSE(negotiate(std::vector<std::byte>(3), kOwn, problem));
    EXPECT_FALSE(negotiate(request(0, 0, "{}"), kOwn, problem)) << "not terminated";
    using std::string_view_literals::operator""sv;
    EXPECT_FALSE(negotiate(request(0, 0, "{}\0{}\0"sv), kOwn, problem)) << "NUL inside";
    for (const std::string_view json :
         {"", "{", "[]", "1", "null", R"({"capabilities":[]})",
          R"({"capabilities":{"max_msg_fds":"x"}})", R"({"capabilities":{"max_msg_fds":-1}})",
          R"({"capabilities":{"max_data_xfer_size":0}})",
          R"({"capabilities":{"max_data_xfer_size":1.5}})",
          R"({"capabilities":{"max_dma_maps":{}}})", R"({"capabilities":{"write_multiple":1}})",
          R"({"capabilities":{"pgsizes":null}})"}) {
        std::string why;
        EXPECT_FALSE(ask(json, &why)) << json;
        EXPECT_FALSE(why.empty()) << json;
    }
    EXPECT_FALSE(ask(std::string(1U << 20, '['))) << "too long";
    EXPECT_FALSE(ask(std::string(4000, '['))) << "deep";
}

}  // namespace
}  // namespace iaa::test
