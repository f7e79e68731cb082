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

void Log::broken(std::string_view name, const std::string& text) {
    std::uint64_t held_back = 0;
    {
        const std::scoped_lock lock(mutex_);
        auto it = rules_.find(name);
        if (it == rules_.end()) {
            it = rules_.emplace(std::string(name), Rule{}).first;
        }
        Rule& rule = it->second;
        ++rule.count;
        const Clock::time_point now = Clock::now();
        if (rule.count == 1 || now - rule.window >= std::chrono::seconds(1)) {
            rule.window = now;
            rule.printed = 0;
        }
        if (rule.printed == kLinesPerSecond) {
            ++rule.held_back;
            return;
        }
        ++rule.printed;
        held_back = std::exchange(rule.held_back, 0);
    }
    if (held_back != 0) {
        line(LogLevel::kWarning,
             fmt::format("[{}] {} ({} like it held back)", name, text, held_back));
    } else {
        line(LogLevel::kWarning, fmt::format("[{}] {}", name, text));
    }
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
