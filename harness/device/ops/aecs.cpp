// SPDX-License-Identifier: GPL-2.0
#include "device/ops/aecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "deflate/encoder.h"

namespace iaa::device {
namespace {

using deflate::Accumulator;
using deflate::CodeLengths;
using deflate::CodeTables;
using deflate::DecoderState;
using deflate::History;
using deflate::ParserState;

template <typename Word>
Word get(std::span<const std::uint8_t> image, std::size_t offset) {
    Word value = 0;
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte) {
        value = static_cast<Word>(value | static_cast<Word>(image[offset + byte]) << (8 * byte));
    }
    return value;
}

template <typename Word>
void put(std::span<std::uint8_t> image, std::size_t offset, Word value) {
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte) {
        image[offset + byte] = static_cast<std::uint8_t>(value >> (8 * byte));
    }
}

/// Bytes [begin, end).
struct Field {
    constexpr Field(std::size_t from, std::size_t to) : begin(from), end(to) {}

    std::size_t begin;
    std::size_t end;
};

/// What is wrong with fields that have to be zero, as far as the image has them. Empty: nothing.
std::string check_reserved(std::span<const std::uint8_t> image, std::span<const Field> fields) {
    for (const Field& field : fields) {
        for (std::size_t at = field.begin; at < std::min(field.end, image.size()); ++at) {
            if (image[at] != 0) {
                return fmt::format("reserved byte {} is {:#04x}, must be zero", at, image[at]);
            }
        }
    }
    return {};
}

/// A field of one byte that is 0 or 1. An error text where it is neither.
std::string load_bool(std::span<const std::uint8_t> image, std::size_t offset, bool& value) {
    value = image[offset] == 1;
    return image[offset] > 1
               ? fmt::format("byte {} is {:#04x}, must be 0 or 1", offset, image[offset])
               : std::string();
}

// What both kinds begin with.
constexpr std::size_t kCrc = 0;
constexpr std::size_t kXor = 4;

// Compression.
constexpr std::size_t kCompressParity = 8;
constexpr std::size_t kCompressBits = 28;
constexpr std::size_t kCompressAccumulator = 32;
constexpr std::size_t kCompressLl = kCompressStateSize;
constexpr std::size_t kCompressLlEnd = kCompressLl + 4 * deflate::kLlSymbols;
constexpr std::size_t kCompressD = 1440;
constexpr std::size_t kCompressDEnd = kCompressD + 4 * deflate::kDSymbols;
static_assert(kCompressLlEnd == 1432 && kCompressDEnd == 1560);
constexpr std::array<Field, 1> kCompressReserved{{{kCompressParity + 1, kCompressBits}}};
constexpr std::array<Field, 2> kCompressTablesReserved{
    {{kCompressLlEnd, kCompressD}, {kCompressDEnd, kCompressAecsSize}}};

// Decompression.
constexpr std::size_t kDropBytes = 20;
constexpr std::size_t kHeld = 168;
constexpr std::size_t kHeldBits = 176;
constexpr std::size_t kInput = 184;
constexpr std::size_t kInputSizes = 440;
constexpr std::size_t kInputSlots = 32;
constexpr std::size_t kEobEntry = 472;
constexpr std::size_t kDropBits = 476;
constexpr std::size_t kFormat = 477;
constexpr std::size_t kFirstIndex = 480;
constexpr std::size_t kNumCodes = 500;
constexpr std::size_t kFirstCode = 520;
constexpr std::size_t kFirstLengthCode = 540;
constexpr std::size_t kLlEntries = 560;
constexpr std::size_t kDEntries = 644;
constexpr std::size_t kMatchLeft = 768;
constexpr std::size_t kMatchDistance = 770;
constexpr std::size_t kParity = 772;
constexpr std::size_t kBehindEob = 773;
constexpr std::size_t kSymbols = 808;
constexpr std::size_t kSymbolsSize = 268;
constexpr std::size_t kMap1 = 832;
constexpr std::size_t kMap1Size = 224;
constexpr std::size_t kMap2 = 1088;
constexpr std::size_t kMap2Size = 144;
constexpr std::size_t kParser = 1076;
constexpr std::size_t kStoredLeft = 1080;
constexpr std::size_t kHistoryOffset = 1252;
constexpr std::size_t kHistory = 1256;

