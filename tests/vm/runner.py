# SPDX-License-Identifier: GPL-2.0
"""Runs the numbered guest tests: boots guests, prints TAP, keeps a log a test.

A test is tests/vm/NNN-name.sh. The comment it begins with holds its header, lines `# key: value`:

  shows:    what it shows, one line
  compare:  what it provokes, in a few words: makes it a scenario, one line of the table that sets
            what the in-tree driver did beside what ours did (comparison.py)
  kernels:  those it runs on (default: 6.12 7.3)
  drivers:  in-tree, ours, none (default: in-tree ours); a pair of kernel and driver where it only
            runs on that one, such as 7.3/ours
  smp, memory, numa, node, devices, device, append, reboots: the guest, as options of
            scripts/testbed/run (`node:` and `device:` may be there more than once; default:
            SHAPE_DEFAULT below)
  boot:     shared  with other tests on the same guest (default)
            own     in a guest of its own, for tests that leave the kernel broken; drivers (or
                    pairs) behind it: with these only
            host    the test runs beside the guests and boots what it needs by itself
  limit:    seconds (default 60), for an idle machine of 2 cores without KVM
  set:      check (default), or full: with --full only; pairs behind it: these only then
  lanes:    the lanes (LANES below) in which it runs once more, with our driver: on 7.3, and with --full
            on its other kernels; with --full only in those behind the word `full`
  splats:   names from scripts/testbed/known-splats, of kernel reports that this test provokes

In a guest tests/vm/guest.sh runs the tests, marks where each begins and ends in the kernel's log, and
says how they ended; a report in a test's part of the log that it does not list fails that test. Exit status of a test: 0 passed,
77 skipped (its last line `# SKIP reason` says why), else failed.
"""

import argparse
import asyncio
import collections
import dataclasses
import os
import pathlib
import re
import shlex
import signal
import sys
import time

import comparison

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts/testbed/guest"))
import kernel_log  # noqa: E402  the testbed's own reading of a kernel's log
from failure import SPLAT  # noqa: E402

# The runner's own test has other tests run.
TESTS = os.environ.get("IAA_VM_TESTS", "tests/vm")
HERE = TOP / TESTS
RUN = TOP / "scripts/testbed/run"
KNOWN_SPLATS = kernel_log.read_known(TOP / "scripts/testbed/known-splats")
LOGS = TOP / "build/vm-logs"
# The build of the harness under test, so that a sanitized one can be tried as well.
BUILD = os.environ.get("IAA_BUILD", "build/harness")
KERNELS = ["6.12", "7.3"]
DRIVERS = ["in-tree", "ours", "none"]
# Reports of a kernel whose emulated CPUs get no time: any test may meet with them.
STARVED = ("deadline-timer-on-a-starved-cpu",)
# Guests in which what goes wrong shows that would not in others, and how much slower they are: options of
# scripts/testbed/run; tests/vm/lane.sh looks at what each is to show.
LANES = {
    "slub": (("--append", "slub_debug=FZPU"), 2),
    "swiotlb": (("--append", "swiotlb=force"), 1),
    "iommu": (("--iommu",), 2),
}
LANE_DRIVER, LANE_KERNEL = "ours", "7.3"
BOOT_LIMIT = 120  # seconds for a guest to come up and to go down, on an idle machine
SHAPE_KEYS = ["smp", "memory", "numa", "node", "devices", "device", "append", "reboots"]
SHAPE_DEFAULT = {
    "smp": ["2"],
    "memory": ["1G"],
    "device": ["--profile spr", "--profile gnr"],
}


class HeaderError(Exception):
    """A test's header cannot be used."""


@dataclasses.dataclass(frozen=True)
class Test:
    """A test file with its header."""

    name: str
    shows: str
    compare: str  # empty: no scenario
    pairs: tuple  # (kernel, driver)
    shape: tuple  # ((key, (value, ...)), ...)
    boot: str
    own_with: tuple  # drivers and pairs that `own` is for; empty: all
    limit: int
    full: tuple  # pairs that only --full runs
    splats: tuple
    lanes: tuple = ()
    full_lanes: tuple = ()  # lanes that only --full runs


