// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "device/unique_fd.h"

namespace iaa::device::vfio_user {

/// Signals eventfds that others hold as well. A write() to one waits where its counter is full, and
/// whoever shares it decides that, and whether it waits at all. So the kernel signals it as it
/// tells of a finished asynchronous read (aio_resfd), which never waits: a full counter stays full.
class EventfdSignal {
  public:
    /// Throws std::system_error where the kernel gives no context for asynchronous reads.
    EventfdSignal();
    ~EventfdSignal();
    EventfdSignal(const EventfdSignal&) = delete;
    EventfdSignal& operator=(const EventfdSignal&) = delete;
    EventfdSignal(EventfdSignal&&) = delete;
    EventfdSignal& operator=(EventfdSignal&&) = delete;

    [[nodiscard]] static bool is_eventfd(const UniqueFd& fd);

    /// Adds 1 to the counter of an eventfd; false where the kernel refuses that. Not for several
    /// threads at once.
    [[nodiscard]] bool add_one(const UniqueFd& eventfd);

  private:
    UniqueFd nothing_;  ///< what is read: ends at once
    unsigned long context_ = 0;
};

}  // namespace iaa::device::vfio_user
