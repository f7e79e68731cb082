// SPDX-License-Identifier: GPL-2.0
#include <cstring>
#include <vector>

#include "device/trace/format.h"
#include "fuzz/deflate/require.h"

/// The body of a trace record, behind a right checksum: a record or an error with an offset in it;
/// and what was read is written as the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace iaa::device;
    std::vector<std::byte> body(size);
    if (size != 0) {
        std::memcpy(body.data(), data, size);
    }
    const trace_format::RecordHeader header{.body_size = static_cast<std::uint32_t>(size),
                                            .body_crc = trace_format::checksum(body)};
    try {
        const TraceRecord record = trace_format::parse_body(body, header, 0);
        const auto again = trace_format::make_record(record);
        iaa::test::require(
            again.size() == trace_format::kRecordHeaderSize + size &&
                std::memcmp(again.data() + trace_format::kRecordHeaderSize, body.data(), size) == 0,
            "a record is written as it was read");
    } catch (const TraceError& error) {
        iaa::test::require(error.offset() <= size, "the offset lies in the body");
    }
    return 0;
}
