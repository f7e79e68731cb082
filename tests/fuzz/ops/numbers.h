// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iaa::device::test {

/// Numbers out of a fuzzer's input, and behind its end others that follow from it: what is made of
/// them is never all zeros.
class Numbers {
  public:
    explicit Numbers(std::span<const std::uint8_t> input) : input_(input) {
        for (const std::uint8_t byte : input) {
            state_ = state_ * 0x100000001b3 ^ byte;
        }
    }

    std::uint64_t operator()() {
        if (at_ == input_.size()) {
            state_ += 0x9e3779b97f4a7c15;
            std::uint64_t value = (state_ ^ state_ >> 30U) * 0xbf58476d1ce4e5b9;
            value = (value ^ value >> 27U) * 0x94d049bb133111eb;
            return value ^ value >> 31U;
        }
        // Few bytes a number: most are used modulo something small.
        std::uint64_t value = 0;
        for (unsigned byte = 0; byte < 2 && at_ < input_.size(); ++byte) {
            value |= static_cast<std::uint64_t>(input_[at_++]) << 8 * byte;
        }
        return value;
    }

  private:
    std::span<const std::uint8_t> input_;
    std::size_t at_ = 0;
    std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace iaa::device::test
