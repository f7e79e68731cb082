# SPDX-License-Identifier: GPL-2.0
"""The summary of scripts/check, and what steps show. The root and the build are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
REAL = ("scripts/check", "scripts/lib.sh", "scripts/unit")
STAND_INS = {
    "scripts/testbed/root": "echo /root",
    "scripts/testbed/in-root": 'exec "$@"',
    "scripts/build-harness": "true",
}
TESTS = r"""
add_test(good true)
add_test(absent printf "x.cpp:7: Skipped\\nno such device\\n[  SKIPPED ] absent\\n")
add_test(mute echo "[  SKIPPED ] mute")
set_tests_properties(absent mute PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
"""


class Check(unittest.TestCase):
    def setUp(self):
        self.project = pathlib.Path(tempfile.mkdtemp(prefix="check_test-"))
        self.addCleanup(shutil.rmtree, self.project)
        for name in REAL:
            self.write(name, (PROJECT / name).read_text())
        for name, text in STAND_INS.items():
            self.write(name, f"#!/bin/sh\n{text}\n")

    def write(self, name, text):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_bash(self, script, status=0):
        result = subprocess.run(
            ["bash", "-c", script],
            cwd=self.project,
            env={"PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def test_skipped_tests_are_counted_with_their_reasons(self):
        self.write("build/harness/CTestTestfile.cmake", TESTS)
        said = self.run_bash("scripts/check --only unit").partition("Skipped, and why:\n")[2]
        self.assertEqual(
            said.splitlines(),
            [
                "ok absent # SKIP no such device",
                "ok mute # SKIP no reason given",
                # The root and the build are counted too.
                "3 passed, 0 failed, 2 skipped",
            ],
        )

    def test_a_failure_fails_and_is_shown(self):
        bad = 'add_test(bad sh -c "echo why; false")'
        self.write("build/harness/CTestTestfile.cmake", TESTS + bad)
        said = self.run_bash("scripts/check --only unit", status=1)
        self.assertIn("why", said)
        self.assertEqual(said.splitlines()[-1], "3 passed, 1 failed, 2 skipped")

    def test_no_test_and_no_report_are_failures(self):
        self.write("build/harness/CTestTestfile.cmake", "")
        self.run_bash("scripts/check --only unit", status=1)

    def test_progress_is_a_line_every_ten_seconds_and_all_that_is_said(self):
        said = self.run_bash(
            """. scripts/lib.sh
            SECONDS=0
            { echo '[1/5] one'; echo '[2/5] two'; echo 'two: warning'; echo '[3/5] three'
              echo '[4/5] four'; echo '[5/5] five'; } | progress
            { echo '[1/9] one'; sleep 10.5; echo '[2/9] two'; echo '[3/9] three'; } | progress"""
        )
        self.assertEqual(
            said.splitlines(),
            ["[2/5] two", "two: warning", "[5/5] five", "[2/9] two", "[3/9] three"],
        )


if __name__ == "__main__":
    unittest.main()
