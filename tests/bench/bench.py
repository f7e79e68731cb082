# SPDX-License-Identifier: GPL-2.0
"""Counts what the driver's operations take, beside the in-tree driver's and software's: scripts/bench.

Documentation/testing.rst says how it counts.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))
import chart  # noqa: E402
import table  # noqa: E402
from cases import DRIVERS, KERNELS, Guest, cases_of, plan  # noqa: E402
from results import (  # noqa: E402
    Broken,
    Symbols,
    as_json,
    bars_of,
    changes,
    functions,
    parse_counts,
    parse_guest,
    phases,
    results_of,
)
from runner import scale, tail  # noqa: E402  the guest tests'

OUT = TOP / "build/bench"
COUNTER = TOP / "build/harness/tests/bench/counter/libcounter.so"
LIMIT = 300  # seconds for a guest, on an idle machine

print_lock = threading.Lock()
running = set()


def say(text):
    with print_lock:
        print(text, file=sys.stderr, flush=True)


def command(guest, plan_path):
    """How a guest is run: one CPU, a device that has answered before the store to its portal is over, and
    the plugin that counts."""
    arguments = ["scripts/testbed/run", "--kernel", guest.kernel, "--driver", guest.driver]
    arguments += ["--no-load", "--smp", "1", "--count-instructions", "--name", f"bench-{guest.name}"]
    arguments += ["--device", "--inline qemu:x-no-posted-writes=true"]
    arguments += ["--qemu-arg=-plugin", f"--qemu-arg=file={COUNTER},out={OUT / guest.name}.counts"]
    arguments += ["--timeout", str(int(LIMIT * scale()))]
    if guest.iommu:
        arguments.append("--iommu")
    for name, value in (
        ("IAA_KERNEL", guest.kernel),
        ("IAA_DRIVER", guest.driver),
        ("IAA_SCALE", int(scale() + 0.999)),
        ("IAA_BENCH_PLAN", plan_path),
    ):
        arguments += ["--env", f"{name}={value}"]
    return [*arguments, "--", "tests/bench/guest.sh"]


def run(arguments, output):
    """Its exit status; what runs is in `running` meanwhile."""
    process = subprocess.Popen(
        arguments, cwd=TOP, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    )
    running.add(process)
    try:
        return process.wait()
    finally:
        running.discard(process)


def measure(guest, cases, with_functions):
    """Boots a guest and has it carry out its plan."""
    log, counts, plan_path = (OUT / f"{guest.name}.{kind}" for kind in ("log", "counts", "plan"))
    lines, symbols = plan(cases, OUT / f"{guest.name}.symbols", with_functions)
    plan_path.write_text("\n".join(lines) + "\n")
    for path in (counts, *map(pathlib.Path, symbols)):
        path.unlink(missing_ok=True)
    with log.open("w") as output:
        status = run(command(guest, plan_path), output)
    if status:
        raise Broken(
            f"{guest.text}: exit status {status} of scripts/testbed/run; {log.relative_to(TOP)} ends with"
            + "".join(f"\n  | {text}" for text in tail(log, 15))
        )
    said, counted = log.read_text(errors="replace"), counts.read_text()
    results = results_of(guest, cases, said, counted)
    values, _, _ = parse_guest(said)
    numbers = parse_counts(counted)
    for path, names in symbols.items():
        found = Symbols(pathlib.Path(path).read_text())
        pathlib.Path(path).unlink()  # 10 MB each
        for result in results:
            if result.case.name not in names or result.error:
                continue
            addresses = numbers[int(values[result.case.name]["number"])].addresses
            if with_functions:
                result.functions = functions(addresses, found)
            if result.case.mode == "async_irq" and not result.by_software:
                try:
                    result.phases = phases(addresses, found)
                except Broken as error:
                    result.error = str(error)
    return results


def measure_all(guests, chosen, with_functions, width):
    """All guests' results, so many guests at once."""
    results, failed = {}, []
    began = time.monotonic()

    def work(guest):
        try:
            results[guest] = measure(guest, chosen[guest], with_functions)
            say(f"[{len(results) + len(failed)}/{len(guests)}] {guest.text}")
        except (Broken, OSError) as error:
            failed.append(guest)
            say(f"[{len(results) + len(failed)}/{len(guests)}] {guest.text}: FAILED\n{error}")

    say(f"counting in {len(guests)} guests, {width} at a time")
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        try:
            list(pool.map(work, guests))
        except KeyboardInterrupt:
            say("interrupted: ending the guests")
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.terminate()
            raise
    say(f"in {time.monotonic() - began:.0f} s")
    return [one for guest in guests for one in results.get(guest, ())], failed


