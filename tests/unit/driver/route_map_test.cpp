// SPDX-License-Identifier: GPL-2.0
// Routes over made-up machines: what holds for every one of them, and some in particular.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
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

int distance(const iaa_place& a, const iaa_place& b) {
    if (a.node >= 0 && a.node == b.node) return 0;
    if (a.package >= 0 && a.package == b.package) return 1;
    return 2;
}

// What holds for every machine with a CPU and a device, in words where it does not.
class Judge {
  public:
    explicit Judge(const Routes& routes)
        : routes_(routes), cpus_(routes.machine().cpus), devices_(routes.machine().devices) {
        for (const iaa_map_device& device : devices_) queues_ += device.count;
        for (const iaa_place& cpu : cpus_) ++groups_[cpu.group].cpus;
        for (const iaa_map_device& device : devices_) ++groups_[device.at.group].devices;
        for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
            homes_.push_back(routes.homes(cpu));
        }
    }

    [[nodiscard]] std::string problem() const {
        for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
            for (const auto check : {&Judge::broken_route, &Judge::bad_order, &Judge::far_home}) {
                if (const std::string what = (this->*check)(cpu); !what.empty()) {
                    return "CPU " + std::to_string(cpu) + ": " + what;
                }
            }
        }
        for (const auto check : {&Judge::unused, &Judge::uneven_inside, &Judge::uneven_groups}) {
            if (std::string what = (this->*check)(); !what.empty()) {
                return what;
            }
        }
        return "";
    }

  private:
    struct Group {
        std::size_t cpus = 0;
        std::size_t devices = 0;
    };

    // Every CPU has a work queue of its own, nothing twice, and everything as far as it goes.
    [[nodiscard]] std::string broken_route(std::size_t cpu) const {
        const iaa_cpu_route& route = routes_.of(cpu);
        if (route.homes < 1) return "has no work queue";
        if (route.homes > route.count) return "has more work queues of its own than it has";
        if (route.count != std::min<unsigned>(queues_, IAA_ROUTE_DEPTH)) return "lacks some";
        const std::set<unsigned> distinct(route.wq, route.wq + route.count);
        if (distinct.size() != route.count) return "has one twice";
        if (*distinct.rbegin() >= queues_) return "has one that does not exist";
        unsigned own = 0;
        for (const std::size_t device : homes_[cpu]) own += devices_[device].count;
        if (route.homes != std::min<unsigned>(own, IAA_ROUTE_DEPTH)) {
            return "leaves work queues of its own devices out";
        }
        return "";
    }

    // Behind the own ones come those of the same group, then the near ones, then the far ones.
    [[nodiscard]] std::string bad_order(std::size_t cpu) const {
        const iaa_cpu_route& route = routes_.of(cpu);
        int last = -1;
        for (unsigned i = route.homes; i < route.count; ++i) {
            const iaa_map_device& device = devices_[routes_.device_of(route.wq[i])];
            const int far =
                device.at.group == cpus_[cpu].group ? -1 : distance(cpus_[cpu], device.at);
            if (far < last) return "prefers what is far";
            last = far;
        }
        return "";
    }

    // Whether there is a CPU so near: the others may be anybody's.
    [[nodiscard]] bool has_cpu(const iaa_map_device& device, int far) const {
        return std::ranges::any_of(
            cpus_, [&](const iaa_place& cpu) { return distance(cpu, device.at) <= far; });
    }

    // The own devices are those of the node, else of the package; beside them may be such as have
    // no CPU of their own so near.
    [[nodiscard]] std::string far_home(std::size_t cpu) const {
        int nearest = 2;
        for (const iaa_map_device& device : devices_) {
            nearest = std::min(nearest, distance(cpus_[cpu], device.at));
        }
        for (const std::size_t home : homes_[cpu]) {
            const iaa_map_device& device = devices_[home];
            const int far = distance(cpus_[cpu], device.at);
            if (far > nearest && has_cpu(device, far - 1)) {
                return "uses device " + std::to_string(home) + ", which is nearer to others";
            }
            if (far == 2 && nearest < 2 && has_cpu(device, 1)) {
                return "uses device " + std::to_string(home) + " of another package";
            }
        }
        return "";
    }

    [[nodiscard]] std::string unused() const {
        std::vector<bool> used(devices_.size());
        for (const auto& homes : homes_) {
            for (const std::size_t device : homes) used[device] = true;
        }
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            // A CPU has only so many.
            const Group& group = groups_.at(devices_[i].at.group);
            if (!used[i] && group.devices <= group.cpus * IAA_ROUTE_DEPTH) {
                return "device " + std::to_string(i) + " is never used";
            }
        }
        return "";
    }

    // Inside a group all devices have as many CPUs, and all CPUs as many devices, or one more.
    [[nodiscard]] std::string uneven_inside() const {
        std::vector<std::size_t> users(devices_.size());
        std::map<int, std::vector<std::size_t>> loads;
        for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
            if (groups_.at(cpus_[cpu].group).devices >
                groups_.at(cpus_[cpu].group).cpus * IAA_ROUTE_DEPTH) {
                return "";
            }
            for (const std::size_t device : homes_[cpu]) ++users[device];
            loads[cpus_[cpu].group].push_back(homes_[cpu].size());
        }
        for (const auto& [group, values] : loads) {
            const auto [least, most] = std::ranges::minmax_element(values);
            if (*most - *least > 1) return "CPUs of group " + std::to_string(group) + " are uneven";
        }
        loads.clear();
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            loads[devices_[i].at.group].push_back(users[i]);
        }
        for (const auto& [group, values] : loads) {
            const auto [least, most] = std::ranges::minmax_element(values);
            if (*most - *least > 1) {
                return "devices of group " + std::to_string(group) + " are uneven";
            }
        }
        return "";
    }

    // A group's name is a device in it; others were in it from the start, or had to go somewhere.
    [[nodiscard]] bool joined(std::size_t device) const {
        const iaa_place& at = devices_[device].at;
        return at.group != static_cast<int>(device) &&
               distance(at, devices_[static_cast<std::size_t>(at.group)].at) != 0;
    }

    // What could go to several groups as near went to where it had the most to gain.
    [[nodiscard]] std::string uneven_groups() const {
        std::map<int, Group> before = groups_;
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            if (joined(i)) --before[devices_[i].at.group].devices;
        }
        const auto far = [&](const iaa_place& at, int group) {
            return distance(at, devices_[static_cast<std::size_t>(group)].at);
        };
        for (const auto& [other, there] : groups_) {
            for (std::size_t i = 0; i < cpus_.size(); ++i) {
                const int group = cpus_[i].group;
                if (group == other || far(cpus_[i], group) != far(cpus_[i], other)) continue;
                const Group& here = before[group];
                if ((here.cpus - 1) * before[other].devices > there.cpus * here.devices) {
                    return "CPU " + std::to_string(i) + " had better gone to another group";
                }
            }
            for (std::size_t i = 0; i < devices_.size(); ++i) {
                const int group = devices_[i].at.group;
                if (group == other || !joined(i)) continue;
                if (far(devices_[i].at, group) != far(devices_[i].at, other)) continue;
                const Group& here = groups_.at(group);
                if (here.cpus * there.devices < there.cpus * (here.devices - 1)) {
                    return "device " + std::to_string(i) + " had better gone to another group";
                }
            }
        }
        return "";
    }

    const Routes& routes_;
    const std::vector<iaa_place>& cpus_;
    const std::vector<iaa_map_device>& devices_;
    unsigned queues_ = 0;
    std::map<int, Group> groups_;
    std::vector<std::set<std::size_t>> homes_;
};

