// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/unique_fd.h"
#include "device/vfio_user/protocol.h"

namespace iaa::test {

namespace vu = device::vfio_user;
using device::UniqueFd;

/// What went wrong between the test and the server; the test fails with it.
class ClientError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Reply {
    vu::Header header{};
    std::vector<std::byte> payload;
    std::vector<UniqueFd> fds;

    [[nodiscard]] bool failed() const { return (header.flags & vu::kFlagError) != 0; }
    /// The errno of an error reply; 0 of a good one.
    [[nodiscard]] int error() const { return failed() ? static_cast<int>(header.error) : 0; }
    template <typename T>
    [[nodiscard]] T as(std::size_t offset = 0) const {
        const auto value = vu::load<T>(payload, offset);
        if (!value) throw ClientError("the reply is too short");
        return *value;
    }
};

/// Guest memory that the client made: the test's view of it.
class GuestMemory {
  public:
    explicit GuestMemory(std::size_t size);
    ~GuestMemory();
    GuestMemory(const GuestMemory&) = delete;
    GuestMemory& operator=(const GuestMemory&) = delete;
    GuestMemory(GuestMemory&&) = delete;
    GuestMemory& operator=(GuestMemory&&) = delete;

    [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_}; }
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Shortens or lengthens the file behind it; bytes() stays as it was.
    void resize_file(std::size_t size);

  private:
    UniqueFd fd_;
    std::byte* data_ = nullptr;
    std::size_t size_;
};

enum class Share : std::uint8_t { kFile, kMessages };

/// A vfio-user client that does what it is told, right or wrong. Not for several threads at once.
/// Waits end after `patience` with a ClientError. While it waits for a reply it answers DMA
/// messages from the memory that it has mapped.
class TestClient {
  public:
    explicit TestClient(UniqueFd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] static TestClient connect(const std::string& path);

    std::chrono::milliseconds patience{10'000};
    /// Answers DMA messages as QEMU's client first did: a 32-bit count, data 4 bytes early.
    bool short_dma_layout = false;
    /// Sees every DMA command first; true where it has dealt with it.
    std::function<bool(const Reply& command)> on_dma;

    // The protocol.
    /// VERSION with QEMU's capabilities; throws where the server refuses.
    Reply negotiate();
    Reply negotiate(std::string_view json);
    Reply call(vu::Command command, std::span<const std::byte> payload = {},
               std::span<const int> fds = {}, std::uint32_t flags = 0);
    /// Sends without waiting; returns the id.
    std::uint16_t send(vu::Command command, std::span<const std::byte> payload = {},
                       std::span<const int> fds = {}, std::uint32_t flags = 0);
    /// The reply to one sent before.
    Reply wait_reply(std::uint16_t id);
    void send_bytes(std::span<const std::byte> bytes, std::span<const int> fds = {});
    /// The next message whatever it is; nothing where none comes in time, or the server has closed.
    std::optional<Reply> receive(std::chrono::milliseconds limit);
    /// Waits until the server closes the connection; false where it does not in time.
    bool wait_closed(std::chrono::milliseconds limit);
    /// Answers DMA messages until done() or the limit; returns done().
    bool serve_dma(const std::function<bool()>& done, std::chrono::milliseconds limit);
    void answer_dma(const Reply& command);
    void close() { socket_.reset(); }
    [[nodiscard]] int socket() const { return socket_.get(); }

    // Memory. iova and size in multiples of 4096.
    GuestMemory& map_memory(std::uint64_t iova, std::size_t size, Share share = Share::kFile,
                            std::uint32_t flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE);
    /// Returns the memory, which the server has let go of.
    std::unique_ptr<GuestMemory> unmap_memory(std::uint64_t iova);

    // The device.
    std::vector<std::byte> read(std::uint32_t region, std::uint64_t offset, std::uint32_t count);
    void write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data,
               bool posted = false);
    template <typename T>
        requires std::is_trivially_copyable_v<T>
    T read_value(std::uint32_t region, std::uint64_t offset) {
        return vu::load<T>(read(region, offset, sizeof(T)))
            .value_or(T{});  // read() checks the size
    }
    template <typename T>
        requires std::is_trivially_copyable_v<T>
    void write_value(std::uint32_t region, std::uint64_t offset, const T& value,
                     bool posted = false) {
        write(region, offset, vu::bytes_of(value), posted);
    }
    /// As the guest's MOVDIR64B arrives: eight posted writes of 8 bytes.
    void write_portal(std::uint32_t region, std::uint64_t offset,
                      std::span<const std::byte, 64> descriptor);
    void reset();

    // Interrupts (MSI-X).
    void attach_irqs(std::uint32_t count);
    /// Waits for at least one signal of the vector, and takes all that are there; returns how many.
    std::uint64_t wait_irq(std::uint32_t vector, std::chrono::milliseconds limit);
    [[nodiscard]] int irq_fd(std::uint32_t vector) const { return irqs_.at(vector).get(); }

  private:
    void expect_ok(const Reply& reply, std::string_view what) const;
    std::span<std::byte> find(std::uint64_t iova, std::uint64_t size);
    bool fill(std::size_t size, std::chrono::steady_clock::time_point deadline);

    UniqueFd socket_;
    std::uint16_t next_id_ = 1;
    std::vector<std::byte> received_;
    std::vector<UniqueFd> received_fds_;
    std::map<std::uint16_t, Reply> early_replies_;
    std::map<std::uint64_t, std::unique_ptr<GuestMemory>> memory_;
    std::vector<UniqueFd> irqs_;
};

}  // namespace iaa::test
