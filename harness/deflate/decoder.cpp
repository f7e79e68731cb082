// SPDX-License-Identifier: GPL-2.0
#include "deflate/decoder.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "deflate/bits.h"
#include "deflate/decode_table.h"
#include "deflate/encoder.h"

namespace iaa::deflate {
namespace {

constexpr std::size_t kSuppressedChunk = std::size_t{16} << 10;
constexpr std::uint64_t kMaxHeldBits = 2048;  // what the input accumulator takes

// Bytes that copy_match may write behind a match.
constexpr std::size_t kCopySlack = 16;
// Bytes of input that one round of the fast loop may read and step over.
constexpr std::size_t kRoundInput = 16;
// Literals that one round may write before it looks at the room again.
constexpr std::size_t kRoundLiterals = 3;

// Copies a match whose source lies in the same output. Where there is room, whole words, which
// write up to kCopySlack bytes too many.
std::uint8_t* copy_match(std::uint8_t* out, std::size_t room, unsigned distance, unsigned length) {
    std::uint8_t* const stop = out + length;
    const std::uint8_t* from = out - distance;
    if (room < length + kCopySlack) {
        while (out != stop) {
            *out++ = *from++;
        }
        return stop;
    }
    if (distance >= 8) {
        do {
            store64(out, load64(from));
            store64(out + 8, load64(from + 8));
            out += 16;
            from += 16;
        } while (out < stop);
        return stop;
    }
    // A word full of the repeated bytes, stepped by a whole number of repetitions.
    std::uint64_t word = load64(from) & low_mask(distance * 8);
    for (unsigned filled = distance; filled < 8; filled *= 2) {
        word |= word << (filled * 8);
    }
    const unsigned step = 8 - 8 % distance;
    do {
        store64(out, word);
        out += step;
    } while (out < stop);
    return stop;
}

struct Token {
    enum class Kind : std::uint8_t { kNeedInput, kLiteral, kMatch, kEob, kError };

    Kind kind = Kind::kNeedInput;
    unsigned bits = 0;  // of input
    std::uint8_t byte = 0;
    unsigned length = 0;
    unsigned distance = 0;
    ErrorCode error = ErrorCode::kNone;
};

// A word of the table for the bits, and how many of them led to it.
struct Looked {
    std::uint32_t word;
    unsigned prefix;  // bits that the first table took, where there was a second
};

Looked look_up(const std::uint32_t* table, unsigned index_bits, std::uint64_t bits) {
    const std::uint32_t word = table[bits & low_mask(index_bits)];
    constexpr std::uint32_t kFlags = entry::kLiteral | entry::kSpecial | entry::kSecond;
    if ((word & kFlags) != (entry::kSpecial | entry::kSecond)) {
        return {.word = word, .prefix = 0};
    }
    const std::size_t at = entry::value(word) + (bits >> index_bits & low_mask(entry::bits(word)));
    return {.word = table[at], .prefix = index_bits};
}

// Reads one symbol (a match: with its distance), from bits of which `left` are valid.
Token read_token(const DecodeTable& table, std::uint64_t bits, std::uint64_t left) {
    Token token;
    // Codes fill the code space from 0 up: bits that are no code with zeros behind the end of the
    // input are none with anything there.
    const auto fail = [&](ErrorCode error) {
        token.kind = Token::Kind::kError;
        token.error = error;
        return token;
    };
    const Looked ll = look_up(table.ll(), kLlIndexBits, bits);
    token.bits = ll.prefix + entry::bits(ll.word);
    const bool special = (ll.word & (entry::kLiteral | entry::kSpecial)) == entry::kSpecial;
    if (special && (ll.word & entry::kEob) == 0) {
        return fail(ErrorCode::kBadLlCode);
    }
    if (token.bits > left) {
        return token;
    }
    if (special) {
        token.kind = Token::Kind::kEob;
        return token;
    }
    if ((ll.word & entry::kLiteral) != 0) {
        token.kind = Token::Kind::kLiteral;
        token.byte = entry::literal(ll.word);
        return token;
    }
    const auto extra_of = [](std::uint64_t from, const Looked& looked) {
        const unsigned extra = entry::bits(looked.word) - entry::code_bits(looked.word);
        from >>= looked.prefix + entry::code_bits(looked.word);
        return static_cast<unsigned>(from & low_mask(extra));
    };
    token.length = entry::value(ll.word) + extra_of(bits, ll);
    bits >>= token.bits;
    const Looked d = look_up(table.d(), kDIndexBits, bits);
    if ((d.word & entry::kSpecial) != 0 && (d.word & entry::kFar) == 0) {
        return fail(ErrorCode::kBadDCode);
    }
    token.bits += d.prefix + entry::bits(d.word);
    if (token.bits > left) {
        return token;
    }
    if ((d.word & entry::kFar) != 0) {
        return fail(ErrorCode::kBadDistance);
    }
    token.kind = Token::Kind::kMatch;
    token.distance = entry::value(d.word) + extra_of(bits, d);
    return token;
}

// Decodes into one output, from and to one state.
class Run {
  public:
    Run(DecoderState& state, const BitSpan& input, std::span<std::uint8_t> output,
        const DecodeOptions& options, DecodeTable& fixed, DecodeTable& other)
        : state_(state),
          input_(input),
          options_(options),
          fixed_(fixed),
          other_(other),
          cursor_(input),
          start_(output.data()),
          out_(output.data()),
          end_(output.data() + output.size()) {}

