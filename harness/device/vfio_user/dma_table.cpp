// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/dma_table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace iaa::device::vfio_user {
namespace {

constexpr std::uint64_t kPage = 4096;

struct Piece {
    DmaRegion* region;
    std::uint64_t offset;  ///< into the region
    std::size_t length;
};

}  // namespace

/// The regions that one access touches, kept in use until it ends. An access that lies in few
/// regions, as nearly all do, needs no memory for this.
class DmaTable::Pieces {
  public:
    explicit Pieces(DmaTable& table) : table_(table) {}
    ~Pieces() {
        for (const Piece& piece : all()) table_.release(*piece.region);
    }
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;
    Pieces(Pieces&&) = delete;
    Pieces& operator=(Pieces&&) = delete;

    void add(const Piece& piece) {
        if (more_.empty() && few_count_ < few_.size()) {
            few_[few_count_++] = piece;
            return;
        }
        if (more_.empty()) more_.assign(few_.begin(), few_.end());
        more_.push_back(piece);
    }

    [[nodiscard]] std::span<const Piece> all() const {
        if (!more_.empty()) return more_;
        return std::span(few_).first(few_count_);
    }

  private:
    DmaTable& table_;
    std::array<Piece, 4> few_{};
    std::size_t few_count_ = 0;
    std::vector<Piece> more_;
};

DmaTable::DmaTable(MessageDma& messages, std::function<void()> released)
    : messages_(messages), released_(std::move(released)) {}

DmaTable::~DmaTable() = default;

int DmaTable::map(std::uint64_t iova, std::uint64_t size, bool readable, bool writable,
                  const UniqueFd& fd, std::uint64_t offset, std::uint64_t max_regions) {
    if (size == 0 || iova % kPage != 0 || size % kPage != 0) return EINVAL;
    if (size - 1 > std::numeric_limits<std::uint64_t>::max() - iova) return EINVAL;
    const std::uint64_t last = iova + (size - 1);
    {
        const std::lock_guard lock(mutex_);
        if (regions_.size() >= max_regions) return ENOSPC;
        const auto after = regions_.upper_bound(last);
        if (after != regions_.begin() && std::prev(after)->second->last >= iova) return EEXIST;
    }
    auto region = std::make_unique<DmaRegion>(iova, last, readable, writable);
    if (fd) {
        try {
            region->mapping.emplace(fd.get(), offset, size, writable);
        } catch (const std::system_error& error) {
            return error.code().value();
        }
    }
    const std::lock_guard lock(mutex_);
    regions_.emplace(iova, std::move(region));
    return 0;
}

std::unique_ptr<DmaRegion> DmaTable::take(std::uint64_t iova, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(iova);
    if (found == regions_.end() || size == 0 || found->second->last != iova + (size - 1))
        return nullptr;
    auto region = std::move(found->second);
    regions_.erase(found);
    region->leaving.store(true);
    return region;
}

std::vector<std::unique_ptr<DmaRegion>> DmaTable::take_all() {
    std::vector<std::unique_ptr<DmaRegion>> taken;
    const std::lock_guard lock(mutex_);
    taken.reserve(regions_.size());
    for (auto& [iova, region] : regions_) {
        region->leaving.store(true);
        taken.push_back(std::move(region));
    }
    regions_.clear();
    return taken;
}

void DmaTable::keep(std::vector<std::unique_ptr<DmaRegion>> regions) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(regions, std::back_inserter(kept_));
}

bool DmaTable::acquire(std::uint64_t iova, std::uint64_t size, bool write, Pieces* pieces) {
    if (size == 0) return true;
    if (size - 1 > std::numeric_limits<std::uint64_t>::max() - iova) return false;
    const std::lock_guard lock(mutex_);
    auto at = regions_.upper_bound(iova);
    if (at == regions_.begin()) return false;
    --at;
    while (true) {
        DmaRegion& region = *at->second;
        if (iova < region.first || iova > region.last) return false;
        if (write ? !region.writable : !region.readable) return false;
        const std::uint64_t length = std::min(size - 1, region.last - iova) + 1;
        if (pieces != nullptr) {
            pieces->add({.region = &region,
                         .offset = iova - region.first,
                         .length = static_cast<std::size_t>(length)});
            region.users.fetch_add(1);
        }
        if (length == size) return true;
        iova += length;
        size -= length;
        if (++at == regions_.end()) return false;
    }
}

void DmaTable::release(DmaRegion& region) {
    // Once the count is down the region may be gone: what is needed of it is read before.
    const bool leaving = region.leaving.load();
    const bool last = region.users.fetch_sub(1) == 1;
    if (leaving && last) released_();
}

bool DmaTable::read(std::uint64_t iova, std::span<std::byte> out) {
    Pieces pieces(*this);
    if (!acquire(iova, out.size(), false, &pieces)) return false;
    for (const Piece& piece : pieces.all()) {
        const auto part = out.first(piece.length);
        DmaRegion& region = *piece.region;
        const bool ok = region.mapping ? region.mapping->read(piece.offset, part)
                                       : messages_.message_read(region.first + piece.offset, part,
                                                                region.leaving);
        if (!ok) return false;
        out = out.subspan(piece.length);
    }
    return true;
}

bool DmaTable::write(std::uint64_t iova, std::span<const std::byte> in) {
    Pieces pieces(*this);
    if (!acquire(iova, in.size(), true, &pieces)) return false;
    for (const Piece& piece : pieces.all()) {
        const auto part = in.first(piece.length);
        DmaRegion& region = *piece.region;
        const bool ok = region.mapping ? region.mapping->write(piece.offset, part)
                                       : messages_.message_write(region.first + piece.offset, part,
                                                                 region.leaving);
        if (!ok) return false;
        in = in.subspan(piece.length);
    }
    return true;
}

bool DmaTable::write_completion(std::uint64_t iova, std::span<const std::byte, 64> record) {
    Pieces pieces(*this);
    if (!acquire(iova, record.size(), true, &pieces)) return false;
    // The status is the first byte: everything but that byte, then that byte.
    std::span<const std::byte> rest = record;
    for (const Piece& piece : pieces.all()) {
        const std::size_t skip = rest.size() == record.size() ? 1 : 0;
        const auto part = rest.first(piece.length).subspan(skip);
        DmaRegion& region = *piece.region;
        const std::uint64_t offset = piece.offset + skip;
        const bool ok =
            part.empty() ||
            (region.mapping ? region.mapping->write(offset, part)
                            : messages_.message_write(region.first + offset, part, region.leaving));
        if (!ok) return false;
        rest = rest.subspan(piece.length);
    }
    const Piece& head = pieces.all().front();
    return head.region->mapping
               ? head.region->mapping->store_release(head.offset, record[0])
               : messages_.message_write(iova, record.first<1>(), head.region->leaving);
}

bool DmaTable::mapped(std::uint64_t iova, std::uint64_t size, bool write) {
    return acquire(iova, size, write, nullptr);
}

}  // namespace iaa::device::vfio_user
