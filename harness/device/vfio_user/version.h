// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace iaa::device::vfio_user {

/// What this server can do, and after negotiation what both sides may do.
struct Limits {
    std::uint64_t max_transfer;  ///< bytes of data in one message
    std::uint64_t max_dma_maps;
};

struct Negotiation {
    Limits limits{};                 ///< the smaller of both sides' limits
    std::vector<std::byte> payload;  ///< of the reply
};

/// Answers the payload of a VERSION request. The reply is never longer than the request, because
/// QEMU reads it into the request's buffer: what does not fit is left out, and then has the
/// protocol's default on the client's side. Nothing, with the reason in `problem`, where the
/// request is malformed or asks for another major version.
[[nodiscard]] std::optional<Negotiation> negotiate(std::span<const std::byte> request,
                                                   const Limits& own, std::string& problem);

}  // namespace iaa::device::vfio_user
