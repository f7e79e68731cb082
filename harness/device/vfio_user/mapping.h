// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace iaa::device::vfio_user {

/// A shared mapping of a part of a client's file. Accesses survive a client that shortens the file
/// afterwards: instead of a fatal SIGBUS they fail, and so do all later ones of this mapping.
class Mapping {
  public:
    /// Maps size bytes from offset of a regular file (memfd, tmpfs, hugetlbfs, ...). Throws
    /// std::system_error where the file is of another kind, ends too early, or cannot be mapped.
    Mapping(int fd, std::uint64_t offset, std::uint64_t size, bool writable);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    Mapping(Mapping&&) = delete;
    Mapping& operator=(Mapping&&) = delete;

    /// The caller has checked that the range lies inside the mapping and is allowed. Accesses that
    /// overlap give whatever mix the guest has asked for by starting both.
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> out) noexcept;
    [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> in) noexcept;
    /// One byte, after everything that was written before it.
    [[nodiscard]] bool store_release(std::uint64_t offset, std::byte value) noexcept;

  private:
    void* area_ = nullptr;
    std::size_t area_size_ = 0;
    std::byte* data_ = nullptr;
    std::atomic<bool> broken_{false};
};

}  // namespace iaa::device::vfio_user