void expect_sound(const Routes& routes) {
    EXPECT_EQ(Judge(routes).problem(), "");
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

TEST(RouteMap, DevicesOfANodeWithoutCpusGoToWhereTheyAreNeeded) {
    Machine machine;
    add_cpus(&machine, 0, 0, 4);
    add_cpus(&machine, 1, 1, 8);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 1, 1, 1);
    for (int i = 0; i < 4; ++i) add_device(&machine, 2, -1, 1);
    const Routes routes(machine);
    expect_sound(routes);
    std::set<std::size_t> first;
    for (std::size_t cpu = 0; cpu < 4; ++cpu) first.merge(routes.homes(cpu));
    EXPECT_EQ(first.size(), 2U);
}

TEST(RouteMap, SubNumaNodesOfAPackage) {
    Machine machine;
    // Devices on two of four nodes of one package, on one of the other's, on none of the third's.
    for (int node = 0; node < 12; ++node) add_cpus(&machine, node, node / 4, 4);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 2, 0, 1);
    add_device(&machine, 5, 1, 1);
    const Routes routes(machine);
    expect_sound(routes);
    std::vector<unsigned> users(3);
    for (std::size_t cpu = 0; cpu < 32; ++cpu) {
        ASSERT_EQ(routes.homes(cpu).size(), 1U);
        const std::size_t home = *routes.homes(cpu).begin();
        EXPECT_EQ(home == 2, cpu >= 16) << "CPU " << cpu << " leaves its package";
        ++users[home];
    }
    EXPECT_EQ(users, (std::vector<unsigned>{8, 8, 16}));
}

