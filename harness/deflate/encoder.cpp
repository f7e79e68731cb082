// SPDX-License-Identifier: GPL-2.0
#include "deflate/encoder.h"

#include <algorithm>
#include <array>
#include <vector>

#include "deflate/bits.h"
#include "deflate/matcher.h"
#include "deflate/symbols.h"

namespace iaa::deflate {
namespace {

// Collects bits in a word and writes whole bytes of it. Never writes outside the output. A value,
// and passed as one: with its address known elsewhere, no byte could be written without the
// compiler having to fear for its members.
class BitSink {
  public:
    explicit BitSink(std::span<std::uint8_t> output)
        : start_(output.data()), next_(output.data()), end_(output.data() + output.size()) {}

    // At most 57 bits may be held between two calls of flush().
    void put(std::uint64_t bits, unsigned count) {
        held_ |= bits << count_;
        count_ += count;
    }

    void flush() {
        if (end_ - next_ >= 8) {
            store64(next_, held_);
            next_ += count_ / 8;
            const unsigned written = count_ & ~7U;
            held_ >>= written;
            count_ -= written;
        } else {
            *this = flushed_at_end(*this);
        }
    }

    // Room for another symbol of up to 32 bits.
    void make_room() {
        if (count_ > 25) {
            flush();
        }
    }

    void put_bytes(std::span<const std::uint8_t> bytes) {
        flush();
        if (count_ != 0 || static_cast<std::size_t>(end_ - next_) < bytes.size()) {
            for (const std::uint8_t byte : bytes) {
                put(byte, 8);
                flush();
            }
            return;
        }
        std::ranges::copy(bytes, next_);
        next_ += bytes.size();
    }

    void align() {
        flush();
        count_ = (count_ + 7) & ~7U;
        flush();
    }

    [[nodiscard]] bool overflowed() const { return overflowed_; }
    [[nodiscard]] std::size_t written() const { return static_cast<std::size_t>(next_ - start_); }
    [[nodiscard]] unsigned held_count() const { return count_; }
    [[nodiscard]] std::uint64_t held() const { return held_; }

  private:
    static BitSink flushed_at_end(BitSink sink) {
        while (sink.count_ >= 8) {
            if (sink.next_ == sink.end_) {
                sink.overflowed_ = true;
                sink.held_ = 0;
                sink.count_ = 0;
                break;
            }
            *sink.next_++ = static_cast<std::uint8_t>(sink.held_);
            sink.held_ >>= 8;
            sink.count_ -= 8;
        }
        return sink;
    }

    std::uint8_t* start_;
    std::uint8_t* next_;
    std::uint8_t* end_;
    std::uint64_t held_ = 0;
    unsigned count_ = 0;
    bool overflowed_ = false;
};

// Bits as they go out (first one lowest), and how many.
struct Code {
    std::uint32_t bits = 0;
    std::uint32_t count = 0;  // 0: there is none
};

Code code_of(std::uint32_t entry) {
    const unsigned length = entry_length(entry);
    if (length == 0 || length > kMaxCodeLength) {
        return {};
    }
    return {.bits = reverse_bits(entry_code(entry), length), .count = length};
}

constexpr std::size_t kDistanceIndices = 512;

// Symbols by distance: one index per distance up to 256, and one per 128
// above.
constexpr unsigned distance_index(unsigned distance) {
    return distance <= 256 ? distance - 1 : 256 + ((distance - 1) >> 7);
}

constexpr auto kDistanceSymbols = [] {
    std::array<std::uint8_t, kDistanceIndices> symbols{};
    for (unsigned distance = 1; distance <= kWindow; ++distance) {
        symbols[distance_index(distance)] = static_cast<std::uint8_t>(distance_symbol(distance));
    }
    return symbols;
}();

constexpr auto kLengthSymbols = [] {
    std::array<std::uint16_t, kMaxMatch + 1> symbols{};
    for (unsigned length = kMinMatch; length <= kMaxMatch; ++length) {
        symbols[length] = static_cast<std::uint16_t>(length_symbol(length));
    }
    return symbols;
}();

// Where a match length's code stands, behind those of the literals and the end of block.
constexpr unsigned length_index(unsigned length) {
    return kEobSymbol + 1 + (length - kMinMatch);
}
constexpr std::size_t kCodes = length_index(kMaxMatch) + 1;
// A distance symbol that there is no code for, as a literal's.
constexpr unsigned kNoDistance = 31;

// The given tables, ready to be written from.
class PreparedTables {
  public:
    void prepare(const CodeTables& tables) {
        if (valid_ && tables == source_) {
            return;
        }
        source_ = tables;
        valid_ = true;
        for (std::size_t symbol = 0; symbol <= kEobSymbol; ++symbol) {
            codes[symbol] = code_of(tables.ll[symbol]);
        }
        complete = true;
        unsigned usable = 0;
        for (unsigned length = kMinMatch; length <= kMaxMatch;) {
            const unsigned symbol = kLengthSymbols[length];
            const SymbolRange range = kLengthRanges[symbol - kFirstLengthSymbol];
            const Code code = code_of(tables.ll[symbol]);
            complete = complete && code.count != 0;
            const unsigned next =
                std::min(range.base + (1U << range.extra), length == kMaxMatch ? 259U : 258U);
            for (; length < next; ++length) {
                usable = code.count != 0 ? length : usable;
                codes[length_index(length)] = {
                    .bits = code.bits | (length - range.base) << code.count,
                    .count = code.count == 0 ? 0U : code.count + range.extra};
                usable_length[length] = static_cast<std::uint16_t>(usable);
            }
        }
        for (unsigned symbol = 0; symbol <= distance_symbol(kWindow); ++symbol) {
            distances[symbol] = code_of(tables.d[symbol]);
            complete = complete && distances[symbol].count != 0;
        }
    }