    DecodeResult decode() {
        while (!stopped_) {
            switch (state_.parser) {
                case ParserState::kBlockHeader:
                    header();
                    break;
                case ParserState::kSymbols:
                    symbols();
                    break;
                case ParserState::kStored:
                    stored();
                    break;
                case ParserState::kEnded:
                    stop(StopReason::kEndOfStream);
                    break;
            }
        }
        if (result_.stop == StopReason::kInputEnd && options_.check_for_eob && !at_valid_end()) {
            fail(ErrorCode::kBadEndOfFile);
        }
        result_.bits_consumed = cursor_.pos() - input_.start;
        result_.output_size = written();
        state_.history.append({start_, written()});
        return result_;
    }

  private:
    [[nodiscard]] std::size_t written() const { return static_cast<std::size_t>(out_ - start_); }
    [[nodiscard]] std::size_t room() const { return static_cast<std::size_t>(end_ - out_); }

    void stop(StopReason reason) {
        stopped_ = true;
        result_.stop = reason;
    }

    void fail(ErrorCode error) {
        stop(StopReason::kError);
        result_.error = error;
    }

    [[nodiscard]] bool at_valid_end() const {
        return state_.parser == ParserState::kBlockHeader && state_.behind_eob &&
               !options_.only_final_eob && cursor_.left() < 8;
    }

    void end_block() {
        state_.behind_eob = true;
        if (state_.final_block) {
            state_.parser = ParserState::kEnded;
            stop(StopReason::kEndOfStream);
            return;
        }
        state_.parser = ParserState::kBlockHeader;
        if (options_.stop_on_eob && !options_.only_final_eob) {
            stop(StopReason::kEndOfBlock);
        }
    }

    void header() {
        const HeaderResult parsed =
            parse_block_header({input_.bytes, cursor_.pos(), cursor_.left()});
        if (parsed.status == HeaderStatus::kNeedInput) {
            if (cursor_.left() > kMaxHeldBits) {
                fail(ErrorCode::kHeaderTooLarge);
            } else {
                stop(StopReason::kInputEnd);
            }
            return;
        }
        if (parsed.status == HeaderStatus::kError) {
            fail(parsed.error);
            return;
        }
        cursor_.skip(parsed.bits);
        state_.final_block = parsed.header.final;
        state_.behind_eob = false;
        if (parsed.header.type == BlockType::kStored) {
            state_.stored_left = parsed.header.stored_length;
            state_.parser = ParserState::kStored;
        } else {
            state_.lengths = parsed.header.lengths;
            state_.parser = ParserState::kSymbols;
        }
    }

    void stored() {
        while (state_.stored_left != 0) {
            const std::uint64_t bytes = cursor_.left() / 8;
            if (bytes == 0) {
                stop(StopReason::kInputEnd);
                return;
            }
            if (room() == 0) {
                stop(StopReason::kOutputFull);
                return;
            }
            if (cursor_.pos() % 8 != 0) {
                // The input that came before ended inside a byte.
                *out_++ = static_cast<std::uint8_t>(cursor_.peek());
                cursor_.skip(8);
                --state_.stored_left;
                continue;
            }
            const auto size = static_cast<std::uint32_t>(
                std::min({std::uint64_t{state_.stored_left}, bytes, std::uint64_t{room()}}));
            std::memcpy(out_, input_.bytes.data() + cursor_.pos() / 8, size);
            out_ += size;
            cursor_.skip(std::uint64_t{size} * 8);
            state_.stored_left -= size;
        }
        end_block();
    }

    [[nodiscard]] DecodeTable* table() {
        if (other_.built_for(state_.lengths)) {
            return &other_;
        }
        DecodeTable& chosen = fixed_.built_for(state_.lengths) ? fixed_ : other_;
        return chosen.prepare(state_.lengths) ? &chosen : nullptr;
    }

