# SPDX-License-Identifier: GPL-2.0
"""The figures as text."""

import collections
import itertools

from cases import DRIVERS, SOFTWARE, iommu_text
from results import PHASES

WIDTH = 50


def figure_text(result):
    if result is None:
        return "-"
    if result.error:
        return "fails"
    return f"{result.figure}{'*' if result.by_software else ''}"


def verdict(bar):
    if bar.ratio is None:
        return "not known"
    return f"{bar.ratio:5.2f} of {bar.what:7} {bar.limit:.2f}  {'ok' if bar.holds else 'OVER'}"


def driver_table(results, bars, kernel, iommu):
    """A kernel's figures of both drivers, side by side, with the limits they are held to."""
    by_key = {
        (one.guest.driver, one.case): one
        for one in results
        if one.guest.kernel == kernel and one.guest.iommu == iommu and not one.case.software
    }
    if not by_key:
        return
    yield f"Kernel {kernel}, {iommu_text(iommu)}"
    yield f"  {'':{WIDTH}} {'in-tree':>8} {'ours':>8}   ratio          limit"
    failures = collections.Counter()
    for case in dict.fromkeys(case for _, case in by_key):
        theirs, ours = by_key.get(("in-tree", case)), by_key.get(("ours", case))
        held = [bar for bar in bars if bar.result is ours and ours is not None]
        line = f"  {case.text:{WIDTH}} {figure_text(theirs):>8} {figure_text(ours):>8}"
        yield "  ".join([line, *map(verdict, held)]).rstrip()
        for one in (theirs, ours):
            if one is not None and one.error:
                failures[one.guest.driver, one.error] += 1
    for (driver, error), count in failures.items():
        yield f"  {driver}, {count} {'cases' if count > 1 else 'case'}: {error}"
    if any(one.by_software for one in by_key.values()):
        yield "  * in software: the device got nothing to do"
    emulated = sorted(one.emulated for one in by_key.values() if one.emulated)
    if emulated:
        yield f"  MOVDIR64B's emulation, which is in none of them: {emulated[0]} for a descriptor"
    yield ""


def phase_table(results, kernel, iommu):
    """What of an operation that ends by an interrupt is the driver's, and what is waiting."""
    found = {
        (one.case, one.guest.driver): one.phases
        for one in results
        if (one.guest.kernel, one.guest.iommu) == (kernel, iommu) and one.case.linear and one.phases
    }
    if not found:
        return
    cases = list(dict.fromkeys(case for case, _ in found))
    yield f"  {'Where async_irq is, of a median operation':{WIDTH - 18}}" + "".join(
        f"{case.text.removesuffix(', async_irq'):>22}" for case in cases
    )
    yield f"  {'':{WIDTH - 10}}" + "  ".join(f"{driver:>9}" for driver in DRIVERS * len(cases))
    for _, phase in PHASES:
        row = [found.get((case, driver), {}).get(phase) for case in cases for driver in DRIVERS]
        if any(row):
            yield f"    {phase:{WIDTH - 12}}" + "  ".join(f"{each or '-':>9}" for each in row)
    yield ""


def software_table(results, kernel):
    found = {
        (one.case.software, one.case.op): one
        for one in results
        if one.guest.kernel == kernel and one.case.software
    }
    if not found:
        return
    yield f"Kernel {kernel}, software, mean of the same pages"
    yield f"  {'':{WIDTH}} {'compress':>8} {'decompress':>11}"
    for name in SOFTWARE:
        both = [found.get((name, op)) for op in ("compress", "decompress")]
        if any(both):
            label = next(f"{name} ({one.algorithm})" for one in both if one)
            yield f"  {label:{WIDTH}} {figure_text(both[0]):>8} {figure_text(both[1]):>11}"
            for one in both:
                if one and one.error:
                    yield f"    {one.case.op}: {one.error}"
    yield ""


def summary(bars):
    """The limits in a few lines; those that do not hold by name."""
    if not bars:
        yield "No limit to hold: it takes both drivers, or both kinds of source."
        return
    bad = [bar for bar in bars if not bar.holds]
    yield f"{len(bars) - len(bad)} of {len(bars)} limits hold"
    groups = itertools.groupby(
        sorted(bad, key=lambda bar: bar.result.case.mode != "sync"),
        lambda bar: bar.result.case.mode,
    )
    for mode, group in groups:
        yield f"Over, {mode}:"
        for bar in group:
            guest = bar.result.guest
            what = (
                bar.why_unknown
                if bar.ratio is None
                else f"{bar.ratio:.2f} of {bar.what}, limit {bar.limit:.2f}"
            )
            yield f"  {guest.kernel}, {iommu_text(guest.iommu)}: {bar.result.case.text}: {what}"


def profile(results, least=0.002):
    """Where the instructions of a median operation are."""
    for one in results:
        if not one.functions:
            continue
        total = sum(own for own, _ in one.functions.values())
        yield f"{one.guest.text}: {one.case.text}: {total} instructions"
        rest, shown = 0, sorted(one.functions.items(), key=lambda item: -item[1][0])
        for name, (own, calls) in shown:
            if own < least * total:
                rest += own
            else:
                yield f"  {own:7} {calls:4} x  {name}"
        if rest:
            yield f"  {rest:7}         in others"
        yield ""


def changes(found):
    """What differs from an earlier run."""
    if not found:
        yield "No figure differs by more than 0.5 % from the earlier run's."
    for one, then, now in found:
        percent = f" ({100 * (now - then) / then:+.1f} %)" if then and now else ""
        yield f"{one.guest.text}: {one.case.text}: was {then}, is {now}{percent}"
    yield ""
