// SPDX-License-Identifier: GPL-2.0
#include "unit/deflate/foreign.h"

#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <zlib.h>

#include <array>
#include <map>
#include <memory>
#include <stdexcept>

namespace iaa::test {
namespace {

constexpr int kWindowBits = 12;
constexpr int kFullWindowBits = 15;

Bytef* writable(std::span<const std::uint8_t> bytes) {
    return const_cast<Bytef*>(bytes.data());  // NOLINT: C interfaces that only read
}

int zlib_strategy(Strategy strategy) {
    switch (strategy) {
        case Strategy::kFixed:
            return Z_FIXED;
        case Strategy::kHuffmanOnly:
            return Z_HUFFMAN_ONLY;
        case Strategy::kRle:
            return Z_RLE;
        case Strategy::kDefault:
            break;
    }
    return Z_DEFAULT_STRATEGY;
}

}  // namespace

Bytes zlib_deflate(std::span<const std::uint8_t> input, int level, Strategy strategy) {
    z_stream stream{};
    if (deflateInit2(&stream, level, Z_DEFLATED, -kWindowBits, 8, zlib_strategy(strategy)) !=
        Z_OK) {
        throw std::runtime_error("deflateInit2");
    }
    Bytes output(input.size() * 2 + 1024);
    stream.next_in = writable(input);
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = output.data();
    stream.avail_out = static_cast<uInt>(output.size());
    const int status = deflate(&stream, Z_FINISH);
    output.resize(output.size() - stream.avail_out);
    deflateEnd(&stream);
    if (status != Z_STREAM_END) {
        throw std::runtime_error("zlib did not finish");
    }
    return output;
}

Bytes libdeflate_deflate(std::span<const std::uint8_t> input, int level) {
    const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
        libdeflate_alloc_compressor(level), libdeflate_free_compressor);
    Bytes output(libdeflate_deflate_compress_bound(compressor.get(), input.size()));
    output.resize(libdeflate_deflate_compress(compressor.get(), input.data(), input.size(),
                                              output.data(), output.size()));
    return output;
}

Bytes isal_deflate(std::span<const std::uint8_t> input, unsigned level) {
    Bytes level_buffer(ISAL_DEF_LVL1_DEFAULT);
    Bytes output(input.size() * 2 + 1024);
    auto stream = std::make_unique<isal_zstream>();
    isal_deflate_stateless_init(stream.get());
    stream->hist_bits = kWindowBits;
    stream->level = level;
    stream->level_buf = level_buffer.data();
    stream->level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
    stream->end_of_stream = 1;
    stream->flush = NO_FLUSH;
    stream->next_in = writable(input);
    stream->avail_in = static_cast<std::uint32_t>(input.size());
    stream->next_out = output.data();
    stream->avail_out = static_cast<std::uint32_t>(output.size());
    if (isal_deflate_stateless(stream.get()) != COMP_OK) {
        throw std::runtime_error("isal_deflate_stateless");
    }
    output.resize(stream->total_out);
    return output;
}

Inflated zlib_inflate(std::span<const std::uint8_t> stream_bytes, std::size_t room) {
    z_stream stream{};
    if (inflateInit2(&stream, -kFullWindowBits) != Z_OK) {
        throw std::runtime_error("inflateInit2");
    }
    Inflated result;
    result.output.resize(room + 1);  // zlib wants some room even where nothing comes
    stream.next_in = writable(stream_bytes);
    stream.avail_in = static_cast<uInt>(stream_bytes.size());
    stream.next_out = result.output.data();
    stream.avail_out = static_cast<uInt>(result.output.size());
    const int status = inflate(&stream, Z_FINISH);
    result.complete = status == Z_STREAM_END;
    result.malformed = status == Z_DATA_ERROR;
    result.used = stream_bytes.size() - stream.avail_in;
    result.output.resize(result.output.size() - stream.avail_out);
    inflateEnd(&stream);
    return result;
}

Inflated libdeflate_inflate(std::span<const std::uint8_t> stream, std::size_t room) {
    const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
        libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    Inflated result;
    result.output.resize(room + 1);
    std::size_t size = 0;
    const libdeflate_result status =
        libdeflate_deflate_decompress_ex(decompressor.get(), stream.data(), stream.size(),
                                         result.output.data(), room, &result.used, &size);
    result.complete = status == LIBDEFLATE_SUCCESS;
    result.malformed = status == LIBDEFLATE_BAD_DATA;
    result.output.resize(size);
    return result;
}

Inflated isal_inflate(std::span<const std::uint8_t> stream, std::size_t room) {
    auto state = std::make_unique<inflate_state>();
    isal_inflate_init(state.get());
    Inflated result;
    result.output.resize(room + 1);
    state->next_in = writable(stream);
    state->avail_in = static_cast<std::uint32_t>(stream.size());
    state->next_out = result.output.data();
    state->avail_out = static_cast<std::uint32_t>(result.output.size());
    const int status = isal_inflate_stateless(state.get());
    result.complete = status == ISAL_DECOMP_OK;
    result.malformed = status < 0;
    result.used = stream.size() - state->avail_in;
    result.output.resize(state->total_out);
    return result;
}

// Written for this test alone and bit by bit, so that it shares nothing with what it judges.
bool run_spans_trees(std::span<const std::uint8_t> stream, std::uint64_t bit) {
    const auto take = [&](unsigned count) {
        unsigned value = 0;
        for (unsigned index = 0; index < count; ++index, ++bit) {
            value |= static_cast<unsigned>(stream[bit / 8] >> (bit % 8) & 1) << index;
        }
        return value;
    };
    take(1);
    if (take(2) != 2) {
        return false;
    }
    const unsigned ll_count = take(5) + 257;
    const unsigned d_count = take(5) + 1;
    const unsigned cl_count = take(4) + 4;
    constexpr std::array<unsigned, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                 11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<unsigned, 19> lengths{};
    for (unsigned index = 0; index < cl_count; ++index) {
        lengths[kOrder[index]] = take(3);
    }
    std::map<std::pair<unsigned, unsigned>, unsigned> symbols;  // (length, code)
    unsigned code = 0;
    for (unsigned length = 1; length <= 7; ++length, code <<= 1) {
        for (unsigned symbol = 0; symbol < lengths.size(); ++symbol) {
            if (lengths[symbol] == length) {
                symbols[{length, code++}] = symbol;
            }
        }
    }
    for (unsigned done = 0; done < ll_count + d_count;) {
        unsigned length = 0;
        unsigned bits = 0;
        do {
            bits = bits << 1 | take(1);
            ++length;
        } while (!symbols.contains({length, bits}) && length < 8);
        const unsigned symbol = symbols.at({length, bits});
        const unsigned run = symbol < 16    ? 1
                             : symbol == 16 ? 3 + take(2)
                             : symbol == 17 ? 3 + take(3)
                                            : 11 + take(7);
        if (done < ll_count && done + run > ll_count) {
            return true;
        }
        // "Repeat previous" as the first distance length reaches back into the other tree.
        if (done == ll_count && symbol == 16) {
            return true;
        }
        done += run;
    }
    return false;
}

}  // namespace iaa::test
