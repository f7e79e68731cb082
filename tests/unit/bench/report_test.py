# SPDX-License-Identifier: GPL-2.0
"""The figures as text and as a picture."""

import unittest
import xml.etree.ElementTree as ET

from sample import IN_TREE, OURS, SYNC, result

import chart
import results
import table
from cases import Case, Guest

SVG = "{http://www.w3.org/2000/svg}"
TWO = Case("compress", "sync", src=2)
ASYNC = Case("decompress", "async_irq")
LZ4 = Case("compress", software="lz4")
FOUND = [
    result(IN_TREE, LZ4, 43000, algorithm="lz4-scomp"),
    result(IN_TREE, SYNC, 1000),
    result(IN_TREE, TWO, 900000, emulated=0),
    result(IN_TREE, ASYNC, 12000, phases={"the caller submits": 900, "the interrupt": 11100}),
    result(OURS, SYNC, 700),
    result(OURS, TWO, 770),
    result(OURS, ASYNC, 0, error="sync_mode async_irq is refused: Operation not supported"),
]


class Table(unittest.TestCase):
    def setUp(self):
        self.bars = results.bars_of(FOUND)
        self.lines = list(table.driver_table(FOUND, self.bars, "7.3", False))

    def line(self, case):
        found = [line for line in self.lines if line.startswith(f"  {case.text}  ")]
        self.assertEqual(len(found), 1, self.lines)
        return found[0].removeprefix(f"  {case.text}").split()

    def test_both_figures_their_ratio_and_its_limit(self):
        self.assertEqual(self.line(SYNC), "1000 700 0.70 of in-tree 0.60 OVER".split())
        self.assertEqual(self.line(TWO), "900000* 770 1.10 of linear 1.15 ok".split())
        self.assertTrue(any("* in software" in line for line in self.lines))

    def test_no_hole_is_silent(self):
        self.assertEqual(self.line(ASYNC), "12000 fails not known".split())
        self.assertTrue(any("Operation not supported" in line for line in self.lines))
        self.assertTrue(any("not supported" in line for line in table.summary(self.bars)))

    def test_only_what_was_measured_has_a_table(self):
        self.assertEqual(list(table.driver_table(FOUND, self.bars, "7.3", True)), [])
        self.assertEqual(list(table.driver_table(FOUND, self.bars, "6.12", False)), [])
        self.assertEqual(list(table.software_table(FOUND, "6.12")), [])
        self.assertEqual(list(table.phase_table(FOUND, "6.12", False)), [])

    def test_software(self):
        text = "\n".join(table.software_table(FOUND, "7.3"))
        self.assertRegex(text, r"lz4 \(lz4-scomp\) +43000 +-\n")

    def test_phases_that_only_one_driver_has(self):
        text = "\n".join(table.phase_table(FOUND, "7.3", False))
        self.assertRegex(text, r"the caller submits +900 +-\n")
        self.assertNotIn("a worker", text)

    def test_the_summary_counts_and_names(self):
        lines = list(table.summary(self.bars))
        self.assertEqual(lines[0], "1 of 3 limits hold")
        self.assertLess(lines.index("Over, sync:"), lines.index("Over, async_irq:"))
        self.assertIn("0.70 of in-tree, limit 0.60", lines[2])

    def test_profile(self):
        one = result(OURS, SYNC, 1000, functions={"small": (1, 1), "large": (999, 2)})
        lines = list(table.profile([one, *FOUND]))
        self.assertIn("1000 instructions", lines[0])
        self.assertEqual(lines[1].split(), ["999", "2", "x", "large"])
        self.assertIn("in others", lines[2])

    def test_changes(self):
        self.assertIn("No figure", list(table.changes([]))[0])
        text = "\n".join(table.changes([(FOUND[4], 1000, 700), (FOUND[6], 5, None)]))
        self.assertIn("was 1000, is 700 (-30.0 %)", text)
        self.assertIn("was 5, is None", text)


class Chart(unittest.TestCase):
    def draw(self, found):
        root = ET.fromstring(chart.draw(found))
        self.assertEqual(root.tag, f"{SVG}svg")
        return root

    def bars(self, root):
        return [rect for rect in root.iter(f"{SVG}rect") if rect.get("x")]

    def test_it_is_well_formed_and_within_its_frame(self):
        other = [
            result(Guest("6.12", one.guest.driver, True), one.case, one.median or 1) for one in FOUND
        ]
        root = self.draw(FOUND + other)
        width, height = float(root.get("width")), float(root.get("height"))
        self.assertEqual(root.get("viewBox"), f"0 0 {width:g} {height:g}")
        for rect in self.bars(root):
            self.assertLessEqual(float(rect.get("x")) + float(rect.get("width")), width)
            self.assertLessEqual(float(rect.get("y")) + float(rect.get("height")), height)
        texts = [each.text for each in root.iter(f"{SVG}text")]
        for wished in ("Linux 6.12", "Linux 7.3", "ours", "in-tree", "lz4, software", "700"):
            self.assertIn(wished, texts)
        self.assertTrue(any("logarithmic" in each for each in texts))

    def test_a_bar_for_each_figure_and_none_for_a_failure(self):
        # Those of two entries are no bars.
        self.assertEqual(len(self.bars(self.draw(FOUND))), 4)

    def test_longer_is_more(self):
        found = [result(IN_TREE, SYNC, 10000), result(OURS, SYNC, 1000)]
        longer, shorter = (float(rect.get("width")) for rect in self.bars(self.draw(found)))
        self.assertGreater(longer, shorter)

    def test_nothing_is_a_picture_too(self):
        self.draw([])
        self.draw([result(OURS, SYNC, 0, error="fails")])


if __name__ == "__main__":
    unittest.main()
