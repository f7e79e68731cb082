# SPDX-License-Identifier: GPL-2.0
"""From what guest and counter say to figures, and from these to verdicts."""

import bisect
import collections
import dataclasses
import re
import statistics

from cases import OPERATIONS, Case, Guest

# Ours in parts of the in-tree driver's, for a source and a destination of one entry each; the same
# where an IOMMU translates; a source of two entries in parts of one of one entry.
LIMIT = 0.6
LIMIT_IOMMU = 0.35
LIMIT_ENTRIES = 1.15
# Where the caller sleeps, nine tenths are the kernel's: falling asleep, the interrupt, two switches,
# waking. No driver can spare these, and ours is not to cost more. With verification there is no
# limit: the in-tree driver polls in the interrupt's thread, ours has a second interrupt, and whether
# the CPU falls asleep once more before that is a matter of chance.
LIMIT_ASLEEP = 1.0
# What an operation that is waited for goes through, each from the first call of a function on.
PHASES = (
    ("", "the caller submits"),
    ("schedule", "it falls asleep, the CPU idles"),
    ("asm_common_interrupt", "the interrupt"),
    ("schedule_idle", "the CPU turns to its thread"),
    ("idxd_wq_thread", "the thread, as far as that goes"),
    ("process_one_work", "a worker goes on"),
    ("complete", "the caller is woken, and returns"),
)
# What the two readings of the TSC have between them besides the operation, at most.
TSC_SLACK = 4


class Broken(Exception):
    """What was said is not what was agreed on: no figure can be had from it."""


@dataclasses.dataclass
class Counts:
    """A case as the counter saw it: of each operation all instructions, those that carried MOVDIR64B out,
    and the rest with REP folded; for each address in a median operation, how often it was executed, and
    how many instructions were before."""

    operations: list = dataclasses.field(default_factory=list)
    addresses: dict = dataclasses.field(default_factory=dict)
    whole: bool = False


@dataclasses.dataclass
class Result:
    """A case in a guest: its figures, or why there are none."""

    guest: Guest
    case: Case
    error: str = ""
    algorithm: str = ""
    median: int = 0  # net of MOVDIR64B's emulation, folded: so are all four
    minimum: int = 0
    maximum: int = 0
    mean: float = 0.0
    unfolded: int = 0  # the median, each iteration of REP counted
    emulated: int = 0  # for MOVDIR64B, in a median operation
    compressed: int = 0  # bytes that the pages became
    functions: dict = dataclasses.field(default_factory=dict)  # name to instructions and calls
    phases: dict = dataclasses.field(default_factory=dict)  # text of PHASES to instructions

    @property
    def figure(self):
        """Software takes longer for some pages than for others: there it is the mean."""
        return round(self.mean) if self.case.software else self.median

    @property
    def by_software(self):
        """The driver has given the device nothing to do."""
        return not self.error and not self.case.software and self.emulated == 0


def parse_counts(text):
    """The counter's file: number of the case to its Counts."""
    cases, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        word, *rest = line.split() or [""]
        try:
            if word == "case":
                current = cases.setdefault(int(rest[0]), Counts())
            elif word == "op":
                raw, emulated, folded = map(int, rest)
                current.operations.append((raw, emulated, folded))
            elif word == "pc":
                current.addresses[int(rest[0], 16)] = (int(rest[1]), int(rest[2]))
            elif word == "end":
                cases[int(rest[0])].whole = True
            else:
                raise ValueError
        except (AttributeError, IndexError, KeyError, ValueError):
            raise Broken(f"the counter's file, line {number}: '{line}'") from None
    return cases


def parse_guest(text):
    """What the guest says: name of the case to its values; why modes were refused; whether it was done."""
    said, refused, done = {}, {}, False
    for line in text.splitlines():
        if not line.startswith("@@bench "):
            continue
        words = line.split(" ", 3)
        if words[1] == "mode":
            mode, verify, *why = line.split(" ", 5)[2:]
            if why:
                refused[mode, verify == "1"] = why[1] if len(why) > 1 else why[0]
        elif words[1] == "case":
            values, _, error = words[3].partition("error=")
            said[words[2]] = dict(re.findall(r"(\w+)=(\S*)", values)) | {"error": error}
        elif words[1] == "done":
            done = True
    return said, refused, done


def check_against_tsc(case, values, operations):
    """Two counters that know nothing of each other agree, or neither is believed."""
    raw = sum(raw for raw, _, _ in operations)
    ticks = int(values["total"])
    if abs(raw - ticks) > TSC_SLACK * len(operations):
        raise Broken(
            f"{case.name}: the counter saw {raw} instructions in {len(operations)} operations, "
            f"the guest's TSC advanced by {ticks}"
        )


