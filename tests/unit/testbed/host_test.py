# SPDX-License-Identifier: GPL-2.0
"""What scripts do on a host, the root entered from there: paths, variables, kernels.

The host is a copy of this root without the mark that makes it one; the root that is entered is
another copy. The guest runner and the building of modules are stand-ins.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
COPIED = (
    "scripts/build-modules",
    "scripts/lib.sh",
    "scripts/testbed/in-root",
    "scripts/testbed/packages",
    "scripts/testbed/root",
    "scripts/testbed/run",
)
# Says where it was run, and for what.
KMOD_BUILD = """#!/bin/sh
if [ -e /etc/iaa-testbed-root ]; then where=root; else where=host; fi
echo "$where $1 $2 $3"
"""
# Keeps --log and --trace as the real one does.
GUEST = """import pathlib, shutil, sys
words = sys.argv[1:]
assert pathlib.Path("/etc/passwd").stat().st_size
if "--log" in words:
    shutil.copyfile("/etc/hostname", words[words.index("--log") + 1])
if "--trace" in words:
    (pathlib.Path(words[words.index("--trace") + 1]) / "device-0.trace").touch()
"""
HOST = r"""
work=$1 hash=$2
mount -t tmpfs tmpfs "$work"
mkdir "$work"/{host,root}{,.upper,.work}
for each in host root; do
	mount -t overlay -o "lowerdir=/,upperdir=$work/$each.upper,workdir=$work/$each.work" overlay "$work/$each"
done
rm "$work/host/etc/iaa-testbed-root"
for each in proc dev sys; do mount --rbind "/$each" "$work/host/$each"; done
mkdir -p "$work/host/cache/root-$hash" "$work/host/home/project"
[[ $3 == none ]] || mount --bind "$work/root" "$work/host/cache/root-$hash"
cp -r "$4/." "$work/host/home/project"
exec chroot "$work/host" bash -uc "cd /home/project || exit; $5"
"""


class Host(unittest.TestCase):
    def setUp(self):
        self.project = pathlib.Path(tempfile.mkdtemp(prefix="host_test-"))
        self.addCleanup(shutil.rmtree, self.project)
        for name in COPIED:
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, self.project / name)
        (self.project / "scripts/kmod-build").write_text(KMOD_BUILD)
        (self.project / "scripts/kmod-build").chmod(0o755)
        (self.project / "scripts/testbed/movdir64b").mkdir()
        (self.project / "scripts/testbed/guest").mkdir()
        (self.project / "scripts/testbed/guest/__main__.py").write_text(GUEST)
        (self.project / "tests/vm/modules/load").mkdir(parents=True)
        self.hash = subprocess.run(
            [PROJECT / "scripts/testbed/root", "--hash"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def on_host(self, script, root="root", **variables):
        """Output and errors of a script on the host, in the project."""
        with tempfile.TemporaryDirectory() as work:
            return subprocess.run(
                ["unshare", "-m", "--propagation", "private", "bash", "-euc", HOST, "host"]
                + [work, self.hash, root, str(self.project), script],
                env={"PATH": os.environ["PATH"], "IAA_TESTBED_CACHE": "/cache", **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=100,
            ).stdout

    def test_a_bound_folder_hides_nothing_of_the_root(self):
        for folder in ("/", "/etc", "/usr", "/usr/local", "/var/lib", "/project/scripts"):
            with self.subTest(folder):
                said = self.on_host(
                    f"mkdir -p {folder}; scripts/testbed/in-root --bind {folder} true; echo $?"
                )
                self.assertEqual(said.splitlines()[-1], "125", said)
                self.assertIn("hide the root's own", said)

    def test_any_other_folder_is_where_it_was(self):
        said = self.on_host(
            """
            folders=(/new /new/sub/one /tmp/a /usr/local/mine /var/lib/mine/b /home/me)
            binds=()
            for each in "${folders[@]}"; do
                mkdir -p "$each" && echo "$each" >"$each/file" && binds+=(--bind "$each")
            done
            scripts/testbed/in-root "${binds[@]}" sh -c '
                for each; do cat "$each/file"; touch "$each/back"; done
                ls -d /usr/bin/env /var/lib/dpkg' sh "${folders[@]}"
            ls "${folders[@]/%//back}" | wc -l
            """
        )
        self.assertEqual(
            said.split(),
            ["/new", "/new/sub/one", "/tmp/a", "/usr/local/mine", "/var/lib/mine/b", "/home/me"]
            + ["/usr/bin/env", "/var/lib/dpkg", "6"],
        )

    def test_logs_and_traces_go_anywhere(self):
        said = self.on_host(
            """
            echo host >/etc/hostname
            for log in /x.log /etc/x.log /new/x.log build/x.log; do
                scripts/testbed/run --log "$log" -- true || echo "$log: $?"
                cmp "$log" <(scripts/testbed/in-root cat /etc/hostname)
            done
            scripts/testbed/run --log=/x.log --trace=/traces -- true || echo $?
            ls /traces
            scripts/testbed/run --trace /etc -- true; echo $?
            scripts/testbed/run --log /dev/null/x -- true; echo $?
            """
        )
        self.assertEqual(said.splitlines()[0], "device-0.trace", said)
        self.assertRegex(said, r"--bind /etc: .*\n125\n")
        self.assertRegex(said, r"--log /dev/null/x: cannot be written\n125\n")

    def test_variables_for_the_network(self):
        names = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
        said = self.on_host(
            "scripts/testbed/in-root env", **{name: f"is-{name}" for name in (*names, "OTHER")}
        )
        self.assertEqual(
            {line for line in said.splitlines() if "=is-" in line},
            {f"{name}=is-{name}" for name in names},
        )

    def test_modules_are_built_where_their_headers_are(self):
        headers = "mkdir -p /lib/modules/9.9/build && touch /lib/modules/9.9/build/Makefile; "
        build = "scripts/build-modules 9.9 2>&1; echo $?"
        # In the root: with the tests' modules.
        self.assertEqual(
            self.on_host(
                "rm -rf /usr/lib/modules /usr/src; (cd /cache/root-*/usr/lib/modules &&"
                f" mkdir -p 9.9/build && touch 9.9/build/Makefile); {build}"
            ).splitlines(),
            ["building for 9.9"]
            + ["root 9.9 . build/modules/9.9"]
            + [
                f"root 9.9 {folder} build/modules/9.9/test/{pathlib.Path(folder).name}"
                for folder in ("scripts/testbed/movdir64b", "tests/vm/modules/load")
            ]
            + ["0"],
        )
        # On the host: the driver only, whether there is a root or not.
        for root in ("root", "none"):
            self.assertEqual(
                self.on_host(headers + build, root).splitlines(),
                ["building for 9.9, on this machine", "host 9.9 . build/modules/9.9", "0"],
            )
        # Nowhere: no root is made only to look into it.
        said = self.on_host(build)
        self.assertRegex(said, r"no headers of kernel 9\.9: .* linux-headers-9\.9 .*\n1\n")
        self.assertRegex(said, r"root has those of 6\.12\.")
        self.assertRegex(self.on_host(build, "none"), r"headers-9\.9 .*is not made yet.*\n1\n")
        said = self.on_host("scripts/build-modules ../x 2>&1; echo $?")
        self.assertRegex(said, r"not a kernel release.*\n1\n")


if __name__ == "__main__":
    unittest.main()
