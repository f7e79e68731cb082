// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "device/trace/trace.h"
#include "unit/ops/guest.h"
#include "unit/ops/random_guest.h"

namespace iaa::device::test {

/// A directory that goes away with the object.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "iaa-trace-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary directory " + name);
        }
        path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    TemporaryDirectory(TemporaryDirectory&&) = delete;
    TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
        return path_ / name;
    }

  private:
    std::filesystem::path path_;
};

/// Executes a random descriptor with its memory recorded.
inline TraceRecord record_one(std::mt19937_64& random, std::uint32_t work_queue = 0,
                              bool fault_injected = false) {
    RandomGuest guest([&random] { return random(); });
    TraceMemory memory(guest.memory());
    const Outcome outcome = execute(guest.descriptor(), memory, guest.capabilities());
    return memory.record(guest.descriptor(), guest.capabilities(), outcome, work_queue,
                         fault_injected);
}

/// A trace of that many random descriptors.
inline void record_session(const std::filesystem::path& path, unsigned count) {
    auto random = seeded(count);
    TraceWriter writer(path);
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_TRUE(writer.append(record_one(random, i % 3, i % 50 == 7)));
    }
    ASSERT_EQ(writer.records(), count);
    ASSERT_EQ(writer.error(), "");
}

inline Bytes read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

}  // namespace iaa::device::test
