// SPDX-License-Identifier: GPL-2.0
// Speed and ratio on 4 KB pages, beside zlib (level 1) and ISA-L (levels 0 and 1), all with a
// window of 4 KB, in the same run:
//   bench_deflate [--pages=FILE] [Google Benchmark's options]
// FILE holds pages one behind the other, plain or gzipped; the default is tests/data's sample. A
// table of all figures beside zlib's ends the output.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deflate/decoder.h"
#include "deflate/encoder.h"

namespace {

using iaa::deflate::Accumulator;
using iaa::deflate::BitSpan;
using iaa::deflate::Decoder;
using iaa::deflate::DecoderState;
using iaa::deflate::Encoder;
using iaa::deflate::StopReason;

constexpr std::size_t kPageSize = 4096;
constexpr std::size_t kRoom = 2 * kPageSize;
constexpr int kWindowBits = 12;

using Bytes = std::vector<std::uint8_t>;

// The pages, set once before any benchmark runs.
std::vector<Bytes>& pages() {
    static std::vector<Bytes> all;
    return all;
}

[[noreturn]] void die(const std::string& what) {
    throw std::runtime_error(what);
}

// One compressor of pages: out has kRoom bytes, and the size is returned.
class Compressor {
  public:
    Compressor() = default;
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;
    Compressor(Compressor&&) = delete;
    Compressor& operator=(Compressor&&) = delete;
    virtual ~Compressor() = default;
    virtual std::size_t compress(std::span<const std::uint8_t> page,
                                 std::span<std::uint8_t> out) = 0;
};

class OwnFixed : public Compressor {
  public:
    std::size_t compress(std::span<const std::uint8_t> page, std::span<std::uint8_t> out) override {
        Accumulator accumulator;
        (void)iaa::deflate::write_fixed_header(true, accumulator);
        return encoder_.encode(page, iaa::deflate::fixed_tables(), accumulator, {}, out)
            .output_size;
    }

  private:
    Encoder encoder_;
};

class OwnDynamic : public Compressor {
  public:
    std::size_t compress(std::span<const std::uint8_t> page, std::span<std::uint8_t> out) override {
        Accumulator accumulator;
        return encoder_.encode_dynamic(page, true, accumulator, {}, out).output_size;
    }

  private:
    Encoder encoder_;
};

class Zlib : public Compressor {
  public:
    Zlib(int level, int strategy) {
        if (deflateInit2(&stream_, level, Z_DEFLATED, -kWindowBits, 8, strategy) != Z_OK) {
            die("zlib's deflateInit2 failed");
        }
    }
    ~Zlib() override { deflateEnd(&stream_); }
    Zlib(const Zlib&) = delete;
    Zlib& operator=(const Zlib&) = delete;
    Zlib(Zlib&&) = delete;
    Zlib& operator=(Zlib&&) = delete;

    std::size_t compress(std::span<const std::uint8_t> page, std::span<std::uint8_t> out) override {
        deflateReset(&stream_);
        stream_.next_in = const_cast<Bytef*>(page.data());  // NOLINT: zlib does not write to it
        stream_.avail_in = static_cast<uInt>(page.size());
        stream_.next_out = out.data();
        stream_.avail_out = static_cast<uInt>(out.size());
        return deflate(&stream_, Z_FINISH) == Z_STREAM_END ? out.size() - stream_.avail_out : 0;
    }

  private:
    z_stream stream_{};
};

class Isal : public Compressor {
  public:
    explicit Isal(unsigned level) : level_(level), buffer_(ISAL_DEF_LVL1_DEFAULT) {}

    std::size_t compress(std::span<const std::uint8_t> page, std::span<std::uint8_t> out) override {
        isal_deflate_stateless_init(&stream_);
        stream_.hist_bits = kWindowBits;
        stream_.level = level_;
        stream_.level_buf = buffer_.data();
        stream_.level_buf_size = static_cast<std::uint32_t>(buffer_.size());
        stream_.end_of_stream = 1;
        stream_.flush = NO_FLUSH;
        stream_.next_in = const_cast<std::uint8_t*>(page.data());  // NOLINT: it only reads
        stream_.avail_in = static_cast<std::uint32_t>(page.size());
        stream_.next_out = out.data();
        stream_.avail_out = static_cast<std::uint32_t>(out.size());
        return isal_deflate_stateless(&stream_) == COMP_OK ? stream_.total_out : 0;
    }

