# SPDX-License-Identifier: GPL-2.0
"""The reading of kernel logs: what is a report, where it ends, and which name excuses it."""

import pathlib
import sys
import tempfile
import unittest

TESTBED = pathlib.Path(__file__).resolve().parents[3] / "scripts/testbed"
sys.path.insert(0, str(TESTBED / "guest"))
import kernel_log  # noqa: E402
from failure import SetupError  # noqa: E402

WARNING = """\
[   10.000001] ------------[ cut here ]------------
[   10.000002] refcount_t: addition on 0; use-after-free.
[   10.000003] WARNING: CPU: 1 PID: 77 at lib/refcount.c:25 refcount_warn_saturate+0x74/0x110
[   10.000004] Modules linked in: iaa_crypto idxd
[   10.000005] CPU: 1 UID: 0 PID: 77 Comm: accel-config Not tainted 7.3.4
[   10.000006] RIP: 0010:refcount_warn_saturate+0x74/0x110
[   10.000007] Call Trace:
[   10.000008]  <TASK>
[   10.000009]  crypto_register_alg+0x10/0x20
[   10.000010]  </TASK>
[   10.000011] ---[ end trace 0000000000000000 ]---
"""
OOPS = """\
[   11.000001] BUG: kernel NULL pointer dereference, address: 0000000000000010
[   11.000002] #PF: supervisor read access in kernel mode
[   11.000003] PGD 0 P4D 0
[   11.000004] Oops: Oops: 0000 [#1] SMP NOPTI
[   11.000005] CPU: 0 UID: 0 PID: 9 Comm: rmmod Not tainted 7.3.4
[   11.000006] RIP: 0010:idxd_wq_disable_cleanup+0x20/0x90 [idxd]
[   11.000007] Call Trace:
[   11.000008]  idxd_device_drv_remove+0x40/0x80 [idxd]
[   11.000009] ---[ end trace 0000000000000000 ]---
"""
HUNG = """\
[  123.842818] INFO: task accel-config:258 blocked for more than 61 seconds.
[  123.845413]       Tainted: G           OE      6.12.117+deb13-amd64 #1 Debian 6.12.117-1
[  123.845709] "echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
[  123.845974] task:accel-config    state:D stack:0     pid:258   tgid:258   flags:0x00000002
[  123.850000] Call Trace:
[  123.850426]  <TASK>
[  123.850829]  __schedule+0x4ea/0xbe0
[  123.852076]  idxd_cmd_exec+0x123/0x260 [idxd]
[  123.860000]  </TASK>
"""
CALM = """\
[    0.000000] Linux version 7.3.4+deb13-amd64
[    0.100000] ACPI: Early table checksum verification disabled
[    1.500000] Warning: unable to open an initial console.
[    2.000000] movdir64b: loading out-of-tree module taints kernel.
[    3.000000] alg: extra crypto tests enabled.  This is intended for developer use only.
[    3.100000] DMA-API: preallocated 65536 debug entries
[    4.000000] idxd 0000:00:08.0: Unable to turn on user SVA feature.
"""

# Two CPUs at once: one oopses, the other tells of errors.
TORN = OOPS.replace(
    "[   11.000003] PGD",
    "[   11.000002] cmp-rec: 00000000: 0a 0d 00 00\n[   11.000002] cmp-rec: 00000010: 00 00\n"
    "[   11.000003] PGD",
).replace("[   11.000006]", "[   11.000005] cmp-rec: 00000000: 0a 0d\n[   11.000006]")

OOPS_LINES = [kernel_log.strip(line) for line in OOPS.splitlines()]

