// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace iaa::device {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };

/// Lines to one stream, and a count of every rule that was broken. A guest can break a rule
/// millions of times a second, so each name gets a few lines a second and then a count of what was
/// held back. Safe to call from any thread.
class Log {
  public:
    explicit Log(LogLevel level, std::FILE* stream = stderr) : level_(level), stream_(stream) {}

    template <typename... Args>
    void error(fmt::format_string<Args...> format, Args&&... args) {
        line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
    }
    template <typename... Args>
    void info(fmt::format_string<Args...> format, Args&&... args) {
        if (level_ >= LogLevel::kInfo) {
            line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
        }
    }
    template <typename... Args>
    void debug(fmt::format_string<Args...> format, Args&&... args) {
        if (level_ >= LogLevel::kDebug) {
            line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
        }
    }

    /// What a client can make happen as often as it likes: as info(), rate limited by its name.
    template <typename... Args>
    void event(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
        limited(events_, LogLevel::kInfo, name, "",
                fmt::format(format, std::forward<Args>(args)...));
    }

    /// The guest broke the rule of this name. Counted always; printed as a warning, rate limited.
    template <typename... Args>
    void rule(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
        limited(rules_, LogLevel::kWarning, name, fmt::format("[{}] ", name),
                fmt::format(format, std::forward<Args>(args)...));
    }

    /// How often each rule was broken since the start.
    [[nodiscard]] std::map<std::string, std::uint64_t> rules_broken() const;
    [[nodiscard]] std::uint64_t rule_count(std::string_view name) const;

  private:
    using Clock = std::chrono::steady_clock;
    struct Limit {
        std::uint64_t count = 0;
        std::uint64_t held_back = 0;
        std::uint32_t printed = 0;  ///< in the second that began at window
        Clock::time_point window;
    };

    using Limits = std::map<std::string, Limit, std::less<>>;

    void line(LogLevel level, std::string_view text);
    void limited(Limits& limits, LogLevel level, std::string_view name, std::string_view prefix,
                 std::string_view text);

    const LogLevel level_;
    std::FILE* const stream_;
    mutable std::mutex mutex_;
    Limits rules_;
    Limits events_;
};

}  // namespace iaa::device
