// SPDX-License-Identifier: GPL-2.0
#include "cgroup.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace memhog {
namespace {

void put(const std::filesystem::path& file, std::string_view text) {
    std::ofstream out(file);
    out << text << std::flush;
    if (!out.good()) {
        throw std::runtime_error(fmt::format("{}: cannot write \"{}\"", file.string(), text));
    }
}

}  // namespace

Cgroup::Cgroup(std::filesystem::path directory, std::uint64_t limit)
    : directory_(std::move(directory)) {
    put(directory_.parent_path() / "cgroup.subtree_control", "+memory");
    std::filesystem::create_directories(directory_);
    put(directory_ / "memory.max", fmt::format("{}", limit));
    put(directory_ / "cgroup.procs", "0");
}

Cgroup::~Cgroup() {
    // A group with a process in it cannot be removed: go back to where groups begin. Nothing to do
    // about a failure here, the group only stays behind empty.
    std::ofstream(directory_.parent_path() / "cgroup.procs") << "0" << std::flush;
    std::error_code ignored;
    std::filesystem::remove(directory_, ignored);
}

}  // namespace memhog
