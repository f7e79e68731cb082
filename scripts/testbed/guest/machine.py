# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line for a set of options."""

import json

from kernels import Kernel
from options import Options, expand_cpus

# Slots of pcie.0: QEMU's own functions are at 0 and 31, what the testbed needs below these.
FIRST_DEVICE_SLOT = 8
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
        # Without -no-reboot's reach, a panic must not become a reboot: the runner sees it in the log.
        "panic=-1" if not options.reboots else "panic=0",
        "loglevel=7",
        # Emulated CPUs have no use for them, and they cost boot time.
        "mitigations=off",
        "random.trust_cpu=on",
    ]
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
            arguments += ["-object", f"memory-backend-memfd,id=mem{index},size={node.memory_mib}M,share=on"]
            words.append(f"memdev=mem{index}")
        words += [f"cpus={cpu}" for cpu in expand_cpus(node.cpus)]
        arguments += ["-numa", ",".join(words)]
    return arguments


def devices(options: Options) -> list[str]:
    """The model's functions, behind a root bus of the node where one is named, and their control ports."""
    arguments, next_slot, buses = [], {}, set()
    for index, device in enumerate(options.devices):
        bus, first = "pcie.0", FIRST_DEVICE_SLOT
        if device.node is not None:
            bus, first = f"node{device.node}", 0
            if bus not in buses:
                buses.add(bus)
                number = BUS_STEP * (device.node + 1)
                root_bus = f"pxb-pcie,id={bus},bus=pcie.0,bus_nr={number},numa_node={device.node}"
                arguments += ["-device", root_bus]
        slot = next_slot.get(bus, first)
        next_slot[bus] = slot + 1
        function = {
            "driver": "vfio-user-pci",
            "id": f"iaa{index}",
            "bus": bus,
            "addr": f"{slot:#x}",
            "socket": {"type": "unix", "path": device_socket(index)},
            **dict(device.properties),
        }
        arguments += ["-device", json.dumps(function)]
        arguments += ["-chardev", f"socket,id=control{index},path={control_socket(index)},reconnect-ms=500"]
        arguments += ["-device", f"virtserialport,bus=ports.0,chardev=control{index},name=iaa.ctl.{index}"]
    return arguments


def streams(options: Options) -> list[str]:
    arguments = ["-device", "virtio-serial-pci,id=ports,bus=pcie.0,addr=0x3,max_ports=31"]
    if options.interactive:
        arguments += ["-chardev", f"socket,id={TERMINAL},path={TERMINAL}"]
        arguments += ["-device", f"virtconsole,bus=ports.0,nr=0,chardev={TERMINAL}"]
    # Port 0 is the console's by definition.
    for number, name in enumerate(STREAMS, 1):
        arguments += ["-chardev", f"socket,id={name},path={name}"]
        arguments += ["-device", f"virtserialport,bus=ports.0,nr={number},chardev={name},name=testbed.{name}"]
    return arguments


def command_line(options: Options, kernel: Kernel, accelerator: str) -> list[str]:
    if accelerator == "kvm":
        processor = ["-accel", "kvm", "-cpu", "host"]
    else:
        # Vendor: "max" says AMD, which takes other paths in DMA mapping than the device's own hosts.
        processor = ["-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel,la57=off"]
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
