# SPDX-License-Identifier: GPL-2.0
"""Whether KVM really works here.

A device file that opens proves nothing; a kernel that boots does.
"""

import fcntl
import os
import pathlib
import subprocess
import tempfile
import time

from failure import SetupError
from kernels import Kernel

PROBE_SECONDS = 15
# How far a kernel without a root file system comes.
BOOTED = "Kernel panic - not syncing: VFS"
BROKEN = ("KVM internal error", "failed to initialize kvm", "Could not access KVM")


def choose(wanted: str, kernel: Kernel, cache: pathlib.Path) -> str:
    """'kvm' or 'tcg'. The probe's answer is kept for as long as the host stays up."""
    if wanted == "tcg":
        return "tcg"
    reason = why_no_kvm(kernel, cache)
    if reason and wanted == "kvm":
        raise SetupError(f"--accel kvm: {reason}")
    return "tcg" if reason else "kvm"


def why_no_kvm(kernel: Kernel, cache: pathlib.Path) -> str:
    """Why KVM cannot be used; empty where it can."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "there is no /dev/kvm that can be opened"
    flags = pathlib.Path("/proc/cpuinfo").read_text(errors="replace")
    if " movdir64b" in flags:
        # The guest would carry it out itself, and KVM does not emulate it on a trapped page.
        return "this CPU has MOVDIR64B, which KVM cannot carry out on an emulated device"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    cache.mkdir(parents=True, exist_ok=True)
    answer = cache / f"kvm-{boot}"
    with open(cache / "kvm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            for old in cache.glob("kvm-*"):
                old.unlink()
            new = cache / "kvm.new"
            new.write_text(probe(kernel))
            new.rename(answer)
        return answer.read_text()


def probe(kernel: Kernel) -> str:
    """Boots the kernel on two CPUs until it misses its root; says what went wrong, or nothing."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [
                "qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-smp", "2", "-m", "256M",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-serial", "stdio",
                "-kernel", str(kernel.image), "-append", "console=ttyS0 panic=-1",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )  # fmt: skip
        end = time.monotonic() + PROBE_SECONDS
        try:
            while True:
                ended = process.poll() is not None
                output.seek(0)
                text = output.read().decode(errors="replace")
                if BOOTED in text:
                    return ""
                for sign in BROKEN:
                    if sign in text:
                        return f"a kernel does not boot on it here ({sign})"
                if ended:
                    return "QEMU ends before a kernel has booted on it"
                if time.monotonic() >= end:
                    return f"a kernel does not boot on it within {PROBE_SECONDS} s"
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
