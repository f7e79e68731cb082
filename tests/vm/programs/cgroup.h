// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace memhog {

/// A memory control group (version 2) of its own that this process lives in until the object goes.
class Cgroup {
  public:
    /// Makes `directory`, limits its memory to `limit` bytes and moves this process there.
    /// Throws std::runtime_error, which says what could not be written.
    Cgroup(std::filesystem::path directory, std::uint64_t limit);
    ~Cgroup();
    Cgroup(const Cgroup&) = delete;
    Cgroup& operator=(const Cgroup&) = delete;
    Cgroup(Cgroup&&) = delete;
    Cgroup& operator=(Cgroup&&) = delete;

  private:
    std::filesystem::path directory_;
};

}  // namespace memhog
