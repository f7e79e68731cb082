# SPDX-License-Identifier: GPL-2.0
"""The guest runner's command line."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts/testbed/guest"))
import options  # noqa: E402


def parse(*words, command=("true",)):
    return options.parse([*words, "--", *command])


class Options(unittest.TestCase):
    def test_defaults(self):
        got = parse()
        self.assertEqual(
            (got.kernel, got.cpus, got.memory_mib, got.nodes, got.devices), ("7.3", 2, 1024, [], [])
        )
        self.assertEqual(
            (got.driver, got.autoprobe, got.timeout, got.reboots), ("ours", False, 180, 0)
        )

    def test_the_command_keeps_its_own_options(self):
        self.assertEqual(
            parse(command=("ls", "--kernel", "-l", "a b")).command, ["ls", "--kernel", "-l", "a b"]
        )

    def test_even_nodes_hold_every_cpu_and_all_memory(self):
        nodes = parse("--numa", "3", "--smp", "8", "--memory", "1000M").nodes
        self.assertEqual([node.cpus for node in nodes], ["0-2", "3-5", "6-7"])
        self.assertEqual(sum(node.memory_mib for node in nodes), 1000)

    def test_nodes_without_cpus_or_memory(self):
        got = parse("--node", "cpus=0+2,memory=512M", "--node", "cpus=1", "--node", "memory=1G")
        self.assertEqual(
            [(n.cpus, n.memory_mib) for n in got.nodes], [("0+2", 512), ("1", 0), ("", 1024)]
        )
        self.assertEqual((got.cpus, got.memory_mib), (3, 1536))

    def test_device_options(self):
        got = parse(
            "--numa",
            "2",
            "--devices",
            "1",
            "--device",
            "--profile gnr node=1 qemu:x-foo=on --wqs 4",
        )
        self.assertEqual(len(got.devices), 2)
        self.assertEqual(got.devices[1].arguments, ("--profile", "gnr", "--wqs", "4"))
        self.assertEqual((got.devices[1].node, got.devices[1].properties), (1, (("x-foo", True),)))

    def test_environment(self):
        self.assertEqual(
            parse("--env", "A=b c=d", "--env", "SURELY_NOT_SET").environment, {"A": "b c=d"}
        )

    def test_interactive_needs_no_command_and_no_deadline(self):
        got = options.parse(["--interactive"])
        self.assertEqual((got.command, got.timeout), (["bash", "-l"], 0))

    def test_counting_is_for_the_emulator(self):
        self.assertEqual(parse("--smp", "1", "--count-instructions").accelerator, "tcg")
        self.assertEqual(parse("--smp", "1").accelerator, "auto")

    def test_what_cannot_be_is_an_error_that_names_it(self):
        for words, message in (
            (("--kernl", "7.3"), "--kernl"),
            (("--memory", "12"), "not a size"),
            (("--memory", "128M"), "256"),
            (("--smp", "0"), "CPUs"),
            (("--smp", "65"), "CPUs"),
            (("--numa", "3"), None),
            (("--numa", "0"), "nodes"),
            (("--numa", "9", "--smp", "9"), "nodes"),
            (("--numa", "4", "--smp", "2"), "CPU-less"),
            (("--node", "cpus=0", "--node", "memory=1G"), "both CPUs and memory"),
            (("--node", "cpus=0,memory=1G", "--node", "cpus=0"), "once"),
            (("--node", "cpus=1-0,memory=1G"), "set of CPUs"),
            (("--node", "speed=1"), "speed=1"),
            (("--node", "cpus=0,memory=1G", "--memory", "1G"), "--memory"),
            (("--devices", "-1"), "devices"),
            (("--devices", "25"), "at most"),
            (("--device", "node=0"), "no NUMA nodes"),
            (("--numa", "2", "--device", "node=2"), "2 NUMA nodes"),
            (("--timeout", "0"), "--timeout"),
            (("--reboots", "-1"), "--reboots"),
            (("--env", "1=2"), "--env"),
            (("--name", "a/b"), "--name"),
            (("--driver", "other"), "other"),
            (("--count-instructions",), "--smp 1"),
            (("--smp", "1", "--count-instructions", "--accel", "kvm"), "--accel kvm"),
        ):
            with self.subTest(words):
                if message is None:
                    self.assertEqual(parse(*words).cpus, 3)
                    continue
                with self.assertRaisesRegex(options.UsageError, message):
                    parse(*words)
        with self.assertRaisesRegex(options.UsageError, "no command"):
            options.parse(["--kernel", "7.3"])


if __name__ == "__main__":
    unittest.main()