TEST(RouteMap, PackagesKnownAndNoNodeShared) {
    Machine machine;
    add_cpus(&machine, -1, 0, 4);
    add_cpus(&machine, -1, 1, 4);
    add_device(&machine, -1, 1, 1);
    add_device(&machine, 7, 0, 1);
    const Routes routes(machine);
    expect_sound(routes);
    EXPECT_EQ(routes.homes(0), (std::set<std::size_t>{1}));
    EXPECT_EQ(routes.homes(4), (std::set<std::size_t>{0}));
}

TEST(RouteMap, CpuOfUnknownPlaceBesideOthers) {
    Machine machine;
    add_cpus(&machine, 0, 0, 2);
    add_cpus(&machine, 1, 1, 1);
    add_cpus(&machine, -1, -1, 1);
    add_device(&machine, 0, 0, 1);
    add_device(&machine, 1, 1, 2);
    const Routes routes(machine);
    expect_sound(routes);
    EXPECT_EQ(routes.homes(3), (std::set<std::size_t>{1}));
}

TEST(RouteMap, EveryQueueOfADeviceTakesTurns) {
    Machine machine;
    add_cpus(&machine, 0, 0, 2);
    add_device(&machine, 0, 0, 3);
    add_device(&machine, 0, 0, 1);
    const Routes routes(machine);
    expect_sound(routes);
    EXPECT_EQ(routes.of(0).homes, 3);
    EXPECT_EQ(routes.of(1).homes, 1);
}