    std::array<Code, kCodes>
        codes{};  // of literals, end of block and match lengths with extra bits
    // The longest length with a code that is not above this one; 0: none.
    std::array<std::uint16_t, kMaxMatch + 1> usable_length{};
    std::array<Code, kNoDistance + 1> distances{};  // of those up to the window
    bool complete = false;                          // every match has a code

  private:
    CodeTables source_{};
    bool valid_ = false;
};

struct AnyMatch {
    Match operator()(const Match& match) const { return match; }
};

// Trims matches to what has a code.
struct CodedMatch {
    const PreparedTables* tables;

    Match operator()(const Match& match) const {
        if (match.length == 0 ||
            tables->distances[kDistanceSymbols[distance_index(match.distance)]].count == 0) {
            return {};
        }
        return {tables->usable_length[match.length], match.distance};
    }
};

constexpr auto kDistanceExtra = [] {
    std::array<std::uint8_t, kNoDistance + 1> extra{};
    for (std::size_t symbol = 0; symbol < kDistanceRanges.size(); ++symbol) {
        extra[symbol] = kDistanceRanges[symbol].extra;
    }
    return extra;
}();

// A literal or a match in one word: index of the code, distance symbol, the distance's extra bits.
class Token {
  public:
    Token() = default;

    static Token literal(unsigned symbol) { return Token(symbol | kNoDistance << kDistanceShift); }

    static Token match(unsigned length, unsigned distance) {
        const unsigned symbol = kDistanceSymbols[distance_index(distance)];
        return Token(length_index(length) | symbol << kDistanceShift |
                     (distance - kDistanceRanges[symbol].base) << kExtraShift);
    }

    [[nodiscard]] unsigned code() const { return word_ & ((1U << kDistanceShift) - 1); }
    [[nodiscard]] unsigned distance() const { return word_ >> kDistanceShift & kNoDistance; }
    [[nodiscard]] unsigned extra() const { return word_ >> kExtraShift; }

  private:
    static constexpr unsigned kDistanceShift = 10;
    static constexpr unsigned kExtraShift = kDistanceShift + 5;

    explicit Token(std::uint32_t word) : word_(word) {}

    std::uint32_t word_ = 0;
};

// Writes symbols.
class Emitter {
  public:
    Emitter(const BitSink& sink, const PreparedTables& tables) : sink_(sink), tables_(&tables) {}

    bool literal(unsigned symbol) {
        const Code code = tables_->codes[symbol];
        if (code.count == 0) [[unlikely]] {
            bad_symbol_ = symbol;
            missing_code_ = true;
            return false;
        }
        sink_.make_room();
        sink_.put(code.bits, code.count);
        return !sink_.overflowed();
    }

