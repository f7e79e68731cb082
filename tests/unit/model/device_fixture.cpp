// SPDX-License-Identifier: GPL-2.0
#include "device_fixture.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <thread>

namespace iaa::test {

void FakeMemory::counted() {
    if (on_access) {
        on_access();
    }
    const std::scoped_lock lock(mutex_);
    ++accesses_;
}

bool FakeMemory::read(std::uint64_t iova, std::span<std::byte> out) {
    counted();
    const std::scoped_lock lock(mutex_);
    if (!inside(iova, out.size())) {
        return false;
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(iova), out.size(), out.begin());
    return true;
}

bool FakeMemory::write(std::uint64_t iova, std::span<const std::byte> in) {
    counted();
    if (on_write) {
        on_write(iova);
    }
    const std::scoped_lock lock(mutex_);
    if (!inside(iova, in.size())) {
        return false;
    }
    std::ranges::copy(in, bytes_.begin() + static_cast<std::ptrdiff_t>(iova));
    written_.notify_all();
    return true;
}

bool FakeMemory::write_completion(std::uint64_t iova, std::span<const std::byte, 64> record) {
    return write(iova, record);
}

bool FakeMemory::mapped(std::uint64_t iova, std::uint64_t size, bool /*write*/) {
    const std::scoped_lock lock(mutex_);
    return inside(iova, size);
}

std::uint64_t FakeMemory::accesses() const {
    const std::scoped_lock lock(mutex_);
    return accesses_;
}

CompletionRecord FakeMemory::record(std::uint64_t iova) const {
    const std::scoped_lock lock(mutex_);
    CompletionRecord record{};
    std::memcpy(&record, bytes_.data() + iova, sizeof(record));
    return record;
}

std::vector<std::byte> FakeMemory::peek(std::uint64_t iova, std::size_t size) const {
    const std::scoped_lock lock(mutex_);
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(iova);
    return {first, first + static_cast<std::ptrdiff_t>(size)};
}

void FakeMemory::fill(std::uint64_t iova, std::size_t size, std::byte value) {
    const std::scoped_lock lock(mutex_);
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(iova), size, value);
}

bool FakeMemory::wait_status(std::uint64_t iova) const {
    std::unique_lock lock(mutex_);
    return written_.wait_for(lock, kPatience, [&] { return bytes_[iova] != std::byte{0}; });
}

void FakeHost::trigger_msix(std::uint32_t vector) {
    const std::scoped_lock lock(mutex_);
    ++interrupts_[vector];
    signalled_.notify_all();
}

bool FakeHost::pump_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    ++pumps_;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

void FakeHost::disconnect(std::string_view why) {
    EXPECT_FALSE(why.empty());
    ++disconnects_;
}

std::uint64_t FakeHost::interrupts(std::uint32_t vector) const {
    const std::scoped_lock lock(mutex_);
    const auto it = interrupts_.find(vector);
    return it == interrupts_.end() ? 0 : it->second;
}

bool FakeHost::wait_interrupts(std::uint32_t vector, std::uint64_t count) const {
    std::unique_lock lock(mutex_);
    return signalled_.wait_for(lock, kPatience, [&] {
        const auto it = interrupts_.find(vector);
        return it != interrupts_.end() && it->second >= count;
    });
}

device::Outcome FakeOperation::operator()(const Descriptor& descriptor, device::DmaMemory& memory,
                                          const device::Capabilities& capabilities) {
    std::vector<std::byte> source(descriptor.src1_size);
    bool ok = memory.read(descriptor.src1_addr, source);
    {
        std::unique_lock lock(mutex_);
        ++begun_;
        ++at_once_;
        most_at_once_ = std::max(most_at_once_, at_once_);
        order_.push_back(descriptor.src1_addr);
        threads_.insert(std::this_thread::get_id());
        capabilities_ = capabilities;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !held_; });
        --at_once_;
    }
    if (no_memory) {
        throw std::bad_alloc();
    }
    constexpr std::array<std::byte, 1> kMark{std::byte{0xaa}};
    ok = ok && memory.write(descriptor.dst_addr, kMark);
    device::Outcome outcome;
    const std::uint8_t asked = status.load();
    outcome.record.status = asked != 0 ? asked : static_cast<std::uint8_t>(ok ? 0x01 : 0x03);
    outcome.record.output_size = 1;
    if (error_code != 0) {
        outcome.record.error_code = error_code;
        outcome.rule = "code: as the test says";
    }
    {
        const std::scoped_lock lock(mutex_);
        ++ended_;
        changed_.notify_all();
    }
    return outcome;
}