TEST(RouteMap, MoreDevicesThanACpuTakes) {
    Machine machine;
    add_cpus(&machine, 0, 0, 1);
    for (int i = 0; i < IAA_ROUTE_DEPTH + 5; ++i) add_device(&machine, 0, 0, 1);
    const Routes routes(machine);
    expect_sound(routes);
    EXPECT_EQ(routes.homes(0).size(), static_cast<std::size_t>(IAA_ROUTE_DEPTH));
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

// Up to 8 packages with 64 CPUs and 16 devices each.
Machine random_machine(unsigned seed) {
    std::mt19937 random(seed);
    const auto upto = [&](unsigned least, unsigned most) {
        return std::uniform_int_distribution<unsigned>(least, most)(random);
    };
    Machine machine;
    const unsigned packages = upto(1, 8);
    const unsigned nodes_each = upto(1, 4);
    const unsigned nodes = packages * nodes_each;
    // One of so many CPUs, and of so many devices, is nobody knows where.
    const unsigned lost_cpus = upto(0, 2) == 0 ? 8 : 1U << 30;
    const unsigned lost_devices = upto(0, 2) == 0 ? 4 : 1U << 30;
    for (unsigned node = 0; node < nodes; ++node) {
        // Some nodes have memory only.
        const unsigned cpus = upto(0, 3) == 0 ? 0 : upto(1, 64 / nodes_each);
        for (unsigned i = 0; i < cpus; ++i) {
            const int package = static_cast<int>(node / nodes_each);
            const bool lost = upto(0, lost_cpus) == 1;
            add_cpus(&machine, lost ? -1 : static_cast<int>(node),
                     lost && upto(0, 1) != 0 ? -1 : package, 1);
        }
    }
    if (machine.cpus.empty()) add_cpus(&machine, 0, 0, 1);
    // CPUs are not numbered by node everywhere.
    if (upto(0, 1) != 0) std::ranges::shuffle(machine.cpus, random);
    const unsigned devices = upto(1, upto(0, 3) == 0 ? 16 * packages : 16);
    for (unsigned i = 0; i < devices; ++i) {
        const bool known = upto(0, lost_devices) != 1;
        const unsigned node = upto(0, nodes - 1);
        const bool has_cpus = std::ranges::any_of(
            machine.cpus, [&](const iaa_place& cpu) { return cpu.node == static_cast<int>(node); });
        add_device(&machine, known ? static_cast<int>(node) : -1,
                   known && has_cpus ? static_cast<int>(node / nodes_each) : -1, upto(1, 8));
    }
    return machine;
}

TEST(RouteMap, RandomMachines) {
    for (unsigned seed = 0; seed < 1000; ++seed) {
        const Routes routes(random_machine(seed));
        ASSERT_EQ(Judge(routes).problem(), "") << "seed " << seed;
    }
}

// All machines of up to three CPUs and three devices, each anywhere: on nodes 0 and 1 of package 0,
// on node 2 of package 1, in package 0 or 1 without a node, on a node without CPUs, nobody knows
// where.
TEST(RouteMap, AllSmallMachines) {
    using Place = std::pair<int, int>;  // node and package
    constexpr std::array<Place, 7> kPlaces{
        {{0, 0}, {1, 0}, {2, 1}, {-1, 0}, {-1, 1}, {-1, -1}, {3, -1}}};
    constexpr unsigned kCpuPlaces = 6;
    constexpr unsigned kDevicePlaces = 14;  // each with one work queue or two
    const auto power = [](unsigned base, unsigned exponent) {
        unsigned result = 1;
        while (exponent-- > 0) result *= base;
        return result;
    };
    unsigned machines = 0;
    for (unsigned cpus = 1; cpus <= 3; ++cpus) {
        for (unsigned devices = 1; devices <= 3; ++devices) {
            const unsigned places = power(kCpuPlaces, cpus);
            for (unsigned n = 0; n < places * power(kDevicePlaces, devices); ++n) {
                Machine machine;
                unsigned rest = n;
                for (unsigned i = 0; i < cpus; ++i, rest /= kCpuPlaces) {
                    const auto [node, package] = kPlaces.at(rest % kCpuPlaces);
                    add_cpus(&machine, node, package, 1);
                }
                for (unsigned i = 0; i < devices; ++i, rest /= kDevicePlaces) {
                    const auto [node, package] = kPlaces.at(rest % kDevicePlaces / 2);
                    add_device(&machine, node, package, 1 + rest % 2);
                }
                ++machines;
                const Routes routes(machine);
                ASSERT_EQ(Judge(routes).problem(), "")
                    << cpus << " CPUs, " << devices << " devices, number " << n;
            }
        }
    }
    EXPECT_EQ(machines, (6U + 36 + 216) * (14 + 196 + 2744));
}

}  // namespace