@dataclasses.dataclass
class Job:
    """One test on one kernel with one driver, in a lane or in none, and how it ended."""

    test: Test
    kernel: str
    driver: str
    lane: str = ""
    status: str = ""  # ok, failed, skipped
    reason: str = ""
    did: str = "pass"  # for the table of scenarios, where it passed
    notes: list = dataclasses.field(default_factory=list)
    splats: list = dataclasses.field(default_factory=list)  # names of known ones that were seen
    seconds: float = 0.0

    @property
    def name(self):
        lane = f", {self.lane}" if self.lane else ""
        return f"{self.test.name} ({self.kernel}, {self.driver}{lane})"

    @property
    def limit(self):
        return self.test.limit * (LANES[self.lane][1] if self.lane else 1)

    @property
    def alone(self):
        """Whether it shares its guest with no other test."""
        with_this = not self.test.own_with or bool(
            {self.driver, f"{self.kernel}/{self.driver}"} & set(self.test.own_with)
        )
        return self.test.boot == "host" or (self.test.boot == "own" and with_this)

    @property
    def log(self):
        lane = f"-{self.lane}" if self.lane else ""
        return LOGS / f"{self.test.name}-{self.kernel}-{self.driver}{lane}.log"


def read_header(path):
    """The header of a test file: key to list of values."""
    header = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        found = re.match(r"#\s+([a-z]+):\s*(.*)", line)
        if found:
            header.setdefault(found[1], []).append(found[2].strip())
    return header


def parse_test(path):
    """Checks a header, so that a mistyped key or value is an error and not a test that never runs."""
    header = read_header(path)
    known = {"shows", "compare", "kernels", "drivers", "boot", "limit", "set", "splats", "lanes"}
    known |= set(SHAPE_KEYS)
    for key in header:
        if key not in known:
            raise HeaderError(f"{path.name}: no such header key '{key}'")
    one = {key: values[0] for key, values in header.items()}
    if "shows" not in one:
        raise HeaderError(f"{path.name}: the header lacks `shows:`")
    kernels = one.get("kernels", " ".join(KERNELS)).split()
    pairs = []
    for word in one.get("drivers", "in-tree ours").split():
        kernel, _, driver = word.rpartition("/")
        if driver not in DRIVERS or (kernel and kernel not in KERNELS):
            raise HeaderError(f"{path.name}: drivers: no such driver '{word}'")
        pairs += [(k, driver) for k in ([kernel] if kernel else kernels)]
    if set(kernels) - set(KERNELS):
        raise HeaderError(f"{path.name}: kernels: use {KERNELS}")
    boot, _, only = one.get("boot", "shared").partition(" ")
    if boot not in ("shared", "own", "host") or (only and boot != "own"):
        raise HeaderError(f"{path.name}: boot: use shared, own (or own DRIVER...) or host")
    chosen, *rare = one.get("set", "check").split()
    if chosen not in ("check", "full") or (rare and chosen != "full"):
        raise HeaderError(f"{path.name}: set: use check or full (or full KERNEL/DRIVER...)")
    if set(rare) - {f"{kernel}/{driver}" for kernel, driver in pairs}:
        raise HeaderError(f"{path.name}: set: {rare} are not among the test's pairs")
    lanes = one.get("lanes", "").split()
    rare_lanes = lanes[lanes.index("full") + 1 :] if "full" in lanes else []
    lanes = [lane for lane in lanes if lane != "full"]
    if set(lanes) - set(LANES) or len(set(lanes)) != len(lanes):
        raise HeaderError(f"{path.name}: lanes: use {list(LANES)}, each once")
    if lanes and (boot == "host" or (LANE_KERNEL, LANE_DRIVER) not in pairs):
        raise HeaderError(
            f"{path.name}: lanes: for tests in guests on {LANE_KERNEL}/{LANE_DRIVER} only"
        )
    shape = dict(SHAPE_DEFAULT)
    if "devices" in header:
        del shape["device"]
    if "node" in header:
        del shape["memory"], shape["smp"]
    shape.update({key: header[key] for key in SHAPE_KEYS if key in header})
    splats = (*one.get("splats", "").split(), *STARVED)
    for name in splats:
        if name not in KNOWN_SPLATS:
            raise HeaderError(f"{path.name}: splats: known-splats has no '{name}'")
    return Test(
        name=path.stem,
        shows=one["shows"],
        compare=one.get("compare", ""),
        pairs=tuple(pairs),
        shape=tuple((key, tuple(shape[key])) for key in SHAPE_KEYS if key in shape),
        boot=boot,
        own_with=tuple(only.split()),
        limit=int(one.get("limit", "60")),
        full=tuple(pair for pair in pairs if chosen == "full" and (not rare or "/".join(pair) in rare)),
        splats=splats,
        lanes=tuple(lanes),
        full_lanes=tuple(rare_lanes),
    )


