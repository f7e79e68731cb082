// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/unique_fd.h"
#include "device/vfio_user/protocol.h"

namespace iaa::device::vfio_user {

/// A message in the reader's buffer.
struct MessageView {
    Header header{};
    std::span<const std::byte> payload;  ///< valid until the next call of the reader
    std::vector<UniqueFd> fds;
    bool fds_lost = false;  ///< more came than a message may carry, or the process has no more free
};

/// Takes a stream socket's bytes apart into messages, as many as have arrived with one system call.
///
/// A file descriptor belongs to the message in which the bytes that it came with end: the kernel
/// ends a read after the segment that carries descriptors, and a client sends a message and its
/// descriptors together.
class MessageReader {
  public:
    enum class Received : std::uint8_t { kData, kNothing, kClosed, kAbuse };
    enum class Next : std::uint8_t { kMessage, kNone, kBroken };

    /// max_size bounds a message, header included; a larger one is kBroken, as are a size below the
    /// header's and a type that is neither command nor reply: the stream cannot be followed
    /// further.
    explicit MessageReader(std::size_t max_size);

    /// Reads once; flags as for recvmsg(2). Only to be called when next() has said kNone.
    /// kNothing: would block, or timed out. kAbuse: descriptors beyond all measure in one message.
    [[nodiscard]] Received receive(int socket, int flags);

    [[nodiscard]] Next next(MessageView& view);

    /// The beginning of a message has arrived, and not its end.
    [[nodiscard]] bool partial() const { return head_ != tail_; }
    /// Where in the stream the message begins that next() looks for.
    [[nodiscard]] std::uint64_t position() const { return head_position_; }

  private:
    struct FdSet {
        std::uint64_t end;  ///< stream position behind the bytes that they came with
        std::vector<UniqueFd> fds;
        bool lost;
    };

    void take_fds(std::uint64_t end, MessageView& view);

    std::size_t max_size_;
    std::vector<std::byte> buffer_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    std::uint64_t head_position_ = 0;  ///< head_'s place in the stream
    std::vector<FdSet> fd_sets_;
};

}  // namespace iaa::device::vfio_user
