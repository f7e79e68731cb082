// SPDX-License-Identifier: GPL-2.0
#include "region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace memhog {
namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

/// Closes what it holds.
class File {
  public:
    explicit File(const char* name) : fd_(open(name, O_RDONLY | O_CLOEXEC)) {
        if (fd_ < 0) {
            fail(name);
        }
    }
    ~File() { close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    File(File&&) = delete;
    File& operator=(File&&) = delete;

    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_;
};

/// A page's entry in pagemap, by Documentation/admin-guide/mm/pagemap.rst.
constexpr std::uint64_t kSwapped = 1ULL << 62U;

}  // namespace

Region::Region(std::size_t pages) {
    const std::size_t bytes = pages * kPageSize;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fail("mmap");
    }
    memory_ = {static_cast<std::byte*>(memory), bytes};
    // Large folios leave by other ways than single pages do: each is to be a page of its own.
    madvise(memory, bytes, MADV_NOHUGEPAGE);
}

Region::~Region() {
    munmap(memory_.data(), memory_.size());
}

std::span<std::byte, kPageSize> Region::page(std::size_t number) const {
    return memory_.subspan(number * kPageSize).first<kPageSize>();
}

void Region::page_out(std::size_t first, std::size_t count) const {
    if (madvise(page(first).data(), count * kPageSize, MADV_PAGEOUT) != 0) {
        fail("madvise(MADV_PAGEOUT)");
    }
}

std::size_t Region::swapped() const {
    const File map("/proc/self/pagemap");
    std::vector<std::uint64_t> entries(4096);
    std::size_t found = 0;
    std::size_t done = 0;
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data()) / kPageSize;
    while (done < pages()) {
        const std::size_t want = std::min(entries.size(), pages() - done);
        const ssize_t got = pread(map.fd(), entries.data(), want * sizeof(entries[0]),
                                  static_cast<off_t>((start + done) * sizeof(entries[0])));
        if (got <= 0) {
            fail("/proc/self/pagemap");
        }
        const auto count = static_cast<std::size_t>(got) / sizeof(entries[0]);
        found += static_cast<std::size_t>(
            std::count_if(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count),
                          [](std::uint64_t entry) { return (entry & kSwapped) != 0; }));
        done += count;
    }
    return found;
}

}  // namespace memhog
