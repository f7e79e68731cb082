// SPDX-License-Identifier: GPL-2.0
#include "device/model/portal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "device_fixture.h"

namespace iaa::test {
namespace {

using device::PortalAddress;
using device::PortalAssembler;

class PortalAssemblerTest : public ::testing::Test {
  protected:
    using Bytes = std::array<std::byte, 64>;

    static Bytes pattern(std::uint8_t seed) {
        Bytes bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes.at(i) = static_cast<std::byte>(seed + i);
        }
        return bytes;
    }

    void store(std::uint64_t at, std::span<const std::byte> bytes) {
        assembler_.store(at, bytes, sink_);
    }

    PortalAssembler assembler_;
    std::vector<std::pair<PortalAddress, Bytes>> whole_;
    std::vector<std::size_t> overwritten_;
    std::size_t lost_ = 0;
    PortalAssembler::Sink sink_{
        [this](const PortalAddress& address, const Descriptor& descriptor) {
            whole_.emplace_back(address, std::bit_cast<Bytes>(descriptor));
        },
        [this](const PortalAddress&, std::size_t byte) { overwritten_.push_back(byte); },
        [this](const PortalAddress&, std::size_t lost) { lost_ += lost; }};
};

TEST_F(PortalAssemblerTest, AddressesNameQueueAndKind) {
    const PortalAddress unlimited = PortalAddress::of(0x4000 * 3 + 0x40);
    EXPECT_EQ(unlimited.wq, 3U);
    EXPECT_FALSE(unlimited.limited);
    EXPECT_FALSE(unlimited.ims);
    EXPECT_EQ(unlimited.slot, 0x40U);
    EXPECT_TRUE(PortalAddress::of(0x1fc0).limited);
    EXPECT_FALSE(PortalAddress::of(0x1fc0).ims);
    EXPECT_TRUE(PortalAddress::of(0x2000).ims);
    EXPECT_FALSE(PortalAddress::of(0x2000).limited);
    EXPECT_TRUE(PortalAddress::of(0x3000).ims);
    EXPECT_TRUE(PortalAddress::of(0x3000).limited);
}

TEST_F(PortalAssemblerTest, AnySplitInAnyOrderMakesTheDescriptor) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        // Cut 64 bytes at random places and store the pieces shuffled.
        std::vector<std::size_t> cuts{0, 64};
        for (std::size_t n = random() % 12; n > 0; --n) {
            cuts.push_back(random() % 65);
        }
        std::ranges::sort(cuts);
        std::vector<std::pair<std::size_t, std::size_t>> pieces;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            if (cuts[i] != cuts[i + 1]) {
                pieces.emplace_back(cuts[i], cuts[i + 1] - cuts[i]);
            }
        }
        std::ranges::shuffle(pieces, random);
        const Bytes bytes = pattern(static_cast<std::uint8_t>(round));
        const std::uint64_t base = 0x1000 + (random() % 64) * 64;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            ASSERT_EQ(whole_.size(), static_cast<std::size_t>(round));
            store(base + pieces[i].first,
                  std::span(bytes).subspan(pieces[i].first, pieces[i].second));
        }
        ASSERT_EQ(whole_.size(), static_cast<std::size_t>(round) + 1);
        ASSERT_EQ(whole_.back().second, bytes);
        ASSERT_EQ(assembler_.partial(), 0U);
    }
    EXPECT_TRUE(overwritten_.empty());
}

TEST_F(PortalAssemblerTest, DescriptorsInDifferentSlotsInterleaveFreely) {
    std::vector<Bytes> all;
    for (std::uint8_t n = 0; n < 64; ++n) {
        all.push_back(pattern(n));
    }
    for (std::size_t qword = 0; qword < 8; ++qword) {
        for (std::size_t n = 0; n < all.size(); ++n) {
            store(0x1000 + n * 64 + qword * 8, std::span(all[n]).subspan(qword * 8, 8));
        }
    }
    ASSERT_EQ(whole_.size(), 64U);
    for (std::size_t n = 0; n < all.size(); ++n) {
        EXPECT_EQ(whole_[n].second, all[n]);
        EXPECT_EQ(whole_[n].first.slot, n * 64);
    }
}

