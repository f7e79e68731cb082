// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/eventfd_signal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

namespace iaa::device::vfio_user {

EventfdSignal::EventfdSignal() : nothing_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    if (!nothing_) throw std::system_error(errno, std::generic_category(), "/dev/null");
    if (::syscall(SYS_io_setup, 1, &context_) != 0)
        throw std::system_error(errno, std::generic_category(),
                                "cannot signal interrupts: io_setup");
}

EventfdSignal::~EventfdSignal() {
    ::syscall(SYS_io_destroy, context_);
}

bool EventfdSignal::is_eventfd(const UniqueFd& fd) {
    std::array<char, 64> target{};
    const std::string link = fmt::format("/proc/self/fd/{}", fd.get());
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) ==
                             "anon_inode:[eventfd]";
}

bool EventfdSignal::add_one(const UniqueFd& eventfd) {
    iocb read{};
    read.aio_lio_opcode = IOCB_CMD_PREAD;
    read.aio_fildes = static_cast<unsigned>(nothing_.get());
    read.aio_flags = IOCB_FLAG_RESFD;
    read.aio_resfd = static_cast<unsigned>(eventfd.get());
    std::array<iocb*, 1> list{&read};
    // The read is over when io_submit() returns; its event only has to go.
    if (::syscall(SYS_io_submit, context_, 1L, list.data()) != 1) return false;
    std::array<io_event, 4> over{};
    ::syscall(SYS_io_getevents, context_, 1L, static_cast<long>(over.size()), over.data(), nullptr);
    return true;
}

}  // namespace iaa::device::vfio_user
