// SPDX-License-Identifier: GPL-2.0
#include "device/model/error_log.h"

#include <cstring>

namespace iaa::device {
namespace {

constexpr std::uint32_t kPasidMask = 0xfffff;

// The header that SWERR and an event log entry share.
std::array<std::uint64_t, 4> header(const ErrorReport& report) {
    std::array<std::uint64_t, 4> words{};
    words[0] = std::uint64_t{report.code} << reg::kErrCodeShift;
    if (report.wq) {
        words[0] |= reg::kErrWqValid | std::uint64_t{*report.wq} << reg::kErrWqShift;
    }
    if (report.write) {
        words[0] |= reg::kErrWrite;
    }
    if (report.descriptor) {
        const Descriptor& descriptor = *report.descriptor;
        words[0] |= reg::kErrDescValid |
                    std::uint64_t{descriptor.opcode()} << reg::kErrOperationShift |
                    std::uint64_t{descriptor.pasid_priv & kPasidMask} << reg::kErrPasidShift;
        if ((descriptor.pasid_priv >> 31) != 0) {
            words[0] |= reg::kErrPrivileged;
        }
    }
    words[1] = std::uint64_t{report.info} << 32;
    words[2] = report.fault_addr;
    return words;
}

std::uint32_t word(const std::uint64_t* words, std::size_t index) {
    return static_cast<std::uint32_t>(words[index / 2] >> (index % 2 * 32));
}

}  // namespace

void ErrorLog::record_software_error(const ErrorReport& report) {
    if ((software_error_[0] & reg::kErrValid) != 0) {
        software_error_[0] |= reg::kErrOverflow;
        return;
    }
    software_error_ = header(report);
    software_error_[0] |= reg::kErrValid;
}

std::uint32_t ErrorLog::software_error_word(std::size_t index) const {
    return word(software_error_.data(), index);
}

void ErrorLog::acknowledge_software_error(std::uint32_t bits) {
    software_error_[0] &= ~(std::uint64_t{bits} & (reg::kErrValid | reg::kErrOverflow));
}

std::uint32_t ErrorLog::config_word(std::size_t index) const {
    return word(config_.data(), index);
}

void ErrorLog::set_config_word(std::size_t index, std::uint32_t value) {
    constexpr std::array<std::uint64_t, 2> kMask{reg::kEvlCfgLowMask, reg::kEvlCfgHighMask};
    const unsigned shift = index % 2 * 32;
    std::uint64_t& target = config_.at(index / 2);
    target = (target & ~(0xffffffffULL << shift)) | std::uint64_t{value} << shift;
    target &= kMask.at(index / 2);
}

std::uint32_t ErrorLog::ring_size() const {
    return static_cast<std::uint32_t>(config_[1] & 0xffff);
}

std::uint32_t ErrorLog::status_word(std::size_t index) const {
    return index == 0 ? head_ : tail_ | (pending_ ? reg::kEvlIntPending : 0);
}

void ErrorLog::restart() {
    head_ = 0;
    tail_ = 0;
    pending_ = false;
    forget();
}

void ErrorLog::forget() {
    waiting_.clear();
    ++generation_;
}

bool ErrorLog::queue(const ErrorReport& report) {
    if (waiting_.size() >= ring_size()) {
        return false;
    }
    waiting_.push_back(report);
    ++queued_;
    return true;
}

bool ErrorLog::full() const {
    const std::uint32_t size = ring_size();
    return size < reg::kEvlMinSize || (tail_ + 1) % size == head_;
}

ErrorReport ErrorLog::take_waiting() {
    ErrorReport report = waiting_.front();
    waiting_.pop_front();
    return report;
}

ErrorLog::Write ErrorLog::next_write() const {
    const ErrorReport& report = waiting_.front();
    Write write{.address = (config_[0] & reg::kEvlBaseMask) + std::uint64_t{tail_} * sizeof(Entry),
                .entry = {},
                .generation = generation_};
    std::array<std::uint64_t, 4> words = header(report);
    if (report.record.status != 0) {
        words[0] |= reg::kErrInfoValid;
    }
    std::memcpy(write.entry.data(), words.data(), sizeof(words));
    std::memcpy(write.entry.data() + 64, &report.record, sizeof(report.record));
    return write;
}

bool ErrorLog::written() {
    waiting_.pop_front();
    tail_ = (tail_ + 1) % ring_size();
    if (pending_) {
        return false;
    }
    pending_ = true;
    return true;
}

void ErrorLog::reset() {
    software_error_ = {};
    config_ = {};
    restart();
}

}  // namespace iaa::device
