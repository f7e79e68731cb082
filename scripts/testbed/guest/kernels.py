# SPDX-License-Identifier: GPL-2.0
"""The kernels that the root holds, and the modules layer that a driver choice puts above it."""

import dataclasses
import fcntl
import hashlib
import pathlib
import shutil
import subprocess

from failure import SetupError

MODULES = pathlib.Path("/usr/lib/modules")
INSTALL = pathlib.Path(__file__).resolve().parents[2] / "install-modules"
# What depmod reads beside the modules themselves.
DEPMOD_INPUTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """An installed kernel: its release as uname -r prints it, and its image."""

    release: str
    image: pathlib.Path


def find(version: str) -> Kernel:
    """Resolves '6.12', or a whole release, to the installed kernel."""
    releases = sorted(path.name for path in MODULES.iterdir() if (path / "kernel").is_dir())
    found = [
        name
        for name in releases
        if name == version or name.startswith((version + ".", version + "-"))
    ]
    if len(found) != 1:
        raise SetupError(
            f"--kernel {version} matches {found or 'none'} of the root's kernels: "
            + ", ".join(releases)
        )
    for image in (MODULES / found[0] / "vmlinuz", pathlib.Path("/boot") / f"vmlinuz-{found[0]}"):
        if image.is_file():
            return Kernel(found[0], image)
    raise SetupError(
        f"kernel {found[0]} has no vmlinuz in the root: make the root anew (scripts/testbed/root)"
    )


def modules_layer(
    kernel: Kernel, modules: list[pathlib.Path], cache: pathlib.Path
) -> pathlib.Path | None:
    """A file system layer with what `make install` makes of the kernel's modules and of `modules`,
    which are those that it installs.

    It goes above the root in the guest, so that modprobe there finds the modules as it would on a
    machine where they were installed. Cached by content; None if there are no modules.
    """
    if not modules:
        return None
    digest = hashlib.sha256(kernel.release.encode())
    digest.update((MODULES / kernel.release / "modules.dep").read_bytes())
    digest.update(INSTALL.read_bytes())
    for module in modules:
        digest.update(module.name.encode())
        digest.update(module.read_bytes())
    cache.mkdir(parents=True, exist_ok=True)
    layer = cache / f"{kernel.release}-{digest.hexdigest()[:16]}"
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not layer.is_dir():
            forget_old(cache, keep=8)
            make_layer(kernel, layer)
        layer.touch()
    return layer


def make_layer(kernel: Kernel, layer: pathlib.Path) -> None:
    new = layer.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    tree = new / "usr/lib/modules" / kernel.release
    tree.mkdir(parents=True)
    # It is installed below lib/modules.
    (new / "lib").symlink_to("usr/lib")
    installed = MODULES / kernel.release
    for name in DEPMOD_INPUTS:
        shutil.copy(installed / name, tree / name)
    (tree / "kernel").symlink_to(installed / "kernel")
    result = subprocess.run(
        [INSTALL, "install", kernel.release, new], capture_output=True, text=True, timeout=120
    )
    if result.returncode:
        raise SetupError(
            f"installing for {kernel.release} failed:\n{result.stdout}{result.stderr}"
        )
    # Left in place, these would hide the root's own.
    (tree / "kernel").unlink()
    (new / "lib").unlink()
    for name in DEPMOD_INPUTS:
        (tree / name).unlink()
    new.rename(layer)


def forget_old(cache: pathlib.Path, keep: int) -> None:
    layers = sorted(
        (path for path in cache.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime
    )
    for path in layers[:-keep]:
        shutil.rmtree(path, ignore_errors=True)