void FakeOperation::hold() {
    const std::scoped_lock lock(mutex_);
    held_ = true;
}

void FakeOperation::let_go() {
    const std::scoped_lock lock(mutex_);
    held_ = false;
    changed_.notify_all();
}

bool FakeOperation::wait_begun(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return begun_ >= count; });
}

bool FakeOperation::wait_ended(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return ended_ >= count; });
}

std::uint64_t FakeOperation::begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
}

std::vector<std::uint64_t> FakeOperation::order() const {
    const std::scoped_lock lock(mutex_);
    return order_;
}

std::size_t FakeOperation::threads() const {
    const std::scoped_lock lock(mutex_);
    return threads_.size();
}

std::size_t FakeOperation::most_at_once() const {
    const std::scoped_lock lock(mutex_);
    return most_at_once_;
}

device::Capabilities FakeOperation::capabilities() const {
    const std::scoped_lock lock(mutex_);
    return capabilities_;
}

// What the device logs is counted by the tests and not printed.
DeviceTest::DeviceTest()
    : log_file_(std::fopen("/dev/null", "w")),
      log_(device::LogLevel::kDebug, log_file_),
      host_(std::make_unique<FakeHost>(kMemorySize)) {
    make(profile_);
}

DeviceTest::~DeviceTest() {
    operation_.let_go();
    if (device_) {
        device_->detach();
    }
    device_.reset();
    (void)std::fclose(log_file_);
}

void DeviceTest::make(const device::Profile& profile, bool inline_execution) {
    if (device_) {
        device_->detach();
    }
    device_.reset();
    profile_ = profile;
    device::IaaDevice::Options options;
    options.inline_execution = inline_execution;
    options.fence_limit = fence_limit_;
    options.execute = [this](const Descriptor& descriptor, device::DmaMemory& memory,
                             const device::Capabilities& capabilities) {
        return operation_(descriptor, memory, capabilities);
    };
    device_ = std::make_unique<device::IaaDevice>(profile, log_, options);
    device_->attach(*host_);
}

std::uint32_t DeviceTest::read32(std::uint64_t offset) {
    std::array<std::byte, 4> bytes{};
    device_->region_read(kBar0, offset, bytes);
    return std::bit_cast<std::uint32_t>(bytes);
}

std::uint64_t DeviceTest::read64(std::uint64_t offset) {
    std::array<std::byte, 8> bytes{};
    device_->region_read(kBar0, offset, bytes);
    return std::bit_cast<std::uint64_t>(bytes);
}

void DeviceTest::write32(std::uint64_t offset, std::uint32_t value) {
    device_->region_write(kBar0, offset, std::bit_cast<std::array<std::byte, 4>>(value));
}

void DeviceTest::write64(std::uint64_t offset, std::uint64_t value) {
    device_->region_write(kBar0, offset, std::bit_cast<std::array<std::byte, 8>>(value));
}

std::uint32_t DeviceTest::config_read(std::uint64_t offset, std::size_t size) {
    std::array<std::byte, 4> bytes{};
    device_->region_read(kConfig, offset, std::span(bytes).first(size));
    return std::bit_cast<std::uint32_t>(bytes);
}

void DeviceTest::config_write(std::uint64_t offset, std::size_t size, std::uint32_t value) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(value);
    device_->region_write(kConfig, offset, std::span(bytes).first(size));
}