  private:
    unsigned level_;
    Bytes buffer_;
    isal_zstream stream_{};
};

std::unique_ptr<Compressor> make_compressor(std::string_view name) {
    if (name == "own-fixed") {
        return std::make_unique<OwnFixed>();
    }
    if (name == "own-dynamic") {
        return std::make_unique<OwnDynamic>();
    }
    if (name == "zlib-1-fixed") {
        return std::make_unique<Zlib>(1, Z_FIXED);
    }
    if (name == "zlib-1") {
        return std::make_unique<Zlib>(1, Z_DEFAULT_STRATEGY);
    }
    if (name == "isal-0") {
        return std::make_unique<Isal>(0);
    }
    return std::make_unique<Isal>(1);
}

void bench_compress(benchmark::State& state, const std::string& name) {
    const std::unique_ptr<Compressor> compressor = make_compressor(name);
    Bytes out(kRoom);
    std::size_t stored = 0;
    for ([[maybe_unused]] auto _ : state) {
        stored = 0;
        for (const Bytes& page : pages()) {
            const std::size_t size = compressor->compress(page, out);
            if (size == 0) {
                state.SkipWithError("a page did not compress into twice its size");
                return;
            }
            stored += std::min(size, kPageSize);
        }
    }
    const auto bytes = static_cast<double>(pages().size() * kPageSize);
    state.SetBytesProcessed(
        static_cast<std::int64_t>(bytes * static_cast<double>(state.iterations())));
    state.counters["ratio"] = bytes / static_cast<double>(stored);
}

bool own_inflate(Decoder& decoder, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
    DecoderState state;
    const auto result = decoder.decode(state, BitSpan::of(in), out, {});
    return result.stop == StopReason::kEndOfStream && result.output_size == out.size();
}

bool zlib_inflate(z_stream& stream, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
    inflateReset(&stream);
    stream.next_in = const_cast<Bytef*>(in.data());  // NOLINT: zlib does not write to it
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    return inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
}

bool isal_inflate_page(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
    static inflate_state stream;
    isal_inflate_init(&stream);
    stream.hist_bits = kWindowBits;
    stream.next_in = const_cast<std::uint8_t*>(in.data());  // NOLINT: it only reads
    stream.avail_in = static_cast<std::uint32_t>(in.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<std::uint32_t>(out.size());
    return isal_inflate_stateless(&stream) == ISAL_DECOMP_OK && stream.avail_out == 0;
}

void bench_decompress(benchmark::State& state, const std::string& decoder_name,
                      const std::string& stream_name) {
    const std::unique_ptr<Compressor> compressor = make_compressor(stream_name);
    std::vector<Bytes> streams;
    for (const Bytes& page : pages()) {
        Bytes out(kRoom);
        out.resize(compressor->compress(page, out));
        streams.push_back(std::move(out));
    }
    Decoder own;
    z_stream zlib{};
    if (inflateInit2(&zlib, -kWindowBits) != Z_OK) {
        die("zlib's inflateInit2 failed");
    }
    Bytes out(kPageSize);
    bool good = true;
    for ([[maybe_unused]] auto _ : state) {
        for (const Bytes& stream : streams) {
            good = good && (decoder_name == "own"    ? own_inflate(own, stream, out)
                            : decoder_name == "zlib" ? zlib_inflate(zlib, stream, out)
                                                     : isal_inflate_page(stream, out));
        }
    }
    inflateEnd(&zlib);
    if (!good) {
        state.SkipWithError("a stream did not decode to one page");
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(pages().size() * kPageSize) *
                            state.iterations());
}

std::vector<Bytes> read_pages(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (!file) {
        die("cannot open " + path);
    }
    std::vector<Bytes> read;
    Bytes page(kPageSize);
    while (gzread(file.get(), page.data(), kPageSize) == static_cast<int>(kPageSize)) {
        read.push_back(page);
    }
    if (read.empty()) {
        die(path + " holds no page");
    }
    return read;
}

// Prints what Google Benchmark prints, and keeps the figures for a table.
class TableReporter : public benchmark::ConsoleReporter {
  public:
    TableReporter() : ConsoleReporter(OO_Tabular) {}

    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs) {
            const auto speed = run.counters.find("bytes_per_second");
            if (run.run_type != Run::RT_Iteration || speed == run.counters.end()) {
                continue;
            }
            const auto ratio = run.counters.find("ratio");
            rows_.push_back({run.benchmark_name(), speed->second.value / 1e6,
                             ratio == run.counters.end() ? 0.0 : ratio->second.value});
        }
    }

