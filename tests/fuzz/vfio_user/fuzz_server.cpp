// SPDX-License-Identifier: GPL-2.0
#include <linux/vfio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "client.h"
#include "device/vfio_user/function.h"

namespace {

using iaa::device::Host;
using iaa::device::RegionInfo;

/// Does what a device does with its host: reads and writes guest memory, interrupts, waits. Ends
/// the program where the transport calls it with what it should have refused.
class Probe final : public iaa::device::Function {
  public:
    [[nodiscard]] RegionInfo region_info(std::uint32_t index) const override {
        switch (index) {
            case VFIO_PCI_BAR0_REGION_INDEX:
            case VFIO_PCI_CONFIG_REGION_INDEX:
                return {.size = kSize, .readable = true, .writable = true};
            case VFIO_PCI_BAR2_REGION_INDEX:
                return {.size = kSize, .readable = false, .writable = true};
            default:
                return {};
        }
    }
    [[nodiscard]] std::uint32_t msix_vectors() const override { return 9; }

    void region_read(std::uint32_t index, std::uint64_t offset, std::span<std::byte> out) override {
        check(index, offset, out.size(), region_info(index).readable);
        std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }

    void region_write(std::uint32_t index, std::uint64_t offset,
                      std::span<const std::byte> in) override {
        check(index, offset, in.size(), region_info(index).writable);
        std::memcpy(bytes_.data() + offset, in.data(), in.size());
        if (index != VFIO_PCI_BAR2_REGION_INDEX || in.size() != sizeof(std::uint64_t)) return;
        // A store to the portals is an address to work on.
        std::uint64_t address = 0;
        std::memcpy(&address, in.data(), sizeof(address));
        auto& memory = host_->memory();
        const auto buffer = std::span(buffer_).first(1 + offset % buffer_.size());
        if (memory.read(address, buffer) && !memory.mapped(address, buffer.size(), false))
            std::abort();
        (void)memory.write(address, buffer);
        (void)memory.write_completion(address & ~63ULL, std::span(buffer_).first<64>());
        host_->trigger_msix(static_cast<std::uint32_t>(offset % 12));
    }

    void attach(Host& host) override {
        if (host_ != nullptr) std::abort();
        host_ = &host;
    }
    void reset() override {
        int looks = 0;
        (void)host_->pump_until([&] { return ++looks > 2; }, std::chrono::milliseconds(5));
    }
    void detach() override {
        if (host_ == nullptr) std::abort();
        host_ = nullptr;
    }

  private:
    static constexpr std::size_t kSize = 4096;

    void check(std::uint32_t index, std::uint64_t offset, std::size_t size, bool allowed) const {
        if (index >= VFIO_PCI_NUM_REGIONS || !allowed || host_ == nullptr) std::abort();
        if (size == 0 || offset >= kSize || size > kSize - offset) std::abort();
    }

    Host* host_ = nullptr;
    std::array<std::byte, kSize> bytes_{};
    std::array<std::byte, 2 * kSize> buffer_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Probe probe;
    iaa::fuzz::play(probe, {data, size});
    return 0;
}
