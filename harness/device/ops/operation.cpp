// SPDX-License-Identifier: GPL-2.0
#include "device/ops/operation.h"

#include <fmt/format.h>

#include <vector>

#include "device/ops/buffers.h"
#include "device/ops/crc64.h"
#include "device/ops/operations.h"
#include "device/ops/rules.h"

namespace iaa::device {
namespace {

Outcome success() {
    Outcome outcome;
    outcome.record.status = static_cast<std::uint8_t>(Status::kSuccess);
    return outcome;
}

Outcome run_crc64(const Request& request, Buffers& buffers) {
    const Descriptor& d = request.descriptor();
    if (auto fault = buffers.check(request.source(), false, "source")) {
        return *std::move(fault);
    }
    std::vector<std::uint8_t> data(d.src1_size);
    if (auto fault = buffers.read(d.src1_addr, data, "source")) {
        return *std::move(fault);
    }
    Outcome outcome = success();
    outcome.record.bytes_completed = d.src1_size;
    outcome.record.set_crc64(
        crc64(data, {.polynomial = static_cast<std::uint64_t>(d.num_inputs) << 32U | d.filter_flags,
                     .bit_order = request.codec_flag(crc64_flag::kBitOrder) != 0,
                     .invert = request.codec_flag(crc64_flag::kInvert) != 0}));
    return outcome;
}

}  // namespace

Outcome analytics_error(deflate::ErrorCode code, std::string_view rule, std::string_view text) {
    Outcome outcome;
    outcome.record.status = static_cast<std::uint8_t>(Status::kAnalyticsError);
    outcome.record.error_code = static_cast<std::uint8_t>(code);
    outcome.rule = fmt::format("{}: {}", rule, text);
    return outcome;
}

Outcome execute(const Descriptor& descriptor, DmaMemory& memory, const Capabilities& capabilities) {
    const Request request(descriptor, capabilities);
    if (auto rejected = check_rules(request)) {
        return *std::move(rejected);
    }
    Buffers buffers(memory, capabilities);
    thread_local Workspace workspace;
    switch (request.opcode()) {
        case Opcode::kCompress:
            return compress(request, buffers, workspace);
        case Opcode::kDecompress:
            return decompress(request, buffers, workspace);
        case Opcode::kCrc64:
            return run_crc64(request, buffers);
        case Opcode::kNoop:
        case Opcode::kDrain:
            break;
    }
    return success();
}

}  // namespace iaa::device
