# SPDX-License-Identifier: GPL-2.0
"""What guest and counter say, as the tests need it; finds the modules under test."""

import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/bench"))
from cases import OPERATIONS, Case, Guest  # noqa: E402
from results import Result  # noqa: E402

OURS = Guest("7.3", "ours", False)
IN_TREE = Guest("7.3", "in-tree", False)
SYNC = Case("compress", "sync")


def guest_says(case, number, total, error=""):
    """The guest's line of a case."""
    return (
        f"@@bench case {case.name} number={number} driver_name=some-alg operations={OPERATIONS} "
        f"minimum=1 median=1 maximum=1 total={total} overhead=6 compressed=1000 error={error}\n"
    )


def counter_says(number, operations, addresses=(), whole=True):
    """The counter's lines of a case."""
    lines = [f"case {number}"]
    lines += [f"op {raw} {emulated} {folded}" for raw, emulated, folded in operations]
    lines += [f"pc {address:#x} {executed} {first}" for address, executed, first in addresses]
    if whole:
        lines.append(f"end {number}")
    return "\n".join(lines) + "\n"


def result(guest, case, median, **more):
    """A result as if it had been measured."""
    more = {"emulated": 0 if case.software else 700, "mean": float(median)} | more
    return Result(guest, case, median=median, **more)