    void symbols() {
        const DecodeTable* const chosen = table();
        if (chosen == nullptr || !valid_cut_match()) {
            fail(ErrorCode::kAecs);
            return;
        }
        while (!stopped_ && state_.parser == ParserState::kSymbols) {
            if (state_.match_left != 0) {
                go_on_with_match();
                continue;
            }
            fast(*chosen);
            one(*chosen);
        }
    }

    [[nodiscard]] bool valid_cut_match() const {
        return state_.match_left == 0 ||
               (state_.match_left <= kMaxMatch && state_.match_distance != 0 &&
                state_.match_distance <= state_.history.size());
    }

    [[nodiscard]] bool reachable(std::size_t distance) const {
        return distance <= written() + state_.history.size();
    }

    void go_on_with_match() {
        const std::size_t distance = state_.match_distance;
        for (; state_.match_left != 0; --state_.match_left) {
            if (room() == 0) {
                stop(StopReason::kOutputFull);
                return;
            }
            *out_ = distance <= written() ? *(out_ - distance)
                                          : state_.history.before_end(distance - written());
            ++out_;
        }
        state_.match_distance = 0;
    }

    // Reads one symbol with all care.
    void one(const DecodeTable& chosen) {
        const Token token = read_token(chosen, cursor_.peek(), cursor_.left());
        switch (token.kind) {
            case Token::Kind::kNeedInput:
                stop(StopReason::kInputEnd);
                return;
            case Token::Kind::kError:
                fail(token.error);
                return;
            case Token::Kind::kEob:
                cursor_.skip(token.bits);
                end_block();
                return;
            case Token::Kind::kLiteral:
                if (room() == 0) {
                    stop(StopReason::kOutputFull);
                    return;
                }
                *out_++ = token.byte;
                cursor_.skip(token.bits);
                return;
            case Token::Kind::kMatch:
                if (!reachable(token.distance)) {
                    fail(ErrorCode::kReferenceBeforeStart);
                    return;
                }
                if (room() == 0) {
                    stop(StopReason::kOutputFull);
                    return;
                }
                cursor_.skip(token.bits);
                state_.match_left = static_cast<std::uint16_t>(token.length);
                state_.match_distance = static_cast<std::uint16_t>(token.distance);
                return;
        }
    }

    // Reads symbols for as long as there is input and room enough to leave most checks out, and
    // stops in front of the first one that needs a closer look.
    void fast(const DecodeTable& chosen) {
        const std::uint8_t* const base = input_.bytes.data();
        const std::uint64_t end_bit = cursor_.pos() + cursor_.left();
        const std::uint8_t* const in_end = base + end_bit / 8;
        const std::uint8_t* in = base + cursor_.pos() / 8;
        if (in_end - in < static_cast<std::ptrdiff_t>(kRoundInput + 1)) {
            return;
        }
        const std::uint32_t* const ll = chosen.ll();
        const std::uint32_t* const d = chosen.d();
        std::uint8_t* out = out_;
        std::uint64_t buffer = std::uint64_t{*in++} >> (cursor_.pos() % 8);
        unsigned count = 8 - static_cast<unsigned>(cursor_.pos() % 8);
        const auto refill = [&] {
            buffer |= load64(in) << count;
            in += (63 - count) / 8;
            count |= 56;
        };
        const auto consume = [&](unsigned bits) {
            buffer >>= bits;
            count -= bits;
        };
        const auto position = [&] { return static_cast<std::uint64_t>(in - base) * 8 - count; };
        std::uint64_t stop_at = 0;
        while (true) {
            stop_at = position();
            if (in_end - in < static_cast<std::ptrdiff_t>(kRoundInput) ||
                end_ - out < static_cast<std::ptrdiff_t>(kRoundLiterals)) {
                break;
            }
            refill();
            std::uint32_t word = ll[buffer & low_mask(kLlIndexBits)];
            if ((word & entry::kLiteral) != 0) {
                consume(entry::bits(word));
                *out++ = entry::literal(word);
                word = ll[buffer & low_mask(kLlIndexBits)];
                if ((word & entry::kLiteral) != 0) {
                    consume(entry::bits(word));
                    *out++ = entry::literal(word);
                    word = ll[buffer & low_mask(kLlIndexBits)];
                    if ((word & entry::kLiteral) != 0) {
                        consume(entry::bits(word));
                        *out++ = entry::literal(word);
                        continue;
                    }
                }
                refill();
            }
            // A match takes at most 15 + 5 + 15 + 10 of the 56 bits there are.
            stop_at = position();
            if ((word & entry::kSpecial) != 0) {
                if ((word & entry::kSecond) == 0) {
                    break;
                }
                consume(kLlIndexBits);
                word = ll[entry::value(word) + (buffer & low_mask(entry::bits(word)))];
                if ((word & entry::kLiteral) != 0) {
                    consume(entry::bits(word));
                    *out++ = entry::literal(word);
                    continue;
                }
                if ((word & entry::kSpecial) != 0) {
                    break;
                }
            }
            const unsigned length =
                entry::value(word) + static_cast<unsigned>((buffer & low_mask(entry::bits(word))) >>
                                                           entry::code_bits(word));
            consume(entry::bits(word));
            word = d[buffer & low_mask(kDIndexBits)];
            if ((word & entry::kSpecial) != 0) {
                if ((word & entry::kSecond) == 0) {
                    break;
                }
                consume(kDIndexBits);
                word = d[entry::value(word) + (buffer & low_mask(entry::bits(word)))];
                if ((word & entry::kSpecial) != 0) {
                    break;
                }
            }
            const unsigned distance =
                entry::value(word) + static_cast<unsigned>((buffer & low_mask(entry::bits(word))) >>
                                                           entry::code_bits(word));
            const auto left = static_cast<std::size_t>(end_ - out);
            if (distance > static_cast<std::size_t>(out - start_) || length > left) {
                break;
            }
            consume(entry::bits(word));
            out = copy_match(out, left, distance, length);
        }
        out_ = out;
        cursor_.move_to(stop_at);
    }

