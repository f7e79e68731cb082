// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <utility>

namespace iaa::bench {
namespace {

// QEMU does not know the length of an instruction that it does not know.
bool follows(const Insn& insn, const Insn& unknown) {
    return insn.address > unknown.address && insn.address <= unknown.address + kMaxInsnLength;
}

}  // namespace

void Tally::begin() {
    end();
    last_ = nullptr;
    emulating_ = nullptr;
}

void Tally::execute(Insn& insn) {
    ++now_.raw;
    // The handler runs with interrupts off, so that the first IRET is its end: an interrupt that
    // comes right behind it is no part of it.
    if (emulating_ != nullptr && !follows(insn, *emulating_)) {
        ++now_.emulated;
        if (insn.kind == Kind::kIret) {
            emulating_ = nullptr;
        }
        return;
    }
    emulating_ = insn.kind == Kind::kMovdir64b ? &insn : nullptr;
    // Each iteration is executed as an instruction of its own.
    if (insn.kind == Kind::kRep && last_ == &insn) {
        return;
    }
    last_ = &insn;
    if (insn.executed++ == 0) {
        insn.first = now_.folded;
        used_.push_back(&insn);
    }
    ++now_.folded;
}

Operation Tally::end() {
    now_.counts.reserve(used_.size());
    for (Insn* insn : used_) {
        now_.counts.push_back({.address = insn->address,
                               .executed = std::exchange(insn->executed, 0),
                               .first = insn->first});
    }
    used_.clear();
    return std::exchange(now_, {});
}

}  // namespace iaa::bench