// Reserved in both formats, and in one of them.
constexpr std::array<Field, 8> kReserved{{{24, kHeld},
                                          {478, kFirstIndex},
                                          {764, kMatchLeft},
                                          {kBehindEob + 1, kSymbols},
                                          {1078, kStoredLeft},
                                          {1082, kMap2},
                                          {1254, kHistory},
                                          {5352, kDecompressAecsSize}}};
constexpr std::array<Field, 1> kReserved1{{{kMap2, kHistoryOffset}}};
constexpr std::array<Field, 4> kReserved2{{{kFirstIndex, kNumCodes},
                                           {kSymbols, kMap1},
                                           {kMap1 + kMap1Size, kParser},
                                           {kMap2 + kMap2Size, kHistoryOffset}}};

/// Symbols whose codes lie in the packed fields: literals, end of block, lengths without extra
/// bits. The others lie in kLlEntries.
constexpr unsigned kPackedSymbols = 265;
constexpr unsigned kLiterals = 256;
static_assert(kLlEntries + 4 * (deflate::kLlSymbols - kPackedSymbols) == kDEntries);

/// A packed field's place: length n (1 to 15) has n + 1 bits.
struct PackedField {
    std::size_t word;
    unsigned shift;
};

constexpr PackedField packed_field(unsigned length) {
    constexpr std::array<unsigned, 6> kWordStarts{1, 7, 10, 12, 14, 16};
    PackedField field{.word = 0, .shift = 0};
    while (length >= kWordStarts[field.word + 1]) {
        ++field.word;
    }
    for (unsigned before = kWordStarts[field.word]; before < length; ++before) {
        field.shift += before + 1;
    }
    return field;
}
static_assert(packed_field(6).word == 0 && packed_field(6).shift == 20);
static_assert(packed_field(7).word == 1 && packed_field(7).shift == 0);
static_assert(packed_field(11).word == 2 && packed_field(11).shift == 11);
static_assert(packed_field(15).word == 4 && packed_field(15).shift == 15);

constexpr std::uint32_t packed_mask(unsigned length) {
    return (1U << (length + 1)) - 1;
}

std::uint32_t get_packed(std::span<const std::uint8_t> image, std::size_t offset, unsigned length) {
    const PackedField field = packed_field(length);
    return get<std::uint32_t>(image, offset + 4 * field.word) >> field.shift & packed_mask(length);
}

void put_packed(std::span<std::uint8_t> image, std::size_t offset, unsigned length,
                std::uint32_t value) {
    const PackedField field = packed_field(length);
    const std::size_t at = offset + 4 * field.word;
    put(image, at, get<std::uint32_t>(image, at) | (value & packed_mask(length)) << field.shift);
}

/// Where the map of format 2 has a symbol's number, and how wide it is.
struct MapField {
    std::size_t bit;
    unsigned width;
};

std::array<MapField, kPackedSymbols> make_map_fields() {
    std::array<MapField, kPackedSymbols> fields{};
    std::size_t bit = 0;
    for (unsigned symbol = 0; symbol < kPackedSymbols; ++symbol) {
        unsigned width = 4;
        for (unsigned value = symbol; value != 0; value >>= 1U) {
            ++width;
        }
        fields[symbol] = {.bit = bit, .width = width};
        bit += width;
    }
    return fields;
}

const std::array<MapField, kPackedSymbols>& map_fields() {
    static const auto fields = make_map_fields();
    return fields;
}

/// The map is in two pieces.
constexpr std::size_t map_byte(std::size_t index) {
    return index < kMap1Size ? kMap1 + index : kMap2 + (index - kMap1Size);
}

std::uint32_t get_map(std::span<const std::uint8_t> image, unsigned symbol) {
    const MapField field = map_fields()[symbol];
    std::uint32_t value = 0;
    for (unsigned bit = 0; bit < field.width; ++bit) {
        const std::size_t at = field.bit + bit;
        value |= (std::uint32_t{image[map_byte(at / 8)]} >> (at % 8) & 1U) << bit;
    }
    return value;
}

void put_map(std::span<std::uint8_t> image, unsigned symbol, std::uint32_t value) {
    const MapField field = map_fields()[symbol];
    for (unsigned bit = 0; bit < field.width; ++bit) {
        const std::size_t at = field.bit + bit;
        image[map_byte(at / 8)] =
            static_cast<std::uint8_t>(image[map_byte(at / 8)] | (value >> bit & 1U) << (at % 8));
    }
}