def scale():
    """How much longer things take than on an idle machine."""
    wished = os.environ.get("IAA_VM_SCALE")
    if wished:
        return max(1.0, float(wished))
    return min(6.0, max(1.0, 1.0 + os.getloadavg()[0] / (os.cpu_count() or 1) / 2))


class Printer:
    """TAP on standard output."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.out = sys.stdout
        self.out.write(f"TAP version 13\n1..{total}\n")
        self.out.flush()

    def say(self, text):
        self.out.write(f"# {text}\n")
        self.out.flush()

    def result(self, job):
        self.done += 1
        mark = "not ok" if job.status == "failed" else "ok"
        line = f"{mark} {self.done} - vm/{job.name} # "
        if job.status == "skipped":
            line += f"SKIP {job.reason}"
        else:
            line += f"{job.seconds:.0f} s, test {self.done} of {self.total}"
        self.out.write(line + "\n")
        for note in job.notes:
            self.out.write(f"#   {note}\n")
        if job.status == "failed":
            self.out.write(f"#   {job.reason}\n#   log: {job.log.relative_to(TOP)}\n")
            for text in tail(job.log, 25):
                self.out.write(f"#   | {text}\n")
        self.out.flush()


def tail(path, lines):
    """The last lines of a log, without control characters."""
    if not path.exists():
        return []
    text = path.read_text(errors="replace").splitlines()
    return [re.sub(r"[^\x20-\x7e\t]", "", line)[:200] for line in text[-lines:]]


def testbed_command(kernel, driver, lane, shape, seconds, splats):
    """The call of scripts/testbed/run that boots a guest of this shape."""
    command = [str(RUN), "--kernel", kernel, "--driver", driver, "--timeout", str(int(seconds))]
    command += ["--iaa-device", f"{BUILD}/device/iaa-device", "--env", f"IAA_BUILD={BUILD}"]
    # Every test loads what it needs.
    command += ["--no-load"]
    for key, values in shape:
        for value in values:
            command += [f"--{key}", value]
    if lane:
        command += [*LANES[lane][0], "--env", f"IAA_VM_LANE={lane}"]
    for name in splats:
        command += ["--allow-splat", name]
    return command


async def end_process(process):
    """Ends a guest with all that belongs to it; the testbed cleans up after itself on SIGTERM."""
    for number, patience in ((signal.SIGTERM, 30), (signal.SIGKILL, 10)):
        if process.returncode is not None:
            return
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            await asyncio.wait_for(process.wait(), patience)
        except asyncio.TimeoutError:
            continue


class Guest:
    """One boot that runs some jobs; those it does not get to are left for the next boot."""

    def __init__(self, jobs, printer, number):
        self.jobs = jobs
        self.printer = printer
        self.by_name = {job.test.name: job for job in jobs}
        # The testbed's folder for this boot begins with it.
        self.name = f"vm-{int(time.time())}-{os.getpid()}-{number:02}"
        self.log = None
        self.ready = False
        self.bad_ends = 0
        self.last_lines = collections.deque(maxlen=40)

    async def run(self):
        first = self.jobs[0]
        factor = scale()
        limits = {job.test.name: job.limit * factor for job in self.jobs}
        whole = BOOT_LIMIT * factor + sum(limits.values()) + 30 * len(self.jobs)
        splats = sorted({name for job in self.jobs for name in job.test.splats})
        boot_log = LOGS / f"{self.name}.log"
        command = testbed_command(
            first.kernel, first.driver, first.lane, first.test.shape, whole, splats
        )
        command += ["--name", self.name]
        command += ["--env", f"IAA_KERNEL={first.kernel}", "--env", f"IAA_DRIVER={first.driver}"]
        command += ["--env", f"IAA_VM_TESTS={TESTS}"]
        if first.driver == "ours":
            command += ["--env", "IAA_VM_LEAVE_CLEAN=1"]
        command += ["--env", f"IAA_SCALE={int(factor + 0.999)}", "--", "tests/vm/guest.sh"]
        command += [f"{name}:{int(limit)}" for name, limit in limits.items()]
        self.log = boot_log.open("w")
        self.log.write("$ " + shlex.join(command) + "\n")
        self.log.flush()
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=TOP,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=1 << 20,
        )
        try:
            await self.follow(process, limits, BOOT_LIMIT * factor)
        finally:
            await end_process(process)
            self.log.close()
        return [job for job in self.jobs if not job.status]

    async def follow(self, process, limits, boot_limit):
        """Reads the guest's output until it ends; sets every finished job's status."""
        current, began, out = None, 0.0, None
        deadline = time.monotonic() + boot_limit
        while True:
            try:
                raw = await asyncio.wait_for(
                    process.stdout.readline(), max(0.1, deadline - time.monotonic())
                )
            except asyncio.TimeoutError:
                self.log.write("@@ no word from the guest within the limit\n")
                await end_process(process)
                raw = b""
                timed_out = True
            else:
                timed_out = False
            if not raw:
                break
            line = raw.decode(errors="replace").rstrip("\r\n")
            self.log.write(line + "\n")
            self.log.flush()
            words = line.split(" ", 3)
            if words[0] == "@@vm" and words[1:2] in (["begin"], ["end"]):
                self.last_lines.clear()
            if words[0] != "@@vm" or len(words) < 2:
                if out:
                    out.write(line + "\n")
                self.last_lines.append(line)
                continue
            if words[1] == "ready":
                self.ready = True
            elif words[1] == "begin":
                if current:
                    continue  # the test has rebooted the guest, and goes on
                current = self.by_name[words[2]]
                began = time.monotonic()
                # guest.sh has the limit too; this one is for a guest that no longer runs anything.
                deadline = began + limits[words[2]] + 60
                out = current.log.open("w")
            elif words[1] == "end" and current and words[2] == current.test.name:
                out.close()
                current.seconds = time.monotonic() - began
                judge(current, int(words[3]), await self.splats(current))
                self.printer.result(current)
                current, out = None, None
                deadline = time.monotonic() + boot_limit
            elif words[1] in ("again", "unfit"):
                if out:
                    out.close()
                current, out = None, None
                self.unfit()
        status = await process.wait()
        if current:
            out.close()
            current.seconds = time.monotonic() - began
            current.status = "failed"
            current.reason = (
                "the guest said nothing any more until long after the test's limit"
                if timed_out
                else f"the guest ended in the middle of the test (testbed exit status {status})"
            )
            with current.log.open("a") as log:
                log.write("\n".join(["---- end of the boot's log ----", *tail_of(self.log.name)]))
            self.printer.result(current)
        elif not self.ready:
            self.blame(self.jobs[0], f"the guest did not come up (testbed exit status {status})")
        elif not self.ended():
            self.blame(self.jobs[0], f"the guest ended before any test (testbed exit status {status})")
        elif status not in (0, SPLAT):
            self.bad_end(f"testbed exit status {status}", tail(pathlib.Path(self.log.name), 15))
        self.judge_rest()
        if status == SPLAT and not self.bad_ends and all(j.status != "failed" for j in self.jobs):
            # The testbed has seen what the log does not hold.
            self.bad_end(f"testbed exit status {status}", tail(pathlib.Path(self.log.name), 15))

    def ended(self):
        return [job for job in self.jobs if job.status]

    def bad_end(self, reason, lines):
        """Something is wrong that no test can be charged with."""
        ended = self.ended()
        behind = f" that ended with vm/{ended[-1].name}" if ended else ""
        self.printer.say(f"the guest{behind}: {reason}")
        for text in lines:
            self.printer.say(f"| {text}")
        self.bad_ends += 1

    def unfit(self):
        """A test left what cannot be cleared away: a leak of ours, or one more in-tree weakness."""
        lines = [line for line in self.last_lines if line.startswith("# FAIL")]
        if self.jobs[0].driver == "ours":
            self.bad_end("what the test left cannot be cleared away", lines)
        else:
            self.printer.say(f"the guest is not fit for another test: {' '.join(lines)}")

    def judge_rest(self):
        """The kernel's reports outside all tests: on the way up, between two tests, on the way down."""
        first = self.jobs[0]
        log = self.console()
        # What a test has broken may show until the machine is off.
        allowed = sorted({*STARVED, *(name for job in self.ended() for name in job.test.splats)})
        found = kernel_log.judge(log, first.kernel + ".0", KNOWN_SPLATS, allowed, first.driver)
        for splat in found:
            if not splat.excused_by and not in_a_test(log, splat.number):
                self.bad_end(f"kernel report outside the tests: {splat.title}", splat.lines[:40])

    def blame(self, job, reason):
        job.status, job.reason = "failed", reason
        job.log.write_text(pathlib.Path(self.log.name).read_text(errors="replace"))
        self.printer.result(job)

    def console(self):
        """What the guest's kernel has said."""
        for path in LOGS.glob(f"{self.name}-*/console.log"):
            return path.read_text(errors="replace")
        return ""

    async def splats(self, job):
        """The kernel's reports between a test's marks; the end mark may still be on its way."""
        begin, end = f"iaa-test: begin {job.test.name}", f"iaa-test: end {job.test.name}"
        text = ""
        for _ in range(50):
            text = self.console()
            if end in text:
                break
            await asyncio.sleep(0.1)
        text = text.partition(begin)[2].partition(end)[0]
        found = kernel_log.judge(text, job.kernel + ".0", KNOWN_SPLATS, job.test.splats, job.driver)
        if found:
            with job.log.open("a") as log:
                for splat in found:
                    log.write(f"---- kernel report ({splat.excused_by or 'not known'}) ----\n")
                    log.write(splat.text + "\n")
        return found


