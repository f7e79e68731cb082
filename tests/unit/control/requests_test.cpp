// SPDX-License-Identifier: GPL-2.0
#include "device/control/requests.h"

#include <gtest/gtest.h>

#include <thread>

#include "control/fake_target.h"

namespace iaa::test {
namespace {

using device::control::answer;
using nlohmann::json;
using namespace std::chrono_literals;

class Requests : public testing::Test {
  protected:
    json ask(std::string_view line) {
        const auto result = answer(line, target);
        EXPECT_TRUE(result.reply) << line;
        EXPECT_EQ(result.reply->find('\n'), std::string::npos);
        return json::parse(result.reply.value_or("{}"));
    }
    json good(std::string_view line) {
        json reply = ask(line);
        EXPECT_EQ(reply["ok"], true) << line << " " << reply;
        return reply;
    }
    std::string bad(std::string_view line) {
        json reply = ask(line);
        EXPECT_EQ(reply["ok"], false) << line << " " << reply;
        EXPECT_TRUE(reply.contains("error")) << line;
        return reply.value("error", "");
    }
    std::string rule(std::string_view fault, std::string_view match = "{}",
                     std::string_view when = "{}") {
        return std::string(R"({"command":"fault-add","match":)")
            .append(match)
            .append(R"(,"when":)")
            .append(when)
            .append(R"(,"fault":)")
            .append(fault)
            .append("}");
    }