    DecoderState& state_;
    const BitSpan& input_;
    const DecodeOptions& options_;
    DecodeTable& fixed_;
    DecodeTable& other_;
    BitCursor cursor_;
    std::uint8_t* const start_;
    std::uint8_t* out_;
    std::uint8_t* const end_;
    DecodeResult result_;
    bool stopped_ = false;
};

}  // namespace

void History::append(std::span<const std::uint8_t> bytes) {
    if (bytes.size() > kSize) {
        bytes = bytes.last(kSize);
    }
    const std::size_t first = std::min(bytes.size(), kSize - next_);
    std::ranges::copy(bytes.first(first), ring_.begin() + static_cast<std::ptrdiff_t>(next_));
    std::ranges::copy(bytes.subspan(first), ring_.begin());
    next_ = (next_ + bytes.size()) % kSize;
    size_ = std::min(size_ + bytes.size(), kSize);
}

void History::copy_to(std::span<std::uint8_t> out) const {
    for (std::size_t at = 0; at < size_; ++at) {
        out[at] = before_end(size_ - at);
    }
}

void History::restore(std::span<const std::uint8_t, kSize> ring, std::size_t write_offset,
                      bool wrapped) {
    std::ranges::copy(ring, ring_.begin());
    next_ = write_offset % kSize;
    size_ = wrapped ? kSize : next_;
}

bool History::operator==(const History& other) const {
    if (size_ != other.size_) {
        return false;
    }
    for (std::size_t back = 1; back <= size_; ++back) {
        if (before_end(back) != other.before_end(back)) {
            return false;
        }
    }
    return true;
}

DecoderState DecoderState::preset(const CodeLengths& lengths, bool final_block) {
    DecoderState state;
    state.parser = ParserState::kSymbols;
    state.final_block = final_block;
    state.lengths = lengths;
    return state;
}

class Decoder::Tables {
  public:
    Tables() { (void)fixed.prepare(fixed_lengths()); }

    DecodeTable fixed;
    DecodeTable other;
    std::vector<std::uint8_t> scratch;  // of suppressed output
};

Decoder::Decoder() : tables_(std::make_unique<Tables>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

DecodeResult Decoder::decode(DecoderState& state, const BitSpan& input,
                             std::span<std::uint8_t> output, const DecodeOptions& options) {
    return Run(state, input, output, options, tables_->fixed, tables_->other).decode();
}

DecodeResult Decoder::decode_suppressed(DecoderState& state, const BitSpan& input,
                                        std::uint64_t limit, const DecodeOptions& options,
                                        Checksums& checksums) {
    tables_->scratch.resize(kSuppressedChunk);
    DecodeResult total;
    BitSpan rest = input;
    while (true) {
        const auto size = static_cast<std::size_t>(
            std::min<std::uint64_t>(kSuppressedChunk, limit - total.output_size));
        const std::span chunk = std::span(tables_->scratch).first(size);
        const DecodeResult result = decode(state, rest, chunk, options);
        checksums.update(chunk.first(static_cast<std::size_t>(result.output_size)));
        total.stop = result.stop;
        total.error = result.error;
        total.output_size += result.output_size;
        total.bits_consumed += result.bits_consumed;
        rest.start += result.bits_consumed;
        rest.count -= result.bits_consumed;
        if (result.stop != StopReason::kOutputFull || total.output_size == limit) {
            return total;
        }
    }
}

}  // namespace iaa::deflate