def in_a_test(log, number):
    """Whether a line of a kernel's log, counted from 1, lies between a test's marks."""
    inside = False
    for line in log.splitlines()[: number - 1]:
        if mark := re.search(r"iaa-test: (begin|end) ", line):
            inside = mark[1] == "begin"
    return inside


def judge(job, status, splats):
    """How a test went, from its exit status, its log and the kernel's reports."""
    log = job.log.read_text(errors="replace")
    job.splats = sorted({splat.excused_by for splat in splats if splat.excused_by})
    job.notes += re.findall(r"^# NOTE (.*)$", log, re.M)
    job.notes += [f"known kernel report: {name}" for name in job.splats]
    unknown = [splat for splat in splats if not splat.excused_by]
    if unknown:
        job.status, job.reason = "failed", f"kernel report: {unknown[0].title}"
    elif status == 0:
        job.status = "ok"
        job.did = (re.findall(r"^# DID (.*)$", log, re.M) or [job.did])[-1]
    elif status == 77:
        job.status = "skipped"
        found = re.findall(r"^# SKIP (.*)$", log, re.M)
        job.reason = found[-1] if found else "no reason given"
    elif status == 124:
        job.status, job.reason = "failed", "not done within its time limit"
    else:
        found = re.findall(r"^# FAIL (.*)$", log, re.M)
        job.status = "failed"
        job.reason = found[-1] if found else f"exit status {status}"