    bool match(unsigned length, unsigned distance) {
        const Code length_code = tables_->codes[length_index(length)];
        const unsigned symbol = kDistanceSymbols[distance_index(distance)];
        const Code distance_code = tables_->distances[symbol];
        const SymbolRange range = kDistanceRanges[symbol];
        sink_.flush();
        sink_.put(length_code.bits, length_code.count);
        sink_.put(distance_code.bits, distance_code.count);
        sink_.put(distance - range.base, range.extra);
        sink_.flush();
        return !sink_.overflowed();
    }

    // A literal or a match, every symbol of which has a code: without a branch, which would be a
    // coin toss.
    bool token(Token token) {
        const Code code = tables_->codes[token.code()];
        const Code distance = tables_->distances[token.distance()];
        sink_.put(code.bits | std::uint64_t{distance.bits} << code.count,
                  code.count + distance.count);
        sink_.put(token.extra(), kDistanceExtra[token.distance()]);
        sink_.flush();
        return !sink_.overflowed();
    }

    // What goes out behind the last symbol.
    void end(EndOfBlock end) {
        if (missing_code_ || sink_.overflowed() || end == EndOfBlock::kNone ||
            !literal(kEobSymbol) || end == EndOfBlock::kEob) {
            return;
        }
        constexpr std::array<std::uint8_t, 4> kEmptyStored = {0x00, 0x00, 0xff, 0xff};
        sink_.make_room();
        sink_.put(end == EndOfBlock::kEobFinalStored ? 1 : 0, 3);
        sink_.align();
        sink_.put_bytes(kEmptyStored);
    }

    // The accumulator takes what has not been written, where all went well.
    [[nodiscard]] EncodeResult finish(bool flush, Accumulator& accumulator) {
        EncodeResult result;
        if (missing_code_) {
            result.error = ErrorCode::kNoHuffmanCode;
            result.bad_symbol = bad_symbol_;
            return result;
        }
        sink_.flush();
        const unsigned rest = sink_.held_count();
        const auto rest_bits = static_cast<std::uint32_t>(sink_.held() & low_mask(rest));
        if (flush) {
            sink_.align();
        }
        if (sink_.overflowed()) {
            result.error = ErrorCode::kOutputOverflow;
            return result;
        }
        accumulator = Accumulator{};
        result.output_size = sink_.written();
        if (result.output_size != 0) {
            result.last_bits = flush && rest != 0 ? rest : 8;
        }
        if (!flush) {
            accumulator.bytes[0] = static_cast<std::uint8_t>(rest_bits);
            accumulator.bits = rest;
        }
        return result;
    }

  private:
    BitSink sink_;
    const PreparedTables* tables_;
    unsigned bad_symbol_ = 0;
    bool missing_code_ = false;
};

class Counter {
  public:
    explicit Counter(Histogram& histogram) : histogram_(&histogram) {}

    bool literal(unsigned symbol) {
        ++histogram_->ll[symbol];
        return true;
    }

    bool match(unsigned length, unsigned distance) {
        ++histogram_->ll[kLengthSymbols[length]];
        ++histogram_->d[kDistanceSymbols[distance_index(distance)]];
        return true;
    }

  private:
    Histogram* histogram_;
};

// Counts symbols and remembers them, so that a one-pass block searches for matches once.
class Recorder {
  public:
    // There are at most as many tokens as bytes of input.
    Recorder(Histogram& histogram, std::span<Token> tokens)
        : counter_(histogram), start_(tokens.data()), next_(tokens.data()) {}

    bool literal(unsigned symbol) {
        *next_++ = Token::literal(symbol);
        return counter_.literal(symbol);
    }

    bool match(unsigned length, unsigned distance) {
        *next_++ = Token::match(length, distance);
        return counter_.match(length, distance);
    }

    [[nodiscard]] Emitter replay(Emitter emitter) const {
        for (const Token token : std::span<const Token>(start_, next_)) {
            if (!emitter.token(token)) {
                break;
            }
        }
        return emitter;
    }