# One line each that has to be seen whatever is around it.
SIGNS = [
    "WARNING: drivers/dma/idxd/init.c:12 at idxd_probe+0x1/0x2, CPU#1: modprobe/12",
    "WARNING: possible circular locking dependency detected",
    "BUG: KASAN: slab-use-after-free in foo+0x1/0x2",
    "BUG: KFENCE: out-of-bounds read in foo+0x1/0x2",
    "BUG: scheduling while atomic: swapper/0/0/0x00000002",
    "BUG: sleeping function called from invalid context at mm/slab.h:1",
    "BUG kmalloc-64 (Not tainted): Poison overwritten",
    "kernel BUG at mm/zswap.c:1033!",
    "Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
    "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] PREEMPT SMP",
    "Oops: invalid opcode: 0000 [#1] SMP NOPTI",
    "invalid opcode: 0000 [#1] PREEMPT SMP NOPTI",
    "Kernel panic - not syncing: Fatal exception",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [cat:99]",
    "INFO: task accel-config:120 blocked for more than 60 seconds.",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "refcount_t: underflow; use-after-free.",
    "list_del corruption, ffff888100000000->next is LIST_POISON1 (dead000000000100)",
    "list_add corruption. prev->next should be next (1), but was 2. (prev=3).",
    "UBSAN: shift-out-of-bounds in lib/zlib_inflate/inftrees.c:228:16",
    "alg: self-tests for deflate using deflate-iaa failed (rc=-19)",
    "alg: acomp: compression failed on test 1 for deflate-iaa: ret=22",
    "DMA-API: idxd 0000:00:08.0: device driver frees DMA memory with different size",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "memhog invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "kswapd0: page allocation failure: order:0, mode:0x800(GFP_NOWAIT), nodemask=(null)",
    "DMAR: DRHD: handling fault status reg 3",
    "DMAR: [DMA Write NO_PASID] Request device [00:04.0] fault addr 0xfff00000 [fault reason 0x05]",
    "unchecked MSR access error: RDMSR from 0x123",
    "sysfs: cannot create duplicate filename '/bus/dsa/drivers/crypto'",
    "failed to validate module [iaa_crypto] BTF: -22",
]


def known(text: str) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".known") as file:
        file.write(text)
        file.flush()
        return kernel_log.read_known(pathlib.Path(file.name))


class FindSplats(unittest.TestCase):
    def test_a_calm_log_has_none(self):
        self.assertEqual(kernel_log.find_splats(CALM), [])

    def test_every_sign_is_seen(self):
        for sign in SIGNS:
            with self.subTest(sign):
                found = kernel_log.find_splats(f"{CALM}[    5.000000] {sign}\n{CALM}")
                self.assertEqual([splat.lines for splat in found], [[sign]])
                self.assertEqual(found[0].number, CALM.count("\n") + 1)

    def test_a_sign_is_seen_without_a_timestamp_and_with_a_caller(self):
        for prefix in (
            "",
            "[    5.000000][  T123] ",
            "[    5.000000][    C1] ",
            "<4>[    5.000000] ",
        ):
            with self.subTest(prefix):
                self.assertEqual(
                    len(kernel_log.find_splats(f"{prefix}WARNING: CPU: 0 PID: 1 at a.c:1\n")), 1
                )

    def test_a_warning_is_one_report_from_cut_to_end(self):
        found = kernel_log.find_splats(CALM + WARNING + CALM)
        self.assertEqual(len(found), 1)
        self.assertEqual(len(found[0].lines), WARNING.count("\n"))
        self.assertEqual(found[0].title, "refcount_t: addition on 0; use-after-free.")

    def test_an_oops_is_one_report(self):
        found = kernel_log.find_splats(CALM + OOPS + CALM)
        self.assertEqual(len(found), 1)
        self.assertEqual(len(found[0].lines), OOPS.count("\n"))

    def test_a_report_that_others_talk_into_is_one_report(self):
        found = kernel_log.find_splats(CALM + TORN + CALM)
        self.assertEqual([splat.lines for splat in found], [OOPS_LINES])

    def test_a_report_soon_after_a_torn_one_is_another(self):
        later = OOPS.replace("[   11.0000", "[   11.2000").replace(
            "BUG: kernel NULL pointer dereference, address: 0000000000000010",
            "Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#2]",
        )
        open_end = TORN.replace("[   11.000009] ---[ end trace 0000000000000000 ]---\n", "")
        found = kernel_log.find_splats(open_end + "[   11.100000] cmp-rec: 00\n" + later)
        self.assertEqual(len(found), 2)

    def test_what_is_said_long_after_a_report_is_not_in_it(self):
        found = kernel_log.find_splats(
            "[ 1.0] UBSAN: shift-out-of-bounds in a.c:1:1\n[ 1.1] eth0: up\n[ 2.0]  RIP: 0010:foo\n"
        )
        self.assertEqual(len(found[0].lines), 1)

    def test_a_hung_task_is_one_report(self):
        found = kernel_log.find_splats(CALM + HUNG + CALM)
        self.assertEqual([len(splat.lines) for splat in found], [HUNG.count("\n")])

    def test_reports_next_to_each_other_stay_apart(self):
        lines = "[ 12.000000] alg: self-tests for deflate using deflate-iaa failed (rc=-22)\n"
        self.assertEqual(len(kernel_log.find_splats(WARNING + OOPS + WARNING + lines + OOPS)), 5)

    def test_one_sign_does_not_swallow_another_inside_a_report(self):
        cut = WARNING.splitlines(keepends=True)
        text = (
            "".join(cut[:7]) + "[ 10.5] BUG: KASAN: double-free in foo+0x1/0x2\n" + "".join(cut[7:])
        )
        titles = [splat.title for splat in kernel_log.find_splats(text)]
        self.assertIn("BUG: KASAN: double-free in foo+0x1/0x2", titles)

    def test_what_comes_after_a_report_is_not_in_it(self):
        found = kernel_log.find_splats(
            "[ 1.0] UBSAN: array-index-out-of-bounds in a.c:1:1\n" + CALM
        )
        self.assertEqual(found[0].lines, ["UBSAN: array-index-out-of-bounds in a.c:1:1"])