void DeviceTest::power_up() {
    config_write(0x04, 2, 0x0006);
    config_write(0x82, 2, 0x8000);
}

void DeviceTest::start_command(reg::Command code, std::uint32_t operand, bool interrupt) {
    write32(reg::kCmd, static_cast<std::uint32_t>(code) << reg::kCmdCodeShift | operand |
                           (interrupt ? reg::kCmdInterrupt : 0));
}

bool DeviceTest::wait_command() {
    return wait_until([this] { return !command_active(); });
}

std::uint32_t DeviceTest::command(reg::Command code, std::uint32_t operand) {
    start_command(code, operand);
    EXPECT_TRUE(wait_command());
    return read32(reg::kCmdSts);
}

std::uint64_t DeviceTest::wqcfg(std::uint32_t wq, std::uint32_t word) const {
    return profile_.wqcfg_offset() + wq * reg::kWqCfgStride + word * 4ULL;
}

std::uint32_t DeviceTest::occupancy(std::uint32_t wq) {
    return read32(wqcfg(wq, 6)) & 0xffff;
}

void DeviceTest::setup_wq(const WqSetup& setup) {
    constexpr std::uint32_t kDedicated = 1;
    constexpr std::uint32_t kTwoMegabytes = 21;
    write32(wqcfg(setup.wq, 0), setup.size);
    write32(wqcfg(setup.wq, 2), kDedicated | setup.priority << 4);
    write32(wqcfg(setup.wq, 3), kTwoMegabytes);
}

void DeviceTest::setup_group(std::uint32_t group, std::uint64_t wqs, std::uint64_t engines) {
    constexpr std::uint64_t kAllowAllReadBuffers = std::uint64_t{device::Profile::kReadBuffers}
                                                   << 20;
    const std::uint64_t base = reg::kGrpCfg + group * reg::kGrpCfgStride;
    write64(base, wqs);
    write64(base + 32, engines);
    write64(base + 40, kAllowAllReadBuffers);
}

void DeviceTest::bring_up(const std::vector<WqSetup>& wqs) {
    power_up();
    std::uint64_t mask = 0;
    for (const WqSetup& setup : wqs) {
        setup_wq(setup);
        mask |= 1ULL << setup.wq;
    }
    setup_group(0, mask, (1ULL << profile_.engines) - 1);
    ASSERT_EQ(command(reg::Command::kEnableDevice), 0U);
    for (const WqSetup& setup : wqs) {
        ASSERT_EQ(command(reg::Command::kEnableWq, setup.wq), 0U);
    }
}

std::uint32_t DeviceTest::request_handle(std::uint32_t vector) {
    const std::uint32_t status = command(reg::Command::kRequestIntHandle, vector);
    EXPECT_EQ(status & 0xff, 0U);
    return status >> 8 & 0xffff;
}

Descriptor DeviceTest::descriptor(std::uint32_t number) {
    constexpr std::uint32_t kRecordWanted = 0xc;
    Descriptor descriptor{};
    descriptor.flags_opcode = 0x43U << 24 | kRecordWanted;
    descriptor.completion_addr = record_at(number);
    descriptor.src1_addr = kSources + number;
    descriptor.src1_size = 1;
    descriptor.dst_addr = kResults + number;
    descriptor.max_dst_size = 1;
    return descriptor;
}

void DeviceTest::store(std::uint64_t bar_offset, std::span<const std::byte> bytes) {
    device_->region_write(kBar2, bar_offset, bytes);
}

void DeviceTest::submit(std::uint32_t wq, const Descriptor& descriptor, std::uint32_t page) {
    const auto bytes = std::bit_cast<std::array<std::byte, 64>>(descriptor);
    const std::uint64_t at = portal(wq, page, next_slot_);
    next_slot_ = (next_slot_ + 1) % 64;
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        store(at + i, std::span(bytes).subspan(i, 8));
    }
}

bool DeviceTest::wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

}  // namespace iaa::test
