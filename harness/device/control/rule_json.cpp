// SPDX-License-Identifier: GPL-2.0
#include "device/control/rule_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace iaa::device::control {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::uint64_t kMaxDelayMs = 3'600'000;

/// Opcodes by the names that descriptors of IAA have.
constexpr std::array<std::pair<std::string_view, std::uint8_t>, 7> kOpcodes{{
    {"noop", 0x00},
    {"drain", 0x02},
    {"decrypt", 0x40},
    {"encrypt", 0x41},
    {"decompress", 0x42},
    {"compress", 0x43},
    {"crc64", 0x44},
}};

[[noreturn]] void fail(std::string_view key, std::string_view expected) {
    throw std::invalid_argument(fmt::format("\"{}\" must be {}", key, expected));
}

/// A number, or a string with one: JSON has no hexadecimal.
std::uint64_t number(std::string_view key, const json& value, std::uint64_t max) {
    const std::string expected = fmt::format("a number from 0 to {}, or a string with one", max);
    std::uint64_t result = 0;
    if (value.is_number_unsigned()) {
        result = value.get<std::uint64_t>();
    } else if (value.is_string()) {
        std::string_view text = value.get_ref<const std::string&>();
        const bool hex = text.starts_with("0x");
        if (hex) text.remove_prefix(2);
        const auto [end, error] =
            std::from_chars(text.data(), text.data() + text.size(), result, hex ? 16 : 10);
        if (error != std::errc{} || end != text.data() + text.size()) fail(key, expected);
    } else {
        fail(key, expected);
    }
    if (result > max) fail(key, expected);
    return result;
}

bool boolean(std::string_view key, const json& value) {
    if (!value.is_boolean()) fail(key, "true or false");
    return value.get<bool>();
}

milliseconds delay(std::string_view key, const json& value) {
    return milliseconds(number(key, value, kMaxDelayMs));
}

const json* part(const json& object, const char* key,
                 std::initializer_list<std::string_view> known) {
    const auto found = object.find(key);
    if (found == object.end()) return nullptr;
    if (!found->is_object()) fail(key, "an object");
    for (const auto& [name, value] : found->items()) {
        if (std::ranges::find(known, name) == known.end())
            throw std::invalid_argument(
                fmt::format(R"("{}" has no "{}"; it has {})", key, name, fmt::join(known, ", ")));
    }
    return &*found;
}

FaultMatch match_from(const json& object) {
    FaultMatch match;
    const json* const from =
        part(object, "match", {"opcode", "wq", "verify", "min_size", "max_size"});
    if (from == nullptr) return match;
    for (const auto& [key, value] : from->items()) {
        constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
        if (key == "opcode") {
            if (value != "any") match.opcode = opcode_from_json(value);
        } else if (key == "wq") {
            match.wq = static_cast<std::uint32_t>(number(key, value, kMax));
        } else if (key == "verify") {
            match.verify = boolean(key, value);
        } else if (key == "min_size") {
            match.min_size = static_cast<std::uint32_t>(number(key, value, kMax));
        } else {
            match.max_size = static_cast<std::uint32_t>(number(key, value, kMax));
        }
    }
    if (match.min_size > match.max_size)
        throw std::invalid_argument(R"("min_size" is larger than "max_size": nothing would match)");
    return match;
}

FaultTrigger trigger_from(const json& object) {
    FaultTrigger trigger;
    const json* const from =
        part(object, "when", {"after", "every", "probability", "seed", "count", "once"});
    if (from == nullptr) return trigger;
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [key, value] : from->items()) {
        if (key == "after") {
            trigger.after = number(key, value, kMax);
        } else if (key == "every") {
            trigger.every = number(key, value, kMax);
        } else if (key == "probability") {
            if (!value.is_number()) fail(key, "a number from 0 to 1");
            trigger.probability = value.get<double>();
            if (trigger.probability < 0.0 || trigger.probability > 1.0)
                fail(key, "a number from 0 to 1");
        } else if (key == "seed") {
            trigger.seed = number(key, value, kMax);
        } else if (key == "count") {
            trigger.count = number(key, value, kMax);
        } else if (boolean(key, value)) {
            if (from->contains("count"))
                throw std::invalid_argument(R"("once" and "count" exclude each other)");
            trigger.count = 1;
        }
    }
    return trigger;
}

