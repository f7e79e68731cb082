// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "device/unique_fd.h"
#include "device/vfio_user/dma_table.h"
#include "device/vfio_user/function.h"
#include "device/vfio_user/irq_table.h"
#include "device/vfio_user/message_reader.h"
#include "device/vfio_user/options.h"
#include "device/vfio_user/protocol.h"
#include "device/vfio_user/version.h"

namespace iaa::device::vfio_user {

/// One client's connection, and the host of the function meanwhile.
///
/// The thread that calls run() owns the socket's reading side and calls the function. Other threads
/// use the Host interface: they copy guest memory themselves where it is mapped, and otherwise send
/// DMA messages, whose replies the owner hands to them.
class Session final : public Host, private MessageDma {
  public:
    Session(UniqueFd socket, Function& function, const ServerOptions& options,
            const std::atomic<bool>& stop);
    ~Session() override;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    Session(Session&&) = delete;
    Session& operator=(Session&&) = delete;

    /// Serves the client until it leaves, breaks the protocol, or stop is set. The function has
    /// been detached on return.
    void run();

    DmaMemory& memory() override { return dma_; }
    void trigger_msix(std::uint32_t vector) override { msix_.trigger(vector); }
    [[nodiscard]] bool pump_until(const std::function<bool()>& done,
                                  std::chrono::milliseconds limit) override;
    void wake() override;
    void disconnect(std::string_view why) override { give_up(why); }

  private:
    using Clock = std::chrono::steady_clock;

    struct Request {
        Header header{};
        std::vector<std::byte> payload;
        std::vector<UniqueFd> fds;
        bool fds_lost = false;
    };

    /// A DMA message that waits for its reply.
    struct Transfer {
        std::uint16_t id = 0;
        Command command{};
        bool in_use = false;
        bool finished = false;
        bool failed = false;
        std::uint32_t error = 0;  ///< the client's, where it replied with one
        std::uint64_t address = 0;
        std::span<std::byte> read_into;  ///< DMA_READ: where the reply's data goes
        std::condition_variable changed;
    };

    /// How the client lays out DMA messages; see kShortDmaDataOffset.
    enum class DmaLayout : std::uint8_t { kUnknown, kSpecified, kShort };

    // Receiving.
    [[nodiscard]] bool receive();
    [[nodiscard]] bool receive_pumping();
    void take(MessageView& view, Request& request);
    void defer(MessageView& view);
    /// Handles what is complete in the reader: replies at once, commands into the queue. False
    /// where the stream is broken.
    [[nodiscard]] bool drain_reader();

    // Commands. Each returns 0, having replied, or the errno to reply with.
    void dispatch(Request& request);
    [[nodiscard]] int handle(Request& request);
    [[nodiscard]] int version(const Request& request);
    [[nodiscard]] int dma_map(Request& request);
    [[nodiscard]] int dma_unmap(const Request& request);
    [[nodiscard]] int get_info(const Request& request);
    [[nodiscard]] int get_region_info(const Request& request);
    [[nodiscard]] int get_region_io_fds(const Request& request);
    [[nodiscard]] int get_irq_info(const Request& request);
    [[nodiscard]] int set_irqs(Request& request);
    [[nodiscard]] int region_read(const Request& request);
    [[nodiscard]] int region_write(const Request& request);
    [[nodiscard]] int region_write_multi(const Request& request);
    [[nodiscard]] int check_access(const RegionAccess& access, bool write) const;

    // Sending.
    void reply(const Request& request, std::span<const std::byte> payload,
               std::span<const std::byte> data = {});
    void reply_error(const Request& request, int error);
    [[nodiscard]] bool send(const Header& header, std::span<const std::byte> payload,
                            std::span<const std::byte> data);
    void give_up(std::string_view why);

    // DMA by messages.
    [[nodiscard]] bool message_read(std::uint64_t iova, std::span<std::byte> out,
                                    const std::atomic<bool>& cancelled) override;
    [[nodiscard]] bool message_write(std::uint64_t iova, std::span<const std::byte> in,
                                     const std::atomic<bool>& cancelled) override;
    [[nodiscard]] bool find_layout(std::uint64_t iova);
    struct TransferResult {
        bool replied = false;
        std::uint32_t error = 0;
    };
    [[nodiscard]] TransferResult transfer(Command command, std::uint64_t address,
                                          std::uint64_t count, std::span<std::byte> read_into,
                                          std::span<const std::byte> data);
    void finish_transfer(const MessageView& view);
    void fail_transfers();

    void log(std::string_view text);

    UniqueFd socket_;
    Function& function_;
    const ServerOptions& options_;
    const std::atomic<bool>& stop_;
    const std::thread::id owner_;
    UniqueFd wake_fd_;
    std::atomic<bool> pumping_{false};
    std::atomic<bool> dead_{false};

    MessageReader reader_;
    Request current_;
    std::deque<Request> deferred_;
    std::size_t deferred_bytes_ = 0;
    std::vector<std::byte> read_buffer_;
    std::uint64_t partial_position_ = 0;  ///< of the message whose beginning is waiting
    Clock::time_point partial_since_ = Clock::now();

    bool negotiated_ = false;
    Limits limits_{};
    DmaTable dma_;
    IrqTable msix_;

    std::mutex send_mutex_;
    std::mutex transfer_mutex_;
    std::array<Transfer, 32> transfers_;  ///< the first is the owner's
    std::condition_variable transfer_free_;
    std::uint16_t transfer_generation_ = 0;
    std::atomic<DmaLayout> layout_{DmaLayout::kUnknown};

    std::mutex log_mutex_;
    unsigned logged_ = 0;
};

}  // namespace iaa::device::vfio_user
