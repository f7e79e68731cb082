// SPDX-License-Identifier: GPL-2.0
#include "device/ops/codes.h"

namespace iaa::device {

std::string_view describe(Status status) {
    switch (status) {
        case Status::kNone:
            return "pending";
        case Status::kSuccess:
            return "success";
        case Status::kPageFault:
            return "page fault, read";
        case Status::kPageFaultWrite:
            return "page fault, write";
        case Status::kAnalyticsError:
            return "analytics error";
        case Status::kOutputOverflow:
            return "output buffer overflow";
        case Status::kBadOpcode:
            return "unsupported opcode";
        case Status::kInvalidFlags:
            return "invalid operation flags";
        case Status::kReservedField:
            return "non-zero reserved field";
        case Status::kInvalidSize:
            return "invalid size";
        case Status::kOverlap:
            return "overlapping buffers";
        case Status::kInterruptHandle:
            return "invalid interrupt handle";
        case Status::kCompletionTranslation:
            return "completion record address not translated";
        case Status::kCompletionAlignment:
            return "completion record address misaligned";
        case Status::kAddressAlignment:
            return "address misaligned";
        case Status::kPrivilege:
            return "privilege";
        case Status::kTrafficClass:
            return "traffic class";
        case Status::kReadbackFault:
            return "page fault on readback";
        case Status::kHardwareError:
            return "hardware error";
        case Status::kHardwareErrorReadback:
            return "hardware error on readback";
        case Status::kTranslation:
            return "address translation failed";
        case Status::kPageRequestTimeout:
            return "page request timeout";
        case Status::kWatchdog:
            return "watchdog";
        case Status::kInvalidCodecFlags:
            return "invalid compress, decompress or CRC64 flags";
        case Status::kInvalidFilterFlags:
            return "invalid filter flags";
        case Status::kInvalidInputSize:
            return "invalid input size";
        case Status::kInvalidElementCount:
            return "invalid number of elements";
        case Status::kInvalidSource1Width:
            return "invalid source 1 width";
        case Status::kInvalidInvert:
            return "invalid output inversion";
    }
    return "unknown status";
}

}  // namespace iaa::device
