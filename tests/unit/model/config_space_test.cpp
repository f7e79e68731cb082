// SPDX-License-Identifier: GPL-2.0
#include "device/model/config_space.h"

#include <gtest/gtest.h>

#include "device_fixture.h"

namespace iaa::test {
namespace {

constexpr std::uint64_t kExpress = 0x40;
constexpr std::uint64_t kMsix = 0x80;
constexpr std::uint64_t kPower = 0x90;

class ConfigSpaceTest : public DeviceTest {};

TEST_F(ConfigSpaceTest, SaysWhatItIs) {
    EXPECT_EQ(config_read(0x00, 4), 0x0cfe8086U);
    EXPECT_EQ(config_read(0x08, 4), 0x08800000U);
    EXPECT_EQ(config_read(0x0e, 1) & 0xff, 0U);  // header type 0, one function
    EXPECT_EQ(config_read(0x3d, 1) & 0xff, 0U);  // no interrupt pin
    EXPECT_EQ(config_read(0x100, 4), 0U);        // no extended capability
}

TEST_F(ConfigSpaceTest, HasAListOfThreeCapabilities) {
    EXPECT_NE(config_read(0x06, 2) & 0x10, 0U);
    std::vector<std::uint32_t> ids;
    std::uint32_t at = config_read(0x34, 1) & 0xff;
    while (at != 0 && ids.size() < 10) {
        ids.push_back(config_read(at, 1) & 0xff);
        at = config_read(at + 1, 1) & 0xff;
    }
    EXPECT_EQ(ids, (std::vector<std::uint32_t>{0x10, 0x11, 0x01}));
    EXPECT_EQ(config_read(kExpress + 2, 2) & 0xffff, 0x0092U);   // RCiEP
    EXPECT_NE(config_read(kExpress + 4, 4) & (1U << 28), 0U);    // FLR
    EXPECT_EQ(config_read(kMsix + 2, 2) & 0x7ff, profile_.wqs);  // vectors less one
    EXPECT_EQ(config_read(kMsix + 4, 4), 0x2000U);
    EXPECT_EQ(config_read(kMsix + 8, 4), 0x3000U);
}

TEST_F(ConfigSpaceTest, BarsShowTheirSizes) {
    for (const auto& [bar, size] :
         {std::pair{0x10U, reg::kBar0Size}, std::pair{0x18U, profile_.bar2_size()}}) {
        config_write(bar, 4, 0xffffffff);
        config_write(bar + 4, 4, 0xffffffff);
        const std::uint64_t read =
            config_read(bar, 4) | static_cast<std::uint64_t>(config_read(bar + 4, 4)) << 32;
        EXPECT_EQ(read & 0xf, 0xcU);
        EXPECT_EQ(~(read & ~0xfULL) + 1, size);
    }
    for (const std::uint32_t bar : {0x20U, 0x24U, 0x30U}) {
        config_write(bar, 4, 0xffffffff);
        EXPECT_EQ(config_read(bar, 4), 0U);
    }
    EXPECT_EQ(device_->region_info(kBar0).size, reg::kBar0Size);
    EXPECT_EQ(device_->region_info(kBar2).size, profile_.bar2_size());
    EXPECT_EQ(device_->region_info(kConfig).size, 4096U);
    EXPECT_EQ(device_->region_info(1).size, 0U);
    EXPECT_EQ(device_->region_info(1000).size, 0U);
}

TEST_F(ConfigSpaceTest, BytesAreWrittenOneByOneUnderTheirMasks) {
    config_write(0x00, 4, 0);  // read only
    EXPECT_EQ(config_read(0x00, 4), 0x0cfe8086U);
    config_write(0x05, 1, 0xff);  // the upper byte of the command alone
    EXPECT_EQ(config_read(0x04, 2) & 0xffff, 0x0500U);
    config_write(0x04, 1, 0xff);
    EXPECT_EQ(config_read(0x04, 2) & 0xffff, 0x0546U);
    config_write(0x0b, 3, 0x00ffff);  // across the class code and the cache line size
    EXPECT_EQ(config_read(0x08, 4), 0x08800000U);
    EXPECT_EQ(config_read(0x0c, 1) & 0xff, 0xffU);
    EXPECT_EQ(config_read(0x0d, 1) & 0xff, 0x00U);
}

TEST_F(ConfigSpaceTest, OddAccessesOfMsixControlDoWhatTheySay) {
    config_write(kMsix + 3, 2, 0x0080);  // upper control byte and lower table byte
    EXPECT_EQ(config_read(kMsix + 2, 2) & 0xffff, 0x8000U | profile_.wqs);
    EXPECT_EQ(config_read(kMsix + 4, 4), 0x2000U);
    std::array<std::byte, 3> bytes{};
    device_->region_read(kConfig, kMsix + 1, bytes);
    EXPECT_EQ(bytes[0], std::byte{0x90});
    EXPECT_EQ(bytes[1], static_cast<std::byte>(profile_.wqs));
    EXPECT_EQ(bytes[2], std::byte{0x80});
}

TEST_F(ConfigSpaceTest, PowerStatesAreD0AndD3) {
    config_write(kPower + 4, 2, 1);
    EXPECT_EQ(config_read(kPower + 4, 2) & 3, 0U);
    config_write(kPower + 4, 2, 2);
    EXPECT_EQ(config_read(kPower + 4, 2) & 3, 0U);
    config_write(kPower + 4, 2, 3);
    EXPECT_EQ(config_read(kPower + 4, 2) & 0xffff, 0x000bU);
    config_write(kPower + 4, 2, 0);
    EXPECT_EQ(config_read(kPower + 4, 2) & 0xffff, 0x0008U);
}

TEST_F(ConfigSpaceTest, NothingAnswersInD3OrWithMemorySpaceOff) {
    EXPECT_EQ(read32(reg::kVersion), 0xffffffffU);
    power_up();
    EXPECT_EQ(read32(reg::kVersion), 0x100U);
    config_write(kPower + 4, 2, 3);
    EXPECT_EQ(read32(reg::kVersion), 0xffffffffU);
    write32(reg::kGenCtrl, 7);
    config_write(kPower + 4, 2, 0);
    EXPECT_EQ(read32(reg::kGenCtrl), 0U);
    EXPECT_EQ(read32(reg::kVersion), 0x100U);
    EXPECT_GE(broken("memory-disabled"), 3U);
}

TEST_F(ConfigSpaceTest, FunctionLevelResetClearsBothSpaces) {
    bring_up({{}});
    config_write(0x3c, 1, 0x5a);
    config_write(kExpress + 8, 2, 0x8000 | 0x2810);
    EXPECT_EQ(config_read(kExpress + 8, 2) & 0xffff, 0x2810U);
    EXPECT_EQ(config_read(0x04, 2) & 0xffff, 0U);
    EXPECT_EQ(config_read(0x3c, 1) & 0xff, 0U);
    EXPECT_EQ(config_read(kMsix + 2, 2) & 0xffff, profile_.wqs);
    power_up();
    EXPECT_EQ(read32(reg::kGenSts), 0U);
    EXPECT_EQ(read32(wqcfg(0, 0)), 0U);
    EXPECT_EQ(read64(reg::kGrpCfg), 0U);
}

TEST_F(ConfigSpaceTest, AByteWriteOfTheUpperHalfResetsToo) {
    bring_up({{}});
    config_write(kExpress + 9, 1, 0x80);
    power_up();
    EXPECT_EQ(read32(reg::kGenSts), 0U);
}

TEST_F(ConfigSpaceTest, TheLastByteCanBeReached) {
    config_write(device::ConfigSpace::kSize - 1, 1, 0xff);
    EXPECT_EQ(config_read(device::ConfigSpace::kSize - 1, 1) & 0xff, 0U);
    std::vector<std::byte> all(device::ConfigSpace::kSize);
    device_->region_read(kConfig, 0, all);
    EXPECT_EQ(all[0], std::byte{0x86});
}

}  // namespace
}  // namespace iaa::test