constexpr std::uint32_t entry_of(unsigned length, std::uint32_t code) {
    return length << deflate::kEntryLengthShift | code;
}

bool well_formed(std::uint32_t entry) {
    const unsigned length = deflate::entry_length(entry);
    return length <= deflate::kMaxCodeLength && deflate::entry_code(entry) < 1U << length;
}

/// Bits above `bits` cleared, as an Accumulator has them.
Accumulator make_accumulator(std::span<const std::uint8_t> bytes, std::uint32_t bits) {
    Accumulator accumulator;
    const std::size_t whole = (bits + 7) / 8;
    std::ranges::copy(bytes.first(whole), accumulator.bytes.begin());
    if (bits % 8 != 0) {
        accumulator.bytes[whole - 1] =
            static_cast<std::uint8_t>(accumulator.bytes[whole - 1] & ((1U << bits % 8) - 1));
    }
    accumulator.bits = bits;
    return accumulator;
}

std::string load_checksums(std::span<const std::uint8_t> image, std::uint32_t& crc,
                           std::uint16_t& xor_sum) {
    crc = get<std::uint32_t>(image, kCrc);
    const auto sum = get<std::uint32_t>(image, kXor);
    if (sum > 0xffff) {
        return fmt::format("XOR checksum {:#x} has more than 16 bits", sum);
    }
    xor_sum = static_cast<std::uint16_t>(sum);
    return {};
}

// Input accumulator: slots of up to 64 bits, filled from the first on.
std::string load_input(std::span<const std::uint8_t> image, Accumulator& input) {
    input = {};
    bool ended = false;
    for (std::size_t slot = 0; slot < kInputSlots; ++slot) {
        const unsigned bits = image[kInputSizes + slot];
        if (bits > 64) {
            return fmt::format("input accumulator entry {} has {} bits of 64", slot, bits);
        }
        if (bits != 0 && ended) {
            return fmt::format("input accumulator entry {} lies behind an empty one", slot);
        }
        ended = bits == 0;
        const auto value = get<std::uint64_t>(image, kInput + 8 * slot);
        const unsigned low = std::min(bits, 32U);
        if (!input.append(static_cast<std::uint32_t>(value), low) ||
            !input.append(static_cast<std::uint32_t>(value >> 32U), bits - low)) {
            return fmt::format("input accumulator has more than {} bits", Accumulator::kMaxBits);
        }
    }
    return {};
}

void store_input(const Accumulator& input, std::span<std::uint8_t> image) {
    std::ranges::copy(input.bytes, image.subspan(kInput).begin());
    for (std::size_t slot = 0; slot < kInputSlots; ++slot) {
        const std::size_t before = 64 * slot;
        image[kInputSizes + slot] = static_cast<std::uint8_t>(
            input.bits > before ? std::min<std::size_t>(input.bits - before, 64) : 0);
    }
}

// The codes that lie in the packed fields, in format 1: by their order.
std::string load_packed1(std::span<const std::uint8_t> image, CodeTables& tables) {
    for (unsigned length = 1; length <= deflate::kMaxCodeLength; ++length) {
        const std::uint32_t count = get_packed(image, kNumCodes, length);
        const std::uint32_t first = get_packed(image, kFirstCode, length);
        const std::uint32_t index = get_packed(image, kFirstIndex, length);
        const std::uint32_t first_length_code = get_packed(image, kFirstLengthCode, length);
        if (count == 0) {
            continue;
        }
        if (first + count > 1U << length || index + count > kSymbolsSize) {
            return fmt::format("{} codes of {} bits from code {:#x} and entry {} on", count, length,
                               first, index);
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            const unsigned symbol =
                image[kSymbols + index + i] + (first + i >= first_length_code ? kLiterals : 0);
            if (symbol >= kPackedSymbols || tables.ll[symbol] != 0) {
                return fmt::format("code {:#x} of {} bits is symbol {}, a second time or too large",
                                   first + i, length, symbol);
            }
            tables.ll[symbol] = entry_of(length, first + i);
        }
    }
    return {};
}

