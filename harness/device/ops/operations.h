// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "deflate/decoder.h"
#include "deflate/encoder.h"
#include "device/ops/buffers.h"
#include "device/ops/operation.h"
#include "device/ops/rules.h"

/// The operations themselves, for requests that keep to all rules.
namespace iaa::device {

/// What a thread keeps from one descriptor to the next, only to save work: the results do not
/// depend on it.
struct Workspace {
    deflate::Encoder encoder;
    deflate::Decoder decoder;
};

[[nodiscard]] Outcome compress(const Request& request, Buffers& buffers, Workspace& workspace);
[[nodiscard]] Outcome decompress(const Request& request, Buffers& buffers, Workspace& workspace);

/// An analytics error with this code, and a line for the log.
[[nodiscard]] Outcome analytics_error(deflate::ErrorCode code, std::string_view rule,
                                      std::string_view text);

}  // namespace iaa::device
