// SPDX-License-Identifier: GPL-2.0
// Fills memory with pages that it can make again, has them swapped out, reads them back and
// compares every byte. Reports key=value lines; exit status 0: every page was right.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cgroup.h"
#include "page_source.h"
#include "region.h"

namespace memhog {
namespace {

struct Options {
    std::size_t megabytes = 64;
    std::uint64_t seed = 1;
    std::vector<std::string> data;
    unsigned random_percent = 2;
    unsigned threads = 1;
    unsigned passes = 1;
    bool page_out = false;
    bool pause = false;
    std::string cgroup;
    std::size_t limit_megabytes = 0;
    unsigned deadline_seconds = 600;
};

using Clock = std::chrono::steady_clock;

std::int64_t since_ms(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

/// Runs work(part, first, count) on each of `threads` equal parts of the pages.
template <typename Work>
void on_parts(std::size_t pages, unsigned threads, const Work& work) {
    std::vector<std::exception_ptr> errors(threads);
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads; ++i) {
        const std::size_t first = pages * i / threads;
        const std::size_t end = pages * (i + 1) / threads;
        running.emplace_back([&work, &error = errors[i], i, first, end] {
            try {
                work(i, first, end - first);
            } catch (...) {
                error = std::current_exception();
            }
        });
    }
    running.clear();
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
}

struct Comparison {
    std::size_t compared = 0;
    std::size_t bad = 0;
    std::size_t first_bad = 0;
    std::size_t first_bad_offset = 0;
};

Comparison compare(const Region& region, const PageSource& source, std::size_t first,
                   std::size_t count) {
    Comparison result;
    Page want{};
    for (std::size_t number = first; number < first + count; ++number) {
        source.fill(number, want);
        const auto got = region.page(number);
        ++result.compared;
        if (std::memcmp(got.data(), want.data(), kPageSize) == 0) {
            continue;
        }
        if (result.bad++ == 0) {
            result.first_bad = number;
            result.first_bad_offset = static_cast<std::size_t>(
                std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin());
        }
    }
    return result;
}

/// What is not out yet is asked for again: reclaim may skip pages that it cannot lock at once.
void push_out(const Region& region, const Options& options) {
    const auto start = Clock::now();
    for (int round = 0; round < 20; ++round) {
        // In steps, so that the deadline holds.
        constexpr std::size_t kStep = 256;
        for (std::size_t done = 0; done < region.pages(); done += kStep) {
            if (since_ms(start) > std::int64_t{1000} * options.deadline_seconds) {
                throw std::runtime_error("the pages were not out by the deadline");
            }
            region.page_out(done, std::min(kStep, region.pages() - done));
        }
        if (region.swapped() == region.pages()) {
            break;
        }
    }
}

int run(const Options& options) {
    const PageSource source(options.seed, options.data, options.random_percent);
    std::optional<Cgroup> cgroup;
    if (!options.cgroup.empty()) {
        cgroup.emplace(options.cgroup, std::uint64_t{options.limit_megabytes} << 20U);
    }
    const Region region((options.megabytes << 20U) / kPageSize);
    std::size_t bad = 0;

    std::cout << fmt::format("pages={}\n", region.pages());
    for (unsigned pass = 1; pass <= options.passes; ++pass) {
        auto start = Clock::now();
        // One thread: with two, each page that leaves costs an interrupt to the other's CPU, to
        // forget it, which takes emulated CPUs ten times as long as all the rest.
        for (std::size_t number = 0; number < region.pages(); ++number) {
            source.fill(number, region.page(number));
        }
        if (options.page_out) {
            push_out(region, options);
        }
        std::cout << fmt::format("pass={}\nswapped={}\nout_ms={}\n", pass, region.swapped(),
                                 since_ms(start));
        if (options.pause) {
            std::cout << "state=out\n";
        }
        std::cout.flush();
        if (options.pause) {
            std::string line;
            std::getline(std::cin, line);
        }

        start = Clock::now();
        std::vector<Comparison> parts(options.threads);
        on_parts(region.pages(), options.threads,
                 [&](unsigned part, std::size_t first, std::size_t count) {
                     parts[part] = compare(region, source, first, count);
                 });
        Comparison total;
        for (const Comparison& part : parts) {
            if (part.bad != 0 && total.bad == 0) {
                total.first_bad = part.first_bad;
                total.first_bad_offset = part.first_bad_offset;
            }
            total.compared += part.compared;
            total.bad += part.bad;
        }
        std::cout << fmt::format("compared={}\nbad={}\nin_ms={}\n", total.compared, total.bad,
                                 since_ms(start));
        if (total.bad != 0) {
            std::cout << fmt::format("first_bad=page {} offset {}\n", total.first_bad,
                                     total.first_bad_offset);
        }
        std::cout.flush();
        bad += total.bad;
    }
    return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace memhog

int main(int argc, char** argv) try {
    memhog::Options options;
    CLI::App app{"Swaps pages out and in, and compares every byte"};
    app.add_option("--mb", options.megabytes, "memory to fill")->check(CLI::Range(1, 65536));
    app.add_option("--seed", options.seed, "other pages for another number");
    app.add_option("--data", options.data, "files to take most pages from");
    app.add_option("--random-percent", options.random_percent, "pages that do not compress")
        ->check(CLI::Range(0, 80));
    app.add_option("--threads", options.threads, "threads that read the pages back")
        ->check(CLI::Range(1, 64));
    app.add_option("--passes", options.passes, "how often to do it all")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--page-out", options.page_out, "force all pages out with MADV_PAGEOUT");
    app.add_flag("--pause", options.pause, "when pages are out, wait for a line on stdin");
    CLI::Option* limit = app.add_option("--limit-mb", options.limit_megabytes, "memory.max");
    app.add_option("--cgroup", options.cgroup, "memory control group to make and to live in")
        ->needs(limit);
    app.add_option("--deadline", options.deadline_seconds, "seconds for forcing pages out");
    CLI11_PARSE(app, argc, argv);
    return memhog::run(options);
} catch (const std::exception& error) {
    std::cerr << "memhog: " << error.what() << "\n";
    return 2;
}
