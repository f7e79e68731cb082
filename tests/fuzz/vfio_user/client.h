// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/vfio_user/function.h"

namespace iaa::fuzz {

/// Plays a client that sends what input says to a server in front of function, all on this thread:
/// everything is sent, the sending side is closed, and then the server reads.
///
/// The first byte of input says what is set up before, in good messages:
///   bit 0  VERSION; without it the rest is not looked at by a server that is right
///   bit 1  64 KiB of shared memory at 0x10000
///   bit 2  64 KiB without a file at 0x40000
///   bit 3  eventfds for the first 8 MSI-X vectors
/// Bits 6 and 7 are not for play(): with a device behind it they choose what kind of device.
/// Then come pieces: a kind, descriptors, a length of 16 bits, and that many bytes. Kind 0 sends
/// the bytes as they are; another is a command of which they are the payload. Of `descriptors` bits
/// 0 and 1 are the number of memfds that go along, bits 2 and 3 that of eventfds, bit 7 is
/// NO_REPLY.
void play(device::Function& function, std::span<const std::uint8_t> input);

}  // namespace iaa::fuzz
