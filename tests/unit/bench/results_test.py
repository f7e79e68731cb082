# SPDX-License-Identifier: GPL-2.0
"""From what is said to figures and verdicts."""

import json
import unittest

from sample import IN_TREE, OURS, SYNC, counter_says, guest_says, result

import results
from cases import OPERATIONS, Case, Guest

ASYNC = Case("compress", "async_irq")
KALLSYMS = """\
ffffffff81000000 T _text
ffffffff81000100 t schedule
ffffffff81000200 T asm_common_interrupt
ffffffff81000300 D data
ffffffffc0000000 t iaa_request\t[iaa_crypto]
ffffffffc0000100 t idxd_wq_thread\t[idxd]
"""


def measured(case, operations, guest=OURS, total=None, **more):
    """The results of a guest that had one case."""
    total = sum(raw for raw, _, _ in operations) + OPERATIONS if total is None else total
    said = guest_says(case, 1, total) + "@@bench done\n"
    return results.results_of(guest, [case], said, counter_says(1, operations, **more))[0]


class Figures(unittest.TestCase):
    def test_median_of_what_is_net_and_folded(self):
        operations = [(5800, 1400, 900)] * (OPERATIONS - 12) + [(9800, 1400, 4900)] * 12
        one = measured(SYNC, operations)
        self.assertEqual((one.figure, one.median, one.minimum, one.maximum), (900, 900, 900, 4900))
        self.assertEqual((one.emulated, one.unfolded), (1400, 4400))
        self.assertEqual((one.algorithm, one.compressed), ("some-alg", 1000))
        self.assertFalse(one.by_software)

    def test_software_is_a_mean(self):
        case = Case("compress", software="lz4")
        operations = [(40000, 0, 40000)] * (OPERATIONS // 2) + [(60000, 0, 60000)] * (OPERATIONS // 2)
        one = measured(case, operations)
        self.assertEqual(one.figure, 50000)
        self.assertFalse(one.by_software)

    def test_a_driver_without_a_descriptor_was_served_by_software(self):
        self.assertTrue(measured(SYNC, [(900000, 0, 900000)] * OPERATIONS).by_software)

    def test_two_counters_that_do_not_agree_are_not_believed(self):
        operations = [(5800, 1400, 900)] * OPERATIONS
        for total in (5790 * OPERATIONS, 5810 * OPERATIONS):
            with self.assertRaisesRegex(results.Broken, "TSC"):
                measured(SYNC, operations, total=total)
        # The time asleep is in the TSC only.
        self.assertEqual(measured(ASYNC, operations, total=10**6 * OPERATIONS).figure, 900)

    def test_what_is_missing_is_no_figure(self):
        operations = [(5800, 1400, 900)] * OPERATIONS
        with self.assertRaisesRegex(results.Broken, "511 of 512"):
            measured(SYNC, operations[1:])
        with self.assertRaisesRegex(results.Broken, "of 512"):
            measured(SYNC, operations, whole=False)
        with self.assertRaisesRegex(results.Broken, "nothing of 512"):
            results.results_of(OURS, [SYNC], guest_says(SYNC, 2, 0) + "@@bench done\n", "")
        with self.assertRaisesRegex(results.Broken, "says nothing of"):
            results.results_of(OURS, [SYNC], "@@bench done\n", "")
        with self.assertRaisesRegex(results.Broken, "plan's end"):
            results.results_of(OURS, [SYNC], guest_says(SYNC, 1, 0), "")

    def test_why_there_is_no_figure(self):
        said = guest_says(SYNC, 1, 0, "page 0: the operation fails (-5)") + "@@bench done\n"
        one = results.results_of(OURS, [SYNC], said, "")[0]
        self.assertEqual(one.error, "page 0: the operation fails (-5)")
        said = "@@bench mode async_irq 0 refused Operation not supported\n@@bench done\n"
        one = results.results_of(OURS, [ASYNC], said + guest_says(ASYNC, 1, 0), "")[0]
        self.assertIn("async_irq is refused: Operation not supported", one.error)

    def test_other_lines_of_the_guest_do_not_matter(self):
        said, refused, done = results.parse_guest(
            "   sync_mode: sync\n@@bench mode sync 1\n"
            + guest_says(SYNC, 7, 5)
            + "enabled 1 wq(s) out of 1\n@@bench done\n"
        )
        self.assertEqual(
            (said[SYNC.name]["number"], said[SYNC.name]["error"], refused, done), ("7", "", {}, True)
        )

    def test_a_damaged_counter_file_is_an_error_that_names_the_line(self):
        for text in ("op 1 2 3\n", "case 1\nop 1 2\n", "case 1\nop 1 2 x\n", "case 1\nend 2\n", "what\n"):
            with self.subTest(text), self.assertRaisesRegex(results.Broken, "line"):
                results.parse_counts(text)


class Places(unittest.TestCase):
    def test_functions(self):
        found = results.functions(
            {
                0xFFFFFFFF81000100: (2, 0),
                0xFFFFFFFF81000104: (6, 1),
                0xFFFFFFFFC0000010: (5, 8),
                0x1000: (1, 9),
            },
            results.Symbols(KALLSYMS),
        )
        self.assertEqual(
            found, {"schedule": (8, 2), "iaa_request [iaa_crypto]": (5, 0), "?": (1, 0)}
        )

    def test_phases(self):
        symbols = results.Symbols(KALLSYMS)
        addresses = {
            0xFFFFFFFFC0000000: (100, 0),
            0xFFFFFFFF81000100: (1, 100),
            0xFFFFFFFF81000200: (1, 400),
            0xFFFFFFFFC0000100: (498, 450),
        }
        found = results.phases(addresses, symbols)
        self.assertEqual(list(found.values()), [100, 300, 50, 150])
        self.assertEqual(sum(found.values()), 600)
        addresses[0xFFFFFFFF81000200] = (1, 50)
        with self.assertRaisesRegex(results.Broken, "asleep"):
            results.phases(addresses, symbols)


class Limits(unittest.TestCase):
    def bars(self, *found):
        return [
            (bar.what, bar.limit, bar.ratio and round(bar.ratio, 2), bar.holds)
            for bar in results.bars_of(found)
        ]

    def test_linear_beside_in_tree(self):
        self.assertEqual(
            self.bars(result(OURS, SYNC, 600), result(IN_TREE, SYNC, 1000)),
            [("in-tree", 0.6, 0.6, True)],
        )
        self.assertEqual(
            self.bars(result(OURS, SYNC, 601), result(IN_TREE, SYNC, 1000)),
            [("in-tree", 0.6, 0.6, False)],
        )

    def test_an_iommu_has_a_limit_of_its_own(self):
        ours, in_tree = (Guest("7.3", driver, True) for driver in ("ours", "in-tree"))
        self.assertEqual(
            self.bars(result(ours, SYNC, 350), result(in_tree, SYNC, 1000)),
            [("in-tree", 0.35, 0.35, True)],
        )
        # The in-tree driver without one is no measure of it.
        self.assertEqual(self.bars(result(ours, SYNC, 350), result(IN_TREE, SYNC, 1000)), [])

    def test_where_the_caller_sleeps_ours_costs_no_more(self):
        found = result(OURS, ASYNC, 1001), result(IN_TREE, ASYNC, 1000)
        self.assertEqual(self.bars(*found), [("in-tree", 1.0, 1.0, False)])

    def test_two_entries_beside_one(self):
        two, three = (Case("compress", "sync", src=n) for n in (2, 3))
        found = [result(OURS, SYNC, 1000), result(OURS, two, 1151), result(OURS, three, 9000)]
        self.assertEqual(self.bars(*found), [("linear", 1.15, 1.15, False)])
        self.assertEqual(self.bars(*found, result(IN_TREE, two, 10**6))[0][0], "linear")

    def test_kernels_and_modes_do_not_mix(self):
        other = Guest("6.12", "in-tree", False)
        self.assertEqual(self.bars(result(OURS, SYNC, 1), result(other, SYNC, 1000)), [])
        self.assertEqual(self.bars(result(OURS, SYNC, 1), result(IN_TREE, ASYNC, 1000)), [])

    def test_what_is_not_known_does_not_hold(self):
        for ours, in_tree in (
            ({"error": "no such thing"}, {}),
            ({}, {"error": "no such thing"}),
            ({"emulated": 0}, {}),
        ):
            found = results.bars_of(
                [result(OURS, SYNC, 1, **ours), result(IN_TREE, SYNC, 1000, **in_tree)]
            )
            self.assertEqual([(bar.ratio, bar.holds) for bar in found], [(None, False)])
            self.assertRegex(found[0].why_unknown, "no such thing|nothing to do")

    def test_json_holds_all_of_it(self):
        found = [
            result(OURS, SYNC, 500, functions={"f": (3, 1), "g": (5, 2)}),
            result(IN_TREE, SYNC, 1000),
            result(IN_TREE, ASYNC, 0, error="fails"),
        ]
        said = json.loads(json.dumps(results.as_json(found, results.bars_of(found))))
        self.assertEqual([one["figure"] for one in said["results"]], [500, 1000, None])
        self.assertEqual(list(said["results"][0]["functions"]), ["g", "f"])
        self.assertEqual(said["bars"][0]["ratio"], 0.5)
        self.assertTrue(said["bars"][0]["holds"])

    def test_changes_since_an_earlier_run(self):
        earlier = results.as_json(
            [result(OURS, SYNC, 1000), result(OURS, ASYNC, 1000), result(IN_TREE, SYNC, 1000)], []
        )
        now = [
            result(OURS, SYNC, 1005),
            result(OURS, ASYNC, 1006),
            result(IN_TREE, SYNC, 0, error="fails"),
            result(IN_TREE, ASYNC, 5),
        ]
        self.assertEqual(
            [(one.case, then, is_now) for one, then, is_now in results.changes(now, earlier)],
            [(ASYNC, 1000, 1006), (SYNC, 1000, None), (ASYNC, None, 5)],
        )


if __name__ == "__main__":
    unittest.main()
