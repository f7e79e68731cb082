// SPDX-License-Identifier: GPL-2.0
// Block headers: writing dynamic ones, reading all.
#include <algorithm>
#include <array>

#include "deflate/bits.h"
#include "deflate/huffman.h"

namespace iaa::deflate {
namespace {

constexpr std::size_t kClSymbols = 19;
constexpr unsigned kRepeatPrevious = 16;
constexpr unsigned kRepeatZeroShort = 17;
constexpr unsigned kRepeatZeroLong = 18;
constexpr unsigned kMinHeaderLl = 257;  // what HLIT and HDIST of 0 mean
constexpr unsigned kMinHeaderD = 1;
constexpr unsigned kMinHeaderCl = 4;
constexpr unsigned kStoredLengthBits = 32;
constexpr unsigned kCountBits = 5 + 5 + 4;

// The order in which the header lists the lengths of the code-length code.
constexpr std::array<std::uint8_t, kClSymbols> kClOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                           11, 4,  12, 3, 13, 2, 14, 1, 15};

struct ClSymbol {
    std::uint8_t symbol = 0;
    std::uint8_t extra = 0;
};

// The symbols that a header lists, and how often each occurs.
class ClSymbols {
  public:
    void push(unsigned symbol, std::size_t extra = 0) {
        list_[size_++] = {.symbol = static_cast<std::uint8_t>(symbol),
                          .extra = static_cast<std::uint8_t>(extra)};
        ++counts[symbol];
    }

    [[nodiscard]] std::span<const ClSymbol> list() const { return std::span(list_).first(size_); }

    std::array<std::uint32_t, kClSymbols> counts{};

  private:
    std::array<ClSymbol, kLlSymbols + kDSymbols> list_;
    std::size_t size_ = 0;
};

constexpr unsigned extra_bits(unsigned symbol) {
    return symbol == kRepeatPrevious    ? 2
           : symbol == kRepeatZeroShort ? 3
           : symbol == kRepeatZeroLong  ? 7
                                        : 0;
}

constexpr unsigned min_repeat(unsigned symbol) {
    return symbol == kRepeatZeroLong ? 11 : 3;
}

constexpr unsigned max_repeat(unsigned symbol) {
    return min_repeat(symbol) + (1U << extra_bits(symbol)) - 1;
}

void push_repeats(ClSymbols& out, unsigned symbol, std::size_t& run) {
    while (run >= min_repeat(symbol)) {
        const std::size_t now = std::min<std::size_t>(run, max_repeat(symbol));
        out.push(symbol, now - min_repeat(symbol));
        run -= now;
    }
}

// Run-length codes one tree's lengths. The two trees are coded apart: RFC 1951 lets a run go on
// from the one into the other, but the device does not take that.
void run_lengths(std::span<const std::uint8_t> lengths, ClSymbols& out) {
    for (std::size_t at = 0; at < lengths.size();) {
        const std::uint8_t length = lengths[at];
        std::size_t run = 1;
        while (at + run < lengths.size() && lengths[at + run] == length) {
            ++run;
        }
        at += run;
        if (length == 0) {
            push_repeats(out, kRepeatZeroLong, run);
            push_repeats(out, kRepeatZeroShort, run);
        } else {
            out.push(length);
            --run;
            push_repeats(out, kRepeatPrevious, run);
        }
        for (; run != 0; --run) {
            out.push(length);
        }
    }
}

// Appends to an accumulator that is known to have the room, a byte at a time.
class AccumulatorWriter {
  public:
    explicit AccumulatorWriter(Accumulator& accumulator)
        : accumulator_(&accumulator),
          held_(accumulator.bits % 8 == 0 ? 0 : accumulator.bytes[accumulator.bits / 8]),
          count_(accumulator.bits % 8),
          byte_(accumulator.bits / 8) {}

    void put(std::uint64_t bits, unsigned count) {
        held_ |= bits << count_;
        for (count_ += count; count_ >= 8; count_ -= 8, held_ >>= 8) {
            accumulator_->bytes[byte_++] = static_cast<std::uint8_t>(held_);
        }
    }

    void finish() {
        if (count_ != 0) {
            accumulator_->bytes[byte_] = static_cast<std::uint8_t>(held_);
        }
        accumulator_->bits = byte_ * 8 + count_;
    }

  private:
    Accumulator* accumulator_;
    std::uint64_t held_;
    unsigned count_;
    std::uint32_t byte_;
};

// How many lengths a header has to list.
std::size_t listed(std::span<const std::uint8_t> lengths, std::size_t least) {
    std::size_t count = lengths.size();
    while (count > least && lengths[count - 1] == 0) {
        --count;
    }
    return count;
}

// Reads the dynamic part of a header.
class DynamicHeader {
  public:
    explicit DynamicHeader(BitCursor cursor) : cursor_(cursor) {}

