// SPDX-License-Identifier: GPL-2.0
#include "device/model/config_space.h"

namespace iaa::device {
namespace {

constexpr std::size_t kCommand = 0x04;
constexpr std::size_t kStatusHigh = 0x07;
constexpr std::size_t kExpress = 0x40;
constexpr std::size_t kDevCtl = kExpress + 8;
constexpr std::size_t kDevSta = kExpress + 10;
constexpr std::size_t kMsix = 0x80;
constexpr std::size_t kMsixControl = kMsix + 2;
constexpr std::size_t kPower = 0x90;
constexpr std::size_t kPowerControl = kPower + 4;

constexpr std::uint16_t kCommandMemory = 1U << 1;
constexpr std::uint16_t kCommandMaster = 1U << 2;
constexpr std::uint16_t kCommandWritable =
    kCommandMemory | kCommandMaster | 1U << 6 | 1U << 8 | 1U << 10;
constexpr std::uint16_t kMsixEnable = 1U << 15;
constexpr std::uint16_t kMsixMaskAll = 1U << 14;
constexpr std::uint8_t kFlrInHighByte = 0x80;
constexpr std::uint8_t kD3Hot = 3;

}  // namespace

ConfigSpace::ConfigSpace(const Layout& layout) {
    put16(0x00, 0x8086);
    put16(0x02, 0x0cfe);
    put16(kCommand, 0, kCommandWritable);
    put16(0x06, 1U << 4);  // a capability list
    write_one_clears_.at(0x06) = 0;
    write_one_clears_.at(kStatusHigh) = 0xf9;
    put32(0x08, 0x08800000);  // class 0880, revision 0
    put8(0x0c, 0, 0xff);      // cache line size: kept, without effect
    constexpr std::uint32_t kBar64Prefetchable = 0xc;
    put32(0x10, kBar64Prefetchable, static_cast<std::uint32_t>(~(layout.bar0_size - 1)));
    put32(0x14, 0, 0xffffffff);
    put32(0x18, kBar64Prefetchable, static_cast<std::uint32_t>(~(layout.bar2_size - 1)));
    put32(0x1c, 0, 0xffffffff);
    put16(0x2c, 0x8086);
    put16(0x2e, 0x0000);
    put8(0x34, kExpress);
    put8(0x3c, 0, 0xff);  // interrupt line: a scratch byte for software; no interrupt pin

    put16(kExpress, 0x10 | kMsix << 8);
    put16(kExpress + 2, 0x0092);               // version 2, root complex integrated endpoint
    put32(kExpress + 4, 1U << 28 | 1U << 15);  // function level reset, role based errors
    put16(kDevCtl, 0x2810, 0x7fff & ~(1U << 10 | 1U << 9));
    write_one_clears_.at(kDevSta) = 0x0f;
    put16(kExpress + 0x28, 0, 0x001f);  // device control 2: completion timeout

    put16(kMsix, 0x11 | kPower << 8);
    put16(kMsixControl, static_cast<std::uint16_t>(layout.msix_vectors - 1),
          kMsixEnable | kMsixMaskAll);
    put32(kMsix + 4, layout.msix_table_offset);  // both in BAR 0
    put32(kMsix + 8, layout.msix_pba_offset);

    put16(kPower, 0x0001);
    put16(kPower + 2, 0x0003);           // version 1.2: D0 and D3hot, no PME
    put16(kPowerControl, 1U << 3, 0x3);  // no soft reset on the way back to D0
    initial_ = bytes_;
}

void ConfigSpace::put8(std::size_t at, std::uint8_t value, std::uint8_t writable) {
    bytes_.at(at) = value;
    writable_.at(at) = writable;
}

void ConfigSpace::put16(std::size_t at, std::uint16_t value, std::uint16_t writable) {
    put8(at, static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(writable));
    put8(at + 1, static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(writable >> 8));
}

void ConfigSpace::put32(std::size_t at, std::uint32_t value, std::uint32_t writable) {
    put16(at, static_cast<std::uint16_t>(value), static_cast<std::uint16_t>(writable));
    put16(at + 2, static_cast<std::uint16_t>(value >> 16),
          static_cast<std::uint16_t>(writable >> 16));
}

std::uint16_t ConfigSpace::get16(std::size_t at) const {
    return static_cast<std::uint16_t>(bytes_.at(at) | bytes_.at(at + 1) << 8);
}

void ConfigSpace::read(std::size_t offset, std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::byte>(bytes_.at(offset + i));
    }
}

bool ConfigSpace::write(std::size_t offset, std::span<const std::byte> in) {
    bool reset_asked = false;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::size_t at = offset + i;
        auto value = static_cast<std::uint8_t>(in[i]);
        if (at == kDevCtl + 1 && (value & kFlrInHighByte) != 0) {
            reset_asked = true;  // the bit always reads as 0
        }
        if (at == kPowerControl && (value & 3U) != 0 && (value & 3U) != kD3Hot) {
            continue;  // D1 and D2 are not there: the write of such a state is discarded
        }
        const std::uint8_t cleared = write_one_clears_.at(at) & value;
        const std::uint8_t writable = writable_.at(at);
        bytes_.at(at) = static_cast<std::uint8_t>(
            ((bytes_.at(at) & ~writable) | (value & writable)) & ~cleared);
    }
    return reset_asked;
}

void ConfigSpace::reset() {
    bytes_ = initial_;
}

bool ConfigSpace::memory_enabled() const {
    return (get16(kCommand) & kCommandMemory) != 0;
}
bool ConfigSpace::bus_master() const {
    return (get16(kCommand) & kCommandMaster) != 0;
}
bool ConfigSpace::msix_enabled() const {
    return (get16(kMsixControl) & kMsixEnable) != 0;
}
bool ConfigSpace::powered() const {
    return (bytes_.at(kPowerControl) & 3U) == 0;
}

}  // namespace iaa::device