TEST_F(PortalAssemblerTest, AStoreAcrossSlotsFeedsBoth) {
    std::vector<std::byte> two(128);
    for (std::size_t i = 0; i < two.size(); ++i) {
        two[i] = static_cast<std::byte>(i);
    }
    store(0x1000, std::span(two).first(3));
    store(0x1003, std::span(two).subspan(3));
    ASSERT_EQ(whole_.size(), 2U);
    EXPECT_TRUE(std::equal(two.begin(), two.begin() + 64, whole_[0].second.begin()));
    EXPECT_TRUE(std::equal(two.begin() + 64, two.end(), whole_[1].second.begin()));
}

TEST_F(PortalAssemblerTest, TwoInOneSlotAreBothReportedAndTheSlotRecovers) {
    const Bytes a = pattern(0);
    const Bytes b = pattern(100);
    // a and b interleaved qword by qword, in every relative position.
    for (std::size_t lead = 1; lead < 8; ++lead) {
        overwritten_.clear();
        lost_ = 0;
        std::vector<std::pair<const Bytes*, std::size_t>> order;
        std::size_t next_a = 0;
        std::size_t next_b = 0;
        while (next_a < 8 || next_b < 8) {
            if (next_a < 8 && (next_a < lead + next_b || next_b == 8)) {
                order.emplace_back(&a, next_a++);
            } else {
                order.emplace_back(&b, next_b++);
            }
        }
        for (const auto& [bytes, qword] : order) {
            store(0x1000 + qword * 8, std::span(*bytes).subspan(qword * 8, 8));
        }
        ASSERT_EQ(overwritten_, std::vector<std::size_t>{0}) << lead;
        ASSERT_EQ(lost_, 2U) << lead;
        ASSERT_TRUE(whole_.empty()) << lead;
        ASSERT_EQ(assembler_.partial(), 0U) << lead;
    }
    store(0x1000, a);
    ASSERT_EQ(whole_.size(), 1U);
    EXPECT_EQ(whole_[0].second, a);
}

TEST_F(PortalAssemblerTest, ThreeInOneSlotAreThreeReports) {
    const Bytes bytes = pattern(1);
    for (std::size_t qword = 0; qword < 8; ++qword) {
        for (int n = 0; n < 3; ++n) {
            store(qword * 8, std::span(bytes).subspan(qword * 8, 8));
        }
    }
    EXPECT_EQ(lost_, 3U);
    EXPECT_EQ(overwritten_.size(), 2U);
    EXPECT_EQ(assembler_.partial(), 0U);
}

TEST_F(PortalAssemblerTest, AnAbandonedPartSpoilsWhatFollowsButNeverSilently) {
    const Bytes bytes = pattern(1);
    store(0, std::span(bytes).first(8));
    for (std::size_t n = 1; n <= 4; ++n) {
        for (std::size_t qword = 0; qword < 8; ++qword) {
            store(qword * 8, std::span(bytes).subspan(qword * 8, 8));
        }
        EXPECT_EQ(overwritten_.size(), n);
    }
    EXPECT_TRUE(whole_.empty());
    EXPECT_EQ(assembler_.forget(0), 1U);
    store(0, bytes);
    EXPECT_EQ(whole_.size(), 1U);
}

TEST_F(PortalAssemblerTest, ForgettingIsPerQueue) {
    const Bytes bytes = pattern(1);
    store(0x1000, std::span(bytes).first(8));
    store(0x5000, std::span(bytes).first(8));
    store(0x6000, std::span(bytes).first(8));
    EXPECT_EQ(assembler_.forget(1), 2U);
    EXPECT_EQ(assembler_.partial(), 1U);
    EXPECT_EQ(assembler_.forget_all(), 1U);
    EXPECT_EQ(assembler_.partial(), 0U);
}

class PortalTest : public DeviceTest {};

TEST_F(PortalTest, AllFourPagesOfAQueueLeadToIt) {
    bring_up({{.wq = 2, .size = 8}});
    for (std::uint32_t page = 0; page < 4; ++page) {
        submit(2, descriptor(page), page);
        ASSERT_TRUE(wait_record(page)) << page;
        EXPECT_EQ(record(page).status, 1);
    }
}

TEST_F(PortalTest, AStoreToAQueueThatIsNotEnabledIsAnError) {
    bring_up({{.wq = 0}});
    submit(1, descriptor(0));
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kWqNotEnabled));
    EXPECT_EQ(read64(reg::kSwErr) >> 16 & 0xff, 1U);  // the WQ
    EXPECT_EQ(broken("portal-disabled"), 1U);
    EXPECT_EQ(device_->counters().snapshot().per_wq.at(1).dropped, 1U);
}