def one_result(guest, case, values, counts):
    """A case's figures from what the guest says of it and what the counter has of it."""
    result = Result(guest, case, algorithm=values.get("driver_name", ""), error=values["error"])
    if result.error:
        return result
    number = int(values["number"])
    seen = counts.get(number)
    if seen is None or not seen.whole or len(seen.operations) != OPERATIONS:
        raise Broken(
            f"{case.name}: the counter has "
            f"{len(seen.operations) if seen else 'nothing'} of {OPERATIONS} operations (case {number})"
        )
    # A CPU that sleeps executes nothing, while its TSC goes on.
    if case.mode != "async_irq":
        check_against_tsc(case, values, seen.operations)
    folded = sorted(folded for _, _, folded in seen.operations)
    result.minimum, result.maximum = folded[0], folded[-1]
    result.median = folded[len(folded) // 2]
    result.mean = statistics.fmean(folded)
    result.emulated = statistics.median_high(emulated for _, emulated, _ in seen.operations)
    result.unfolded = statistics.median_high(raw - emulated for raw, emulated, _ in seen.operations)
    result.compressed = int(values["compressed"])
    return result


def results_of(guest, cases, guest_text, counts_text):
    """One result for each case of a guest that has ended."""
    said, refused, done = parse_guest(guest_text)
    if not done:
        raise Broken(f"{guest.text}: the guest did not come to its plan's end")
    counts = parse_counts(counts_text)
    results = []
    for case in cases:
        if why := refused.get((case.mode, case.verify)):
            results.append(Result(guest, case, error=f"sync_mode {case.mode} is refused: {why}"))
        elif case.name not in said:
            raise Broken(f"{guest.text}: the guest says nothing of {case.name}")
        else:
            results.append(one_result(guest, case, said[case.name], counts))
    return results


class Symbols:
    """A kernel's functions, from its /proc/kallsyms."""

    def __init__(self, text):
        starts = []
        for line in text.splitlines():
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                starts.append((int(address, 16), " ".join([name, *module])))
        starts.sort()
        self.addresses = [address for address, _ in starts]
        self.names = [name for _, name in starts]

    def find(self, address):
        """The function that an address is in, and whether it begins there."""
        at = bisect.bisect_right(self.addresses, address) - 1
        if at < 0:
            return "?", False
        return self.names[at], self.addresses[at] == address


def functions(addresses, symbols):
    """(instructions, calls) of each function."""
    found = collections.defaultdict(lambda: [0, 0])
    for address, (executed, _) in addresses.items():
        name, begins = symbols.find(address)
        found[name][0] += executed
        found[name][1] += executed * begins
    return {name: tuple(entry) for name, entry in found.items()}


def phases(addresses, symbols):
    """How many instructions each of PHASES has; those that there are none of are left out."""
    began = {}
    for address, (_, first) in addresses.items():
        name, begins = symbols.find(address)
        if begins:
            began[name.split()[0]] = first
    marks = [(0 if not name else began.get(name), text) for name, text in PHASES]
    marks = [(first, text) for first, text in marks if first is not None]
    total = sum(executed for executed, _ in addresses.values())
    ends = [first for first, _ in marks[1:]] + [total]
    if ends != sorted(ends):
        raise Broken("the interrupt did not find the CPU asleep: the machine is too busy to tell")
    return {text: end - first for (first, text), end in zip(marks, ends, strict=True)}


@dataclasses.dataclass
class Bar:
    """A limit, and what was measured of it."""

    result: Result  # ours
    against: Result
    what: str  # what `against` is
    limit: float

    @property
    def ratio(self):
        """None where it cannot be told."""
        if self.result.error or self.against.error or self.result.by_software:
            return None
        return self.result.figure / self.against.figure

    @property
    def holds(self):
        return self.ratio is not None and self.ratio <= self.limit

    @property
    def why_unknown(self):
        """Why there is no ratio."""
        for one in (self.result, self.against):
            if one.error:
                return f"{one.guest.driver}: {one.error}"
        return "ours: the device got nothing to do" if self.result.by_software else ""


def bars_of(results):
    """All limits that the results say something about."""
    by_key = {(result.guest, result.case): result for result in results}
    bars = []
    for result in results:
        guest, case = result.guest, result.case
        if guest.driver != "ours" or case.software:
            continue
        in_tree = by_key.get((dataclasses.replace(guest, driver="in-tree"), case))
        asleep = case.mode == "async_irq"
        if case.linear and in_tree and not (asleep and case.verify):
            limit = LIMIT_IOMMU if guest.iommu else LIMIT
            if asleep:
                limit = LIMIT_ASLEEP
            bars.append(Bar(result, in_tree, "in-tree", limit))
        linear = by_key.get((guest, dataclasses.replace(case, src=1)))
        if (case.src, case.dst) == (2, 1) and linear and not asleep:
            bars.append(Bar(result, linear, "linear", LIMIT_ENTRIES))
    return bars


def changes(results, earlier, least=0.005):
    """What differs by more than `least` from an earlier run's results.json: (result, then, now)."""
    old = {(one["guest"], one["case"]): one["figure"] for one in earlier["results"]}
    found = []
    for result in results:
        then = old.get((result.guest.name, result.case.name))
        now = None if result.error else result.figure
        if then == now or (then and now and abs(now - then) <= least * then):
            continue
        found.append((result, then, now))
    return found


def as_json(results, bars):
    """All of it, for programs."""
    return {
        "results": [
            {
                "guest": result.guest.name,
                "kernel": result.guest.kernel,
                "driver": result.guest.driver,
                "iommu": result.guest.iommu,
                "case": result.case.name,
                **dataclasses.asdict(result.case),
                "algorithm": result.algorithm,
                "error": result.error or None,
                "figure": None if result.error else result.figure,
                "median": result.median,
                "minimum": result.minimum,
                "maximum": result.maximum,
                "mean": round(result.mean, 1),
                "unfolded": result.unfolded,
                "emulated": result.emulated,
                "by_software": result.by_software,
                "compressed": result.compressed,
                "phases": result.phases,
                "functions": {
                    name: {"instructions": own, "calls": calls}
                    for name, (own, calls) in sorted(
                        result.functions.items(), key=lambda item: -item[1][0]
                    )
                },
            }
            for result in results
        ],
        "bars": [
            {
                "guest": bar.result.guest.name,
                "case": bar.result.case.name,
                "against": bar.what,
                "ratio": None if bar.ratio is None else round(bar.ratio, 4),
                "limit": bar.limit,
                "holds": bar.holds,
                "why_unknown": bar.why_unknown or None,
            }
            for bar in bars
        ],
    }