// In format 2: by their symbols.
std::string load_packed2(std::span<const std::uint8_t> image, CodeTables& tables) {
    for (unsigned symbol = 0; symbol < kPackedSymbols; ++symbol) {
        const std::uint32_t value = get_map(image, symbol);
        const unsigned length = value & 15U;
        const std::uint32_t offset = value >> 4U;
        if (length == 0) {
            continue;
        }
        const std::uint32_t code = get_packed(image, kFirstCode, length) + offset;
        if (offset >= get_packed(image, kNumCodes, length) || code >= 1U << length) {
            return fmt::format("symbol {} is code {} of {} bits, of which there are {}", symbol,
                               offset, length, get_packed(image, kNumCodes, length));
        }
        tables.ll[symbol] = entry_of(length, code);
    }
    return {};
}

std::string load_tables(std::span<const std::uint8_t> image, bool format2, CodeLengths& lengths) {
    CodeTables tables;
    std::string error = format2 ? load_packed2(image, tables) : load_packed1(image, tables);
    if (!error.empty()) {
        return error;
    }
    for (std::size_t symbol = kPackedSymbols; symbol < deflate::kLlSymbols; ++symbol) {
        tables.ll[symbol] = get<std::uint32_t>(image, kLlEntries + 4 * (symbol - kPackedSymbols));
    }
    for (std::size_t symbol = 0; symbol < deflate::kDSymbols; ++symbol) {
        tables.d[symbol] = get<std::uint32_t>(image, kDEntries + 4 * symbol);
    }
    if (!std::ranges::all_of(tables.ll, well_formed) ||
        !std::ranges::all_of(tables.d, well_formed)) {
        return "a code is longer than 15 bits or than its length";
    }

    // The decoder goes by lengths: other codes than the canonical ones cannot be told to it.
    lengths = deflate::lengths_of(tables);
    CodeTables canonical;
    if (deflate::make_tables(lengths, canonical) != deflate::ErrorCode::kNone) {
        return "the code lengths are oversubscribed";
    }
    if (canonical != tables) {
        return "the codes are not the canonical ones for their lengths";
    }
    return {};
}

void store_tables(const CodeLengths& lengths, bool format2, std::span<std::uint8_t> image) {
    CodeTables tables;
    if (deflate::make_tables(lengths, tables) != deflate::ErrorCode::kNone) {
        tables = {};
    }
    std::ranges::fill(image.subspan(kFirstIndex, kSymbols - kFirstIndex), std::uint8_t{0});
    std::ranges::fill(image.subspan(kSymbols, kSymbolsSize), std::uint8_t{0});
    if (format2) {
        std::ranges::fill(image.subspan(kMap2, kMap2Size), std::uint8_t{0});
    }

    std::uint32_t index = 0;
    for (unsigned length = 1; length <= deflate::kMaxCodeLength; ++length) {
        const std::uint32_t first_index = index;
        std::uint32_t count = 0;
        std::uint32_t first = 0;
        std::uint32_t first_length_code = packed_mask(length);
        for (unsigned symbol = 0; symbol < kPackedSymbols; ++symbol) {
            const std::uint32_t entry = tables.ll[symbol];
            if (deflate::entry_length(entry) != length) {
                continue;
            }
            const std::uint32_t code = deflate::entry_code(entry);
            if (count == 0) {
                first = code;
            }
            if (symbol >= kLiterals && first_length_code == packed_mask(length)) {
                first_length_code = code;
            }
            if (format2) {
                put_map(image, symbol, length | count << 4U);
            } else {
                image[kSymbols + index] = static_cast<std::uint8_t>(symbol);
            }
            ++count;
            ++index;
        }
        put_packed(image, kNumCodes, length, count);
        put_packed(image, kFirstCode, length, first);
        put_packed(image, kFirstLengthCode, length, first_length_code);
        if (!format2) {
            put_packed(image, kFirstIndex, length, first_index);
        }
    }

    put(image, kEobEntry, tables.ll[deflate::kEobSymbol]);
    for (std::size_t symbol = kPackedSymbols; symbol < deflate::kLlSymbols; ++symbol) {
        put(image, kLlEntries + 4 * (symbol - kPackedSymbols), tables.ll[symbol]);
    }
    for (std::size_t symbol = 0; symbol < deflate::kDSymbols; ++symbol) {
        put(image, kDEntries + 4 * symbol, tables.d[symbol]);
    }
}

