// SPDX-License-Identifier: GPL-2.0
// Routes over made-up machines: what holds for every one of them, and some in particular.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "route_map.h"
}

namespace {

struct Machine {
    std::vector<iaa_place> cpus;
    std::vector<iaa_map_device> devices;
};

class Routes {
  public:
    explicit Routes(Machine machine) : machine_(std::move(machine)), routes_(machine_.cpus.size()) {
        iaa_route_map(machine_.cpus.data(), machine_.cpus.size(), machine_.devices.data(),
                      machine_.devices.size(), routes_.data());
    }

    [[nodiscard]] const iaa_cpu_route& of(std::size_t cpu) const { return routes_[cpu]; }

    [[nodiscard]] std::size_t device_of(unsigned wq) const {
        for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
            const iaa_map_device& device = machine_.devices[i];
            if (wq >= device.first && wq < static_cast<unsigned>(device.first + device.count)) {
                return i;
            }
        }
        ADD_FAILURE() << "no device has work queue " << wq;
        return 0;
    }

    // The devices that are a CPU's own.
    [[nodiscard]] std::set<std::size_t> homes(std::size_t cpu) const {
        std::set<std::size_t> result;
        for (unsigned i = 0; i < routes_[cpu].homes; ++i) {
            result.insert(device_of(routes_[cpu].wq[i]));
        }
        return result;
    }

    [[nodiscard]] const Machine& machine() const { return machine_; }

  private:
    Machine machine_;
    std::vector<iaa_cpu_route> routes_;
};

void add_device(Machine* machine, int node, int package, unsigned wqs) {
    unsigned first = 0;
    if (!machine->devices.empty()) {
        first = machine->devices.back().first + machine->devices.back().count;
    }
    machine->devices.push_back({.at = {.node = node, .package = package, .group = 99},
                                .first = static_cast<u16>(first),
                                .count = static_cast<u16>(wqs)});
}

void add_cpus(Machine* machine, int node, int package, unsigned count) {
    machine->cpus.insert(machine->cpus.end(), count,
                         {.node = node, .package = package, .group = 99});
}

// What holds for every machine with a device.
void expect_sound(const Routes& routes) {
    const Machine& machine = routes.machine();
    std::vector<unsigned> load(machine.devices.size());
    unsigned total = 0;
    for (const iaa_map_device& device : machine.devices) total += device.count;

    for (std::size_t cpu = 0; cpu < machine.cpus.size(); ++cpu) {
        const iaa_cpu_route& route = routes.of(cpu);
        ASSERT_GE(route.homes, 1) << "CPU " << cpu << " has no work queue";
        ASSERT_LE(route.homes, route.count);
        // Nothing twice, and everything as far as it goes.
        const std::set<unsigned> distinct(route.wq, route.wq + route.count);
        ASSERT_EQ(distinct.size(), route.count);
        ASSERT_EQ(route.count, std::min<unsigned>(total, IAA_ROUTE_DEPTH));
        ASSERT_LT(*distinct.rbegin(), total);
        for (const std::size_t device : routes.homes(cpu)) ++load[device];
    }

    std::map<int, std::vector<unsigned>> loads;
    for (std::size_t i = 0; i < machine.devices.size(); ++i) {
        ASSERT_GE(load[i], 1U) << "device " << i << " is never used";
        loads[machine.devices[i].at.group].push_back(load[i]);
    }
    for (const auto& [group, values] : loads) {
        const auto [least, most] = std::ranges::minmax_element(values);
        EXPECT_LE(*most - *least, 1U) << "group " << group;
    }
    std::map<int, std::vector<std::size_t>> shares;
    for (std::size_t cpu = 0; cpu < machine.cpus.size(); ++cpu) {
        shares[machine.cpus[cpu].group].push_back(routes.homes(cpu).size());
    }
    for (const auto& [group, values] : shares) {
        const auto [least, most] = std::ranges::minmax_element(values);
        EXPECT_LE(*most - *least, 1U) << "group " << group;
    }
}

// Where every device has CPUs on its node, CPUs with a device there use no other.
void expect_near(const Routes& routes) {
    const Machine& machine = routes.machine();
    for (const iaa_map_device& device : machine.devices) {
        if (device.at.node < 0 ||
            std::ranges::none_of(
                machine.cpus, [&](const iaa_place& cpu) { return cpu.node == device.at.node; })) {
            return;
        }
    }
    for (std::size_t cpu = 0; cpu < machine.cpus.size(); ++cpu) {
        const int node = machine.cpus[cpu].node;
        const bool has_near = std::ranges::any_of(
            machine.devices, [&](const iaa_map_device& device) { return device.at.node == node; });
        for (const std::size_t home : routes.homes(cpu)) {
            if (has_near) {
                EXPECT_EQ(machine.devices[home].at.node, node) << "CPU " << cpu;
            }
        }
    }
}

TEST(RouteMap, NoDevice) {
    Machine machine;
    add_cpus(&machine, 0, 0, 4);
    const Routes routes(machine);
    for (std::size_t cpu = 0; cpu < 4; ++cpu) {
        EXPECT_EQ(routes.of(cpu).count, 0);
        EXPECT_EQ(routes.of(cpu).homes, 0);
    }
}

TEST(RouteMap, OneCpuUsesFourDevices) {
    Machine machine;
    add_cpus(&machine, 0, 0, 1);
    for (int i = 0; i < 4; ++i) add_device(&machine, 0, 0, 1);
    const Routes routes(machine);
    EXPECT_EQ(routes.homes(0), (std::set<std::size_t>{0, 1, 2, 3}));
    expect_sound(routes);
}