    // kOk: lengths are set, and cursor() is behind the header.
    HeaderStatus parse(CodeLengths& lengths, ErrorCode& error) {
        if (cursor_.left() < kCountBits) {
            return HeaderStatus::kNeedInput;
        }
        const std::uint64_t counts = cursor_.peek();
        const auto ll_count = static_cast<unsigned>(counts & 31) + kMinHeaderLl;
        const auto d_count = static_cast<unsigned>(counts >> 5 & 31) + kMinHeaderD;
        const auto cl_count = static_cast<unsigned>(counts >> 10 & 15) + kMinHeaderCl;
        if (ll_count > kLlSymbols) {
            error = ErrorCode::kTooManyLlCodes;
            return HeaderStatus::kError;
        }
        if (d_count > kDSymbols) {
            error = ErrorCode::kTooManyDCodes;
            return HeaderStatus::kError;
        }
        cursor_.skip(kCountBits);
        HeaderStatus status = read_cl_tree(cl_count, error);
        if (status != HeaderStatus::kOk) {
            return status;
        }
        lengths.ll.fill(0);
        lengths.d.fill(0);
        const std::span ll = std::span(lengths.ll).first(ll_count);
        status = read_lengths(ll, ErrorCode::kFirstLlCode16, ErrorCode::kWrongLlCount, error);
        if (status != HeaderStatus::kOk) {
            return status;
        }
        const std::span d = std::span(lengths.d).first(d_count);
        status = read_lengths(d, ErrorCode::kFirstDCode16, ErrorCode::kWrongDCount, error);
        if (status != HeaderStatus::kOk) {
            return status;
        }
        error = check_trees(lengths);
        return error == ErrorCode::kNone ? HeaderStatus::kOk : HeaderStatus::kError;
    }

    [[nodiscard]] const BitCursor& cursor() const { return cursor_; }

  private:
    struct ClEntry {
        std::uint8_t symbol = 0;
        std::uint8_t length = 0;  // 0: no such code
    };

    HeaderStatus read_cl_tree(unsigned cl_count, ErrorCode& error) {
        if (cursor_.left() < std::uint64_t{3} * cl_count) {
            return HeaderStatus::kNeedInput;
        }
        std::uint64_t bits = cursor_.peek();  // 3 * 19 = 57 bits: all in one
        std::array<std::uint8_t, kClSymbols> lengths{};
        for (unsigned index = 0; index < cl_count; ++index, bits >>= 3) {
            lengths[kClOrder[index]] = static_cast<std::uint8_t>(bits & 7);
        }
        cursor_.skip(std::uint64_t{3} * cl_count);
        std::array<std::uint32_t, kClSymbols> codes{};
        if (!canonical_codes(lengths, codes)) {
            error = ErrorCode::kOversubscribedCl;
            return HeaderStatus::kError;
        }
        for (std::size_t symbol = 0; symbol < kClSymbols; ++symbol) {
            const unsigned length = lengths[symbol];
            if (length == 0) {
                continue;
            }
            const ClEntry entry{.symbol = static_cast<std::uint8_t>(symbol),
                                .length = lengths[symbol]};
            for (std::size_t at = reverse_bits(entry_code(codes[symbol]), length);
                 at < table_.size(); at += std::size_t{1} << length) {
                table_[at] = entry;
            }
        }
        return HeaderStatus::kOk;
    }

    HeaderStatus read_lengths(std::span<std::uint8_t> lengths, ErrorCode first_is_16,
                              ErrorCode too_long, ErrorCode& error) {
        for (std::size_t at = 0; at < lengths.size();) {
            const std::uint64_t bits = cursor_.peek();
            const ClEntry entry = table_[bits & (table_.size() - 1)];
            if (entry.length == 0) {
                // Codes fill the code space from 0 up: if this is none with zeros behind the end of
                // the input, then it is none with anything there.
                error = ErrorCode::kUndefinedClCode;
                return HeaderStatus::kError;
            }
            const unsigned extra = extra_bits(entry.symbol);
            if (cursor_.left() < entry.length + extra) {
                return HeaderStatus::kNeedInput;
            }
            cursor_.skip(entry.length + extra);
            if (entry.symbol < kRepeatPrevious) {
                lengths[at++] = entry.symbol;
                continue;
            }
            if (entry.symbol == kRepeatPrevious && at == 0) {
                error = first_is_16;
                return HeaderStatus::kError;
            }
            const std::size_t run =
                min_repeat(entry.symbol) + (bits >> entry.length & low_mask(extra));
            if (run > lengths.size() - at) {
                error = too_long;
                return HeaderStatus::kError;
            }
            if (entry.symbol == kRepeatPrevious) {
                std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(at), run,
                            lengths[at - 1]);
            }
            at += run;
        }
        return HeaderStatus::kOk;
    }

    static ErrorCode check_trees(const CodeLengths& lengths) {
        constexpr std::uint32_t kComplete = 1U << kMaxCodeLength;
        const std::uint32_t ll_sum = kraft_sum(lengths.ll);
        if (ll_sum == 0) {
            return ErrorCode::kNoLlCode;
        }
        if (ll_sum > kComplete) {
            return ErrorCode::kOversubscribedLl;
        }
        return kraft_sum(lengths.d) > kComplete ? ErrorCode::kOversubscribedD : ErrorCode::kNone;
    }

