# SPDX-License-Identifier: GPL-2.0
"""What a guest is to look like: the command line of scripts/testbed/run."""

import argparse
import dataclasses
import os
import re
import shlex

MAX_NODES = 8
MAX_DEVICES = 24  # slots 4 to 27 of pcie.0
SIZE = re.compile(r"([1-9][0-9]*)([MG])")
USAGE = "scripts/testbed/run [OPTION]... -- CMD [ARG]..."

EPILOG = """\
exit status: the command's own, or
  121  the guest ended without giving an exit status (panic, unasked reboot, QEMU's end)
  122  an iaa-device ended in mid-run
  123  the kernel log holds a warning or a splat that --allow-splat does not excuse
  124  the deadline passed
  125  the guest could not be set up
A signal that ends the runner gives 128 plus its number.

Documentation/testing.rst has all of it."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A NUMA node: a set of CPUs ("0-1+4", may be empty) and a memory size in MiB (may be 0)."""

    cpus: str
    memory_mib: int


@dataclasses.dataclass(frozen=True)
class Device:
    """One iaa-device: its own options, QEMU's for its PCI function, and its NUMA node."""

    arguments: tuple[str, ...] = ()
    properties: tuple[tuple[str, object], ...] = ()
    node: int | None = None


@dataclasses.dataclass
class Options:
    """A run, checked."""

    command: list[str]
    kernel: str
    cpus: int
    memory_mib: int
    nodes: list[Node]
    devices: list[Device]
    iaa_device: str
    device_may_die: bool
    driver: str
    autoprobe: bool
    load: bool
    timeout: float
    append: str
    allowed_splats: list[str]
    trace: str | None
    log: str | None
    name: str
    environment: dict[str, str]
    qemu_arguments: list[str]
    accelerator: str
    count_instructions: bool
    iommu: bool
    reboots: int
    interactive: bool
    verbose: bool


class UsageError(Exception):
    """The command line asks for something that cannot be."""


class Parser(argparse.ArgumentParser):
    """argparse, but wrong usage is an exception like any other."""

    def error(self, message):
        raise UsageError(message)


def parse_size(text: str) -> int:
    """'512M' or '2G' in MiB."""
    match = SIZE.fullmatch(text)
    if not match:
        raise UsageError(f"'{text}' is not a size: a number followed by M or G")
    return int(match[1]) * (1024 if match[2] == "G" else 1)


def expand_cpus(text: str) -> list[int]:
    """'0-1+4' as [0, 1, 4]."""
    cpus: list[int] = []
    for part in text.split("+") if text else []:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"'{text}' is not a set of CPUs: such as 0-1 or 0-1+4")
        cpus.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return cpus


def parse_node(text: str) -> Node:
    """'cpus=0-1,memory=512M'; either may be left out."""
    cpus, memory = "", 0
    for field in text.split(","):
        key, _, value = field.partition("=")
        if key == "cpus":
            expand_cpus(value)
            cpus = value
        elif key == "memory":
            memory = parse_size(value)
        else:
            raise UsageError(f"--node {text}: '{field}' is neither cpus=SET nor memory=SIZE")
    if not cpus and not memory:
        raise UsageError(f"--node {text}: a node needs CPUs, memory or both")
    return Node(cpus, memory)


def parse_device(text: str) -> Device:
    """Options for iaa-device, with node=N and qemu:NAME=VALUE taken out."""
    arguments, properties, node = [], [], None
    for word in shlex.split(text):
        if match := re.fullmatch(r"node=(\d+)", word):
            node = int(match[1])
        elif match := re.fullmatch(r"qemu:([a-z0-9-]+)=(.+)", word):
            value: object = match[2]
            if match[2] in ("true", "false", "on", "off"):
                value = match[2] in ("true", "on")
            elif match[2].isdigit():
                value = int(match[2])
            properties.append((match[1], value))
        else:
            arguments.append(word)
    return Device(tuple(arguments), tuple(properties), node)


def build_parser() -> Parser:
    parser = Parser(
        prog="run",
        usage=USAGE,
        description="Runs a command in a guest and passes its streams and exit status on.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    machine = parser.add_argument_group("machine")
    machine.add_argument("--kernel", default="7.3", metavar="VERSION", help="6.12 or 7.3 (default)")
    machine.add_argument("--smp", type=int, metavar="N", help="CPUs (default 2)")
    machine.add_argument("--memory", metavar="SIZE", help="such as 512M or 2G (default 1G)")
    machine.add_argument("--numa", type=int, metavar="N", help="split CPUs and memory into N nodes")
    machine.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="SPEC",
        help="one NUMA node: cpus=0-1+4,memory=512M; either may be left out; repeatable",
    )
    machine.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="WORDS",
        help="add to the kernel's command line",
    )
    machine.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto")
    machine.add_argument(
        "--count-instructions",
        action="store_true",
        help="the guest's TSC advances by one an instruction; for --smp 1, without KVM",
    )
    machine.add_argument(
        "--iommu", action="store_true", help="an IOMMU that translates, flushed at each unmapping"
    )
    machine.add_argument(
        "--qemu-arg", action="append", default=[], metavar="ARG", help="one more argument for QEMU"
    )
    device = parser.add_argument_group("devices")
    device.add_argument("--devices", type=int, metavar="N", help="N devices without options")
    device.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="OPTS",
        help="one device with options for iaa-device; node=N and qemu:NAME=VALUE are also taken",
    )
    device.add_argument(
        "--iaa-device",
        default="build/harness/device/iaa-device",
        metavar="PATH",
        help="the model to run",
    )
    device.add_argument("--trace", metavar="DIR", help="record each device's descriptors in DIR")
    device.add_argument(
        "--device-may-die", action="store_true", help="go on when an iaa-device ends in mid-run"
    )
    guest = parser.add_argument_group("guest")
    guest.add_argument("--driver", choices=("ours", "in-tree", "none"), default="ours")
    guest.add_argument(
        "--autoprobe", action="store_true", help="let idxd configure and bind by itself as it loads"
    )
    guest.add_argument(
        "--no-load", action="store_true", help="leave it to the command to load idxd and the driver"
    )
    guest.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the command",
    )
    guest.add_argument(
        "--reboots", type=int, default=0, metavar="N", help="reboots that the command may make"
    )
    guest.add_argument("--interactive", action="store_true", help="a shell on this terminal")
    verdict = parser.add_argument_group("verdict and records")
    verdict.add_argument("--timeout", type=float, metavar="SECONDS", help="deadline (default 180)")
    verdict.add_argument(
        "--allow-splat",
        action="append",
        default=[],
        metavar="NAME",
        help="excuse a splat that scripts/testbed/known-splats names",
    )
    verdict.add_argument("--log", metavar="FILE", help="also keep the guest's kernel log as FILE")
    verdict.add_argument("--name", default="run", help="names the folder below build/vm-logs")
    verdict.add_argument("--verbose", action="store_true", help="say what the runner does")
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    return parser


