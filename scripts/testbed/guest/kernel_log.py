# SPDX-License-Identifier: GPL-2.0
"""Reads a guest's kernel log: finds what a kernel says when something is wrong with it."""

import collections.abc
import configparser
import dataclasses
import fnmatch
import pathlib
import re

from failure import SetupError

# What the testbed adds to a log.
NO_POWER_OFF = "testbed: the machine does not power off"

# What begins a report. Each is a pattern on a line without its timestamp.
TRIGGERS = [
    re.compile(pattern)
    for pattern in (
        r"-+\[ cut here \]-+",
        r"WARNING: ",
        r"BUG: ",
        r"kernel BUG at ",
        r"(?:.*: )?Oops: ",
        r"Kernel panic - not syncing",
        r"general protection fault",
        r"(?:.*: )?(?:invalid opcode|divide error|double fault|int3): \d{4} ",
        r"stack segment: ",
        r"unchecked MSR access error",
        r"watchdog: (?:BUG: )?(?:soft|hard) lockup",
        r"(?:NMI )?watchdog: Watchdog detected hard LOCKUP",
        r"INFO: task .* blocked for more than",
        r"INFO: task hung",
        r"INFO: trying to register non-static key",
        r"INFO: (?:possible|inconsistent|suspicious) ",
        r"rcu: INFO: .* (?:detected|self-detected|stall)",
        r"rcu: .*(?:stalls on|kthread starved|self-detected stall)",
        r"refcount_t: ",
        r"list_(?:add|del)(?:\[|_| )?.*corruption",
        r"UBSAN: ",
        r"KCSAN: ",
        r"kmemleak: [1-9]\d* new suspected",
        r"DMA-API: (?!preallocated|debugging)",
        r"DMAR: (?:DRHD: handling fault|\[)",
        r"ODEBUG: ",
        r"(?:page_owner|Bad page state|page:.* is corrupted)",
        r"percpu ref .* <= 0 .* after switching to atomic",
        r"BUG [\w-]+ \(",
        r"slab error|slab corruption",
        r"sysfs: cannot create duplicate filename",
        r"alg: self-tests for .* failed",
        r"alg: .*(?:test failed|failed to load|[Tt]est \d+ failed|failed on)",
        r"usercopy: Kernel memory",
        r"Unable to handle kernel",
        r"unregister_netdevice: waiting",
        r".* invoked oom-killer: ",
        r".*: page allocation failure: order:",
        r"module .*: .*(?:disagrees about version|Unknown symbol)",
        r"failed to validate module .* BTF",
        r"BPF: .*Invalid",
        re.escape(NO_POWER_OFF),
        r"Call Trace:",
    )
]
# What belongs to a report once it has begun.
BODY = re.compile(
    r"""-*\[\ (?:cut\ here|end\ )|\s|<[/A-Z]|Call\ Trace|CPU:|CPU\#|PID:|Tainted|Hardware\ name
    |Workqueue:|RIP:|RSP:|RAX:|RDX:|RBP:|R\d\d:|R[A-Z0-9]{2}:|FS:|CS:|CR2:|CR3:|DR\d|PKRU|EFLAGS
    |Code:|Modules\ linked|\[last\ unloaded|"echo\ 0|\?|[\w.]+\+0x|\(detected|NMI\ backtrace|Sending\ NMI
    |task:|Unloaded\ tainted|---|\#PF:|PGD|Oops|BUG|WARNING|Kernel\ panic|Kernel\ Offset|note:
    |irq\ event|hardirqs|softirqs|\#\d|locks\ held|other\ info|stack\ backtrace|but\ task
    |which\ lock|Possible|the\ existing|Showing|\d+\ lock|Memory\ state|flags:|page_type|raw:|page\ dumped
    |Allocated\ by|Freed\ by|The\ buggy|rcu:|kfence|KFENCE|$""",
    re.VERBOSE,
)
# Signs that a report may hold further down; any other sign begins one of its own.
INNER = re.compile(
    r"Oops: |Call Trace:|(?:.*: )?(?:Oops|invalid opcode|divide error): |watchdog: BUG: "
)
END = re.compile(r"-+\[ end (?:trace|Kernel panic)")
# What no guest comes back from, so that nobody waits for the deadline.
FATAL = re.compile(r"Kernel panic - not syncing|Attempted to kill init|end Kernel panic")
PREFIX = re.compile(r"^(?:<\d+>)?\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? ?")
# Other CPUs speak while one makes its report: so long after its last line it may still go on.
TORN_SECONDS = 0.5
MAX_REPORT = 160


