# SPDX-License-Identifier: GPL-2.0
"""Boots a guest, runs a command in it and judges how it went: what scripts/testbed/run starts.

Runs inside the root, as root, in a mount namespace of its own.
"""

import collections
import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import resource
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

import accelerator
import channels
import kernel_log
import kernels
import machine
import options as options_module
from failure import DEADLINE, DEVICE_DIED, NO_STATUS, SETUP, SPLAT, Failure, SetupError
from options import Options
from processes import Child, wait_for_sockets

HERE = pathlib.Path(__file__).resolve().parent
TESTBED = HERE.parent
PROJECT = TESTBED.parent.parent
CACHE = pathlib.Path(os.environ.get("IAA_CACHE", "/var/cache/iaa")) / "testbed"
KEPT_RUNS = 200
# From the command's end until the guest gives its power-off up; after twice as long, it is ended.
POWER_OFF_SECONDS = 10
CPU_NICENESS = 7
# From QEMU's start until the guest says that it runs.
BOOT_SECONDS = 300
MS_RDONLY = 0x1
MS_REMOUNT = 0x20
MS_BIND = 0x1000


def say(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr, flush=True)


def mount(source: str, target: pathlib.Path, kind: str | None, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(target), kind and kind.encode(), flags, None):
        raise SetupError(f"cannot mount {source} at {target}: {os.strerror(ctypes.get_errno())}")


def bind(source: pathlib.Path, target: pathlib.Path) -> None:
    """Bind-mounts one folder, without what is mounted below it."""
    mount(str(source), target, None, MS_BIND)


