// SPDX-License-Identifier: GPL-2.0
#include "device/control/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <utility>

#include "device/control/rule_json.h"

namespace iaa::device::control {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

/// Of the requests and replies described here.
constexpr int kProtocolVersion = 1;
constexpr std::uint64_t kDefaultWaitMs = 10'000;
constexpr std::uint64_t kMaxWaitMs = 3'600'000;

std::string text_of(const json& value) {
    // Strings of a client need not be UTF-8; the reply is.
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json values_to(const CounterValues& values) {
    return {{"accepted", values.accepted},   {"dropped", values.dropped},
            {"completed", values.completed}, {"bytes_in", values.bytes_in},
            {"bytes_out", values.bytes_out}, {"interrupts", values.interrupts},
            {"faults", values.faults}};
}

json table_to(const std::map<std::uint8_t, std::uint64_t>& table) {
    json result = json::object();
    for (const auto& [number, count] : table) result[fmt::format("{:#04x}", number)] = count;
    return result;
}

void only(const json& request, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : request.items()) {
        if (key == "command" || key == "id") continue;
        if (std::ranges::find(known, key) == known.end())
            throw std::invalid_argument(
                known.size() == 0
                    ? fmt::format("\"{}\" is not understood: this command has no arguments", key)
                    : fmt::format("\"{}\" is not understood; this command has {}", key,
                                  fmt::join(known, ", ")));
    }
}

std::uint64_t number(const json& request, const char* key, std::optional<std::uint64_t> fallback) {
    const auto found = request.find(key);
    if (found == request.end() && fallback) return *fallback;
    if (found == request.end() || !found->is_number_unsigned())
        throw std::invalid_argument(fmt::format("\"{}\" must be a number, 0 or more", key));
    return found->get<std::uint64_t>();
}

std::string string(const json& request, const char* key) {
    const auto found = request.find(key);
    if (found == request.end() || !found->is_string())
        throw std::invalid_argument(fmt::format("\"{}\" must be a string", key));
    return found->get<std::string>();
}

json ping(const json& request, ControlTarget&) {
    only(request, {});
    return json::object();
}

json version(const json& request, ControlTarget& target) {
    only(request, {});
    const DeviceState state = target.state();
    return {{"protocol", kProtocolVersion},
            {"profile", state.profile},
            {"device_version", state.version}};
}

json state(const json& request, ControlTarget& target) {
    only(request, {});
    const DeviceState now = target.state();
    json wqs = json::array();
    for (const WqState& wq : now.wqs)
        wqs.push_back({{"wq", wq.id},
                       {"state", wq.state},
                       {"mode", wq.dedicated ? "dedicated" : "shared"},
                       {"size", wq.size},
                       {"occupancy", wq.occupancy},
                       {"group", wq.group}});
    json result = {{"profile", now.profile},
                   {"device_version", now.version},
                   {"state", now.state},
                   {"attached", now.attached},
                   {"engines", now.engines},
                   {"busy_engines", now.busy_engines},
                   {"wqs", wqs}};
    if (!now.halt_reason.empty()) result["halt_reason"] = now.halt_reason;
    return {{"device", result}};
}

json counters(const json& request, ControlTarget& target) {
    only(request, {});
    const CounterSnapshot now = target.counters().snapshot();
    json wqs = json::array();
    for (const CounterValues& wq : now.per_wq) wqs.push_back(values_to(wq));
    return {{"counters",
             {{"total", values_to(now.total)},
              {"wqs", wqs},
              {"opcodes", table_to(now.by_opcode)},
              {"statuses", table_to(now.by_status)},
              {"commands", table_to(now.by_command)},
              {"commands_total", now.commands},
              {"other_interrupts", now.other_interrupts}}}};
}

json counters_reset(const json& request, ControlTarget& target) {
    only(request, {});
    target.counters().reset();
    return json::object();
}

HaltExit halt_exit(const std::string& name) {
    constexpr std::array<std::pair<std::string_view, HaltExit>, 4> kExits{
        {{"reset", HaltExit::kReset},
         {"flr", HaltExit::kFlr},
         {"warm", HaltExit::kWarmReset},
         {"cold", HaltExit::kColdReset}}};
    for (const auto& [known, exit] : kExits) {
        if (known == name) return exit;
    }
    throw std::invalid_argument(R"("leave_by" must be "reset", "flr", "warm" or "cold")");
}

json halt(const json& request, ControlTarget& target) {
    only(request, {"reason", "leave_by"});
    target.halt(
        request.contains("reason") ? string(request, "reason") : "asked for by a control client",
        request.contains("leave_by") ? halt_exit(string(request, "leave_by")) : HaltExit::kReset);
    return json::object();
}

json fault_add(const json& request, ControlTarget& target) {
    only(request, {"match", "when", "fault"});
    return {{"rule", target.faults().add(rule_from_json(request))}};
}

json fault_list(const json& request, ControlTarget& target) {
    only(request, {});
    json rules = json::array();
    for (const FaultRuleState& rule : target.faults().list()) rules.push_back(rule_to_json(rule));
    return {{"rules", rules}};
}

json fault_clear(const json& request, ControlTarget& target) {
    only(request, {"rule"});
    if (!request.contains("rule")) {
        target.faults().clear();
        return json::object();
    }
    const std::uint64_t rule = number(request, "rule", std::nullopt);
    if (!target.faults().clear(rule))
        throw std::invalid_argument(fmt::format("there is no rule {}", rule));
    return json::object();
}

json fault_reset(const json& request, ControlTarget& target) {
    only(request, {});
    target.faults().reset();
    return json::object();
}

json help(const json& request, ControlTarget& target);

struct Handler {
    std::string_view name;
    json (*run)(const json& request, ControlTarget& target);
    std::string_view usage;
};

constexpr std::array<Handler, 11> kHandlers{{
    {.name = "ping", .run = ping, .usage = "answers"},
    {.name = "version", .run = version, .usage = "of this protocol and of the device"},
    {.name = "state", .run = state, .usage = "of the device and its work queues"},
    {.name = "counters", .run = counters, .usage = "all of them"},
    {.name = "counters-reset", .run = counters_reset, .usage = "back to zero"},
    {.name = "halt",
     .run = halt,
     .usage = "[reason] [leave_by]: puts the device into the HALT state"},
    {.name = "fault-add", .run = fault_add, .usage = "[match] [when] fault: adds a rule"},
    {.name = "fault-list", .run = fault_list, .usage = "the rules, and how often each has fired"},
    {.name = "fault-clear", .run = fault_clear, .usage = "[rule]: removes one, or all"},
    {.name = "fault-reset",
     .run = fault_reset,
     .usage = "the rules as if they had just been added"},
    {.name = "help", .run = help, .usage = "this list"},
}};
constexpr std::string_view kWaitUsage =
    "counter value [timeout_ms]: until the counter has that value";

json help(const json& request, ControlTarget&) {
    only(request, {});
    json commands = {{"wait", kWaitUsage}};
    for (const Handler& handler : kHandlers) commands[handler.name] = handler.usage;
    return {{"commands", commands}};
}

PendingWait wait_from(const json& request, const ControlTarget&, Counters& counters) {
    only(request, {"counter", "value", "timeout_ms"});
    PendingWait wait;
    wait.counter = string(request, "counter");
    wait.value = number(request, "value", std::nullopt);
    const std::uint64_t timeout = number(request, "timeout_ms", kDefaultWaitMs);
    if (timeout > kMaxWaitMs)
        throw std::invalid_argument(fmt::format("\"timeout_ms\" must be at most {}", kMaxWaitMs));
    if (!counters.value(wait.counter))
        throw std::invalid_argument(
            fmt::format(R"(there is no counter "{}"; "counters" lists them)", wait.counter));
    wait.deadline = std::chrono::steady_clock::now() + milliseconds(timeout);
    return wait;
}

std::string finish(json reply, const json& id, bool ok) {
    reply["ok"] = ok;
    if (!id.is_null()) reply["id"] = id;
    return text_of(reply);
}

}  // namespace

