// SPDX-License-Identifier: GPL-2.0
#include <utility>

#include "device/trace/trace.h"

namespace iaa::device {

bool TraceMemory::read(std::uint64_t iova, std::span<std::byte> out) {
    const bool ok = memory_.read(iova, out);
    accesses_.push_back(
        {.kind = TraceAccess::Kind::kRead,
         .ok = ok,
         .iova = iova,
         .size = out.size(),
         .bytes = ok ? std::vector<std::byte>(out.begin(), out.end()) : std::vector<std::byte>()});
    return ok;
}

bool TraceMemory::write(std::uint64_t iova, std::span<const std::byte> in) {
    const bool ok = memory_.write(iova, in);
    accesses_.push_back(
        {.kind = TraceAccess::Kind::kWrite,
         .ok = ok,
         .iova = iova,
         .size = in.size(),
         .bytes = ok ? std::vector<std::byte>(in.begin(), in.end()) : std::vector<std::byte>()});
    return ok;
}

bool TraceMemory::mapped(std::uint64_t iova, std::uint64_t size, bool write) {
    const bool ok = memory_.mapped(iova, size, write);
    accesses_.push_back(
        {.kind = write ? TraceAccess::Kind::kMappedForWrite : TraceAccess::Kind::kMappedForRead,
         .ok = ok,
         .iova = iova,
         .size = size,
         .bytes = {}});
    return ok;
}

bool TraceMemory::write_completion(std::uint64_t iova, std::span<const std::byte, 64> record) {
    return memory_.write_completion(iova, record);
}

TraceRecord TraceMemory::record(const Descriptor& descriptor, const Capabilities& capabilities,
                                const Outcome& outcome, std::uint32_t work_queue,
                                bool fault_injected) {
    return {.number = 0,
            .nanoseconds = 0,
            .work_queue = work_queue,
            .fault_injected = fault_injected,
            .executed = true,
            .completion = outcome.record,
            .capabilities = capabilities,
            .descriptor = descriptor,
            .outcome = outcome,
            .accesses = std::exchange(accesses_, {})};
}

}  // namespace iaa::device
