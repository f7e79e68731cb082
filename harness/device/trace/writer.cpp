// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "device/trace/format.h"
#include "device/trace/trace.h"

namespace iaa::device {
namespace {

std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

/// 0, or the errno.
int write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
}

std::string text_of(int error) {
    return std::generic_category().message(error);
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path) : path_(path), opened_(now()) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(),
                                fmt::format("cannot create the trace {}", path.string()));
    }
    const auto header = trace_format::make_file_header();
    if (const int error = write_all(fd_, header); error != 0) {
        ::close(fd_);
        throw std::system_error(error, std::generic_category(),
                                fmt::format("cannot write the trace {}", path.string()));
    }
    size_ = header.size();
}

TraceWriter::~TraceWriter() {
    ::close(fd_);
}

bool TraceWriter::append(TraceRecord record) {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) {
        return false;
    }
    record.number = records_;
    record.nanoseconds = now() - opened_;
    const auto bytes = trace_format::make_record(record);
    if (bytes.size() - trace_format::kRecordHeaderSize > kMaxBody) {
        error_ = fmt::format("record {} has {} bytes, a trace takes {}", record.number,
                             bytes.size() - trace_format::kRecordHeaderSize, kMaxBody);
        return false;
    }
    if (const int error = write_all(fd_, bytes); error != 0) {
        error_ = fmt::format("cannot write record {} to the trace {}: {}", record.number,
                             path_.string(), text_of(error));
        // What there is of it goes; where that fails too, a reader finds the file cut.
        if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) {
            error_ += fmt::format("; nor cut it off there: {}", text_of(errno));
        }
        return false;
    }
    size_ += bytes.size();
    ++records_;
    return true;
}

std::string TraceWriter::error() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

std::uint64_t TraceWriter::records() const {
    const std::lock_guard lock(mutex_);
    return records_;
}

}  // namespace iaa::device
