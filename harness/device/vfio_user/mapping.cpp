// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/mapping.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <mutex>
#include <system_error>

namespace iaa::device::vfio_user {
namespace {

/// The mapping that this thread is copying from or to; area is nullptr where there is none.
struct Guard {
    void* area;
    std::size_t size;
    std::atomic<bool>* broken;
};
constinit thread_local Guard current_guard{.area = nullptr, .size = 0, .broken = nullptr};

struct sigaction previous_action;

/// Puts private zeroes where the file has ended, so that the copy that faulted runs to its end, and
/// marks the mapping so that its result is thrown away.
void on_bus_error(int signal, siginfo_t* info, void* context) {
    const auto fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const auto begin = reinterpret_cast<std::uintptr_t>(current_guard.area);
    if (begin != 0 && fault >= begin && fault - begin < current_guard.size) {
        const int saved = errno;
        current_guard.broken->store(true);
        void* const patched =
            ::mmap(current_guard.area, current_guard.size, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        errno = saved;
        if (patched != MAP_FAILED) return;
    }
    if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
        previous_action.sa_sigaction(signal, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(signal);
    } else {
        // The instruction runs again, faults again, and ends the process as it should.
        (void)std::signal(signal, SIG_DFL);
    }
}

void install_handler() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action{};
        action.sa_sigaction = on_bus_error;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        if (::sigaction(SIGBUS, &action, &previous_action) != 0)
            throw std::system_error(errno, std::generic_category(), "cannot handle SIGBUS");
    });
}

class GuardScope {
  public:
    GuardScope(void* area, std::size_t size, std::atomic<bool>& broken) {
        current_guard = {.area = area, .size = size, .broken = &broken};
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~GuardScope() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        current_guard.area = nullptr;
    }
    GuardScope(const GuardScope&) = delete;
    GuardScope& operator=(const GuardScope&) = delete;
    GuardScope(GuardScope&&) = delete;
    GuardScope& operator=(GuardScope&&) = delete;
};

std::uint64_t page_size_of(int fd) {
    struct statfs info{};
    if (::fstatfs(fd, &info) != 0)
        throw std::system_error(errno, std::generic_category(), "fstatfs of a DMA region's file");
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const bool huge = info.f_type == HUGETLBFS_MAGIC && info.f_bsize > 0;
    return huge ? static_cast<std::uint64_t>(info.f_bsize) : page;
}

}  // namespace

Mapping::Mapping(int fd, std::uint64_t offset, std::uint64_t size, bool writable) {
    struct stat info{};
    if (::fstat(fd, &info) != 0)
        throw std::system_error(errno, std::generic_category(), "fstat of a DMA region's file");
    if (!S_ISREG(info.st_mode))
        throw std::system_error(EINVAL, std::generic_category(),
                                "a DMA region needs a regular file");
    const auto file_size = static_cast<std::uint64_t>(info.st_size);
    if (size == 0 || offset > file_size || size > file_size - offset)
        throw std::system_error(EINVAL, std::generic_category(),
                                "a DMA region's file ends before the region does");

    const std::uint64_t page = page_size_of(fd);
    const std::uint64_t lead = offset % page;
    const std::uint64_t length = (lead + size + page - 1) / page * page;
    if (length > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()))
        throw std::system_error(EINVAL, std::generic_category(), "a DMA region is too large");
    install_handler();
    void* const area = ::mmap(nullptr, length, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
                              fd, static_cast<off_t>(offset - lead));
    if (area == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "mmap of a DMA region's file");
    area_ = area;
    area_size_ = length;
    data_ = static_cast<std::byte*>(area) + lead;
}

Mapping::~Mapping() {
    ::munmap(area_, area_size_);
}

bool Mapping::read(std::uint64_t offset, std::span<std::byte> out) noexcept {
    const GuardScope guard(area_, area_size_, broken_);
    std::memcpy(out.data(), data_ + offset, out.size());
    return !broken_.load();
}

bool Mapping::write(std::uint64_t offset, std::span<const std::byte> in) noexcept {
    const GuardScope guard(area_, area_size_, broken_);
    std::memcpy(data_ + offset, in.data(), in.size());
    return !broken_.load();
}

bool Mapping::store_release(std::uint64_t offset, std::byte value) noexcept {
    const GuardScope guard(area_, area_size_, broken_);
    std::atomic_ref<std::byte>(data_[offset]).store(value, std::memory_order_release);
    return !broken_.load();
}

}  // namespace iaa::device::vfio_user
