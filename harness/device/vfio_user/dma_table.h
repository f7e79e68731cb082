// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/dma_memory.h"
#include "device/unique_fd.h"
#include "device/vfio_user/mapping.h"

namespace iaa::device::vfio_user {

/// DMA by messages to the client, for regions that came without a file.
class MessageDma {
  public:
    virtual ~MessageDma() = default;
    /// `cancelled` ends a long transfer between two messages.
    [[nodiscard]] virtual bool message_read(std::uint64_t iova, std::span<std::byte> out,
                                            const std::atomic<bool>& cancelled) = 0;
    [[nodiscard]] virtual bool message_write(std::uint64_t iova, std::span<const std::byte> in,
                                             const std::atomic<bool>& cancelled) = 0;

  protected:
    MessageDma() = default;
    MessageDma(const MessageDma&) = default;
    MessageDma& operator=(const MessageDma&) = default;
    MessageDma(MessageDma&&) = default;
    MessageDma& operator=(MessageDma&&) = default;
};

/// A range of IOVAs that the client has mapped.
class DmaRegion {
  public:
    DmaRegion(std::uint64_t first_iova, std::uint64_t last_iova, bool may_read, bool may_write)
        : first(first_iova), last(last_iova), readable(may_read), writable(may_write) {}

    /// False once it has been taken out of the table and the last access has ended.
    [[nodiscard]] bool busy() const { return users.load() != 0; }

    const std::uint64_t first;
    const std::uint64_t last;
    const bool readable;
    const bool writable;
    std::optional<Mapping> mapping;  ///< nothing where the client passed no file

    std::atomic<std::uint32_t> users{0};
    std::atomic<bool> leaving{false};
};

/// The client's DMA regions. Reads and writes may come from any thread; map() and take() from the
/// transport's. A region that has been taken is closed to new accesses at once; it may be destroyed
/// when it is no longer busy().
class DmaTable final : public DmaMemory {
  public:
    /// released is called when an access ends while a taken region waits for that.
    DmaTable(MessageDma& messages, std::function<void()> released);
    ~DmaTable() override;
    DmaTable(const DmaTable&) = delete;
    DmaTable& operator=(const DmaTable&) = delete;
    DmaTable(DmaTable&&) = delete;
    DmaTable& operator=(DmaTable&&) = delete;

    /// Adds a region; fd may be empty. Returns 0 or an errno: EINVAL (size, alignment to 4 KiB,
    /// wrap-around, a file that does not fit), EEXIST (overlap), ENOSPC (more than max_regions), or
    /// what mmap() said.
    [[nodiscard]] int map(std::uint64_t iova, std::uint64_t size, bool readable, bool writable,
                          const UniqueFd& fd, std::uint64_t offset, std::uint64_t max_regions);

    /// Takes out the region that is exactly this; nullptr where there is none.
    [[nodiscard]] std::unique_ptr<DmaRegion> take(std::uint64_t iova, std::uint64_t size);
    [[nodiscard]] std::vector<std::unique_ptr<DmaRegion>> take_all();
    /// Puts regions that were taken, and that stayed busy, out of harm's way until the table ends.
    void keep(std::vector<std::unique_ptr<DmaRegion>> regions);

    [[nodiscard]] bool read(std::uint64_t iova, std::span<std::byte> out) override;
    [[nodiscard]] bool write(std::uint64_t iova, std::span<const std::byte> in) override;
    [[nodiscard]] bool write_completion(std::uint64_t iova,
                                        std::span<const std::byte, 64> record) override;
    [[nodiscard]] bool mapped(std::uint64_t iova, std::uint64_t size, bool write) override;

  private:
    class Pieces;

    [[nodiscard]] bool acquire(std::uint64_t iova, std::uint64_t size, bool write, Pieces* pieces);
    void release(DmaRegion& region);

    MessageDma& messages_;
    std::function<void()> released_;
    std::mutex mutex_;  ///< of regions_; never held during an access
    std::map<std::uint64_t, std::unique_ptr<DmaRegion>> regions_;
    std::vector<std::unique_ptr<DmaRegion>> kept_;
};

}  // namespace iaa::device::vfio_user
