# SPDX-License-Identifier: GPL-2.0
"""The making of the root: interrupted, twice at once, and by which way the network is reached.

debootstrap, apt and what runs in the new root are stand-ins on PATH; all else is real.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3] / "scripts/testbed/root"
LIMIT = 60

STAND_INS = {
    # Holds a lock for as long as any of it lives, and waits as long as there is a file `stall`.
    "debootstrap": r"""
exec 9>"$STATE/alive"
flock 9
for word; do new=$mirror mirror=$word; done
echo "$mirror ${http_proxy-none}" >>"$STATE/calls"
mkdir -p "$new"/{boot,dev,etc,proc,usr/lib,usr/sbin,var/cache/apt/archives}
ln -s usr/lib "$new/lib"
while [[ -e $STATE/stall ]]; do sleep 0.05; done
""",
    "chroot": r"""
new=$1
case "$*" in
*apt-cache\ show\ linux-source*) echo 'Depends: linux-source-6.12 (= 6.12.1)' ;;
*apt-cache\ show\ *-backports) echo "Depends: linux-image-7.3.1-amd64, linux-headers-7.3.1-amd64" ;;
*apt-cache\ show\ *) echo "Depends: linux-image-6.12.1-amd64, linux-headers-6.12.1-amd64" ;;
*--download-only*linux-source-6.12*) : >"$new/var/cache/apt/archives/linux-source-6.12_1_all.deb" ;;
*--no-download*)
	for version in 6.12.1-amd64 7.3.1-amd64; do
		mkdir -p "$new/usr/lib/modules/$version/build"
		: >"$new/usr/lib/modules/$version/build/Makefile"
		: >"$new/boot/vmlinuz-$version"
	done
	;;
*-device\ help*) echo 'name "vfio-user-pci", bus PCI' ;;
esac
""",
    "apt-get": r"""
[[ $1 == indextargets ]] && cat "$STATE/targets"
""",
    "df": "echo 99999\n",
}


def wait_until(true, what):
    end = time.monotonic() + LIMIT
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.02)


class Root(unittest.TestCase):
    def setUp(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="root_test-"))
        self.addCleanup(shutil.rmtree, self.state)
        self.cache = self.state / "cache"
        (self.state / "bin").mkdir()
        for name, text in STAND_INS.items():
            path = self.state / "bin" / name
            path.write_text(f"#!/bin/bash\nset -e\n{text}")
            path.chmod(0o755)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("IAA_") and not name.lower().endswith("_proxy")
        } | {
            "PATH": f"{self.state}/bin:{os.environ['PATH']}",
            "STATE": str(self.state),
            "IAA_TESTBED_CACHE": str(self.cache),
            "IAA_TESTBED_MIRROR": "http://mirror.example/debian",
        }
        self.stall = self.state / "stall"

    def start(self):
        process = subprocess.Popen(
            [ROOT],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def make(self):
        return subprocess.run(
            [ROOT], env=self.environment, capture_output=True, text=True, timeout=LIMIT
        )

    def calls(self):
        path = self.state / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def assert_made(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        root = pathlib.Path(result.stdout.strip())
        self.assertEqual(root.parent, self.cache)
        self.assertTrue((root / "etc/iaa-testbed-root").exists())
        self.assertEqual(list(self.cache.glob("*.new")), [])

    def assert_builder_ended(self):
        subprocess.run(["flock", "-w", str(LIMIT), self.state / "alive", "true"], check=True)

    def test_it_is_made_once(self):
        self.assert_made(self.make())
        self.assert_made(self.make())
        self.assertEqual(len(self.calls()), 1)

    def test_killed_and_made_again(self):
        self.stall.touch()
        process = self.start()
        wait_until(self.calls, "debootstrap runs")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assert_builder_ended()
        self.assertEqual(len(list(self.cache.glob("*.new"))), 1)
        self.stall.unlink()
        result = self.make()
        self.assert_made(result)
        self.assertIn("left by an interrupted run", result.stderr)

    def test_asked_to_end_it_removes_what_is_half_made(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            with self.subTest(number):
                self.stall.touch()
                before = len(self.calls())
                process = self.start()
                wait_until(lambda: len(self.calls()) > before, "debootstrap runs")  # noqa: B023
                process.send_signal(number)
                self.assertEqual(process.wait(LIMIT), status)
                self.assert_builder_ended()
                self.assertEqual(list(self.cache.glob("root-*.new")), [])
                self.assertEqual([p for p in self.cache.glob("root-*") if p.is_dir()], [])
        self.stall.unlink()
        self.assert_made(self.make())

    def test_the_second_of_two_waits_for_the_first(self):
        self.stall.touch()
        first = self.start()
        wait_until(self.calls, "debootstrap runs")
        second = self.start()
        said = second.stderr.readline()
        self.assertIn("waiting for it", said)
        self.assertIsNone(second.poll())
        self.stall.unlink()
        paths = [process.communicate(timeout=LIMIT)[0] for process in (first, second)]
        self.assertEqual((first.returncode, second.returncode), (0, 0))
        self.assertTrue(paths[0])
        self.assertEqual(*paths)
        self.assertEqual(len(self.calls()), 1)

    def test_a_proxy_that_only_apt_knows(self):
        finder = self.state / "bin/finder"
        finder.write_text("#!/bin/sh\necho http://found.example:1\n")
        finder.chmod(0o755)
        general = 'Acquire::http::Proxy "http://general.example:1";'
        found = f'Acquire::http::Proxy-Auto-Detect "{finder}";'
        for lines, environment, proxy in (
            ([], {}, "none"),
            ([], {"http_proxy": "http://own.example:1"}, "http://own.example:1"),
            ([general], {}, "http://general.example:1"),
            ([general], {"http_proxy": "http://own.example:1"}, "http://general.example:1"),
            ([general, found], {}, "http://found.example:1"),
            ([general, 'Acquire::http::Proxy::mirror.example "DIRECT";'], {}, "none"),
        ):
            with self.subTest(lines=lines, environment=environment):
                settings = self.state / "apt.conf"
                settings.write_text("\n".join(lines))
                shutil.rmtree(self.cache, ignore_errors=True)
                self.environment.pop("http_proxy", None)
                self.environment |= {"APT_CONFIG": str(settings), **environment}
                result = self.make()
                self.assert_made(result)
                self.assertEqual(self.calls()[-1].split()[1], proxy)
                kept = pathlib.Path(result.stdout.strip()) / "etc/apt/apt.conf.d/90testbed"
                self.assertNotRegex(kept.read_text(), "Auto-?Detect")

    def test_the_mirror_is_debians(self):
        del self.environment["IAA_TESTBED_MIRROR"]
        others = "http://a.example/deb|stable|Somebody\nhttp://b.example/deb|stable|\n"
        debian = "http://z.example/debian/|bookworm|Debian\n"
        security = "http://c.example/debian-security|bookworm-security|Debian\n"
        for targets, mirror in (
            (security + others + debian, "http://z.example/debian"),
            (security + others, "http://b.example/deb"),
        ):
            with self.subTest(targets):
                shutil.rmtree(self.cache, ignore_errors=True)
                (self.state / "targets").write_text(targets)
                self.assert_made(self.make())
                self.assertEqual(self.calls()[-1].split()[0], mirror)
        (self.state / "targets").write_text(security)
        shutil.rmtree(self.cache)
        result = self.make()
        self.assertEqual(result.returncode, 1)
        self.assertTrue(re.search("names no Debian mirror", result.stderr), result.stderr)


if __name__ == "__main__":
    unittest.main()