@dataclasses.dataclass
class Splat:
    """One report: the lines of it, the first of which says most."""

    lines: list[str]
    number: int
    excused_by: str | None = None

    @property
    def title(self) -> str:
        for line in self.lines:
            if "cut here" not in line:
                return line
        return self.lines[0]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclasses.dataclass(frozen=True)
class Known:
    """A splat with a name: a bug of somebody else's that is understood."""

    name: str
    kernels: tuple[str, ...]
    driver: str
    pattern: re.Pattern
    why: str

    def covers(self, splat: Splat, release: str, driver: str) -> bool:
        return (
            any(fnmatch.fnmatch(release, kernel) for kernel in self.kernels)
            and self.driver in ("any", driver)
            and self.pattern.search(splat.text) is not None
        )


def strip(line: str) -> str:
    return PREFIX.sub("", line.rstrip("\r\n"))


def find_splats(text: str) -> list[Splat]:
    """All reports in a log, in order."""
    splats: list[Splat] = []
    current: Splat | None = None
    last = now = 0.0  # when the current report's last line was said, and this one
    torn = False  # others have spoken since the current report began
    for number, raw in enumerate(text.splitlines(), 1):
        line = strip(raw)
        if stamp := PREFIX.match(raw):
            now = float(stamp[1])
        begins = any(trigger.match(line) for trigger in TRIGGERS)
        if current is not None and torn and not 0 <= now - last <= TORN_SECONDS:
            current = None
        if current is not None:
            heading = only_heading(current) and "cut here" not in line
            inside = BODY.match(line)
            if begins:
                # Behind others' lines, what a report has had already is another's.
                inside = INNER.match(line) and not (torn and "Call Trace:" in current.lines)
            # The line after "cut here" is the kernel's own message, whatever it says.
            if (heading or inside) and len(current.lines) < MAX_REPORT:
                current.lines.append(line)
                last = now
                if END.match(line):
                    current = None
                continue
            torn = True
            if begins:
                current = None
        if begins:
            current = Splat([line], number)
            splats.append(current)
            last, torn = now, False
    return splats


def only_heading(splat: Splat) -> bool:
    return len(splat.lines) <= 2 and "cut here" in splat.lines[0]


def read_known(path: pathlib.Path) -> dict[str, Known]:
    """The file of known splats: sections named after the splat, with kernel, match and why."""
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",), strict=True)
    known = {}
    try:
        parser.read_string(path.read_text(), str(path))
        for name in parser.sections():
            section = parser[name]
            kernels = tuple(section["kernel"].split())
            pattern = re.compile(section["match"].replace("\n", ""), re.DOTALL)
            driver = section["driver"].strip()
            if (
                not section["why"].strip()
                or not kernels
                or driver not in ("in-tree", "ours", "any")
            ):
                raise SetupError(
                    f"{path}: [{name}] needs a kernel, a reason, and driver in-tree, ours or any"
                )
            known[name] = Known(name, kernels, driver, pattern, " ".join(section["why"].split()))
    except (OSError, configparser.Error, re.error, KeyError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    return known


def judge(
    text: str,
    release: str,
    known: dict[str, Known],
    allowed: collections.abc.Sequence[str],
    driver: str,
) -> list[Splat]:
    """The log's reports, those that an allowed name covers marked with it."""
    for name in allowed:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise SetupError(
                f"--allow-splat {name}: no such name in known-splats (there are: {names})"
            )
    splats = find_splats(text)
    for splat in splats:
        splat.excused_by = next(
            (name for name in allowed if known[name].covers(splat, release, driver)), None
        )
    return splats
