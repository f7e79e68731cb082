# SPDX-License-Identifier: GPL-2.0
"""The guest tests' runner, on guests that are scripts: what it makes of all that can go wrong."""

import contextlib
import io
import os
import pathlib
import shutil
import stat
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/vm"))
import runner  # noqa: E402

# Stands for scripts/testbed/run: a log of its own, what the guest prints, the exit status. `boots`
# counts calls, so that a guest can be another one the second time.
GUEST = """#!/bin/bash
words="$*"
while (($#)); do
	case $1 in
	--name) name=$2 ;;
	--) break ;;
	esac
	shift
done
folder={logs}/$name-1-1-1
mkdir -p $folder
console() {{ printf '[    1.000000] %s\\n' "$*" >>$folder/console.log; }}
vm() {{ printf '\\n@@vm %s\\n' "$*"; }}
run_test() {{ vm begin $1; console "iaa-test: begin $1"; eval "${{3:-}}"; console "iaa-test: end $1"; vm end $1 $2; }}
boots=$(($(cat {logs}/boots 2>/dev/null || echo 0) + 1))
echo $boots >{logs}/boots
echo "$words" >>{logs}/words
{body}
"""
WARNING = 'console "WARNING: CPU: 0 PID: 1 at a.c:1 foo+0x1/0x2"'


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        saved = runner.RUN, runner.LOGS, runner.TOP
        self.addCleanup(lambda: setattr_all(runner, ("RUN", "LOGS", "TOP"), saved))
        setattr_all(runner, ("RUN", "LOGS", "TOP"), (self.folder / "run", self.folder, self.folder))

    def run_guests(self, body, names=("one", "two"), driver="ours", jobs=None):
        """What the runner prints, and its exit status."""
        for old in self.folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        runner.RUN.write_text(GUEST.format(logs=self.folder, body=body))
        runner.RUN.chmod(runner.RUN.stat().st_mode | stat.S_IXUSR)
        tests = [
            runner.Test(name, "", "", (), (("smp", ("2",)),), "shared", (), 5, (), runner.STARVED)
            for name in names
        ]
        jobs = jobs or [runner.Job(test, "7.3", driver) for test in tests]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = runner.run_jobs(jobs, 1)
        return status, out.getvalue()

    def test_all_pass(self):
        status, out = self.run_guests("vm ready; run_test one 0; run_test two 0")
        self.assertEqual(status, 0, out)
        self.assertIn("2 passed, 0 failed, 0 skipped", out)

    def test_a_lane_has_guests_of_its_own_with_its_options(self):
        test = runner.Test("one", "", "", (), (("smp", ("2",)),), "shared", (), 5, (), runner.STARVED)
        jobs = [runner.Job(test, "7.3", "ours", lane) for lane in ("", "iommu", "slub")]
        self.assertEqual(len(runner.make_boots(jobs)), 3)
        status, out = self.run_guests("vm ready; run_test one 0", jobs=jobs)
        self.assertEqual(status, 0, out)
        self.assertIn("booting 7.3 with driver ours in lane iommu for 1 test", out)
        self.assertIn("vm/one (7.3, ours, slub)", out)
        self.assertEqual(len({job.log for job in jobs}), 3)
        words = {}
        for line in (self.folder / "words").read_text().splitlines():
            lane = line.partition("IAA_VM_LANE=")[2].partition(" ")[0]
            words[lane] = f" {line} "
        self.assertEqual(set(words), {"", "iommu", "slub"})
        self.assertIn(" --iommu ", words["iommu"])
        self.assertIn(" --append slub_debug=FZPU ", words["slub"])
        for option in ("--iommu", "--append"):
            self.assertNotIn(f" {option} ", words[""])

    def test_failed_and_skipped_are_told_apart(self):
        status, out = self.run_guests(
            "vm ready; run_test one 1 'echo \\# FAIL too bad'; run_test two 77 'echo \\# SKIP no way'"
        )
        self.assertEqual(status, 1)
        self.assertIn("vm/one (7.3, ours): too bad", out)
        self.assertIn("SKIP no way", out)
        self.assertIn("0 passed, 1 failed, 1 skipped", out)

    def test_a_warning_in_a_test_is_that_tests(self):
        status, out = self.run_guests(
            f"""
            vm ready
            if ((boots == 1)); then
                run_test one 0 '{WARNING}'
                vm stop
                exit 123
            fi
            run_test two 0"""
        )
        self.assertEqual(status, 1)
        self.assertIn("kernel report: WARNING: CPU: 0 PID: 1 at a.c:1 foo+0x1/0x2", out)
        self.assertIn("1 passed, 1 failed", out)

    def test_a_warning_outside_all_tests_is_a_failure(self):
        for body in (
            f"{WARNING}; vm ready; run_test one 0; run_test two 0; exit 123",
            f"vm ready; run_test one 0; {WARNING}; run_test two 0; exit 123",
            f"vm ready; run_test one 0; run_test two 77 'echo \\# SKIP x'; {WARNING}; exit 123",
            f"vm ready; run_test one 0; {WARNING}; run_test two 0; vm stop; exit 123",
        ):
            with self.subTest(body):
                status, out = self.run_guests(body)
                self.assertEqual(status, 1)
                self.assertIn("kernel report outside the tests: WARNING", out)
                self.assertIn(" 1 failed, ", out)

    def test_what_a_test_leaves_behind_is_a_failure_of_ours_and_a_note_of_theirs(self):
        body = """
            vm ready
            if ((boots == 1)); then
                run_test one 0
                vm begin two
                echo '# FAIL the module is in use'
                vm again two
            else
                run_test two 0
            fi"""
        status, out = self.run_guests(body)
        self.assertEqual(status, 1)
        self.assertIn("2 passed, 1 failed", out)
        self.assertIn("the module is in use", out)
        status, out = self.run_guests(body, driver="in-tree")
        self.assertEqual(status, 0)
        self.assertIn("not fit for another test: # FAIL the module is in use", out)

    def test_what_the_last_test_leaves_behind_is_seen(self):
        status, out = self.run_guests(
            "vm ready; run_test one 0; run_test two 0; echo '# FAIL a WQ stays'; vm unfit two"
        )
        self.assertEqual(status, 1)
        self.assertIn("a WQ stays", out)

    def test_a_guest_that_ends_before_its_first_test_is_not_booted_for_ever(self):
        status, out = self.run_guests("vm ready; exit 3")
        self.assertEqual(status, 1)
        self.assertIn("the guest ended before any test (testbed exit status 3)", out)
        self.assertEqual((self.folder / "boots").read_text(), "2\n")

    def test_a_guest_that_does_not_come_up(self):
        status, out = self.run_guests("exit 125", names=("one", "two", "three", "four"))
        self.assertEqual(status, 1)
        self.assertIn("the guest did not come up (testbed exit status 125)", out)
        self.assertIn("not run: three guests did not come up", out)

    def test_a_guest_that_ends_in_mid_test(self):
        status, out = self.run_guests(
            "vm ready; if ((boots == 1)); then vm begin one; exit 121; else run_test two 0; fi"
        )
        self.assertEqual(status, 1)
        self.assertIn("the guest ended in the middle of the test (testbed exit status 121)", out)
        self.assertIn("1 passed, 1 failed", out)

    def test_the_testbed_is_not_content_though_all_tests_passed(self):
        status, out = self.run_guests("vm ready; run_test one 0; run_test two 0; exit 122")
        self.assertEqual(status, 1)
        self.assertIn("testbed exit status 122", out)

    def test_a_report_that_only_the_testbed_has_seen(self):
        status, out = self.run_guests("vm ready; run_test one 0; run_test two 0; exit 123")
        self.assertEqual(status, 1)
        self.assertIn("testbed exit status 123", out)

    def test_a_report_that_goes_on_behind_its_test_is_that_tests(self):
        status, out = self.run_guests(
            f"""
            vm ready
            vm begin one
            console "iaa-test: begin one"
            {WARNING}
            console "iaa-test: end one"
            console "Call Trace:"
            vm end one 0
            if ((boots == 1)); then exit 123; fi
            run_test two 0""",
            names=("one",),
        )
        self.assertEqual(status, 1)
        self.assertIn("0 passed, 1 failed", out)

    def test_an_end_that_is_another_tests_is_not_this_ones(self):
        status, out = self.run_guests(
            "vm ready; run_test one 0; vm begin two; vm end one 0; vm end two 1"
        )
        self.assertEqual(status, 1)
        self.assertIn("1 passed, 1 failed", out)