    BitCursor cursor_;
    std::array<ClEntry, 1U << kMaxClCodeLength> table_{};
};

HeaderStatus parse_stored(BitCursor& cursor, BlockHeader& header, ErrorCode& error) {
    const std::uint64_t padding = (8 - cursor.pos() % 8) % 8;
    if (cursor.left() < padding + kStoredLengthBits) {
        return HeaderStatus::kNeedInput;
    }
    cursor.skip(padding);
    const auto bits = static_cast<std::uint32_t>(cursor.peek());
    if ((bits & 0xffff) != (~bits >> 16)) {
        error = ErrorCode::kBadStoredLength;
        return HeaderStatus::kError;
    }
    header.stored_length = bits & 0xffff;
    cursor.skip(kStoredLengthBits);
    return HeaderStatus::kOk;
}

}  // namespace

bool write_fixed_header(bool final, Accumulator& accumulator) {
    return accumulator.append((final ? 1U : 0U) | 1U << 1, 3);
}

bool write_dynamic_header(const CodeLengths& lengths, bool final, Accumulator& accumulator) {
    const std::size_t ll_count = listed(std::span(lengths.ll).first<kLlSymbols>(), kMinHeaderLl);
    const std::size_t d_count = listed(lengths.d, kMinHeaderD);
    ClSymbols symbols;
    run_lengths(std::span(lengths.ll).first(ll_count), symbols);
    run_lengths(std::span(lengths.d).first(d_count), symbols);

    // Decoders refuse an incomplete code-length code.
    std::array<std::uint32_t, kClSymbols> counts = symbols.counts;
    if (std::ranges::count(counts, 0U) == kClSymbols - 1) {
        ++counts[counts[0] == 0 ? 0 : 1];
    }
    std::array<std::uint8_t, kClSymbols> cl_lengths{};
    limited_lengths(counts, kMaxClCodeLength, cl_lengths);
    std::array<std::uint32_t, kClSymbols> codes{};
    (void)canonical_codes(cl_lengths, codes);
    std::size_t cl_count = kClSymbols;
    while (cl_count > kMinHeaderCl && cl_lengths[kClOrder[cl_count - 1]] == 0) {
        --cl_count;
    }

    std::size_t bits = 3 + kCountBits + 3 * cl_count;
    for (unsigned symbol = 0; symbol < kClSymbols; ++symbol) {
        bits += std::size_t{symbols.counts[symbol]} * (cl_lengths[symbol] + extra_bits(symbol));
        codes[symbol] = cl_lengths[symbol] == 0
                            ? 0
                            : reverse_bits(entry_code(codes[symbol]), cl_lengths[symbol]);
    }
    if (bits > Accumulator::kMaxBits - accumulator.bits) {
        return false;
    }
    AccumulatorWriter out(accumulator);
    out.put((final ? 1U : 0U) | 2U << 1, 3);
    out.put(ll_count - kMinHeaderLl, 5);
    out.put(d_count - kMinHeaderD, 5);
    out.put(cl_count - kMinHeaderCl, 4);
    for (std::size_t index = 0; index < cl_count; ++index) {
        out.put(cl_lengths[kClOrder[index]], 3);
    }
    for (const ClSymbol& symbol : symbols.list()) {
        const unsigned length = cl_lengths[symbol.symbol];
        out.put(codes[symbol.symbol] | static_cast<std::size_t>(symbol.extra) << length,
                length + extra_bits(symbol.symbol));
    }
    out.finish();
    return true;
}

HeaderResult parse_block_header(const BitSpan& input) {
    HeaderResult result;
    BitCursor cursor(input);
    if (cursor.left() < 3) {
        result.status = HeaderStatus::kNeedInput;
        return result;
    }
    const std::uint64_t bits = cursor.peek();
    result.header.final = (bits & 1) != 0;
    const auto type = static_cast<unsigned>(bits >> 1 & 3);
    cursor.skip(3);
    if (type == static_cast<unsigned>(BlockType::kStored)) {
        result.header.type = BlockType::kStored;
        result.status = parse_stored(cursor, result.header, result.error);
    } else if (type == static_cast<unsigned>(BlockType::kFixed)) {
        result.header.type = BlockType::kFixed;
        result.header.lengths = fixed_lengths();
    } else if (type == static_cast<unsigned>(BlockType::kDynamic)) {
        result.header.type = BlockType::kDynamic;
        DynamicHeader dynamic(cursor);
        result.status = dynamic.parse(result.header.lengths, result.error);
        cursor = dynamic.cursor();
    } else {
        result.status = HeaderStatus::kError;
        result.error = ErrorCode::kBadBlockType;
    }
    result.bits = cursor.pos() - input.start;
    return result;
}

}  // namespace iaa::deflate