    FakeTarget target;
};

TEST_F(Requests, PingVersionHelp) {
    EXPECT_EQ(good(R"({"command":"ping"})").dump(), R"({"ok":true})");
    EXPECT_EQ(good(R"({"command":"version"})")["protocol"], 1);
    const json help = good(R"({"command":"help"})")["commands"];
    for (const char* name :
         {"ping", "version", "state", "counters", "counters-reset", "wait", "halt", "fault-add",
          "fault-list", "fault-clear", "fault-reset", "help"})
        EXPECT_TRUE(help.contains(name)) << name;
    EXPECT_EQ(help.size(), 12U);
}

TEST_F(Requests, IdsComeBack) {
    EXPECT_EQ(good(R"({"command":"ping","id":7})")["id"], 7);
    EXPECT_EQ(good(R"({"command":"ping","id":"x"})")["id"], "x");
    EXPECT_EQ(ask(R"({"command":"nonsense","id":"y"})")["id"], "y");
    EXPECT_FALSE(good(R"({"command":"ping"})").contains("id"));
    bad(R"({"command":"ping","id":[1]})");
    bad(R"({"command":"ping","id":{}})");
}

TEST_F(Requests, State) {
    const json device = good(R"({"command":"state"})")["device"];
    EXPECT_EQ(device["state"], "enabled");
    EXPECT_FALSE(device.contains("halt_reason"));
    EXPECT_EQ(device["wqs"][0]["mode"], "dedicated");
    EXPECT_EQ(device["wqs"][0]["occupancy"], 3);
    EXPECT_EQ(device["wqs"][1]["group"], -1);
}

TEST_F(Requests, Halt) {
    good(R"({"command":"halt","reason":"for a test"})");
    const json device = good(R"({"command":"state"})")["device"];
    EXPECT_EQ(device["state"], "halt");
    EXPECT_EQ(device["halt_reason"], "for a test");
    EXPECT_EQ(target.halt_exit(), device::control::HaltExit::kReset);
    good(R"({"command":"halt","leave_by":"flr"})");
    EXPECT_EQ(target.halt_exit(), device::control::HaltExit::kFlr);
    bad(R"({"command":"halt","leave_by":"luck"})");
    bad(R"({"command":"halt","reason":1})");
    bad(R"({"command":"halt","why":"x"})");
}

TEST_F(Requests, CountersAndTheirReset) {
    target.counters().accepted(2);
    target.counters().completed(2, kCompress, 0x0a, 4096, 9);
    target.counters().command(5);
    const json now = good(R"({"command":"counters"})")["counters"];
    EXPECT_EQ(now["total"]["accepted"], 1);
    EXPECT_EQ(now["total"]["bytes_in"], 4096);
    EXPECT_EQ(now["wqs"].size(), 4U);
    EXPECT_EQ(now["wqs"][2]["completed"], 1);
    EXPECT_EQ(now["opcodes"], (json{{"0x43", 1}}));
    EXPECT_EQ(now["statuses"], (json{{"0x0a", 1}}));
    EXPECT_EQ(now["commands"], (json{{"0x05", 1}}));
    EXPECT_EQ(now["commands_total"], 1);
    good(R"({"command":"counters-reset"})");
    EXPECT_EQ(good(R"({"command":"counters"})")["counters"]["total"]["accepted"], 0);
}

TEST_F(Requests, Wait) {
    target.counters().accepted(0);
    EXPECT_EQ(good(R"({"command":"wait","counter":"accepted","value":1})")["value"], 1);
    const auto pending = answer(
        R"({"command":"wait","counter":"accepted","value":3,"id":5,"timeout_ms":60000})", target);
    ASSERT_TRUE(pending.wait);
    EXPECT_FALSE(pending.reply);
    EXPECT_FALSE(device::control::look_again(*pending.wait, target));
    target.counters().accepted(1);
    EXPECT_FALSE(device::control::look_again(*pending.wait, target));
    target.counters().accepted(1);
    const auto reply = device::control::look_again(*pending.wait, target);
    ASSERT_TRUE(reply);
    EXPECT_EQ(json::parse(*reply), (json{{"ok", true}, {"id", 5}, {"value", 3}}));

    EXPECT_NE(bad(R"({"command":"wait","counter":"accepted","value":4,"timeout_ms":0})")
                  .find("is 3, and not 4"),
              std::string::npos);
    bad(R"({"command":"wait","counter":"nonsense","value":1})");
    bad(R"({"command":"wait","value":1})");
    bad(R"({"command":"wait","counter":"accepted"})");
    bad(R"({"command":"wait","counter":"accepted","value":-1})");
    bad(R"({"command":"wait","counter":"accepted","value":"1"})");
    bad(R"({"command":"wait","counter":"accepted","value":1,"timeout_ms":99999999})");
    bad(R"({"command":"wait","counter":"accepted","value":1,"timeout":1})");
}

TEST_F(Requests, Garbage) {
    using std::string_view_literals::operator""sv;
    for (const std::string_view line :
         {"x"sv, "{"sv, "{}"sv, "[]"sv, "null"sv, "1"sv, "\"ping\""sv, "\0\0"sv, "\xff\xfe"sv,
          R"({"command":1})"sv, R"({"command":"ping"}{"command":"ping"})"sv,
          R"({"Command":"ping"})"sv, R"({"command":"ping","extra":1})"sv, R"({"command":""})"sv})
        EXPECT_FALSE(bad(line).empty()) << line;
    EXPECT_FALSE(bad(std::string(60000, '[')).empty());
    EXPECT_FALSE(bad("{\"command\":\"\xff\"}").empty());
    // Valid JSON need not be valid UTF-8 once its escapes are undone, and the reply is.
    bad(R"({"command":"\ud800"})");
}

TEST_F(Requests, FaultRulesAreReadInFull) {
    EXPECT_EQ(
        good(rule(
            R"({"status":"0x0a","error_code":25,"execute":true,"output_size":17,"corrupt":{"offset":3,)"
            R"("flip":"0x80","crc":"matching"},"interrupt":"doubled","complete_twice":true,)"
            R"("twice_gap_ms":20,"delay_ms":5,"late_ms":1000})",
            R"({"opcode":"decompress","wq":2,"verify":true,"min_size":1,"max_size":4096})",
            R"({"after":4,"every":3,"probability":0.5,"seed":9,"count":2})"))["rule"],
        1);
    const auto rules = target.faults().list();
    ASSERT_EQ(rules.size(), 1U);
    const auto& [match, trigger, actions] = rules[0].rule;
    EXPECT_EQ(match.opcode, kDecompress);
    EXPECT_EQ(match.wq, 2U);
    EXPECT_EQ(match.verify, true);
    EXPECT_EQ(match.min_size, 1U);
    EXPECT_EQ(match.max_size, 4096U);
    EXPECT_EQ(trigger.after, 4U);
    EXPECT_EQ(trigger.every, 3U);
    EXPECT_EQ(trigger.probability, 0.5);
    EXPECT_EQ(trigger.seed, 9U);
    EXPECT_EQ(trigger.count, 2U);
    ASSERT_TRUE(actions.status && actions.corrupt && actions.output_size && actions.late);
    EXPECT_EQ(actions.status->status, 0x0a);
    EXPECT_EQ(actions.status->error_code, 25);
    EXPECT_TRUE(actions.status->execute);
    EXPECT_EQ(actions.corrupt->offset, 3U);
    EXPECT_EQ(actions.corrupt->flip, 0x80);
    EXPECT_EQ(actions.corrupt->crc, device::control::CrcFault::kMatching);
    EXPECT_EQ(*actions.output_size, 17U);
    EXPECT_EQ(actions.interrupt, device::control::InterruptFault::kDoubled);
    EXPECT_TRUE(actions.complete_twice);
    EXPECT_EQ(actions.twice_gap, 20ms);
    EXPECT_EQ(actions.delay, 5ms);
    EXPECT_EQ(*actions.late, 1000ms);
    EXPECT_FALSE(actions.drop || actions.never_complete || actions.halt);
}

TEST_F(Requests, AListedRuleCanBeAddedAgain) {
    for (const char* fault :
         {R"({"drop":true})", R"({"never_complete":true})",
          R"({"never_complete":true,"on_drain":"complete"})",
          R"({"never_complete":true,"on_drain":"wait"})", R"({"halt":true})", R"({"status":11})",
          R"({"status":10,"error_code":25,"execute":true})", R"({"corrupt":true})",
          R"({"corrupt":{"offset":1,"flip":2,"crc":"stale"}})", R"({"output_size":0})",
          R"({"interrupt":"lost"})", R"({"complete_twice":true})", R"({"delay_ms":1})",
          R"({"late_ms":0})"}) {
        good(R"({"command":"fault-clear"})");
        good(rule(fault, R"({"opcode":"0x43"})", R"({"probability":0.1,"seed":5,"once":true})"));
        json first = good(R"({"command":"fault-list"})")["rules"][0];
        json again = {{"command", "fault-add"}};
        for (const char* key : {"match", "when", "fault"}) again[key] = first[key];
        good(again.dump());
        json second = good(R"({"command":"fault-list"})")["rules"][1];
        EXPECT_NE(first["rule"], second["rule"]);
        first.erase("rule");
        second.erase("rule");
        EXPECT_EQ(first, second) << fault;
    }
}

TEST_F(Requests, OpcodesByNameAndNumber) {
    const auto opcode = [&](const char* text) {
        good(R"({"command":"fault-clear"})");
        good(rule(R"({"drop":true})", std::string(R"({"opcode":)") + text + "}"));
        return target.faults().list()[0].rule.match.opcode;
    };
    EXPECT_EQ(opcode("\"compress\""), kCompress);
    EXPECT_EQ(opcode("\"noop\""), 0);
    EXPECT_EQ(opcode("67"), 67);
    EXPECT_EQ(opcode("\"0xff\""), 255);
    EXPECT_EQ(opcode("\"any\""), std::nullopt);
}

TEST_F(Requests, RulesThatCannotBeAreRefused) {
    for (const char* fault : {"{}",
                              "[]",
                              "1",
                              R"({"drop":false})",
                              R"({"drop":1})",
                              R"({"unknown":true})",
                              R"({"error_code":1})",
                              R"({"execute":true})",
                              R"({"status":256})",
                              R"({"status":-1})",
                              R"({"status":"0xzz"})",
                              R"({"status":""})",
                              R"({"status":"0x"})",
                              R"({"status":null})",
                              R"({"corrupt":{"flip":0}})",
                              R"({"corrupt":{"crc":"right"}})",
                              R"({"corrupt":1})",
                              R"({"corrupt":{"place":1}})",
                              R"({"interrupt":"late"})",
                              R"({"interrupt":true})",
                              R"({"delay_ms":99999999})",
                              R"({"delay_ms":-1})",
                              R"({"delay_ms":0})",
                              R"({"delay_ms":1.5})",
                              R"({"twice_gap_ms":5})",
                              R"({"twice_gap_ms":5,"drop":true})",
                              R"({"drop":true,"delay_ms":1})",
                              R"({"drop":true,"never_complete":true})",
                              R"({"never_complete":true,"status":1})",
                              R"({"never_complete":true,"late_ms":1})",
                              R"({"never_complete":true,"interrupt":"lost"})",
                              R"({"never_complete":true,"on_drain":"luck"})",
                              R"({"on_drain":"wait","status":1})",
                              R"({"halt":true,"status":1})",
                              R"({"halt":true,"never_complete":true})",
                              R"({"status":1,"corrupt":true})",
                              R"({"output_size":4294967296})"})
        bad(rule(fault));
    for (const char* match : {"[]", R"({"opcode":256})", R"({"opcode":"nonsense"})",
                              R"({"opcode":null})", R"({"wq":-1})", R"({"wq":"x"})",
                              R"({"verify":1})", R"({"min_size":2,"max_size":1})", R"({"size":1})"})
        bad(rule(R"({"drop":true})", match));
    for (const char* when : {"1", R"({"every":-1})", R"({"probability":1.1})",
                             R"({"probability":-0.1})", R"({"probability":"1"})", R"({"once":1})",
                             R"({"once":true,"count":2})", R"({"sometimes":true})"})
        bad(rule(R"({"drop":true})", "{}", when));
    bad(R"({"command":"fault-add"})");
    bad(R"({"command":"fault-add","fault":{"drop":true},"match_":{}})");
    EXPECT_TRUE(target.faults().list().empty());
}

TEST_F(Requests, FaultsAreClearedAndReset) {
    const auto first = good(rule(R"({"drop":true})", "{}", R"({"once":true})"))["rule"].get<int>();
    good(rule(R"({"drop":true})"));
    EXPECT_TRUE(target.faults().at_portal(descriptor(1), 0));
    EXPECT_EQ(good(R"({"command":"fault-list"})")["rules"][0]["spent"], true);
    good(R"({"command":"fault-reset"})");
    EXPECT_EQ(good(R"({"command":"fault-list"})")["rules"][0]["fired"], 0);
    good(json{{"command", "fault-clear"}, {"rule", first}}.dump());
    bad(json{{"command", "fault-clear"}, {"rule", first}}.dump());
    EXPECT_EQ(target.faults().list().size(), 1U);
    good(R"({"command":"fault-clear"})");
    EXPECT_TRUE(target.faults().list().empty());
    bad(R"({"command":"fault-clear","rule":"all"})");
}

}  // namespace
}  // namespace iaa::test
