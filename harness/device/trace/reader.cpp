// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "device/trace/format.h"
#include "device/trace/trace.h"

namespace iaa::device {
namespace {

void read_exactly(std::ifstream& file, std::span<std::byte> out, std::uint64_t offset) {
    file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (file.gcount() != static_cast<std::streamsize>(out.size())) {
        throw TraceError(fmt::format("cannot read {} bytes", out.size()), offset);
    }
}

}  // namespace

TraceReader::TraceReader(const std::filesystem::path& path) : file_(path, std::ios::binary) {
    if (!file_) {
        throw std::system_error(errno, std::generic_category(),
                                fmt::format("cannot open the trace {}", path.string()));
    }
    if (!std::filesystem::is_regular_file(path)) {
        throw std::system_error(EINVAL, std::generic_category(),
                                fmt::format("the trace {} is not a file", path.string()));
    }
    size_ = std::filesystem::file_size(path);
    std::array<std::byte, trace_format::kFileHeaderSize> header{};
    if (size_ < header.size()) {
        throw TraceError(
            fmt::format("file of {} bytes, its header alone has {}", size_, header.size()), size_);
    }
    read_exactly(file_, header, 0);
    trace_format::check_file_header(header);
    offset_ = header.size();
}

std::optional<TraceRecord> TraceReader::next() {
    if (offset_ == size_) {
        return std::nullopt;
    }
    std::array<std::byte, trace_format::kRecordHeaderSize> bytes{};
    if (size_ - offset_ < bytes.size()) {
        cut_ = true;
        return std::nullopt;
    }
    read_exactly(file_, bytes, offset_);
    const auto header = trace_format::parse_record_header(bytes, offset_);
    const std::uint64_t body_offset = offset_ + bytes.size();
    if (size_ - body_offset < header.body_size) {
        cut_ = true;
        return std::nullopt;
    }
    std::vector<std::byte> body(header.body_size);
    read_exactly(file_, body, body_offset);
    TraceRecord record = trace_format::parse_body(body, header, body_offset);
    if (record.number != expected_) {
        throw TraceError(fmt::format("record {} where record {} belongs", record.number, expected_),
                         body_offset);
    }
    ++expected_;
    offset_ = body_offset + header.body_size;
    return record;
}

}  // namespace iaa::device