Corruption corruption_from(const json& object) {
    Corruption result;
    if (object.at("corrupt").is_boolean()) return result;
    const json* const from = part(object, "corrupt", {"offset", "flip", "crc"});
    for (const auto& [key, value] : from->items()) {
        if (key == "offset") {
            result.offset = static_cast<std::uint32_t>(
                number(key, value, std::numeric_limits<std::uint32_t>::max()));
        } else if (key == "flip") {
            result.flip = static_cast<std::uint8_t>(number(key, value, 255));
            if (result.flip == 0) fail(key, "from 1 to 255: 0 would change nothing");
        } else if (value == "matching") {
            result.crc = CrcFault::kMatching;
        } else if (value == "stale") {
            result.crc = CrcFault::kStale;
        } else {
            fail(key, R"("stale" or "matching")");
        }
    }
    return result;
}

DrainFault drain_from(const json& value) {
    if (value == "forget") return DrainFault::kForgets;
    if (value == "complete") return DrainFault::kCompletes;
    if (value == "wait") return DrainFault::kWaits;
    fail("on_drain", R"("forget", "complete" or "wait")");
}

InterruptFault interrupt_from(const json& value) {
    if (value == "lost") return InterruptFault::kLost;
    if (value == "doubled") return InterruptFault::kDoubled;
    fail("interrupt", R"("lost" or "doubled")");
}

void check(const FaultActions& actions) {
    const bool result = actions.status || actions.corrupt || actions.output_size;
    const bool completion = actions.interrupt != InterruptFault::kNone || actions.complete_twice ||
                            actions.late.has_value();
    const bool delayed = actions.delay.count() != 0;
    if (!result && !completion && !delayed && !actions.drop && !actions.never_complete &&
        !actions.halt)
        throw std::invalid_argument("\"fault\" does nothing: name what is to happen");
    if (actions.drop && (result || completion || delayed || actions.never_complete || actions.halt))
        throw std::invalid_argument("a descriptor that is dropped can have no other fault");
    if (actions.never_complete && (result || completion || actions.halt))
        throw std::invalid_argument(
            "a descriptor that never completes has no result, no completion and no halt to change");
    if (actions.halt && (result || completion))
        throw std::invalid_argument("a descriptor that halts the device does not complete");
    if (actions.corrupt && actions.status && !actions.status->execute)
        throw std::invalid_argument(
            "to corrupt the output of a descriptor that fails, let it be executed: \"execute\": "
            "true");
}

FaultActions actions_from(const json& object) {
    const json* const from = part(
        object, "fault",
        {"drop", "never_complete", "on_drain", "halt", "status", "error_code", "execute", "corrupt",
         "output_size", "interrupt", "complete_twice", "twice_gap_ms", "delay_ms", "late_ms"});
    if (from == nullptr) throw std::invalid_argument("there is no \"fault\"");
    FaultActions actions;
    StatusFault status;
    for (const auto& [key, value] : from->items()) {
        if (key == "drop") {
            actions.drop = boolean(key, value);
        } else if (key == "never_complete") {
            actions.never_complete = boolean(key, value);
        } else if (key == "on_drain") {
            actions.on_drain = drain_from(value);
        } else if (key == "halt") {
            actions.halt = boolean(key, value);
        } else if (key == "status") {
            status.status = static_cast<std::uint8_t>(number(key, value, 255));
        } else if (key == "error_code") {
            status.error_code = static_cast<std::uint8_t>(number(key, value, 255));
        } else if (key == "execute") {
            status.execute = boolean(key, value);
        } else if (key == "corrupt") {
            if (!value.is_boolean() || value.get<bool>()) actions.corrupt = corruption_from(*from);
        } else if (key == "output_size") {
            actions.output_size = static_cast<std::uint32_t>(
                number(key, value, std::numeric_limits<std::uint32_t>::max()));
        } else if (key == "interrupt") {
            actions.interrupt = interrupt_from(value);
        } else if (key == "complete_twice") {
            actions.complete_twice = boolean(key, value);
        } else if (key == "twice_gap_ms") {
            actions.twice_gap = delay(key, value);
        } else if (key == "delay_ms") {
            actions.delay = delay(key, value);
        } else {
            actions.late = delay(key, value);
        }
    }
    if (from->contains("status"))
        actions.status = status;
    else if (from->contains("error_code") || from->contains("execute"))
        throw std::invalid_argument(R"("error_code" and "execute" go with a "status")");
    if (from->contains("on_drain") && !actions.never_complete)
        throw std::invalid_argument(R"("on_drain" goes with "never_complete")");
    if (from->contains("twice_gap_ms") && !actions.complete_twice)
        throw std::invalid_argument(R"("twice_gap_ms" goes with "complete_twice")");
    check(actions);
    return actions;
}

