// SPDX-License-Identifier: GPL-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "client.h"
#include "device/model/iaa_device.h"
#include "device/model/log.h"
#include "device/model/profile.h"

namespace {

struct CloseFile {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): unique_ptr owns it
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

/// The whole device behind the socket. Bit 7 of the first byte makes it the newer generation, bit 6
/// gives it engine threads; without those an input does the same each time.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::unique_ptr<std::FILE, CloseFile> nowhere(std::fopen("/dev/null", "w"));
    iaa::device::Log log(iaa::device::LogLevel::kDebug, nowhere.get());
    iaa::device::IaaDevice::Options options;
    const std::uint8_t first = size != 0 ? data[0] : 0;
    options.inline_execution = (first & 0x40U) == 0;
    const auto profile = iaa::device::Profile::named((first & 0x80U) != 0 ? "gnr" : "spr");
    iaa::device::IaaDevice device(profile, log, options);
    iaa::fuzz::play(device, {data, size});
    return 0;
}
