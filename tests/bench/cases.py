# SPDX-License-Identifier: GPL-2.0
"""What is measured, in which guests, and in which order."""

import dataclasses
import itertools

KERNELS = ("6.12", "7.3")
DRIVERS = ("in-tree", "ours")
SOFTWARE = ("lz4", "lzo-rle", "zstd", "deflate")
# How requests are completed, in the drivers' words.
MODES = ("sync", "async_irq")
OPERATIONS = 512


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of operation on 4 KB; of the hardware's driver, or of software by its name."""

    op: str  # compress or decompress
    mode: str = ""  # of MODES; empty for software
    verify: bool = False
    src: int = 1  # entries of the source's scatterlist
    dst: int = 1
    software: str = ""  # of SOFTWARE; empty for the driver

    @property
    def name(self):
        if self.software:
            return f"software-{self.software}-{self.op}"
        verify = "-verify" if self.verify else ""
        return f"{self.mode}-{self.op}{verify}-{self.src}-{self.dst}"

    @property
    def linear(self):
        return self.src == 1 and self.dst == 1

    @property
    def text(self):
        """For a person."""
        words = [self.software or self.op]
        if self.software:
            words.append(self.op)
        elif self.op == "compress":
            words.append("verify" if self.verify else "no verify")
        if self.mode:
            words.append(self.mode)
        for side, entries in (("source", self.src), ("destination", self.dst)):
            if entries > 1:
                words.append(f"{entries}-entry {side}")
        return ", ".join(words)

    @property
    def words(self):
        """For the guest's module."""
        name = self.software or "deflate-iaa"
        return (
            f"alg={'deflate-software' if name == 'deflate' else name} op={self.op} "
            f"src_nents={self.src} dst_nents={self.dst} operations={OPERATIONS}"
        )


@dataclasses.dataclass(frozen=True)
class Guest:
    """A kernel with a driver, and an IOMMU or none."""

    kernel: str
    driver: str
    iommu: bool

    @property
    def name(self):
        return f"{self.kernel}-{self.driver}{'-iommu' if self.iommu else ''}"

    @property
    def text(self):
        return f"kernel {self.kernel}, driver {self.driver}, {iommu_text(self.iommu)}"


def iommu_text(iommu):
    return "translating IOMMU" if iommu else "no IOMMU"


def driver_cases():
    """The driver's cases, those of one mode and one verify_compress one behind the other."""
    shapes = {"sync": ((1, 1), (2, 1), (3, 1), (1, 2)), "async_irq": ((1, 1), (2, 1))}
    for mode, verify in itertools.product(MODES, (True, False)):
        for op in ("compress",) if verify else ("compress", "decompress"):
            for src, dst in shapes[mode]:
                yield Case(op, mode, verify, src, dst)


def software_cases():
    for name, op in itertools.product(SOFTWARE, ("compress", "decompress")):
        yield Case(op, software=name)


def cases_of(guest):
    """Software needs no driver: it is measured once for each kernel, beside the in-tree driver."""
    beside = guest.driver == "in-tree" and not guest.iommu
    return [*(software_cases() if beside else ()), *driver_cases()]


def plan(cases, symbols, every=False):
    """The lines that the guest carries out, and which cases each of the files is for that it is to write
    the kernel's symbols to: modules are loaded anew for each mode. Without `every`, only for async_irq."""
    lines, files = [], {}
    for (mode, verify), group in itertools.groupby(cases, lambda case: (case.mode, case.verify)):
        if mode:
            lines.append(f"mode {mode} {int(verify)}")
        group = list(group)
        lines += [f"case {case.name} {case.words}" for case in group]
        if every or mode == "async_irq":
            path = f"{symbols}-{len(files)}"
            lines.append(f"symbols {path}")
            files[path] = [case.name for case in group]
    return lines, files