std::string load_history(std::span<const std::uint8_t> image, History& history) {
    if (image.size() < kDecompressAecsSize) {
        history = {};
        return {};
    }
    const auto field = get<std::uint16_t>(image, kHistoryOffset);
    const std::size_t offset = field & 0x7fffU;
    const bool wrapped = (field & 0x8000U) != 0;
    if (offset > History::kSize || (offset == History::kSize && !wrapped)) {
        return fmt::format("history write offset {}", offset);
    }
    history.restore(image.subspan(kHistory).first<History::kSize>(), offset % History::kSize,
                    wrapped);
    return {};
}

std::string load_parser(std::span<const std::uint8_t> image, DecoderState& state) {
    const auto parser = get<std::uint16_t>(image, kParser);
    switch (parser) {
        case 0:
        case 4:
            state.parser = ParserState::kSymbols;
            break;
        case 1:
            state.parser = ParserState::kBlockHeader;
            break;
        case 2:
        case 6:
            state.parser = ParserState::kStored;
            state.stored_left = get<std::uint16_t>(image, kStoredLeft);
            if (state.stored_left == 0) {
                return "a stored block of which nothing is left";
            }
            break;
        case 8:
            return "the stream has ended";
        default:
            return fmt::format("parser state {}", parser);
    }
    state.final_block = (parser & 4U) != 0;
    return {};
}

std::string load_match(std::span<const std::uint8_t> image, DecoderState& state) {
    state.match_left = get<std::uint16_t>(image, kMatchLeft);
    state.match_distance = get<std::uint16_t>(image, kMatchDistance);
    const bool none = state.match_left == 0 && state.match_distance == 0;
    const bool valid = state.match_left != 0 && state.match_left <= deflate::kMaxMatch &&
                       state.match_distance != 0 && state.match_distance <= state.history.size();
    if (!none && !valid) {
        return fmt::format("a cut match of {} bytes at distance {}, with {} bytes of history",
                           state.match_left, state.match_distance, state.history.size());
    }
    return {};
}

std::uint16_t parser_number(const DecoderState& state) {
    const unsigned final_bit = state.final_block ? 4 : 0;
    switch (state.parser) {
        case ParserState::kSymbols:
            return static_cast<std::uint16_t>(final_bit);
        case ParserState::kStored:
            return static_cast<std::uint16_t>(2 | final_bit);
        case ParserState::kEnded:
            return 8;
        case ParserState::kBlockHeader:
            break;
    }
    return 1;
}

}  // namespace

std::string load_state(std::span<const std::uint8_t, kCompressStateSize> image,
                       CompressAecs& aecs) {
    std::string error = load_checksums(image, aecs.crc, aecs.xor_sum);
    if (error.empty()) {
        error = load_bool(image, kCompressParity, aecs.odd);
    }
    if (error.empty()) {
        error = check_reserved(image, kCompressReserved);
    }
    if (!error.empty()) {
        return error;
    }
    const auto bits = get<std::uint32_t>(image, kCompressBits);
    if (bits > Accumulator::kMaxBits) {
        return fmt::format("output accumulator of {} bits, it has {}", bits, Accumulator::kMaxBits);
    }
    aecs.accumulator =
        make_accumulator(image.subspan(kCompressAccumulator, Accumulator::kMaxBits / 8), bits);
    return {};
}

std::string load(std::span<const std::uint8_t, kCompressAecsSize> image, CompressAecs& aecs) {
    std::string error = load_state(image.first<kCompressStateSize>(), aecs);
    if (error.empty()) {
        error = check_reserved(image, kCompressTablesReserved);
    }
    if (!error.empty()) {
        return error;
    }
    for (std::size_t symbol = 0; symbol < deflate::kLlSymbols; ++symbol) {
        aecs.tables.ll[symbol] = get<std::uint32_t>(image, kCompressLl + 4 * symbol);
    }
    for (std::size_t symbol = 0; symbol < deflate::kDSymbols; ++symbol) {
        aecs.tables.d[symbol] = get<std::uint32_t>(image, kCompressD + 4 * symbol);
    }
    if (!deflate::check_tables(aecs.tables)) {
        return "a code is longer than 15 bits or than its length";
    }
    return {};
}