TEST(RouteMap, OneCpuUsesSixteenDevicesOfEightQueues) {
    Machine machine;
    add_cpus(&machine, 0, 0, 1);
    for (int i = 0; i < 16; ++i) add_device(&machine, 0, 0, 8);
    const Routes routes(machine);
    EXPECT_EQ(routes.homes(0).size(), 16U);
}

TEST(RouteMap, TwoCpusUseThreeDevices) {
    Machine machine;
    add_cpus(&machine, 0, 0, 2);
    for (int i = 0; i < 3; ++i) add_device(&machine, 0, 0, 1);
    expect_sound(Routes(machine));
}

TEST(RouteMap, AllQueuesOfADeviceAreUsed) {
    Machine machine;
    add_cpus(&machine, 0, 0, 8);
    add_device(&machine, 0, 0, 4);
    const Routes routes(machine);
    std::map<unsigned, int> first;
    for (std::size_t cpu = 0; cpu < 8; ++cpu) {
        EXPECT_EQ(routes.of(cpu).homes, 4);
        ++first[routes.of(cpu).wq[0]];
    }
    // Each queue is where two CPUs begin.
    EXPECT_EQ(first, (std::map<unsigned, int>{{0, 2}, {1, 2}, {2, 2}, {3, 2}}));
}

TEST(RouteMap, EachNodeItsOwnDevices) {
    Machine machine;
    for (int node = 0; node < 2; ++node) {
        add_cpus(&machine, node, node, 4);
        add_device(&machine, node, node, 1);
        add_device(&machine, node, node, 1);
    }
    const Routes routes(machine);
    expect_sound(routes);
    expect_near(routes);
    // Behind the own device, the other of the node comes before those of the other node.
    EXPECT_EQ(routes.of(0).wq[0], 0);
    EXPECT_EQ(routes.of(0).wq[1], 1);
    EXPECT_EQ(routes.of(7).wq[0], 3);
    EXPECT_EQ(routes.of(7).wq[1], 2);
}

TEST(RouteMap, NodeWithoutDeviceGoesToItsPackage) {
    Machine machine;
    add_cpus(&machine, 0, 0, 4);  // package 0 has two nodes, and the device is on one
    add_cpus(&machine, 1, 0, 4);
    add_cpus(&machine, 2, 1, 4);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 2, 1, 1);
    const Routes routes(machine);
    for (std::size_t cpu = 4; cpu < 8; ++cpu) {
        EXPECT_EQ(routes.homes(cpu), (std::set<std::size_t>{0})) << cpu;
    }
    for (std::size_t cpu = 8; cpu < 12; ++cpu) {
        EXPECT_EQ(routes.homes(cpu), (std::set<std::size_t>{1})) << cpu;
    }
}

TEST(RouteMap, DeviceOnNodeWithoutCpusIsUsed) {
    Machine machine;
    add_cpus(&machine, 0, 0, 4);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 1, -1, 1);
    const Routes routes(machine);
    expect_sound(routes);
}

TEST(RouteMap, ThreeNodesTwoDevices) {
    Machine machine;
    for (int node = 0; node < 3; ++node) add_cpus(&machine, node, node, 2);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 1, 1, 1);
    const Routes routes(machine);
    EXPECT_EQ(routes.homes(0), (std::set<std::size_t>{0}));
    EXPECT_EQ(routes.homes(2), (std::set<std::size_t>{1}));
    // The CPUs without a device near them do not all go to one.
    EXPECT_NE(routes.homes(4), routes.homes(5));
}

TEST(RouteMap, NothingKnownOfWhereAnythingIs) {
    Machine machine;
    add_cpus(&machine, -1, -1, 6);
    add_device(&machine, -1, -1, 2);
    add_device(&machine, -1, -1, 1);
    expect_sound(Routes(machine));
}

TEST(RouteMap, DevicesOfNoNodeBesideOthers) {
    Machine machine;
    add_cpus(&machine, 0, 0, 4);
    add_cpus(&machine, 1, 1, 4);
    add_device(&machine, -1, -1, 1);
    add_device(&machine, 1, 1, 1);
    expect_sound(Routes(machine));
}

Machine random_machine(unsigned seed) {
    std::mt19937 random(seed);
    const auto upto = [&](unsigned least, unsigned most) {
        return std::uniform_int_distribution<unsigned>(least, most)(random);
    };
    Machine machine;
    const unsigned packages = upto(1, 8);
    const unsigned nodes_each = upto(1, 4);
    const unsigned nodes = packages * nodes_each;
    for (unsigned node = 0; node < nodes; ++node) {
        // Some nodes have memory only.
        const unsigned cpus = upto(0, 3) == 0 ? 0 : upto(1, 64 / nodes_each);
        add_cpus(&machine, static_cast<int>(node), static_cast<int>(node / nodes_each), cpus);
    }
    if (machine.cpus.empty()) add_cpus(&machine, 0, 0, 1);
    // CPUs are not numbered by node everywhere.
    if (upto(0, 1) != 0) std::ranges::shuffle(machine.cpus, random);
    const unsigned devices = upto(1, 16);
    for (unsigned i = 0; i < devices; ++i) {
        const bool known = upto(0, 9) != 0;
        const unsigned node = upto(0, nodes - 1);
        const bool has_cpus = std::ranges::any_of(
            machine.cpus, [&](const iaa_place& cpu) { return cpu.node == static_cast<int>(node); });
        add_device(&machine, known ? static_cast<int>(node) : -1,
                   known && has_cpus ? static_cast<int>(node / nodes_each) : -1, upto(1, 8));
    }
    return machine;
}

TEST(RouteMap, RandomMachines) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Routes routes(random_machine(seed));
        expect_sound(routes);
        expect_near(routes);
        if (HasFailure()) break;
    }
}

}  // namespace
