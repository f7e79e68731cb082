// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/control/client.h"
#include "device/control/server.h"
#include "device/model/iaa_device.h"
#include "device/model/log.h"
#include "device/model/profile.h"
#include "device/trace/trace.h"
#include "device/vfio_user/server.h"

namespace {

using iaa::device::Log;
using iaa::device::LogLevel;
using iaa::device::Profile;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

struct Settings {
    std::string socket;
    std::string control;
    std::string profile = "spr";
    std::uint32_t wqs = 8;
    std::uint32_t engines = 8;
    std::uint32_t groups = 4;
    std::uint32_t total_wq_size = 128;
    std::string trace;
    std::string log_level = "info";
    bool inline_execution = false;
    bool no_block_on_fault = false;
    bool no_interrupt_handles = false;
};

std::atomic<iaa::device::vfio_user::Server*> running_server{nullptr};

extern "C" void stop_server(int /*signal*/) {
    if (auto* server = running_server.load()) {
        server->stop();
    }
}

void stop_on_signals() {
    struct sigaction action{};
    action.sa_handler = stop_server;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        if (sigaction(signal, &action, nullptr) != 0) {
            throw std::system_error(errno, std::generic_category(), "sigaction");
        }
    }
}

Profile profile_of(const Settings& settings) {
    Profile profile = Profile::named(settings.profile);
    profile.wqs = settings.wqs;
    profile.engines = settings.engines;
    profile.groups = settings.groups;
    profile.total_wq_size = settings.total_wq_size;
    profile.block_on_fault = !settings.no_block_on_fault;
    profile.interrupt_handles = !settings.no_interrupt_handles;
    profile.check();
    return profile;
}

LogLevel log_level_of(const Settings& settings) {
    static const std::map<std::string, LogLevel> levels{{"error", LogLevel::kError},
                                                        {"warning", LogLevel::kWarning},
                                                        {"info", LogLevel::kInfo},
                                                        {"debug", LogLevel::kDebug}};
    return levels.at(settings.log_level);
}

int serve(const Settings& settings) {
    const Profile profile = profile_of(settings);
    Log log(log_level_of(settings));
    std::unique_ptr<iaa::device::TraceWriter> trace;
    if (!settings.trace.empty()) {
        trace = std::make_unique<iaa::device::TraceWriter>(settings.trace);
    }
    iaa::device::IaaDevice::Options options;
    options.inline_execution = settings.inline_execution;
    options.trace = trace.get();
    iaa::device::IaaDevice device(profile, log, options);

    iaa::device::vfio_user::ServerOptions server_options;
    // Why a client is sent away is not to be held back behind what it did before.
    server_options.log = [&log](std::string_view line) {
        const bool last = line.find("disconnecting") != std::string_view::npos;
        log.event(last ? "vfio-user disconnecting" : "vfio-user", "{}", line);
    };
    iaa::device::vfio_user::Server server(device, server_options);
    running_server = &server;
    stop_on_signals();
    server.listen(settings.socket);
    std::unique_ptr<iaa::device::control::Server> control;
    if (!settings.control.empty()) {
        control = std::make_unique<iaa::device::control::Server>(device, settings.control);
        fmt::print("control on {}\n", settings.control);
    }
    fmt::print("listening on {}\n", settings.socket);
    (void)std::fflush(stdout);
    server.run();
    running_server = nullptr;
    log.info("stopped by a signal");
    return 0;
}

void add_device_options(CLI::App& app, Settings& settings) {
    app.add_option("--socket", settings.socket,
                   "UNIX socket that QEMU's vfio-user-pci connects to");
    app.add_option("--control", settings.control, "UNIX socket for counters and faults");
    app.add_option("--profile", settings.profile, "Generation of the device")
        ->check(CLI::IsMember({"spr", "gnr"}))
        ->capture_default_str();
    app.add_option("--wqs", settings.wqs, "Number of work queues")
        ->check(CLI::Range(1U, Profile::kMaxWqs))
        ->capture_default_str();
    app.add_option("--engines", settings.engines, "Number of engines, each a thread")
        ->check(CLI::Range(1U, Profile::kMaxEngines))
        ->capture_default_str();
    app.add_option("--groups", settings.groups, "Number of groups")
        ->check(CLI::Range(1U, Profile::kMaxGroups))
        ->capture_default_str();
    app.add_option("--wq-total-size", settings.total_wq_size, "Entries that all work queues share")
        ->check(CLI::Range(1U, Profile::kMaxTotalWqSize))
        ->capture_default_str();
    app.add_option("--trace", settings.trace, "Record every descriptor in this file");
    app.add_option("--log-level", settings.log_level, "What goes to standard error")
        ->check(CLI::IsMember({"error", "warning", "info", "debug"}))
        ->capture_default_str();
    app.add_flag("--inline", settings.inline_execution,
                 "Carry out each descriptor before the store that completes it is answered");
    app.add_flag("--no-block-on-fault", settings.no_block_on_fault,
                 "Work queues cannot be set to block on a page fault");
    app.add_flag("--no-interrupt-handles", settings.no_interrupt_handles,
                 "Completion interrupts are named by MSI-X index, without REQUEST_INT_HANDLE");
}

int run(int argc, char** argv) {
    Settings settings;
    CLI::App app("iaa-device: a model of the Intel In-Memory Analytics Accelerator for QEMU");
    add_device_options(app, settings);

    std::string trace_file;
    CLI::App* replay = app.add_subcommand("replay", "Run a recorded trace again and compare");
    replay->add_option("file", trace_file, "What --trace has recorded")->required();

    std::vector<std::string> control_words;
    CLI::App* ctl = app.add_subcommand("ctl", "Talk to a running device's control socket");
    ctl->add_option("words", control_words, "Socket, then the command; \"help\" lists them")
        ->required();
    ctl->prefix_command();

    try {
        app.parse(argc, argv);
        if (!replay->parsed() && !ctl->parsed() && settings.socket.empty()) {
            throw CLI::RequiredError("--socket");
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kExitUsage;
    }
    if (replay->parsed()) {
        return iaa::device::replay(trace_file, std::cout);
    }
    if (ctl->parsed()) {
        return iaa::device::control::run_client(control_words);
    }
    return serve(settings);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "iaa-device: error: " << error.what() << '\n';
        return kExitFailure;
    }
}
