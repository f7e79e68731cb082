// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <linux/vfio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

/// The vfio-user messages, in the byte order of the machine. Source of the format: the vfio-user
/// protocol specification, version 0.0 (QEMU's docs/interop/vfio-user.rst). Payloads that are vfio
/// structures are used as <linux/vfio.h> has them.
namespace iaa::device::vfio_user {

inline constexpr std::uint16_t kMajorVersion = 0;
inline constexpr std::uint16_t kMinorVersion = 0;

enum class Command : std::uint16_t {
    kVersion = 1,
    kDmaMap = 2,
    kDmaUnmap = 3,
    kDeviceGetInfo = 4,
    kDeviceGetRegionInfo = 5,
    kDeviceGetRegionIoFds = 6,
    kDeviceGetIrqInfo = 7,
    kDeviceSetIrqs = 8,
    kRegionRead = 9,
    kRegionWrite = 10,
    kDmaRead = 11,   ///< server to client
    kDmaWrite = 12,  ///< server to client
    kDeviceReset = 13,
    kRegionWriteMulti = 15,
    kDeviceFeature = 16,
    kMigDataRead = 17,
    kMigDataWrite = 18,
};

inline constexpr std::uint32_t kTypeMask = 0xf;
inline constexpr std::uint32_t kTypeCommand = 0;
inline constexpr std::uint32_t kTypeReply = 1;
inline constexpr std::uint32_t kFlagNoReply = 1U << 4;
inline constexpr std::uint32_t kFlagError = 1U << 5;

struct Header {
    std::uint16_t id;
    std::uint16_t command;
    std::uint32_t size;  ///< of the whole message, this header included
    std::uint32_t flags;
    std::uint32_t error;  ///< errno, valid in a reply with kFlagError
};
static_assert(sizeof(Header) == 16);

struct DmaMap {
    std::uint32_t argsz;
    std::uint32_t flags;   ///< VFIO_DMA_MAP_FLAG_READ, _WRITE
    std::uint64_t offset;  ///< into the file
    std::uint64_t address;
    std::uint64_t size;
};
static_assert(sizeof(DmaMap) == 32);

struct DmaUnmap {
    std::uint32_t argsz;
    std::uint32_t flags;  ///< VFIO_DMA_UNMAP_FLAG_ALL
    std::uint64_t address;
    std::uint64_t size;
};
static_assert(sizeof(DmaUnmap) == 24);

/// vfio_device_info without the capability offset that later kernels appended.
struct DeviceInfo {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t num_regions;
    std::uint32_t num_irqs;
};
static_assert(sizeof(DeviceInfo) == 16);

/// vfio_irq_set; VFIO_IRQ_SET_DATA_BOOL's bytes follow.
struct IrqSet {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t start;
    std::uint32_t count;
};
static_assert(sizeof(IrqSet) == offsetof(vfio_irq_set, data));

struct RegionIoFds {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t count;
};
static_assert(sizeof(RegionIoFds) == 16);

/// REGION_READ and REGION_WRITE; the data follows.
struct RegionAccess {
    std::uint64_t offset;
    std::uint32_t region;
    std::uint32_t count;
};
static_assert(sizeof(RegionAccess) == 16);

/// One write of REGION_WRITE_MULTI, which is a 64-bit number of writes and then these.
struct MultiWrite {
    RegionAccess access;
    std::array<std::byte, 8> data;
};
static_assert(sizeof(MultiWrite) == 24);

/// DMA_READ and DMA_WRITE; the data follows.
struct DmaAccess {
    std::uint64_t address;
    std::uint64_t count;
};
static_assert(sizeof(DmaAccess) == 16);

/// Where QEMU's client had the data of a DMA message at first: its count was 32 bits wide, so that
/// data began 4 bytes early, and 4 bytes of padding followed it. 11.1 keeps to the specification.
inline constexpr std::size_t kShortDmaDataOffset = 12;

inline constexpr std::uint32_t kMaxMessageFds = 16;
inline constexpr std::uint64_t kDefaultMaxTransfer = 1U << 20;
inline constexpr std::uint64_t kDefaultMaxDmaMaps = 65535;
inline constexpr std::uint64_t kDefaultPageSizes = 4096;

/// The T at offset of a payload; nothing where the payload ends before it does.
template <typename T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::optional<T> load(std::span<const std::byte> payload, std::size_t offset = 0) {
    if (offset > payload.size() || payload.size() - offset < sizeof(T)) return std::nullopt;
    T value{};
    std::memcpy(&value, payload.data() + offset, sizeof(T));
    return value;
}

template <typename T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace iaa::device::vfio_user
