# SPDX-License-Identifier: GPL-2.0
"""scripts/bench, on guests that are scripts."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from sample import OURS

import bench

# Stands for scripts/testbed/run: carries out the plan with a figure for each driver.
RUN = """#!/bin/bash
while (($#)); do
	case $1 in
	--driver) driver=$2 ;;
	--qemu-arg=file=*) out=${{1##*,out=}} ;;
	IAA_BENCH_PLAN=*) plan=${{1#*=}} ;;
	--) break ;;
	esac
	shift
done
figure=1000
[[ $driver != ours ]] || figure={ours}
n=0
while read -r word name rest; do
	case $word in
	case)
		n=$((n + 1))
		echo "case $n" >>"$out"
		yes "op $((figure + 700)) 700 $figure" | head -n 512 >>"$out"
		echo "pc 0xffffffff81000000 $figure 0" >>"$out"
		echo "end $n" >>"$out"
		echo "@@bench case $name number=$n driver_name=x total=$((512 * (figure + 700))) compressed=1 error="
		;;
	symbols) echo "ffffffff81000000 T the_function" >"$name" ;;
	esac
done <"$plan"
echo "@@bench done"
{end}
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        (self.top / "scripts/testbed").mkdir(parents=True)
        (self.top / "counter.so").touch()
        for name, value in (
            ("TOP", self.top),
            ("OUT", self.top / "bench"),
            ("COUNTER", self.top / "counter.so"),
        ):
            patch = mock.patch.object(bench, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def bench(self, *words, ours=500, end=""):
        """Its exit status, and what it prints."""
        run = self.top / "scripts/testbed/run"
        run.write_text(RUN.format(ours=ours, end=end))
        run.chmod(0o755)
        out = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["bench", *words]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            status = bench.main()
        return status, out.getvalue()

    def test_all_limits_hold(self):
        status, text = self.bench("--iommu", "off")
        self.assertEqual(status, 0, text)
        said = json.loads((self.top / "bench/results.json").read_text())
        self.assertEqual({one["ratio"] for one in said["bars"]}, {0.5, 1.0})
        self.assertEqual({one["kernel"] for one in said["results"]}, {"6.12", "7.3"})
        self.assertIn("</svg>", (self.top / "bench/chart.svg").read_text())

    def test_one_that_does_not_is_named(self):
        status, text = self.bench("--kernel", "7.3", "sync-compress-1-1")
        self.assertEqual(status, 1)
        self.assertIn("1 of 2 limits hold", text)
        self.assertIn("translating IOMMU: compress, no verify, sync: 0.50 of in-tree", text)

    def test_a_guest_that_fails_is_not_passed_over(self):
        status, text = self.bench(
            "--kernel", "7.3", "--iommu", "off", end="echo no luck; [[ $driver == ours ]] || exit 123"
        )
        self.assertEqual(status, 2)
        self.assertIn("kernel 7.3, driver in-tree, no IOMMU: FAILED", text)
        self.assertIn("exit status 123", text)
        self.assertIn("| no luck", text)

    def test_a_counter_that_was_cut_off_is_noticed(self):
        status, text = self.bench("sync-compress-1-1", end='sed -i "/^end/d" "$out"')
        self.assertEqual(status, 2)
        self.assertIn("of 512 operations", text)

    def test_what_an_earlier_run_left_is_not_taken_for_this_ones(self):
        self.assertEqual(self.bench("--iommu", "off", "sync-compress-1-1")[0], 0)
        status, text = self.bench("--iommu", "off", "sync-compress-1-1", end='rm "$out"')
        self.assertEqual(status, 2)
        self.assertIn("FAILED", text)

    def test_an_interrupt_ends_the_guests_and_starts_no_more(self):
        started = self.top / "started"
        end = f'echo x >>{started}; kill -INT $PPID; exec sleep 600'
        with self.assertRaises(KeyboardInterrupt):
            self.bench("--jobs", "1", "sync-compress-1-1", end=end)
        self.assertEqual(started.read_text(), "x\n")
        self.assertFalse(bench.running)

    def test_profile_and_comparison(self):
        self.bench("--iommu", "off", "sync-decompress-1-1")
        earlier = self.top / "earlier.json"
        earlier.write_text((self.top / "bench/results.json").read_text())
        status, text = self.bench(
            "--iommu", "off", "--profile", "--compare", str(earlier), "sync-decompress-1-1", ours=400
        )
        self.assertEqual(status, 0)
        self.assertIn("was 500, is 400 (-20.0 %)", text)
        self.assertNotIn("driver in-tree, no IOMMU: decompress, sync: was", text)
        self.assertRegex(text, "400 +1? *.* the_function")

    def test_an_earlier_run_that_cannot_be_read_is_told_of_at_once(self):
        (self.top / "other.json").write_text("[1]")
        for name in ("missing.json", "other.json"):
            with self.assertRaises(SystemExit) as caught:
                self.bench("--compare", str(self.top / name))
            self.assertEqual(caught.exception.code, 2)
            self.assertFalse((self.top / "bench").exists())

    def test_a_case_that_nobody_knows(self):
        with self.assertRaisesRegex(SystemExit, "no case's name matches"):
            self.bench("nonsense")

    def test_what_is_not_built(self):
        (self.top / "counter.so").unlink()
        with self.assertRaisesRegex(SystemExit, "make bench WHAT=driver"):
            self.bench()

    def test_a_guest_counts(self):
        words = " ".join(bench.command(OURS, pathlib.Path("/p")))
        for wished in ("--smp 1", "--count-instructions", "x-no-posted-writes=true", "--inline", "-plugin"):
            self.assertIn(wished, words)
        self.assertNotIn("--iommu", words)


if __name__ == "__main__":
    unittest.main()