class Run:
    """One guest from its set-up to its verdict."""

    def __init__(self, options: Options):
        self.options = options
        self.selector = selectors.PollSelector()
        self.children: list[Child] = []
        self.devices: list[Child] = []
        self.dead_devices: list[str] = []
        self.qemu: Child | None = None
        self.command_status: int | None = None
        self.guest_error: str | None = None
        self.ready_after: float | None = None
        self.status_at: float | None = None
        self.boots = 0
        self.seen_log = 0
        self.panicked = False
        self.hangs = False
        # As the guest tests tell how busy the machine is.
        scale = options.environment.get("IAA_SCALE", "1")
        self.patience = POWER_OFF_SECONDS * (int(scale) if scale.isdigit() else 1)
        self.judged_bytes: int | None = None
        self.interrupted: int | None = None
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
        self.folder = PROJECT / "build/vm-logs" / f"{options.name}-{stamp}-{os.getpid()}"

    # Set-up

    def prepare(self) -> None:
        options = self.options
        self.known = kernel_log.read_known(TESTBED / "known-splats")
        kernel_log.judge("", "", self.known, options.allowed_splats, options.driver)
        self.kernel = kernels.find(options.kernel)
        self.modules = PROJECT / "build/modules" / self.kernel.release
        self.folder.mkdir(parents=True)
        self.forget_old_runs()
        self.accelerator = accelerator.choose(options.accelerator, self.kernel, CACHE)
        self.layer = kernels.modules_layer(self.kernel, self.driver_modules(), CACHE / "layers")
        self.make_trees()

    def driver_modules(self) -> list[pathlib.Path]:
        if self.options.driver != "ours":
            return []
        modules = sorted(self.modules.glob("*.ko"))
        if not any(path.name == "iaa_crypto.ko" for path in modules):
            raise SetupError(
                f"there is no {self.modules.relative_to(PROJECT)}/iaa_crypto.ko: build it (make test-modules), "
                "or say --driver in-tree or --driver none"
            )
        return modules

    def helper(self) -> pathlib.Path:
        """The MOVDIR64B module, built if need be."""
        target = self.modules / "test/movdir64b"
        built = target / "movdir64b.ko"
        sources = [PROJECT / "scripts/kmod-build", *(TESTBED / "movdir64b").iterdir()]
        if built.exists() and all(path.stat().st_mtime < built.stat().st_mtime for path in sources):
            return built
        result = subprocess.run(
            [PROJECT / "scripts/kmod-build", self.kernel.release, TESTBED / "movdir64b", target],
            capture_output=True,
            text=True,
            timeout=300,
        )
        if result.returncode:
            raise SetupError(
                f"the MOVDIR64B helper cannot be built:\n{result.stdout}{result.stderr}"
            )
        built.touch()
        return built

    def make_trees(self) -> None:
        """What the guest mounts: the bare root with the testbed's scripts, and the host's side."""
        scratch = pathlib.Path("/run/testbed")
        scratch.mkdir(exist_ok=True)
        # Only this run's mount namespace sees it.
        mount("testbed", scratch, "tmpfs", 0)
        self.rootfs, self.host = scratch / "rootfs", scratch / "host"
        self.share = self.folder / "share"
        for path in (self.rootfs, self.host, self.share):
            path.mkdir(parents=True)
        bind(pathlib.Path("/"), self.rootfs)
        bind(TESTBED, self.rootfs / "testbed")
        for name, source in (("project", PROJECT), ("run", self.share)):
            (self.host / name).mkdir()
            bind(source, self.host / name)
        # A guest whose kernel runs wild must not reach the sources.
        mount("none", self.host / "project", None, MS_REMOUNT | MS_BIND | MS_RDONLY)
        bind(PROJECT / "build", self.host / "project/build")
        (self.host / "layer").mkdir()
        if self.layer:
            bind(self.layer, self.host / "layer")
        self.write_configuration()

    def write_configuration(self) -> None:
        options = self.options
        directory = os.getcwd()
        if not directory.startswith(f"{PROJECT}/") and directory != str(PROJECT):
            directory = str(PROJECT)
        values = {
            "driver": options.driver if options.load else "none",
            "autoprobe": int(options.autoprobe),
            "helper": self.helper(),
            "interactive": int(options.interactive),
            "patience": self.patience,
            "project": PROJECT,
            "devices": " ".join(place.sysfs for place in machine.places(options)),
        }
        lines = [f"{key}={shlex.quote(str(value))}" for key, value in values.items()]
        (self.share / "config").write_text("\n".join(lines) + "\n")
        environment = {"IAA_DRIVER": options.driver, "IAA_DEVICES": str(len(options.devices))}
        for name in ("TERM", "NO_COLOR"):
            if name in os.environ:
                environment[name] = os.environ[name]
        exports = [
            f"export {name}={shlex.quote(value)}"
            for name, value in (environment | options.environment).items()
        ]
        words = " ".join(shlex.quote(word) for word in options.command)
        if options.interactive:
            size = shutil.get_terminal_size()
            exports.append(f"stty rows {size.lines} cols {size.columns}")
        script = [*exports, f"cd {shlex.quote(directory)} || exit 125", f"exec {words}"]
        (self.share / "command").write_text("\n".join(script) + "\n")

    def forget_old_runs(self) -> None:
        """Keeps build/vm-logs from growing for ever; runs that have not ended are left alone."""
        ended = []
        for path in self.folder.parent.glob("*-[0-9]*-[0-9]*-[0-9]*"):
            # Another run may be at the same.
            with contextlib.suppress(FileNotFoundError):
                if not os.path.exists(f"/proc/{path.name.rpartition('-')[2]}"):
                    ended.append((path.stat().st_mtime, path))
        for _, path in sorted(ended)[:-KEPT_RUNS]:
            shutil.rmtree(path, ignore_errors=True)

    # Processes

    def start(self, name: str, arguments: list[str], log: str) -> Child:
        child = Child(name, arguments, self.folder / log, self.folder)
        self.children.append(child)
        return child

    def start_file_servers(self) -> None:
        waiting = []
        # The root never changes while a guest runs; the project may, on both sides.
        for name, tree, extra in (
            (machine.ROOT_SOCKET, self.rootfs, ["--cache", "always", "--readonly"]),
            (machine.HOST_SOCKET, self.host, ["--cache", "auto", "--allow-mmap"]),
        ):
            arguments = ["/usr/libexec/virtiofsd", "--shared-dir", str(tree), "--socket-path", name]
            arguments += ["--sandbox", "none", "--no-announce-submounts", "--rlimit-nofile", "0"]
            arguments += ["--log-level", "warn", *extra]
            child = self.start(f"virtiofsd ({tree.name})", arguments, f"virtiofsd-{tree.name}.log")
            waiting.append((child, self.folder / name))
        wait_for_sockets(waiting)

    def start_devices(self) -> None:
        options = self.options
        if not options.devices:
            return
        binary = pathlib.Path(options.iaa_device)
        if not binary.is_absolute():
            binary = PROJECT / binary
        if not os.access(binary, os.X_OK):
            raise SetupError(
                f"there is no {options.iaa_device}: build it (make harness), or name one with --iaa-device"
            )
        if options.trace:
            pathlib.Path(options.trace).mkdir(parents=True, exist_ok=True)
        waiting = []
        for index, device in enumerate(options.devices):
            arguments = [str(binary), "--socket", machine.device_socket(index)]
            arguments += ["--control", machine.control_socket(index)]
            if options.trace:
                arguments += [
                    "--trace",
                    str(pathlib.Path(options.trace).resolve() / f"device-{index}.trace"),
                ]
            child = self.start(
                f"iaa-device {index}", arguments + list(device.arguments), f"device-{index}.log"
            )
            self.devices.append(child)
            waiting.append((child, self.folder / machine.device_socket(index)))
            waiting.append((child, self.folder / machine.control_socket(index)))
        wait_for_sockets(waiting)

    def open_streams(self, stack: contextlib.ExitStack) -> None:
        folder = self.folder
        self.status = channels.Lines(self.selector, folder / "status", self.guest_says)
        self.outputs = [
            channels.Output(self.selector, folder / "stdout", 1),
            channels.Output(self.selector, folder / "stderr", 2),
        ]
        if self.options.interactive:
            if not os.isatty(0):
                raise SetupError("an interactive guest needs a terminal")
            stack.enter_context(channels.RawTerminal(0))
            # The same socket both ways.
            self.terminal = channels.Terminal(self.selector, folder / machine.TERMINAL, 0, 1)
            devnull = os.open(os.devnull, os.O_RDONLY)
            self.input = channels.Input(self.selector, folder / "stdin", devnull)
        else:
            self.input = channels.Input(self.selector, folder / "stdin", 0)

    def start_qemu(self) -> None:
        arguments = machine.command_line(self.options, self.kernel, self.accelerator)
        (self.folder / "qemu.cmd").write_text(shlex.join(arguments) + "\n")
        self.qemu = self.start("QEMU", arguments, "qemu.log")
        self.started = time.monotonic()

    # Events

    def guest_says(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "boot":
            self.boots = int(rest)
            self.make_way()
            if self.boots > self.options.reboots + 1:
                raise Failure(
                    NO_STATUS, f"the guest has rebooted {self.boots - 1} times{self.log_tail()}"
                )
        elif word == "ready":
            self.ready_after = time.monotonic() - self.started
        elif word == "failed":
            self.guest_error = rest
        elif word == "exit":
            self.command_status = int(rest)
            self.status_at = time.monotonic()

    def make_way(self) -> None:
        """An emulated CPU that polls must not keep the device from answering, nor QEMU from asking it:
        the driver of 7.3 gives a device up after a million looks."""
        assert self.qemu is not None
        for task in pathlib.Path(f"/proc/{self.qemu.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                if (task / "comm").read_text().startswith("CPU "):
                    os.setpriority(os.PRIO_PROCESS, int(task.name), CPU_NICENESS)

    def watch_log(self) -> None:
        """Looks at what the kernel has said since the last time, for its end."""
        try:
            with open(self.folder / machine.CONSOLE_LOG, "rb") as log:
                log.seek(self.seen_log)
                text = log.read()
        except FileNotFoundError:
            return
        *_, last = text.rpartition(b"\n")
        self.seen_log += len(text) - len(last)
        if kernel_log.FATAL.search(text.decode(errors="replace")):
            self.panicked = True

    def loop(self) -> None:
        """Serves the streams until QEMU has ended, or until something says that it has to."""
        options, qemu = self.options, self.qemu
        assert qemu is not None
        self.selector.register(qemu.pidfd, selectors.EVENT_READ, lambda: None)
        for child in self.children:
            if child is not qemu:
                self.selector.register(child.pidfd, selectors.EVENT_READ, lambda: None)
        next_look = 0.0
        panicked_at = None
        while not qemu.ended():
            now = time.monotonic()
            for child in [
                child
                for child in self.children
                if child is not qemu and child.pidfd >= 0 and child.ended()
            ]:
                self.child_ended(child)
            self.heed_signals()
            if now >= next_look:
                next_look = now + 0.5
                self.watch_log()
                if self.panicked and panicked_at is None:
                    panicked_at = now
            if panicked_at is not None and now - panicked_at > 3:
                raise Failure(NO_STATUS, "the guest's kernel panicked")
            if self.status_at is not None and now - self.status_at > 2 * self.patience:
                say(f"the guest is not off {2 * self.patience} s after its command: ending it")
                self.hangs = True
                break
            if self.status_at is None and options.timeout and now - self.started > options.timeout:
                raise Failure(DEADLINE, self.deadline_message())
            if self.boots == 0 and now - self.started > BOOT_SECONDS:
                raise Failure(
                    DEADLINE, f"the guest has not booted within {BOOT_SECONDS} s{self.log_tail()}"
                )
            self.serve(0.25)
        self.watch_log()
        if self.hangs:
            qemu.stop()
        # Those that have ended would be ready all the time.
        for child in self.children:
            if child.pidfd >= 0:
                self.selector.unregister(child.pidfd)
        # What is still in the sockets, however slowly it is read.
        while not all(output.finished() for output in self.outputs):
            self.heed_signals()
            self.serve(0.25)

    def heed_signals(self) -> None:
        if self.interrupted is not None:
            name = signal.Signals(self.interrupted).name
            raise Failure(128 + self.interrupted, f"ended by {name}")

    def serve(self, patience: float) -> None:
        for key, _ in self.selector.select(patience):
            key.data()

    def child_ended(self, child: Child) -> None:
        self.selector.unregister(child.pidfd)
        os.close(child.pidfd)
        child.pidfd = -1
        if child not in self.devices:
            # A file server ends when QEMU does: who was first is hard to see.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.qemu.process.wait(1)
            if self.status_at is None and not self.qemu.ended():
                raise Failure(
                    NO_STATUS, f"{child.name} {child.how_it_ended()} in mid-run{child.last_words()}"
                )
            return
        if self.status_at is not None and child.process.returncode == 0:
            return
        text = f"{child.name} {child.how_it_ended()} in mid-run"
        self.dead_devices.append(text)
        if not self.options.device_may_die:
            raise Failure(
                DEVICE_DIED, f"{text}: its guest would wait for it for ever{child.last_words()}"
            )
        say(f"{text}; going on without it, as --device-may-die says")

    def how_devices_ended(self) -> Failure | None:
        """Asked once all is over: a model ends well when it is told to, and not by itself."""
        for child in self.devices:
            if child.process.returncode == 0:
                continue
            text = f"{child.name} {child.how_it_ended()}"
            if any(known.startswith(text) for known in self.dead_devices):
                continue
            self.dead_devices.append(text)
            if not self.options.device_may_die:
                return Failure(DEVICE_DIED, f"{text} at its end{child.last_words()}")
        return None

    def deadline_message(self) -> str:
        if self.ready_after is None:
            at = "it had not finished booting"
        else:
            at = f"its command had been running for {self.options.timeout - self.ready_after:.0f} s"
        tail = self.log_tail()
        # What the kernel says from here on is an answer, not a complaint.
        self.judged_bytes = len(self.log_text())
        self.ask_for_stacks()
        return (
            f"the deadline of {self.options.timeout:g} s passed and the guest was ended; {at}{tail}"
        )

    def ask_for_stacks(self) -> None:
        """An NMI makes the kernel say where its CPUs are, into its log."""
        try:
            with socket.socket(socket.AF_UNIX) as monitor:
                monitor.settimeout(2)
                here = os.open(self.folder, os.O_PATH)
                try:
                    monitor.connect(f"/proc/self/fd/{here}/{machine.MONITOR_SOCKET}")
                finally:
                    os.close(here)
                for command in ("qmp_capabilities", "inject-nmi"):
                    monitor.sendall(json.dumps({"execute": command}).encode() + b"\n")
                end = time.monotonic() + 5
                while time.monotonic() < end and self.qemu and not self.qemu.ended():
                    self.serve(0.1)
        except OSError as error:
            say(f"the guest's stacks cannot be had: {error}")

    # Verdict

    def log_text(self) -> str:
        try:
            return (self.folder / machine.CONSOLE_LOG).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def log_tail(self, lines: int = 15) -> str:
        tail = self.log_text().splitlines()[-lines:]
        return (
            "; the kernel's last words:" + "".join(f"\n  | {line}" for line in tail) if tail else ""
        )

    def verdict(self, failure: Failure | None) -> int:
        """The exit status; says what is wrong, and leaves result.json."""
        log = self.log_text()[: self.judged_bytes]
        if self.hangs and kernel_log.NO_POWER_OFF not in log:
            log += f"\n{kernel_log.NO_POWER_OFF}\n"
        splats = kernel_log.judge(
            log,
            self.kernel.release,
            self.known,
            self.options.allowed_splats,
            self.options.driver,
        )
        bad = [splat for splat in splats if splat.excused_by is None]
        excused = collections.Counter(splat.excused_by for splat in splats if splat.excused_by)
        if failure:
            status, reason = failure.status, str(failure)
        elif self.guest_error:
            status, reason = SETUP, f"the guest could not be set up: {self.guest_error}"
        elif self.boots == 0 and self.qemu and self.qemu.process.returncode == 1:
            status, reason = SETUP, f"QEMU did not start{self.qemu.last_words()}"
        elif self.command_status is None:
            assert self.qemu is not None
            status = NO_STATUS
            reason = (
                f"the guest ended without giving an exit status (QEMU {self.qemu.how_it_ended()})"
            )
            if self.panicked:
                reason = "the guest's kernel panicked"
            elif not bad:
                reason += self.qemu.last_words() + self.log_tail()
        elif bad:
            status, reason = (
                SPLAT,
                f"the command's exit status was {self.command_status}, but the kernel complained",
            )
        else:
            status, reason = self.command_status, ""
        for name, count in excused.items():
            say(f"excused: {name}, {count} time{'s' if count > 1 else ''} ({self.known[name].why})")
        if reason:
            say(reason)
        for splat in bad[:5]:
            say(f"kernel log, line {splat.number}:")
            shown = splat.lines[:40]
            for line in shown:
                print(f"  | {line}", file=sys.stderr)
            if len(splat.lines) > len(shown):
                print(f"  | ... {len(splat.lines) - len(shown)} more lines", file=sys.stderr)
        if len(bad) > 5:
            say(f"and {len(bad) - 5} more reports")
        if reason or bad:
            say(f"logs: {self.folder.relative_to(PROJECT)}")
        result = {
            "status": status,
            "reason": reason,
            "command": self.options.command,
            "command_status": self.command_status,
            "kernel": self.kernel.release,
            "accelerator": self.accelerator,
            "seconds": round(time.monotonic() - self.started, 1),
            "ready_after": self.ready_after and round(self.ready_after, 1),
            "boots": self.boots,
            "splats": [{"line": splat.number, "title": splat.title} for splat in bad],
            "excused": dict(excused),
            "dead_devices": self.dead_devices,
        }
        (self.folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        if self.options.log:
            shutil.copyfile(self.folder / machine.CONSOLE_LOG, self.options.log)
        return status

    def close(self) -> None:
        # QEMU first: a device that goes before its client is an error, after it is routine.
        for child in reversed(self.children):
            # A model may have a trace to finish.
            child.close(15 if child in self.devices else 2)
        if self.folder.exists():
            for path in self.folder.iterdir():
                if path.is_socket() or path.suffix == ".pid":
                    path.unlink(missing_ok=True)

    def perform(self) -> int:
        failure: Failure | None = None
        try:
            with contextlib.ExitStack() as stack:
                self.prepare()
                self.start_file_servers()
                self.start_devices()
                self.open_streams(stack)
                self.start_qemu()
                if self.options.verbose:
                    say(
                        f"{self.kernel.release} on {self.accelerator}, "
                        f"logs in {self.folder.relative_to(PROJECT)}"
                    )
                try:
                    self.loop()
                except Failure as caught:
                    failure = caught
        finally:
            self.close()
        return self.verdict(failure or self.how_devices_ended())


def main() -> int:
    try:
        options = options_module.parse(sys.argv[1:])
        if os.geteuid() or not pathlib.Path("/etc/iaa-testbed-root").exists():
            raise SetupError("run this through scripts/testbed/run, which enters the root")
    except options_module.UsageError as error:
        say(f"{error}\nusage: {options_module.USAGE} (--help tells more)")
        return SETUP
    except Failure as failure:
        say(str(failure))
        return failure.status
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run = Run(options)

    def interrupted(number, _frame):
        run.interrupted = number
        if run.qemu is None:
            raise Failure(128 + number, f"ended by {signal.Signals(number).name}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        return run.perform()
    except Failure as failure:
        say(str(failure))
        return failure.status


if __name__ == "__main__":
    sys.exit(main())
