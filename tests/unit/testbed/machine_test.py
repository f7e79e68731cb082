# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts/testbed/guest"))
import kernels  # noqa: E402
import machine  # noqa: E402
import options  # noqa: E402

KERNEL = kernels.Kernel("7.3.4", pathlib.Path("/boot/vmlinuz-7.3.4"))


def command(*words, accelerator="tcg"):
    return machine.command_line(options.parse([*words, "--", "true"]), KERNEL, accelerator)


def values(arguments, option):
    return [arguments[i + 1] for i, word in enumerate(arguments) if word == option]


class Machine(unittest.TestCase):
    def test_memory_is_shared_whatever_its_layout(self):
        for words in (
            (),
            ("--numa", "2"),
            ("--node", "cpus=0,memory=512M", "--node", "cpus=1", "--node", "memory=1G"),
        ):
            objects = values(command(*words), "-object")
            self.assertTrue(objects)
            for text in objects:
                self.assertIn("share=on", text)

    def test_the_node_without_memory_has_no_backend(self):
        nodes = values(command("--node", "cpus=0,memory=512M", "--node", "cpus=1"), "-numa")
        self.assertEqual(nodes, ["node,nodeid=0,memdev=mem0,cpus=0", "node,nodeid=1,cpus=1"])

    def test_devices_are_in_order_and_each_has_its_control_port(self):
        arguments = command("--devices", "3")
        functions = [
            json.loads(text) for text in values(arguments, "-device") if text.startswith("{")
        ]
        self.assertEqual([function["id"] for function in functions], ["iaa0", "iaa1", "iaa2"])
        addresses = [int(function["addr"], 16) for function in functions]
        self.assertEqual(addresses, sorted(set(addresses)))
        for index in range(3):
            self.assertIn(
                f"virtserialport,bus=ports.0,chardev=control{index},name=iaa.ctl.{index}",
                values(arguments, "-device"),
            )

    def test_all_devices_have_a_slot_that_is_free(self):
        functions = [
            json.loads(text)
            for text in values(command("--devices", "24"), "-device")
            if text.startswith("{")
        ]
        slots = {int(function["addr"], 16) for function in functions}
        self.assertEqual(len(slots), 24)
        self.assertGreater(min(slots), 3)  # file systems and ports
        self.assertLess(max(slots), 31)  # QEMU's own functions

    def test_a_devices_node_is_that_of_its_root_bus(self):
        arguments = command(
            "--numa", "2", "--device", "node=1", "--device", "node=1 --wqs 1", "--device", "node=0"
        )
        devices = values(arguments, "-device")
        self.assertEqual(len([text for text in devices if text.startswith("pxb-pcie")]), 2)
        self.assertTrue(
            any(text.startswith("pxb-pcie,id=node1,") and "numa_node=1" in text for text in devices)
        )
        functions = [json.loads(text) for text in devices if text.startswith("{")]
        ports = [text.split(",") for text in devices if text.startswith("pcie-root-port")]
        self.assertEqual(
            [port[1:3] for port in ports],
            [["id=port0", "bus=node1"], ["id=port1", "bus=node1"], ["id=port2", "bus=node0"]],
        )
        self.assertEqual([f["bus"] for f in functions], ["port0", "port1", "port2"])

    def test_a_panic_never_reboots_unasked(self):
        self.assertIn("-no-reboot", command())
        arguments = command("--reboots", "1")
        self.assertNotIn("-no-reboot", arguments)
        self.assertIn("panic=0", values(arguments, "-append")[0])

    def test_what_the_person_adds_comes_last(self):
        arguments = command(
            "--append", "a=1", "--append", "b=2 c", "--qemu-arg=-foo", "--qemu-arg", "bar"
        )
        self.assertEqual(arguments[-2:], ["-foo", "bar"])
        self.assertTrue(values(arguments, "-append")[0].endswith(" a=1 b=2 c"))

    def test_the_accelerator(self):
        self.assertIn("vendor=GenuineIntel", values(command(), "-cpu")[0])
        self.assertEqual(values(command(accelerator="kvm"), "-cpu"), ["host"])
        self.assertEqual(values(command(), "-accel"), ["tcg,thread=multi"])

    def test_counting_takes_one_thread(self):
        arguments = command("--smp", "1", "--count-instructions")
        self.assertEqual(values(arguments, "-accel"), ["tcg,thread=single"])
        self.assertEqual(values(arguments, "-icount"), ["shift=0,sleep=on"])
        self.assertNotIn("-icount", command("--smp", "1"))

    def test_the_iommu_stands_before_the_devices(self):
        arguments = command("--iommu", "--devices", "1")
        devices = values(arguments, "-device")
        self.assertTrue(devices[0].startswith("intel-iommu,"))
        self.assertIn("intel_iommu=on", values(arguments, "-append")[0])
        self.assertNotIn("iommu", " ".join(command("--devices", "1")))


if __name__ == "__main__":
    unittest.main()