json match_to(const FaultMatch& match) {
    json result = json::object();
    if (match.opcode) {
        const auto* const known = std::ranges::find(kOpcodes, *match.opcode,
                                                    [](const auto& entry) { return entry.second; });
        if (known != kOpcodes.end())
            result["opcode"] = known->first;
        else
            result["opcode"] = fmt::format("{:#04x}", *match.opcode);
    }
    if (match.wq) result["wq"] = *match.wq;
    if (match.verify) result["verify"] = *match.verify;
    if (match.min_size != 0) result["min_size"] = match.min_size;
    if (match.max_size != std::numeric_limits<std::uint32_t>::max())
        result["max_size"] = match.max_size;
    return result;
}

json trigger_to(const FaultTrigger& trigger) {
    json result = json::object();
    if (trigger.after != 0) result["after"] = trigger.after;
    if (trigger.every > 1) result["every"] = trigger.every;
    if (trigger.probability < 1.0) {
        result["probability"] = trigger.probability;
        result["seed"] = trigger.seed;
    }
    if (trigger.count != 0) result["count"] = trigger.count;
    return result;
}

json actions_to(const FaultActions& actions) {
    json result = json::object();
    if (actions.drop) result["drop"] = true;
    if (actions.never_complete) {
        result["never_complete"] = true;
        if (actions.on_drain != DrainFault::kForgets)
            result["on_drain"] = actions.on_drain == DrainFault::kCompletes ? "complete" : "wait";
    }
    if (actions.halt) result["halt"] = true;
    if (actions.status) {
        result["status"] = fmt::format("{:#04x}", actions.status->status);
        if (actions.status->error_code != 0)
            result["error_code"] = fmt::format("{:#04x}", actions.status->error_code);
        if (actions.status->execute) result["execute"] = true;
    }
    if (actions.corrupt) {
        json corrupt = {
            {"flip", actions.corrupt->flip},
            {"crc", actions.corrupt->crc == CrcFault::kMatching ? "matching" : "stale"}};
        if (actions.corrupt->offset) corrupt["offset"] = *actions.corrupt->offset;
        result["corrupt"] = corrupt;
    }
    if (actions.output_size) result["output_size"] = *actions.output_size;
    if (actions.interrupt != InterruptFault::kNone)
        result["interrupt"] = actions.interrupt == InterruptFault::kLost ? "lost" : "doubled";
    if (actions.complete_twice) {
        result["complete_twice"] = true;
        result["twice_gap_ms"] = actions.twice_gap.count();
    }
    if (actions.delay.count() != 0) result["delay_ms"] = actions.delay.count();
    if (actions.late) result["late_ms"] = actions.late->count();
    return result;
}

}  // namespace

std::uint8_t opcode_from_json(const json& value) {
    if (value.is_string()) {
        const auto* const known = std::ranges::find(kOpcodes, value.get_ref<const std::string&>(),
                                                    [](const auto& entry) { return entry.first; });
        if (known != kOpcodes.end()) return known->second;
    }
    try {
        return static_cast<std::uint8_t>(number("opcode", value, 255));
    } catch (const std::invalid_argument&) {
        fail("opcode", R"("any", "noop", "drain", "decrypt", "encrypt", "decompress", )"
                       R"("compress", "crc64", or a number from 0 to 255)");
    }
}

FaultRule rule_from_json(const json& object) {
    return {.match = match_from(object),
            .trigger = trigger_from(object),
            .actions = actions_from(object)};
}

json rule_to_json(const FaultRuleState& state) {
    return {{"rule", state.id},
            {"match", match_to(state.rule.match)},
            {"when", trigger_to(state.rule.trigger)},
            {"fault", actions_to(state.rule.actions)},
            {"matched", state.matched},
            {"fired", state.fired},
            {"spent", state.spent}};
}

}  // namespace iaa::device::control
