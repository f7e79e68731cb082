# SPDX-License-Identifier: GPL-2.0
"""Child processes that never outlive the runner."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time

from failure import SetupError

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """A process of the testbed: its output goes to a file, and it dies with the runner."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        log: pathlib.Path,
        cwd: pathlib.Path,
        pass_fds=(),
    ):
        self.name = name
        self.log = log
        runner = os.getpid()

        def follow_runner():
            # The terminal's signals are for the runner, which then ends its children in order.
            os.setpgid(0, 0)
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != runner:
                os._exit(1)

        with open(log, "ab") as output:
            try:
                self.process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=cwd,
                    pass_fds=pass_fds,
                    preexec_fn=follow_runner,
                )
            except OSError as error:
                raise SetupError(
                    f"cannot start {name}: {arguments[0]}: {error.strerror}"
                ) from error
        self.pidfd = os.pidfd_open(self.process.pid)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def how_it_ended(self) -> str:
        status = self.process.poll()
        if status is None:
            return "is running"
        if status < 0:
            return f"was ended by signal {-status} ({signal.Signals(-status).name})"
        return f"ended with exit status {status}"

    def last_words(self, lines: int = 12) -> str:
        """The end of what it wrote, for an error message."""
        try:
            text = self.log.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            text = []
        return "".join(f"\n  | {line}" for line in text)

    def stop(self, patience: float = 2.0) -> None:
        """SIGTERM, and SIGKILL for what has not gone after `patience` seconds."""
        if not self.ended():
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self, patience: float) -> None:
        self.stop(patience)
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def wait_for_sockets(children: list[tuple[Child, pathlib.Path]], patience: float = 60.0) -> None:
    """Waits until each child has made its listening socket."""
    end = time.monotonic() + patience
    for child, path in children:
        while not path.is_socket():
            if child.ended():
                raise SetupError(
                    f"{child.name} {child.how_it_ended()} before it was ready{child.last_words()}"
                )
            if time.monotonic() >= end:
                raise SetupError(
                    f"{child.name} has not made {path} within {patience:.0f} s{child.last_words()}"
                )
            time.sleep(0.01)