def earlier_run(path):
    """What --compare names, read before the long run and not behind it."""
    try:
        found = json.loads(pathlib.Path(path).read_text())
        changes([], found)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"{path} is no results.json that can be read here, inside the root ({error})"
        ) from None
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Counts the instructions of the driver's operations, beside the in-tree driver's and "
        "software's. Results: build/bench/results.json and chart.svg.",
        epilog="exit status: 0 all limits hold, 1 one does not, 2 something could not be measured",
    )
    parser.add_argument("only", nargs="?", default="", metavar="REGEX", help="cases by name (--list)")
    parser.add_argument("--kernel", choices=KERNELS, help="one kernel only")
    parser.add_argument("--driver", choices=DRIVERS, help="one driver only; no limits then")
    parser.add_argument("--iommu", choices=("on", "off"), help="with or without one only")
    parser.add_argument("--profile", action="store_true", help="also say where the instructions are")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        type=earlier_run,
        help="say what has changed since this results.json, kept somewhere in the checkout",
    )
    parser.add_argument("--list", action="store_true", help="name the cases, measure nothing")
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="guests at once (default: one a core)"
    )
    return parser.parse_args()


def choose(arguments):
    """Guest to its cases."""
    guests = [
        Guest(kernel, driver, iommu)
        for kernel in KERNELS
        for iommu in (False, True)
        for driver in DRIVERS
        if arguments.kernel in (None, kernel)
        and arguments.driver in (None, driver)
        and arguments.iommu in (None, "on" if iommu else "off")
    ]
    chosen = {
        guest: [case for case in cases_of(guest) if re.search(arguments.only, case.name)]
        for guest in guests
    }
    return {guest: cases for guest, cases in chosen.items() if cases}


def report(results, bars, arguments):
    lines = []
    for kernel in KERNELS:
        for iommu in (False, True):
            lines += table.driver_table(results, bars, kernel, iommu)
            lines += table.phase_table(results, kernel, iommu)
        lines += table.software_table(results, kernel)
    if arguments.profile:
        lines += table.profile(results)
    if arguments.compare:
        lines += table.changes(changes(results, arguments.compare))
    lines += table.summary(bars)
    print("\n".join(lines))


def main():
    arguments = parse_arguments()
    chosen = choose(arguments)
    if arguments.list:
        print("\n".join(dict.fromkeys(case.name for cases in chosen.values() for case in cases)))
        return 0
    if not chosen:
        sys.exit(f"scripts/bench: no case's name matches '{arguments.only}' (--list names them)")
    if not COUNTER.exists():
        sys.exit(f"scripts/bench: there is no {COUNTER.relative_to(TOP)}: make bench WHAT=driver")
    OUT.mkdir(parents=True, exist_ok=True)
    # As Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results, failed = measure_all(
        list(chosen), chosen, arguments.profile, arguments.jobs or os.cpu_count() or 1
    )
    bars = bars_of(results)
    (OUT / "results.json").write_text(json.dumps(as_json(results, bars), indent=1) + "\n")
    (OUT / "chart.svg").write_text(chart.draw(results))
    report(results, bars, arguments)
    print(f"\nAll of it: {(OUT / 'results.json').relative_to(TOP)}; as a picture: chart.svg beside it")
    if failed:
        print(f"Not measured: {'; '.join(guest.text for guest in failed)}")
        return 2
    if any(bar.ratio is None for bar in bars):
        return 2
    return 0 if all(bar.holds for bar in bars) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
