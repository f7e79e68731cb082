// SPDX-License-Identifier: GPL-2.0
#include "device/model/log.h"

namespace iaa::device {
namespace {

constexpr std::uint32_t kLinesPerSecond = 5;

const char* level_name(LogLevel level) {
    switch (level) {
        case LogLevel::kError:
            return "error";
        case LogLevel::kWarning:
            return "warning";
        case LogLevel::kInfo:
            return "info";
        case LogLevel::kDebug:
            return "debug";
    }
    return "?";
}

}  // namespace

void Log::line(LogLevel level, std::string_view text) {
    if (level > level_) {
        return;
    }
    // One write a line, so that lines of several threads and processes do not mix.
    const std::string whole = fmt::format("iaa-device: {}: {}\n", level_name(level), text);
    (void)std::fwrite(whole.data(), 1, whole.size(), stream_);
    (void)std::fflush(stream_);
}

void Log::limited(Limits& limits, LogLevel level, std::string_view name, std::string_view prefix,
                  std::string_view text) {
    std::uint64_t held_back = 0;
    {
        const std::scoped_lock lock(mutex_);
        auto it = limits.find(name);
        if (it == limits.end()) {
            it = limits.emplace(std::string(name), Limit{}).first;
        }
        Limit& limit = it->second;
        ++limit.count;
        const Clock::time_point now = Clock::now();
        if (limit.count == 1 || now - limit.window >= std::chrono::seconds(1)) {
            limit.window = now;
            limit.printed = 0;
        }
        if (limit.printed == kLinesPerSecond) {
            ++limit.held_back;
            return;
        }
        ++limit.printed;
        held_back = std::exchange(limit.held_back, 0);
    }
    line(level, held_back == 0
                    ? fmt::format("{}{}", prefix, text)
                    : fmt::format("{}{} ({} like it held back)", prefix, text, held_back));
}

std::map<std::string, std::uint64_t> Log::rules_broken() const {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, std::uint64_t> counts;
    for (const auto& [name, rule] : rules_) {
        counts.emplace(name, rule.count);
    }
    return counts;
}

std::uint64_t Log::rule_count(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    const auto it = rules_.find(name);
    return it == rules_.end() ? 0 : it->second.count;
}

}  // namespace iaa::device
