# SPDX-License-Identifier: GPL-2.0
"""The guest's streams: sockets that QEMU connects to, joined to the runner's own streams."""

import os
import pathlib
import selectors
import socket
import termios
import tty

CHUNK = 65536
# A pipe that polls writable takes this much without blocking.
PIPE_BUF = 4096


class Listener:
    """A socket that QEMU connects to once."""

    def __init__(self, path: pathlib.Path):
        self.server = socket.socket(socket.AF_UNIX)
        here = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            # Relative to the folder, since a socket's path is short.
            self.server.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)
        self.server.listen(1)
        self.server.setblocking(False)

    def accept(self) -> socket.socket:
        connection, _ = self.server.accept()
        connection.setblocking(False)
        self.server.close()
        return connection


class Output:
    """From a guest's port to a file descriptor of ours."""

    def __init__(self, selector: selectors.BaseSelector, path: pathlib.Path, target: int):
        self.selector = selector
        self.target = target
        self.pending = b""
        self.connection: socket.socket | None = None
        self.listener = Listener(path)
        self.broken = False
        selector.register(self.listener.server, selectors.EVENT_READ, self.connected)

    def connected(self) -> None:
        self.selector.unregister(self.listener.server)
        self.connection = self.listener.accept()
        self.selector.register(self.connection, selectors.EVENT_READ, self.readable)

    def readable(self) -> None:
        assert self.connection is not None
        try:
            data = self.connection.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None
            return
        if self.broken:
            return
        self.pending = data
        self.selector.unregister(self.connection)
        self.selector.register(self.target, selectors.EVENT_WRITE, self.writable)

    def writable(self) -> None:
        try:
            written = os.write(self.target, self.pending[:PIPE_BUF])
        except BlockingIOError:
            return
        except OSError:
            # Nobody reads any more; the guest's command goes on, as its output goes nowhere.
            self.broken = True
            written = len(self.pending)
        self.pending = self.pending[written:]
        if not self.pending:
            self.selector.unregister(self.target)
            if self.connection is not None:
                self.selector.register(self.connection, selectors.EVENT_READ, self.readable)

    def finished(self) -> bool:
        return self.connection is None and not self.pending


class Input:
    """From a file descriptor of ours to a guest's port; the end of the input is passed on too."""

    def __init__(self, selector: selectors.BaseSelector, path: pathlib.Path, source: int):
        self.selector = selector
        self.source = source
        self.pending = b""
        self.connection: socket.socket | None = None
        self.listener = Listener(path)
        selector.register(self.listener.server, selectors.EVENT_READ, self.connected)

    def connected(self) -> None:
        self.selector.unregister(self.listener.server)
        self.connection = self.listener.accept()
        self.selector.register(self.source, selectors.EVENT_READ, self.readable)

    def readable(self) -> None:
        assert self.connection is not None
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.selector.unregister(self.source)
        if data:
            self.pending = data
            self.selector.register(self.connection, selectors.EVENT_WRITE, self.writable)
        else:
            # Only our side: QEMU then reads what is still under way before it closes the port.
            self.shut()

    def writable(self) -> None:
        assert self.connection is not None
        try:
            written = self.connection.send(self.pending)
        except BlockingIOError:
            return
        except OSError:
            self.selector.unregister(self.connection)
            return
        self.pending = self.pending[written:]
        if not self.pending:
            self.selector.unregister(self.connection)
            self.selector.register(self.source, selectors.EVENT_READ, self.readable)

    def shut(self) -> None:
        try:
            assert self.connection is not None
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Lines:
    """Lines that the guest writes to a port."""

    def __init__(self, selector: selectors.BaseSelector, path: pathlib.Path, receive):
        self.selector = selector
        self.receive = receive
        self.buffer = b""
        self.listener = Listener(path)
        self.connection: socket.socket | None = None
        selector.register(self.listener.server, selectors.EVENT_READ, self.connected)

    def connected(self) -> None:
        self.selector.unregister(self.listener.server)
        self.connection = self.listener.accept()
        self.selector.register(self.connection, selectors.EVENT_READ, self.readable)

    def readable(self) -> None:
        assert self.connection is not None
        try:
            data = self.connection.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None
            return
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.receive(line.decode(errors="replace"))


class Terminal:
    """A guest's console on our terminal: one socket for both directions."""

    def __init__(
        self, selector: selectors.BaseSelector, path: pathlib.Path, source: int, target: int
    ):
        self.selector = selector
        self.source = source
        self.target = target
        self.listener = Listener(path)
        self.connection: socket.socket | None = None
        selector.register(self.listener.server, selectors.EVENT_READ, self.connected)

    def connected(self) -> None:
        self.selector.unregister(self.listener.server)
        self.connection = self.listener.accept()
        self.connection.setblocking(True)
        self.selector.register(self.connection, selectors.EVENT_READ, self.from_guest)
        self.selector.register(self.source, selectors.EVENT_READ, self.from_person)

    def from_guest(self) -> None:
        assert self.connection is not None
        data = self.connection.recv(CHUNK)
        if not data:
            self.selector.unregister(self.connection)
        while data:
            data = data[os.write(self.target, data) :]

    def from_person(self) -> None:
        assert self.connection is not None
        data = os.read(self.source, PIPE_BUF)
        if data:
            self.connection.sendall(data)
        else:
            self.selector.unregister(self.source)


class RawTerminal:
    """Puts a terminal in raw mode for as long as the guest has it."""

    def __init__(self, fd: int):
        self.fd = fd
        self.saved = termios.tcgetattr(fd)

    def __enter__(self):
        tty.setraw(self.fd)
        return self

    def __exit__(self, *_):
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self.saved)
