# SPDX-License-Identifier: GPL-2.0
"""Which files clang-tidy reads, and when again. It is a stand-in, and so is what configures."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
CLANG_TIDY = """#!/bin/sh
[ "$1" != --version ] || { cat "$STATE/version"; exit; }
for file; do :; done
echo "$file" >>"$STATE/read"
! grep -n BUG "$file"
"""
SOURCES = {
    "harness/a.cpp": '#include "a.h"\nint a; // NOLINT\n',
    "harness/a.h": "// as is\n",
    "harness/sub/b.cpp": "int b;\n",
    "tests/vm/programs/p.cpp": "int p;\n",
    "tests/fuzz/f.cpp": '#include "../../harness/a.h"\n',
    "tests/unit/u.cpp": "int u;\n",
}
ORDINARY = ["harness/a.cpp", "harness/sub/b.cpp", "tests/fuzz/f.cpp", "tests/vm/programs/p.cpp"]


class Tidy(unittest.TestCase):
    def setUp(self):
        self.project = pathlib.Path(tempfile.mkdtemp(prefix="lint_test-"))
        self.addCleanup(shutil.rmtree, self.project)
        for name, text in SOURCES.items():
            self.write(name, text)
        for name in ("scripts/lint", "scripts/lib.sh"):
            self.write(name, (PROJECT / name).read_text())
        self.write("scripts/build-harness", "#!/bin/sh\n")
        self.write("bin/clang-tidy", CLANG_TIDY)
        for name in ("scripts/lint", "scripts/build-harness", "bin/clang-tidy"):
            (self.project / name).chmod(0o755)
        self.write(".clang-tidy", "Checks: all\n")
        self.write("version", "1\n")
        # As in the project: the fuzz targets are in the sanitizers' build only.
        self.configure("harness", [name for name in SOURCES if "fuzz" not in name])
        self.configure("asan", list(SOURCES))
        self.environment = os.environ | {
            "PATH": f"{self.project}/bin:{os.environ['PATH']}",
            "HOME": str(self.project),
            "IAA_CACHE": str(self.project / "cache"),
            "STATE": str(self.project),
        }
        subprocess.run(["git", "init", "-q", self.project], check=True, env=self.environment)

    def write(self, name, text):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def configure(self, build, names, flags=""):
        commands = [
            {
                "directory": str(self.project / "build" / build),
                "file": str(self.project / name),
                "command": f"ccache g++ {flags} -o {name}.o -c {self.project / name}",
            }
            for name in names
            if name.endswith(".cpp")
        ]
        self.write(f"build/{build}/compile_commands.json", json.dumps(commands))

    def lint(self, *arguments, status=0):
        """The files that clang-tidy read, and what lint said."""
        read = self.project / "read"
        read.unlink(missing_ok=True)
        result = subprocess.run(
            [self.project / "scripts/lint", *arguments, "tidy"],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return sorted(read.read_text().split()) if read.exists() else [], result.stdout

    def test_fuzz_targets_and_guest_programs_are_always_read(self):
        self.assertEqual(self.lint()[0], ORDINARY)
        self.assertEqual(self.lint("--full")[0], ["tests/unit/u.cpp"])

    def test_what_is_in_no_build_is_an_error(self):
        self.write("harness/lost.cpp", "int lost;\n")
        said = self.lint(status=1)[1]
        self.assertIn("harness/lost.cpp: in no compile_commands.json", said)

    def test_a_clean_file_is_read_again_when_anything_about_it_changes(self):
        self.lint()
        self.assertEqual(self.lint()[0], [])
        for what, change, again in (
            ("a comment", ("harness/a.cpp", '#include "a.h"\nint a;\n'), ["harness/a.cpp"]),
            (
                "a comment in a header",
                ("harness/a.h", "// changed\n"),
                ["harness/a.cpp", "tests/fuzz/f.cpp"],
            ),
            ("a folder's settings", ("harness/sub/.clang-tidy", "x\n"), ["harness/sub/b.cpp"]),
            ("the settings", (".clang-tidy", "Checks: none\n"), ORDINARY),
            ("clang-tidy", ("version", "2\n"), ORDINARY),
        ):
            with self.subTest(what):
                self.write(*change)
                self.assertEqual(self.lint()[0], again)
                self.assertEqual(self.lint()[0], [])
        self.configure("asan", list(SOURCES), "-DNEW")
        self.assertEqual(self.lint()[0], ["tests/fuzz/f.cpp"])

    def test_a_file_with_a_fault_is_read_until_it_has_none(self):
        self.lint()
        self.write("harness/sub/b.cpp", "int b; // BUG\n")
        for _ in range(2):
            read, said = self.lint(status=1)
            self.assertEqual(read, ["harness/sub/b.cpp"])
            self.assertIn("BUG", said)
            self.assertEqual(said.splitlines()[-1], "0 passed, 1 failed")


if __name__ == "__main__":
    unittest.main()