void store(const CompressAecs& aecs, std::span<std::uint8_t, kCompressAecsSize> image) {
    std::ranges::fill(image, std::uint8_t{0});
    put(image, kCrc, aecs.crc);
    put(image, kXor, std::uint32_t{aecs.xor_sum});
    image[kCompressParity] = aecs.odd ? 1 : 0;
    put(image, kCompressBits, aecs.accumulator.bits);
    std::ranges::copy(aecs.accumulator.bytes, image.subspan(kCompressAccumulator).begin());
    for (std::size_t symbol = 0; symbol < deflate::kLlSymbols; ++symbol) {
        put(image, kCompressLl + 4 * symbol, aecs.tables.ll[symbol]);
    }
    for (std::size_t symbol = 0; symbol < deflate::kDSymbols; ++symbol) {
        put(image, kCompressD + 4 * symbol, aecs.tables.d[symbol]);
    }
}

std::string load(std::span<const std::uint8_t> image, bool format2, DecompressAecs& aecs) {
    aecs = {};
    const bool image_format2 = image[kFormat] == 1;
    const auto held_bits = get<std::uint32_t>(image, kHeldBits);
    if (image[kFormat] > 1 || (held_bits & 1U) != (image_format2 ? 1U : 0U) ||
        image_format2 != format2) {
        return fmt::format("format {} with bit {}, this device has format {}", image[kFormat],
                           held_bits & 1U, format2 ? 2 : 1);
    }
    if (const auto drop = get<std::uint32_t>(image, kDropBytes); drop != 0) {
        return fmt::format("{} initial bytes to drop", drop);
    }
    if (image[kDropBits] != 0) {
        return fmt::format("{} initial bits to drop", image[kDropBits]);
    }
    aecs.held_size = (held_bits & ~1U) / 8;
    if ((held_bits & ~1U) % 8 != 0 || aecs.held_size >= aecs.held.size()) {
        return fmt::format("output accumulator of {} bits", held_bits & ~1U);
    }
    std::ranges::copy(image.subspan(kHeld, aecs.held_size), aecs.held.begin());

    DecoderState& state = aecs.state;
    std::string error = check_reserved(image, kReserved);
    if (error.empty()) {
        error = check_reserved(image, format2 ? std::span<const Field>(kReserved2)
                                              : std::span<const Field>(kReserved1));
    }
    if (error.empty()) {
        error = load_bool(image, kParity, aecs.odd);
    }
    if (error.empty()) {
        error = load_bool(image, kBehindEob, state.behind_eob);
    }
    if (error.empty()) {
        error = load_checksums(image, aecs.crc, aecs.xor_sum);
    }
    if (error.empty()) {
        error = load_input(image, aecs.input);
    }
    if (error.empty()) {
        error = load_history(image, state.history);
    }
    if (error.empty()) {
        error = load_parser(image, state);
    }
    if (error.empty() && state.parser == ParserState::kSymbols) {
        error = load_tables(image, format2, state.lengths);
        if (error.empty()) {
            error = load_match(image, state);
        }
    }
    return error;
}

void store(const DecompressAecs& aecs, bool format2, std::span<std::uint8_t> image) {
    const DecoderState& state = aecs.state;
    put(image, kCrc, aecs.crc);
    put(image, kXor, std::uint32_t{aecs.xor_sum});
    put(image, kDropBytes, std::uint32_t{0});
    std::ranges::copy(aecs.held, image.subspan(kHeld).begin());
    put(image, kHeldBits, 8 * aecs.held_size | (format2 ? 1U : 0U));
    store_input(aecs.input, image);
    image[kDropBits] = 0;
    image[kFormat] = format2 ? 1 : 0;
    store_tables(state.lengths, format2, image);
    put(image, kMatchLeft, state.match_left);
    put(image, kMatchDistance, state.match_distance);
    image[kParity] = aecs.odd ? 1 : 0;
    image[kBehindEob] = state.behind_eob ? 1 : 0;
    put(image, kParser, parser_number(state));
    put(image, kStoredLeft, static_cast<std::uint16_t>(state.stored_left));
    if (image.size() >= kDecompressAecsSize) {
        const bool wrapped = state.history.size() == History::kSize;
        put(image, kHistoryOffset,
            static_cast<std::uint16_t>(state.history.write_offset() | (wrapped ? 0x8000U : 0U)));
        std::ranges::copy(state.history.ring(), image.subspan(kHistory).begin());
    }
}

}  // namespace iaa::device