    void print_table() const {
        std::cout << fmt::format("\n{:<36}{:>10}{:>10}{:>12}\n", "", "MB/s", "ratio", "x zlib");
        for (const Row& row : rows_) {
            const double zlib = zlib_speed(row.name);
            std::cout << fmt::format("{:<36}{:>10.1f}{:>10}{:>12}\n", row.name, row.speed,
                                     row.ratio == 0 ? "" : fmt::format("{:.3f}", row.ratio),
                                     zlib == 0 ? "" : fmt::format("{:.2f}", row.speed / zlib));
        }
    }

  private:
    struct Row {
        std::string name;
        double speed;  // MB/s of uncompressed data
        double ratio;  // 0: does not apply
    };

    // What zlib reaches in the same task: its level 1 for a compressor (with the fixed code, where
    // that is asked for), its inflate of the same streams for a decompressor.
    [[nodiscard]] double zlib_speed(const std::string& name) const {
        const bool compress = name.starts_with("compress/");
        const bool fixed = name.ends_with("-fixed");
        const std::string peer = compress ? (fixed ? "compress/zlib-1-fixed" : "compress/zlib-1")
                                          : name.substr(0, name.rfind('/')) + "/zlib";
        const auto row = std::ranges::find(rows_, peer, &Row::name);
        return row == rows_.end() ? 0 : row->speed;
    }

    std::vector<Row> rows_;
};

template <typename Function>
void add([[maybe_unused]] const std::string& name, [[maybe_unused]] const Function& function) {
#ifndef __clang_analyzer__  // which takes what the library allocates here for a leak
    benchmark::RegisterBenchmark(name, function)->Unit(benchmark::kMillisecond);
#endif
}

// Takes --pages=FILE out of the arguments.
std::string take_pages_option(std::vector<char*>& arguments) {
    constexpr std::string_view kOption = "--pages=";
    std::string path = IAA_BENCH_PAGES;
    std::erase_if(arguments, [&](const char* argument) {
        const std::string_view text = argument == nullptr ? std::string_view() : argument;
        if (!text.starts_with(kOption)) {
            return false;
        }
        path = text.substr(kOption.size());
        return true;
    });
    return path;
}

int run(std::vector<char*> arguments) {
    pages() = read_pages(take_pages_option(arguments));
    auto count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
        return EXIT_FAILURE;
    }
    for (const std::string name :
         {"own-fixed", "own-dynamic", "zlib-1-fixed", "zlib-1", "isal-0", "isal-1"}) {
        add("compress/" + name, [name](benchmark::State& state) { bench_compress(state, name); });
    }
    for (const std::string stream : {"own-fixed", "own-dynamic", "zlib-1"}) {
        for (const std::string decoder : {"own", "zlib", "isal"}) {
            add(fmt::format("decompress/{}/{}", stream, decoder),
                [decoder, stream](benchmark::State& state) {
                    bench_decompress(state, decoder, stream);
                });
        }
    }
    TableReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    reporter.print_table();
    return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "bench_deflate: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