def tail_of(name):
    return tail(pathlib.Path(name), 40)


async def run_host_test(job, printer):
    """A test that runs beside the guests, with the same rules for its exit status."""
    factor = scale()
    env = dict(os.environ)
    env.update(
        IAA_KERNEL=job.kernel,
        IAA_DRIVER=job.driver,
        IAA_SCALE=str(int(factor + 0.999)),
        IAA_TEST=job.test.name,
        IAA_TEST_LOGS=str(LOGS / f"{job.test.name}-{job.kernel}-{job.driver}"),
    )
    began = time.monotonic()
    with job.log.open("w") as log:
        process = await asyncio.create_subprocess_exec(
            "bash",
            str(HERE / f"{job.test.name}.sh"),
            cwd=TOP,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = await asyncio.wait_for(process.wait(), (job.test.limit + BOOT_LIMIT) * factor)
        except asyncio.TimeoutError:
            status = 124
        finally:
            await end_process(process)
    job.seconds = time.monotonic() - began
    judge(job, status, [])
    printer.result(job)


def choose_jobs(tests, full, named, only_lanes):
    """What runs: the ordinary set or, with --full or by name, all; lanes that are asked for, or, where
    no test is named, those that belong to the set."""
    jobs = [
        Job(test, kernel, driver)
        for test in tests
        for kernel, driver in test.pairs
        if not only_lanes and (full or named or (kernel, driver) not in test.full)
    ]
    for lane in only_lanes or ([] if named and not full else LANES):
        jobs += [
            Job(test, kernel, driver, lane)
            for test in tests
            for kernel, driver in test.pairs
            if lane in test.lanes and driver == LANE_DRIVER
            if full or named or (kernel == LANE_KERNEL and lane not in test.full_lanes)
        ]
    return jobs


def make_boots(jobs):
    """Groups of jobs that share a boot, the longest first so that the last ones are short."""
    groups = {}
    for number, job in enumerate(jobs):
        alone = number if job.alone else -1
        key = (job.kernel, job.driver, job.lane, job.test.shape, alone)
        groups.setdefault(key, []).append(job)
    return sorted(groups.values(), key=lambda group: -sum(job.limit for job in group))


class Runner:
    """Keeps so many guests running at once until all jobs are done."""

    def __init__(self, jobs, width):
        self.jobs = jobs
        self.width = width
        self.printer = Printer(len(jobs))
        self.boots = 0
        self.failed_boots = 0
        self.bad_ends = 0

    async def work(self, queue):
        while queue:
            group = queue.pop(0)
            if group[0].test.boot == "host":
                await run_host_test(group[0], self.printer)
                continue
            while group:
                self.boots += 1
                guest = Guest(group, self.printer, self.boots)
                what = f"{len(group)} test{'s' if len(group) > 1 else ''}"
                lane = f" in lane {group[0].lane}" if group[0].lane else ""
                self.printer.say(
                    f"booting {group[0].kernel} with driver {group[0].driver}{lane} for {what}"
                )
                group = await guest.run()
                self.bad_ends += guest.bad_ends
                if guest.ready:
                    continue
                # A machine that cannot boot one guest will not boot the next one: stop trying.
                self.failed_boots += 1
                if self.failed_boots >= 3:
                    for job in group:
                        guest.blame(job, "not run: three guests did not come up")
                    group = []

    async def run(self):
        queue = make_boots(self.jobs)
        workers = [asyncio.create_task(self.work(queue)) for _ in range(self.width)]
        stop = asyncio.get_running_loop().create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(
                number, lambda: stop.done() or stop.set_result(None)
            )
        everything = asyncio.gather(*workers)
        await asyncio.wait([everything, stop], return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            self.printer.say("interrupted: ending the guests")
            everything.cancel()
            try:
                await everything
            except asyncio.CancelledError:
                pass
            return
        await everything


def summary(runner, jobs, began):
    """What a person wants to know, and the last line for programs."""
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    for job in jobs:
        if not job.status:
            job.status, job.reason = "failed", "not run"
    count = {s: [j for j in jobs if j.status == s] for s in ("ok", "failed", "skipped")}
    print(f"\nGuest tests: {len(jobs)} in {runner.boots} boots, {minutes} min {seconds:02} s")
    for title, status in (("Failed", "failed"), ("Skipped", "skipped")):
        if count[status]:
            print(f"{title}:")
            for job in count[status]:
                print(f"  vm/{job.name}: {job.reason}")
    known = sorted({(name, job.name) for job in jobs for name in job.splats})
    if known:
        print("Known kernel reports (scripts/testbed/known-splats explains them):")
        for name, job in known:
            print(f"  {name} by vm/{job}")
    if {"in-tree", "ours"} <= {job.driver for job in jobs if job.test.compare}:
        print("What each driver did in the scenarios:", *comparison.table(jobs), sep="\n")
    if runner.bad_ends:
        print(f"{runner.bad_ends} guests did not end as they should, see above")
    print(
        f"{len(count['ok'])} passed, {len(count['failed']) + runner.bad_ends} failed, "
        f"{len(count['skipped'])} skipped"
    )
    return 1 if count["failed"] or runner.bad_ends else 0


def run_jobs(jobs, width):
    """Runs them all, so many guests at once; prints how it went, and returns the exit status."""
    began = time.monotonic()
    runner = Runner(jobs, width)
    asyncio.run(runner.run())
    return summary(runner, jobs, began)


def main():
    parser = argparse.ArgumentParser(
        prog="tests/vm/run",
        description="Runs the guest tests. Logs: build/vm-logs.",
        epilog="IAA_BUILD=build/asan takes the model and the programs from that build.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="021-zswap, 021, or zswap")
    parser.add_argument("--full", action="store_true", help="the slow tests as well")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="the scenarios only, all of them; results.json and table.md go to build/compare",
    )
    parser.add_argument("--kernel", action="append", choices=KERNELS)
    parser.add_argument("--driver", action="append", choices=DRIVERS)
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="guests at once (default: one a core)"
    )
    parser.add_argument("--list", action="store_true", help="say what there is, run nothing")
    parser.add_argument(
        "--lane", action="append", choices=LANES, help="only this lane of the tests that have it"
    )
    args = parser.parse_args()

    try:
        tests = [parse_test(path) for path in sorted(HERE.glob("[0-9][0-9][0-9]-*.sh"))]
    except (HeaderError, ValueError) as error:
        sys.exit(f"tests/vm/run: {error}")
    if args.names:
        chosen = []
        for name in args.names:
            name = name.removeprefix("vm/").removesuffix(".sh")
            found = [t for t in tests if name in (t.name, t.name[:3], t.name[4:])]
            if not found:
                sys.exit(f"tests/vm/run: no test '{name}' (--list names them)")
            chosen += found
        tests = chosen
    if args.compare:
        tests = [test for test in tests if test.compare]
    jobs = [
        job
        for job in choose_jobs(tests, args.full, bool(args.names) or args.compare, args.lane)
        if job.kernel in (args.kernel or KERNELS) and job.driver in (args.driver or DRIVERS)
    ]
    if args.list:
        for test in tests:
            where = " ".join(
                f"{kernel}/{driver}" + (" (full)" if (kernel, driver) in test.full else "")
                for kernel, driver in test.pairs
            )
            for lane in test.lanes:
                where += f" {lane}" + (" (full)" if lane in test.full_lanes else "")
            print(f"{test.name:28} {test.boot:7} {where}\n    {test.shows}")
        return 0
    if not jobs:
        sys.exit("tests/vm/run: no test fits that choice of kernel and driver")

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    width = args.jobs or max(1, min(os.cpu_count() or 1, memory // 2))
    LOGS.mkdir(parents=True, exist_ok=True)
    for old in sorted(LOGS.glob("vm-*.log"))[:-100]:
        old.unlink(missing_ok=True)
    status = run_jobs(jobs, width)
    if args.compare:
        comparison.write(jobs, TOP / "build/compare", TOP)
        # A scenario that was skipped says nothing of either driver.
        status = status or int(any(job.status != "ok" for job in jobs))
    return status


if __name__ == "__main__":
    sys.exit(main())