std::string error_reply(std::string_view what) {
    return finish({{"error", what}}, nullptr, false);
}

Answer answer(std::string_view line, ControlTarget& target) {
    json id;
    try {
        const json request = json::parse(line, nullptr, false);
        if (request.is_discarded()) throw std::invalid_argument("this is not JSON");
        if (!request.is_object())
            throw std::invalid_argument(R"(a request is an object: {"command": "help"})");
        if (const auto found = request.find("id"); found != request.end()) {
            if (!found->is_string() && !found->is_number())
                throw std::invalid_argument("\"id\" must be a string or a number");
            id = *found;
        }
        const std::string command = string(request, "command");
        if (command == "wait") {
            PendingWait wait = wait_from(request, target, target.counters());
            wait.id = id;
            if (auto reply = look_again(wait, target))
                return {.reply = std::move(reply), .wait = {}};
            return {.reply = {}, .wait = std::move(wait)};
        }
        const auto* const handler = std::ranges::find(kHandlers, command, &Handler::name);
        if (handler == kHandlers.end())
            throw std::invalid_argument(
                fmt::format(R"(there is no command "{}"; "help" lists them)", command));
        return {.reply = finish(handler->run(request, target), id, true), .wait = {}};
    } catch (const std::exception& error) {
        return {.reply = finish({{"error", error.what()}}, id, false), .wait = {}};
    }
}

std::optional<std::string> look_again(const PendingWait& wait, ControlTarget& target) {
    const std::uint64_t value = target.counters().value(wait.counter).value_or(0);
    if (value >= wait.value) return finish({{"value", value}}, wait.id, true);
    if (std::chrono::steady_clock::now() < wait.deadline) return std::nullopt;
    return finish({{"value", value},
                   {"error", fmt::format("timed out: {} is {}, and not {} yet", wait.counter, value,
                                         wait.value)}},
                  wait.id, false);
}

}  // namespace iaa::device::control
