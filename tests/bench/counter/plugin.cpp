// SPDX-License-Identifier: GPL-2.0
// A plugin for QEMU's TCG: counts the instructions that the guest executes between the marks of
// tests/vm/modules/acomp_count/mark.h.
//
//   -plugin file=libcounter.so,out=FILE
//
// FILE has for every case, between the lines `case N` and `end N`:
//   op RAW EMULATED FOLDED   one operation: all instructions; of these, what carried MOVDIR64B out;
//                            the rest, each REP string instruction counted once
//   pc ADDRESS COUNT FIRST   of the operation with the median FOLDED: an instruction, how often it
//   was
//                            executed, and how many others had been when it first was
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "insn_kind.h"
#include "plugin_api.h"
#include "tally.h"

namespace iaa::bench {
namespace {

class Counter {
  public:
    explicit Counter(std::ofstream out)
        : out_(std::move(out)),
          armed_{.scoreboard = qemu_plugin_scoreboard_new(sizeof(std::uint64_t)), .offset = 0} {}

    void translate(PluginInsn* insn);

  private:
    // What a callback is given: QEMU may call it for as long as it runs.
    struct Site {
        Counter* counter = nullptr;
        Insn insn;
    };

    static void on_mark(unsigned int vcpu, void* site);
    static void on_insn(unsigned int vcpu, void* site);
    Site& site(std::uint64_t address, Kind kind);
    void mark(unsigned int vcpu, Kind what);
    void end_operation();
    void end_case();

    std::ofstream out_;
    PluginU64 armed_;
    std::map<std::pair<std::uint64_t, Kind>, std::unique_ptr<Site>> sites_;
    Tally tally_;
    std::vector<Operation> operations_;
    unsigned int cases_ = 0;
    bool in_case_ = false;
};

void Counter::on_mark(unsigned int vcpu, void* site) {
    const Site& at = *static_cast<Site*>(site);
    at.counter->mark(vcpu, at.insn.kind);
}

void Counter::on_insn(unsigned int /*vcpu*/, void* site) {
    Site& at = *static_cast<Site*>(site);
    at.counter->tally_.execute(at.insn);
}

void Counter::translate(PluginInsn* insn) {
    std::array<std::uint8_t, kMaxInsnLength> code{};
    const std::size_t size = std::min(qemu_plugin_insn_size(insn), code.size());
    const std::size_t got = qemu_plugin_insn_data(insn, code.data(), size);
    const Kind kind = kind_of(std::span(code).first(std::min(got, size)));
    Site& at = site(qemu_plugin_insn_vaddr(insn), kind);
    if (kind >= Kind::kCase) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, kPluginNoRegisters, &at);
    } else {
        qemu_plugin_register_vcpu_insn_exec_cond_cb(insn, on_insn, kPluginNoRegisters,
                                                    kPluginNotEqual, armed_, 0, &at);
    }
}

// What is translated again is the same instruction still.
Counter::Site& Counter::site(std::uint64_t address, Kind kind) {
    std::unique_ptr<Site>& known = sites_[{address, kind}];
    if (!known) {
        known = std::make_unique<Site>(
            Site{.counter = this, .insn = {.address = address, .kind = kind}});
    }
    return *known;
}

void Counter::mark(unsigned int vcpu, Kind what) {
    switch (what) {
        case Kind::kCase:
            fmt::print(out_, "case {}\n", ++cases_);
            operations_.clear();
            in_case_ = true;
            break;
        case Kind::kBegin:
            tally_.begin();
            qemu_plugin_u64_set(armed_, vcpu, 1);
            break;
        case Kind::kEnd:
            qemu_plugin_u64_set(armed_, vcpu, 0);
            end_operation();
            break;
        default:
            end_case();
            break;
    }
}

void Counter::end_operation() {
    Operation operation = tally_.end();
    if (in_case_) {
        fmt::print(out_, "op {} {} {}\n", operation.raw, operation.emulated, operation.folded);
        operations_.push_back(std::move(operation));
    }
}

void Counter::end_case() {
    if (!operations_.empty()) {
        const auto middle = operations_.begin() + std::ssize(operations_) / 2;
        std::ranges::nth_element(operations_, middle, {}, &Operation::folded);
        for (const Operation::Count& count : middle->counts) {
            fmt::print(out_, "pc {:#x} {} {}\n", count.address, count.executed, count.first);
        }
        operations_.clear();
    }
    in_case_ = false;
    // Whoever reads it misses the line where the disk was full.
    fmt::print(out_, "end {}\n", cases_);
    out_.flush();
}

void on_translation(PluginTb* tb, void* counter) {
    for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(tb); ++i) {
        static_cast<Counter*>(counter)->translate(qemu_plugin_tb_get_insn(tb, i));
    }
}

int install(PluginId id, std::span<char*> arguments) {
    constexpr std::string_view kOut = "out=";
    std::string path;
    for (const std::string_view argument : arguments) {
        if (argument.starts_with(kOut)) {
            path = argument.substr(kOut.size());
        }
    }
    std::ofstream out(path);
    if (!out) {
        fmt::print(stderr, "counter: out={}: {}\n", path, std::generic_category().message(errno));
        return -1;
    }
    // QEMU calls it until it ends.
    static Counter counter(std::move(out));
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, &counter);
    return 0;
}

}  // namespace
}  // namespace iaa::bench

// What QEMU looks for.
extern "C" {

[[gnu::visibility("default")]] int qemu_plugin_version = kPluginApiVersion;

[[gnu::visibility("default")]] int qemu_plugin_install(PluginId id, const void* /*info*/, int argc,
                                                       char** argv) {
    return iaa::bench::install(id, {argv, static_cast<std::size_t>(argc)});
}
}