TEST_F(PortalTest, AFullQueueDropsAndSaysSo) {
    bring_up({{.wq = 0, .size = 3}});
    operation_.hold();
    for (std::uint32_t n = 0; n < 5; ++n) {
        submit(0, descriptor(n));
    }
    EXPECT_EQ(occupancy(0), 3U);
    EXPECT_EQ(broken("wq-full"), 2U);
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kWqFull));
    EXPECT_NE(read32(reg::kSwErr) & reg::kErrOverflow, 0U);
    operation_.let_go();
    for (std::uint32_t n = 0; n < 3; ++n) {
        EXPECT_TRUE(wait_record(n));
    }
    EXPECT_EQ(command(reg::Command::kDrainAll), 0U);
    EXPECT_EQ(operation_.begun(), 3U);
    EXPECT_EQ(record(3).status, 0);
    EXPECT_EQ(occupancy(0), 0U);
    const auto counters = device_->counters().snapshot();
    EXPECT_EQ(counters.total.accepted, 3U);
    EXPECT_EQ(counters.total.dropped, 2U);
    EXPECT_EQ(counters.total.completed, 3U);
}

TEST_F(PortalTest, AnEntryIsFreeBeforeItsRecordIsSeen) {
    // A driver that keeps the WQ full to its last entry never loses a descriptor.
    bring_up({{.wq = 0, .size = 2}});
    constexpr std::uint32_t kCount = 1000;
    for (std::uint32_t n = 0; n < kCount; ++n) {
        const std::uint32_t at = n % 2;
        if (n >= 2) {
            ASSERT_TRUE(wait_record(at));
            memory().fill(record_at(at), 64, std::byte{0});
        }
        submit(0, descriptor(at));
    }
    EXPECT_EQ(broken("wq-full"), 0U);
    EXPECT_EQ(command(reg::Command::kDrainAll), 0U);
    EXPECT_EQ(operation_.begun(), kCount);
}

TEST_F(PortalTest, AMixIsReportedAndCounted) {
    bring_up({{}});
    const auto bytes = std::bit_cast<std::array<std::byte, 64>>(descriptor(0));
    for (std::size_t i = 0; i < 64; i += 8) {
        store(portal(0) + i, std::span(bytes).subspan(i, 8));
        store(portal(0) + i, std::span(bytes).subspan(i, 8));
    }
    EXPECT_EQ(broken("portal-overwrite"), 1U);
    EXPECT_EQ(broken("portal-lost"), 1U);
    EXPECT_EQ(software_error_code(), static_cast<std::uint32_t>(reg::PortalError::kOverwritten));
    EXPECT_EQ(device_->counters().snapshot().total.dropped, 2U);
    submit(0, descriptor(1));
    EXPECT_TRUE(wait_record(1));
}

TEST_F(PortalTest, HalfADescriptorIsLostWithItsQueue) {
    bring_up({{}});
    const std::array<std::byte, 8> part{};
    store(portal(0), part);
    EXPECT_EQ(command(reg::Command::kResetWq, 1), 0U);
    EXPECT_EQ(broken("portal-partial"), 1U);
}

TEST_F(PortalTest, HostileAccessesAreDroppedWithAReason) {
    device::Profile profile = profile_;
    profile.wqs = 3;  // BAR 2 is larger than three WQs
    make(profile);
    bring_up({{.wq = 2}});
    const std::vector<std::byte> large(4096);
    store(portal(3), std::span(large).first(8));
    store(portal(3) - 8, std::span(large).first(16));
    store(device_->region_info(kBar2).size - 1, std::span(large).first(1));
    EXPECT_EQ(broken("portal-no-wq"), 3U);
    store(portal(2), large);  // a page of zeros is 64 descriptors: NOOP without a record
    EXPECT_TRUE(wait_until([this] { return operation_.begun() + broken("wq-full") >= 64; }));
    std::array<std::byte, 8> out{};
    device_->region_read(kBar2, portal(0), out);
    EXPECT_EQ(out[0], std::byte{0xff});
    EXPECT_EQ(broken("portal-read"), 1U);
    store(portal(1), {});
}

}  // namespace
}  // namespace iaa::test
