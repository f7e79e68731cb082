// SPDX-License-Identifier: GPL-2.0
#ifndef IAA_BENCH_TALLY_H
#define IAA_BENCH_TALLY_H

#include <cstdint>
#include <vector>

#include "insn_kind.h"

namespace iaa::bench {

// An instruction of the guest. Each has one of these for as long as the tally lives.
struct Insn {
    std::uint64_t address = 0;
    Kind kind = Kind::kPlain;
    std::uint64_t executed = 0;  // in the operation in hand
    std::uint64_t first = 0;     // how many had been before it
};

struct Operation {
    struct Count {
        std::uint64_t address = 0;
        std::uint64_t executed = 0;
        std::uint64_t first = 0;
    };

    std::uint64_t raw = 0;       // all that was executed
    std::uint64_t emulated = 0;  // of it, what carried MOVDIR64B out
    std::uint64_t folded = 0;    // the rest, each REP string instruction counted once
    std::vector<Count> counts;   // where the folded ones are
};

// Adds up what one operation executes.
class Tally {
  public:
    void begin();
    void execute(Insn& insn);
    Operation end();

  private:
    Operation now_;
    std::vector<Insn*> used_;
    const Insn* last_ = nullptr;
    const Insn* emulating_ = nullptr;
};

}  // namespace iaa::bench

#endif