def even_nodes(count: int, cpus: int, memory_mib: int) -> list[Node]:
    """CPUs and memory split evenly; the first nodes get what is left over."""
    if not 1 <= count <= MAX_NODES:
        raise UsageError(f"--numa {count}: 1 to {MAX_NODES} nodes")
    if cpus < count:
        raise UsageError(f"--numa {count} with {cpus} CPUs: name CPU-less nodes with --node")
    nodes, first = [], 0
    for index in range(count):
        share = cpus // count + (index < cpus % count)
        memory = memory_mib // count + (memory_mib % count if index == 0 else 0)
        last = first + share - 1
        nodes.append(Node(f"{first}-{last}" if last > first else str(first), memory))
        first += share
    return nodes


def check_nodes(nodes: list[Node], cpus: int) -> None:
    owned = [cpu for node in nodes for cpu in expand_cpus(node.cpus)]
    if sorted(owned) != list(range(cpus)):
        raise UsageError(
            f"the nodes must hold each of the CPUs 0 to {cpus - 1} once, not {sorted(owned)}"
        )
    if not any(node.cpus and node.memory_mib for node in nodes):
        raise UsageError("one node at least needs both CPUs and memory")
    if len(nodes) > MAX_NODES:
        raise UsageError(f"{len(nodes)} nodes: at most {MAX_NODES}")


def parse(arguments: list[str]) -> Options:
    given = build_parser().parse_args(arguments)
    nodes = [parse_node(text) for text in given.node]
    if nodes and (given.numa is not None or given.memory):
        raise UsageError("--node says where the memory is: not together with --numa or --memory")
    if nodes:
        cpus = (
            sum(len(expand_cpus(node.cpus)) for node in nodes) if given.smp is None else given.smp
        )
        memory = sum(node.memory_mib for node in nodes)
    else:
        cpus = max(2, given.numa or 0) if given.smp is None else given.smp
        memory = parse_size(given.memory or "1G")
        if given.numa is not None:
            nodes = even_nodes(given.numa, cpus, memory)
    if not 1 <= cpus <= 64:
        raise UsageError(f"--smp {cpus}: 1 to 64 CPUs")
    if memory < 256:
        raise UsageError(f"{memory} MiB of memory: the guest needs 256")
    if nodes:
        check_nodes(nodes, cpus)

    devices = [Device()] * (given.devices or 0) + [parse_device(text) for text in given.device]
    if given.devices is not None and given.devices < 0 or len(devices) > MAX_DEVICES:
        raise UsageError(f"{len(devices)} devices: at most {MAX_DEVICES}")
    for device in devices:
        if device.node is not None and device.node >= len(nodes):
            raise UsageError(f"node={device.node}: the guest has {len(nodes) or 'no'} NUMA nodes")

    environment = {}
    for text in given.env:
        key, equals, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            raise UsageError(f"--env {text}: '{key}' is no name for a variable")
        if equals:
            environment[key] = value
        elif key in os.environ:
            environment[key] = os.environ[key]

    if not given.command and not given.interactive:
        raise UsageError("no command: say what to run after --")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", given.name):
        raise UsageError(f"--name {given.name}: letters, digits, '.', '_' and '-' only")
    if given.count_instructions and (cpus != 1 or given.accel == "kvm"):
        raise UsageError("--count-instructions goes with --smp 1, and not with --accel kvm")
    timeout = given.timeout
    if timeout is None:
        timeout = 0 if given.interactive else 180
    elif timeout <= 0:
        raise UsageError("--timeout takes a number of seconds above 0")
    if given.reboots < 0:
        raise UsageError("--reboots takes a number from 0 on")

    return Options(
        command=given.command or ["bash", "-l"],
        kernel=given.kernel,
        cpus=cpus,
        memory_mib=memory,
        nodes=nodes,
        devices=devices,
        iaa_device=given.iaa_device,
        device_may_die=given.device_may_die,
        driver=given.driver,
        autoprobe=given.autoprobe,
        load=not given.no_load,
        timeout=timeout,
        append=" ".join(given.append),
        allowed_splats=given.allow_splat,
        trace=given.trace,
        log=given.log,
        name=given.name,
        environment=environment,
        qemu_arguments=given.qemu_arg,
        accelerator="tcg" if given.count_instructions else given.accel,
        count_instructions=given.count_instructions,
        iommu=given.iommu,
        reboots=given.reboots,
        interactive=given.interactive,
        verbose=given.verbose,
    )