class Choice(unittest.TestCase):
    """Which tests run where, from what their headers say."""

    def parse(self, header):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "001-test.sh"
            path.write_text("#!/bin/bash\n# shows: something\n" + header)
            return runner.parse_test(path)

    def choose(self, header, **asked):
        asked = {"full": False, "named": False, "only_lanes": None} | asked
        jobs = runner.choose_jobs([self.parse(header)], **asked)
        return sorted(f"{job.kernel}/{job.driver} {job.lane}".strip() for job in jobs)

    PLAIN = ["6.12/in-tree", "6.12/ours", "7.3/in-tree", "7.3/ours"]

    def test_without_lanes(self):
        self.assertEqual(self.choose(""), self.PLAIN)
        self.assertEqual(self.choose("# set: full 6.12/ours\n# drivers: ours\n"), ["7.3/ours"])
        self.assertEqual(self.choose("", only_lanes=["slub"]), [])

    def test_a_lane_is_for_ours_on_one_kernel_and_with_full_on_all(self):
        header = "# lanes: slub iommu\n"
        self.assertEqual(
            self.choose(header), sorted([*self.PLAIN, "7.3/ours slub", "7.3/ours iommu"])
        )
        self.assertEqual(len(self.choose(header, full=True)), 8)
        self.assertEqual(self.choose(header, only_lanes=["iommu"]), ["7.3/ours iommu"])

    def test_lanes_behind_full_are_for_full(self):
        header = "# lanes: slub full iommu\n# drivers: ours\n"
        both = ["6.12/ours", "7.3/ours"]
        self.assertEqual(self.choose(header), sorted([*both, "7.3/ours slub"]))
        self.assertEqual(self.choose(header, only_lanes=["iommu"]), [])
        iommu = ["6.12/ours iommu", "7.3/ours iommu"]
        self.assertEqual(self.choose(header, only_lanes=["iommu"], full=True), iommu)

    def test_a_test_by_name_runs_in_the_lanes_that_are_asked_for(self):
        header = "# lanes: full slub\n# drivers: ours\n"
        self.assertEqual(self.choose(header, named=True), ["6.12/ours", "7.3/ours"])
        slub = ["6.12/ours slub", "7.3/ours slub"]
        self.assertEqual(self.choose(header, named=True, only_lanes=["slub"]), slub)

    def test_lanes_that_cannot_be_meant(self):
        for header in (
            "# lanes: slab\n",
            "# lanes: slub slub\n",
            "# lanes: slub\n# boot: host\n",
            "# lanes: slub\n# drivers: in-tree\n",
        ):
            with self.subTest(header), self.assertRaisesRegex(runner.HeaderError, "lanes: "):
                self.parse(header)

    def test_a_slow_lane_has_more_time(self):
        test = self.parse("# lanes: slub\n# limit: 10\n")
        limits = [runner.Job(test, "7.3", "ours", lane).limit for lane in ("", "slub")]
        self.assertEqual(limits, [10, 20])


def setattr_all(module, names, values):
    for name, value in zip(names, values, strict=True):
        setattr(module, name, value)


if __name__ == "__main__":
    os.environ["IAA_VM_SCALE"] = "1"
    unittest.main()