  private:
    Counter counter_;
    Token* start_;
    Token* next_;
};

template <typename Sink>
Sink literals_only(std::span<const std::uint8_t> input, Sink sink) {
    for (const std::uint8_t byte : input) {
        if (!sink.literal(byte)) {
            break;
        }
    }
    return sink;
}

// A sink for the output, with the accumulator's bits in front.
BitSink start_output(const Accumulator& accumulator, std::span<std::uint8_t> output) {
    BitSink sink(output);
    const std::size_t whole = accumulator.bits / 8;
    sink.put_bytes(std::span(accumulator.bytes).first(whole));
    if (accumulator.bits % 8 != 0) {
        const unsigned rest = accumulator.bits % 8;
        sink.put(accumulator.bytes[whole] & low_mask(rest), rest);
    }
    return sink;
}

bool valid_entry(std::uint32_t entry) {
    const unsigned length = entry_length(entry);
    return length <= kMaxCodeLength && entry_code(entry) >> length == 0;
}

}  // namespace

class Encoder::Matcher {
  public:
    // Calls the sink for each literal and match of the input, and gives it back.
    template <typename Usable, typename Sink>
    Sink tokenize(std::span<const std::uint8_t> input, const EncodeOptions& options,
                  const Usable& usable, const Sink& sink) {
        if (options.literals_only) {
            return literals_only(input, sink);
        }
        if (options.history.empty()) {
            return finder_.run(input, 0, usable, sink);
        }
        const std::size_t kept = std::min(options.history.size(), kWindow);
        const std::span history = options.history.last(kept);
        joined_.assign(history.begin(), history.end());
        joined_.insert(joined_.end(), input.begin(), input.end());
        return finder_.run(joined_, kept, usable, sink);
    }

    [[nodiscard]] std::span<Token> token_room(std::size_t size) {
        if (tokens_.size() < size) {
            tokens_.resize(size);
        }
        return tokens_;
    }

    PreparedTables tables;

  private:
    MatchFinder finder_;
    std::vector<Token> tokens_;
    std::vector<std::uint8_t> joined_;  // history and input in one run
};

Encoder::Encoder() : matcher_(std::make_unique<Matcher>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

EncodeResult Encoder::encode(std::span<const std::uint8_t> input, const CodeTables& tables,
                             Accumulator& accumulator, const EncodeOptions& options,
                             std::span<std::uint8_t> output) {
    matcher_->tables.prepare(tables);
    Emitter emitter(start_output(accumulator, output), matcher_->tables);
    if (matcher_->tables.complete) {
        emitter = matcher_->tokenize(input, options, AnyMatch{}, emitter);
    } else {
        emitter = matcher_->tokenize(input, options, CodedMatch{&matcher_->tables}, emitter);
    }
    emitter.end(options.end);
    return emitter.finish(options.flush, accumulator);
}

Histogram Encoder::count(std::span<const std::uint8_t> input, const EncodeOptions& options) {
    Histogram histogram;
    (void)matcher_->tokenize(input, options, AnyMatch{}, Counter(histogram));
    histogram.ll[kEobSymbol] = options.end == EndOfBlock::kNone ? 0 : 1;
    return histogram;
}

EncodeResult Encoder::encode_dynamic(std::span<const std::uint8_t> input, bool final,
                                     Accumulator& accumulator, const EncodeOptions& options,
                                     std::span<std::uint8_t> output, CodeTables* tables) {
    Histogram histogram;
    const Recorder recorder = matcher_->tokenize(
        input, options, AnyMatch{}, Recorder(histogram, matcher_->token_room(input.size())));
    histogram.ll[kEobSymbol] = options.end == EndOfBlock::kNone ? 0 : 1;

    CodeTables built;
    Accumulator start = accumulator;
    if (!prepare_dynamic(histogram, final, start, built)) {
        return {.error = ErrorCode::kOutputOverflow, .header_fits = false};
    }
    if (tables != nullptr) {
        *tables = built;
    }
    matcher_->tables.prepare(built);
    Emitter emitter = recorder.replay(Emitter(start_output(start, output), matcher_->tables));
    emitter.end(options.end);
    return emitter.finish(options.flush, accumulator);
}

bool prepare_dynamic(const Histogram& histogram, bool final, Accumulator& accumulator,
                     CodeTables& tables) {
    const CodeLengths lengths = lengths_from(histogram);
    if (!write_dynamic_header(lengths, final, accumulator)) {
        return false;
    }
    return make_tables(lengths, tables) == ErrorCode::kNone;
}

bool check_tables(const CodeTables& tables) {
    return std::ranges::all_of(tables.ll, valid_entry) &&
           std::ranges::all_of(tables.d, valid_entry);
}

}  // namespace iaa::deflate
