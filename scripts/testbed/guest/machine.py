# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line for a set of options."""

import dataclasses
import json

from kernels import Kernel
from options import Options, expand_cpus

# Slots of pcie.0: QEMU's own functions are at 0 and 31, what the testbed needs below these.
FIRST_DEVICE_SLOT = 4
# Bus numbers between one node's root bus and the next.
BUS_STEP = 16

# Files in the run's folder, which is QEMU's working directory: short names keep socket paths short.
CONSOLE_LOG = "console.log"
ROOT_SOCKET = "root.vhost"
HOST_SOCKET = "host.vhost"
MONITOR_SOCKET = "monitor"

# Ports of the guest's virtio-serial bus, each a socket that the runner listens on.
STREAMS = ("stdin", "stdout", "stderr", "status")
TERMINAL = "terminal"


def device_socket(index: int) -> str:
    return f"device-{index}.vfio"


def control_socket(index: int) -> str:
    return f"device-{index}.control"


def kernel_arguments(options: Options) -> str:
    words = [
        "console=ttyS0",
        "root=root",
        "rootfstype=virtiofs",
        "ro",
        "init=/testbed/guest-init",
        # A panic must not become a reboot; the runner sees it in the log.
        "panic=-1" if not options.reboots else "panic=0",
        "loglevel=7",
        # Emulated CPUs have no use for them, and they cost boot time.
        "mitigations=off",
        "random.trust_cpu=on",
        # On a busy host an emulated CPU stands still for seconds: none of the kernel's fault.
        "no_timer_check",
        "tsc=nowatchdog",
        "watchdog_thresh=20",
        "rcupdate.rcu_cpu_stall_timeout=60",
    ]
    if options.iommu:
        words += ["intel_iommu=on", "iommu.passthrough=0", "iommu.strict=1"]
    return " ".join(words + ([options.append] if options.append else []))


def memory(options: Options) -> list[str]:
    """Shared memory, as vhost-user and vfio-user need it, in as many parts as there are nodes."""
    if not options.nodes:
        backend = f"memory-backend-memfd,id=mem,size={options.memory_mib}M,share=on"
        return ["-object", backend, "-machine", "memory-backend=mem"]
    arguments = []
    for index, node in enumerate(options.nodes):
        words = [f"node,nodeid={index}"]
        if node.memory_mib:
            arguments += [
                "-object",
                f"memory-backend-memfd,id=mem{index},size={node.memory_mib}M,share=on",
            ]
            words.append(f"memdev=mem{index}")
        words += [f"cpus={cpu}" for cpu in expand_cpus(node.cpus)]
        arguments += ["-numa", ",".join(words)]
    return arguments


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a device is: QEMU's bus and slot, and the path below /sys/devices (a pattern)."""

    bus: str
    slot: int
    sysfs: str
    node: int | None = None
    port: int = 0


def places(options: Options) -> list[Place]:
    """A slot of pcie.0, or a root port on its node's root bus: only bridges may sit on those."""
    found, next_slot, ports = [], FIRST_DEVICE_SLOT, {}
    for index, device in enumerate(options.devices):
        if device.node is None:
            found.append(Place("pcie.0", next_slot, f"pci0000:00/0000:00:{next_slot:02x}.0"))
            next_slot += 1
        else:
            port = ports.get(device.node, 0)
            ports[device.node] = port + 1
            root = f"0000:{root_bus_number(device.node):02x}"
            found.append(
                Place(
                    f"port{index}",
                    0,
                    f"pci{root}/{root}:{port:02x}.0/0000:??:00.0",
                    device.node,
                    port,
                )
            )
    return found


def root_bus_number(node: int) -> int:
    return BUS_STEP * (node + 1)


def devices(options: Options) -> list[str]:
    """The model's functions, each where its place is, and their control ports."""
    arguments, roots = [], set()
    for index, (device, place) in enumerate(zip(options.devices, places(options), strict=True)):
        if place.node is not None:
            root = f"node{place.node}"
            if root not in roots:
                roots.add(root)
                number = root_bus_number(place.node)
                bridge = f"pxb-pcie,id={root},bus=pcie.0,bus_nr={number},numa_node={place.node}"
                arguments += ["-device", bridge]
            port = (
                f"pcie-root-port,id={place.bus},bus={root},chassis={index + 1},addr={place.port:#x}"
            )
            arguments += ["-device", port]
        function = {
            "driver": "vfio-user-pci",
            "id": f"iaa{index}",
            "bus": place.bus,
            "addr": f"{place.slot:#x}",
            "socket": {"type": "unix", "path": device_socket(index)},
            **dict(device.properties),
        }
        arguments += ["-device", json.dumps(function)]
        arguments += [
            "-chardev",
            f"socket,id=control{index},path={control_socket(index)},reconnect-ms=500",
        ]
        arguments += [
            "-device",
            f"virtserialport,bus=ports.0,chardev=control{index},name=iaa.ctl.{index}",
        ]
    return arguments


def iommu(options: Options) -> list[str]:
    """In front of the devices behind it. With caching mode the guest tells of new mappings too, which
    QEMU has to pass on to a device that is not its own."""
    return ["-device", "intel-iommu,caching-mode=on"] if options.iommu else []


def streams(options: Options) -> list[str]:
    arguments = ["-device", "virtio-serial-pci,id=ports,bus=pcie.0,addr=0x3,max_ports=31"]
    if options.interactive:
        arguments += ["-chardev", f"socket,id={TERMINAL},path={TERMINAL}"]
        arguments += ["-device", f"virtconsole,bus=ports.0,nr=0,chardev={TERMINAL}"]
    # Port 0 is the console's by definition.
    for number, name in enumerate(STREAMS, 1):
        arguments += ["-chardev", f"socket,id={name},path={name}"]
        arguments += [
            "-device",
            f"virtserialport,bus=ports.0,nr={number},chardev={name},name=testbed.{name}",
        ]
    return arguments


def command_line(options: Options, kernel: Kernel, accelerator: str) -> list[str]:
    if accelerator == "kvm":
        processor = ["-accel", "kvm", "-cpu", "host"]
    else:
        # "max" says AMD, which takes other paths in DMA mapping than the device's own hosts.
        processor = ["-cpu", "max,vendor=GenuineIntel,la57=off"]
        if options.count_instructions:
            # A guest's nanosecond is an instruction; idle, it waits as long as the host does.
            processor += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=on"]
        else:
            processor += ["-accel", "tcg,thread=multi"]
    arguments = [
        "qemu-system-x86_64",
        "-name", options.name,
        "-nodefaults",
        "-no-user-config",
        "-display", "none",
        *processor,
        "-machine", "q35,smbus=off,sata=off,vmport=off",
        "-smp", str(options.cpus),
        "-m", f"{options.memory_mib}M",
        *memory(options),
        "-kernel", str(kernel.image),
        "-append", kernel_arguments(options),
        *iommu(options),
        "-chardev", f"file,id=console,path={CONSOLE_LOG},append=on",
        "-serial", "chardev:console",
        "-qmp", f"unix:{MONITOR_SOCKET},server=on,wait=off",
        "-chardev", f"socket,id=root,path={ROOT_SOCKET}",
        "-device", "vhost-user-fs-pci,chardev=root,tag=root,bus=pcie.0,addr=0x1",
        "-chardev", f"socket,id=host,path={HOST_SOCKET}",
        "-device", "vhost-user-fs-pci,chardev=host,tag=host,bus=pcie.0,addr=0x2",
        *streams(options),
        *devices(options),
    ]  # fmt: skip
    if not options.reboots:
        arguments.append("-no-reboot")
    return arguments + options.qemu_arguments
