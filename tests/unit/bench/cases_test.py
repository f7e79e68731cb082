# SPDX-License-Identifier: GPL-2.0
"""What is measured."""

import unittest

import sample  # noqa: F401  finds the modules
from cases import DRIVERS, KERNELS, SOFTWARE, Case, Guest, cases_of, plan


class Cases(unittest.TestCase):
    def test_both_drivers_have_the_same_cases(self):
        ours, in_tree = (
            [case for case in cases_of(Guest("7.3", driver, True)) if not case.software]
            for driver in DRIVERS
        )
        self.assertEqual(ours, in_tree)
        for case in (
            Case("compress", "sync", True),
            Case("compress", "sync", False),
            Case("decompress", "sync"),
            Case("compress", "async_irq", True),
            Case("compress", "async_irq", False),
            Case("decompress", "async_irq"),
        ):
            self.assertIn(case, ours)
            self.assertIn(Case(case.op, case.mode, case.verify, src=2), ours)

    def test_software_is_measured_once_for_each_kernel(self):
        for kernel in KERNELS:
            found = [
                case.software
                for driver in DRIVERS
                for iommu in (False, True)
                for case in cases_of(Guest(kernel, driver, iommu))
                if case.software
            ]
            self.assertEqual(sorted(found), sorted(2 * SOFTWARE))

    def test_names_tell_cases_apart(self):
        cases = cases_of(Guest("7.3", "in-tree", False))
        for words in ([case.name for case in cases], [case.text for case in cases]):
            self.assertEqual(len(set(words)), len(cases))

    def test_the_plan_enters_each_mode_once_and_before_its_cases(self):
        cases = cases_of(Guest("7.3", "in-tree", False))
        lines, files = plan(cases, "/x/symbols")
        modes = [line for line in lines if line.startswith("mode")]
        self.assertEqual(
            modes, ["mode sync 1", "mode sync 0", "mode async_irq 1", "mode async_irq 0"]
        )
        mode = None
        by_name = {case.name: case for case in cases}
        for line in lines:
            word, *rest = line.split()
            if word == "mode":
                mode = (rest[0], rest[1] == "1")
            elif word == "case":
                case = by_name.pop(rest[0])
                self.assertEqual(mode, (case.mode, case.verify) if case.mode else None)
        self.assertEqual(by_name, {})
        # Sleeping is taken apart always, the rest when asked for; each file within its own mode.
        self.assertEqual(len(files), 2)
        self.assertTrue(all("async_irq" in name for names in files.values() for name in names))
        lines, files = plan(cases, "/x/symbols", True)
        self.assertEqual(sorted(sum(files.values(), [])), sorted(case.name for case in cases))
        self.assertEqual([line for line in lines if "symbols" in line], [f"symbols {f}" for f in files])


if __name__ == "__main__":
    unittest.main()