class Judge(unittest.TestCase):
    RULE = """\
[rule]
kernel = 7.3.*
driver = in-tree
match = WARNING: [\\s\\S]*crypto_register_alg
why = a reason
"""

    def judge(self, text, release="7.3.4", allowed=("rule",), driver="in-tree"):
        return kernel_log.judge(text, release, known(self.RULE), list(allowed), driver)

    def test_an_allowed_name_excuses_what_it_matches_and_nothing_else(self):
        verdicts = [splat.excused_by for splat in self.judge(WARNING + OOPS)]
        self.assertEqual(verdicts, ["rule", None])

    def test_a_name_that_is_not_allowed_excuses_nothing(self):
        self.assertIsNone(self.judge(WARNING, allowed=())[0].excused_by)

    def test_kernel_and_driver_have_to_fit(self):
        self.assertIsNone(self.judge(WARNING, release="6.12.117")[0].excused_by)
        self.assertIsNone(self.judge(WARNING, driver="ours")[0].excused_by)

    def test_an_unknown_name_is_an_error(self):
        with self.assertRaisesRegex(SetupError, "nothing.*rule"):
            self.judge(WARNING, allowed=("nothing",))


class KnownFile(unittest.TestCase):
    def test_the_projects_own_file_is_good(self):
        names = kernel_log.read_known(TESTBED / "known-splats")
        self.assertIn("crypto-reregistered", names)
        for rule in names.values():
            self.assertTrue(rule.why)

    def test_the_projects_own_rules_match_what_they_are_for(self):
        names = kernel_log.read_known(TESTBED / "known-splats")
        for name, text in (("crypto-reregistered", WARNING), ("idxd-removed-while-enabled", OOPS)):
            splat = kernel_log.find_splats(text)[0]
            self.assertTrue(names[name].covers(splat, "7.3.4+deb13-amd64", "in-tree"), name)
        splat = kernel_log.find_splats(OOPS)[0]
        self.assertFalse(names["crypto-reregistered"].covers(splat, "7.3.4+deb13-amd64", "in-tree"))

    def test_bad_files_are_errors(self):
        for text in (
            "[a]\nkernel = 7.3.*\ndriver = any\nmatch = x\n",
            "[a]\nkernel =\ndriver = any\nmatch = x\nwhy = y\n",
            "[a]\nkernel = 7.3.*\ndriver = other\nmatch = x\nwhy = y\n",
            "[a]\nkernel = 7.3.*\ndriver = any\nmatch = (\nwhy = y\n",
            "kernel = 7.3.*\n",
            "[a]\nkernel = *\ndriver = any\nmatch = x\nwhy = y\n[a]\nkernel = *\n",
        ):
            with self.subTest(text), self.assertRaises(SetupError):
                known(text)


if __name__ == "__main__":
    unittest.main()
