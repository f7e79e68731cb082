#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the first inputs of fuzz_server and fuzz_device: make_corpus.py FOLDER.

client.h says what an input looks like."""

import pathlib
import struct
import sys

VERSION, SHARED, UNSHARED, EVENTFDS, THREADS, GNR = 1, 2, 4, 8, 0x40, 0x80
ALL = VERSION | SHARED | UNSHARED | EVENTFDS
NO_REPLY = 0x80
BAR0, BAR2, CONFIG = 0, 2, 7


def piece(kind, payload=b"", descriptors=0):
    return struct.pack("<BBH", kind, descriptors, len(payload)) + payload


def read(region, offset, count):
    return piece(9, struct.pack("<QII", offset, region, count))


def write(region, offset, data, posted=True):
    payload = struct.pack("<QII", offset, region, len(data)) + data
    return piece(10, payload, NO_REPLY if posted else 0)


def write32(offset, value):
    return write(BAR0, offset, struct.pack("<I", value))


def write64(offset, value):
    return write(BAR0, offset, struct.pack("<Q", value))


def memory_on():
    """Memory space and bus mastering: without them the device looks at nothing else."""
    return write(CONFIG, 4, struct.pack("<H", 6))


def dma_map(address, size, flags=3, offset=0, memfds=0):
    return piece(2, struct.pack("<IIQQQ", 32, flags, offset, address, size), memfds)


def dma_unmap(address, size, flags=0):
    return piece(3, struct.pack("<IIQQ", 24, flags, address, size))


def set_irqs(flags, start, count, data=b"", descriptors=0, index=2):
    return piece(8, struct.pack("<IIIII", 20 + len(data), flags, index, start, count) + data, descriptors)


def command(code, operand=0):
    return write32(0xA0, code << 20 | operand)


def descriptor(opcode, flags, completion, src1, dst, size, op_flags=0, src2=0, max_dst=0, src2_size=0,
               polynomial=0):
    return struct.pack("<IIQQQIHHQIIII", 0, opcode << 24 | flags, completion, src1, dst, size, 0,
                       op_flags, src2, max_dst, src2_size, polynomial & 0xFFFFFFFF, polynomial >> 32)


def submit(wq, what):
    return b"".join(write(BAR2, wq * 0x4000 + 0x1000 + at, what[at:at + 8]) for at in range(0, 64, 8))


def enabled_device():
    """Engine 0 and WQ 0 (dedicated, 16 entries) in group 0 with all read buffers, both enabled."""
    wqcfg = [16, 0, 1 | 10 << 4, 21, 0, 0, 0, 0]
    out = memory_on() + write64(0x400, 1) + write64(0x420, 1) + write64(0x428, 96 << 20)
    out += b"".join(write32(0x600 + at * 4, value) for at, value in enumerate(wqcfg))
    return out + command(1) + command(6)


# Of 4096 zeros, which are what the memory begins with: their histogram, and (with header generation, in
# one pass) one block with its own tables.
STATISTICS = descriptor(0x43, 0x10C, 0x18000, 0x10000, 0x14000, 4096, 1, 0, 4096)
COMPRESS = descriptor(0x43, 0x10C, 0x18000, 0x10000, 0x14000, 4096, 0x2000 | 6, 0, 4096)

SEEDS = {
    "empty-session": (VERSION, b""),
    "no-version": (0, read(BAR0, 0, 4)),
    "information": (VERSION, piece(4, struct.pack("<IIII", 16, 0, 0, 0))
                    + b"".join(piece(5, struct.pack("<IIIIQQ", 32, 0, i, 0, 0, 0)) for i in range(9))
                    + b"".join(piece(7, struct.pack("<IIII", 16, 0, i, 0)) for i in range(5))
                    + piece(6, struct.pack("<IIII", 16, 0, 0, 0))),
    "config-space": (VERSION, b"".join(read(CONFIG, at, 4) for at in range(0, 64, 4))
                     + write(CONFIG, 0x10, b"\xff" * 4, False) + read(CONFIG, 0x82, 2)),
    "registers": (VERSION, memory_on() + b"".join(read(BAR0, at, 8) for at in range(0, 0x100, 8))),
    "portal": (ALL, memory_on() + submit(0, struct.pack("<QQQQQQQQ", 0x10000, 0x18000, 0x1FFC0, 0x40000, 0, 1, 2, 3))),
    "map-unmap": (ALL, dma_map(0x100000, 0x8000, memfds=1) + dma_map(0x108000, 0x8000, offset=0x8000, memfds=1)
                  + write(BAR2, 8, struct.pack("<Q", 0x107F00)) + dma_unmap(0x100000, 0x8000)
                  + dma_map(0x10000, 0x1000) + dma_unmap(0, 0, 2)),
    "irqs": (VERSION, set_irqs(0x24, 0, 3, descriptors=3 << 2) + set_irqs(0x09, 0, 9) + set_irqs(0x21, 0, 2)
             + set_irqs(0x12, 0, 3, b"\1\0\1") + set_irqs(0x24, 1, 1) + set_irqs(0x21, 0, 0)),
    "write-multi": (ALL, piece(15, struct.pack("<Q", 2) + struct.pack("<QII8s", 8, BAR2, 8, b"\0\0\1\0\0\0\0\0")
                               + struct.pack("<QII8s", 0x10, BAR0, 4, b"12345678"), NO_REPLY)),
    "reset": (ALL, piece(13) + read(BAR0, 0x90, 4) + piece(13, b"", NO_REPLY)),
    "what-is-not-there": (VERSION, piece(11, b"\0" * 16) + piece(16, b"\0" * 8) + piece(17, b"\0" * 8)
                          + piece(14) + piece(99)),
    "in-pieces": (VERSION, b"".join(piece(0, bytes([b])) for b in struct.pack("<HHIII", 1, 13, 16, 0, 0))),
    "broken-header": (VERSION, piece(0, struct.pack("<HHIII", 1, 13, 15, 0, 0))),
    "dma-reply": (ALL, write(BAR2, 8, struct.pack("<Q", 0x40000))
                  + b"".join(piece(0, struct.pack("<HHIIIQQ", i << 5, 11, 32, 1, 0, 0x40000, 8)) for i in range(1, 4))),
    "noop": (ALL, enabled_device() + submit(0, descriptor(0, 0x0C, 0x18000, 0, 0, 0)) + command(3)),
    "crc64": (ALL, enabled_device()
              + submit(0, descriptor(0x44, 0x0C, 0x18000, 0x10000, 0, 4096, polynomial=0x42F0E1EBA9EA3693))),
    "crc64-by-messages": (ALL, enabled_device()
                          + submit(0, descriptor(0x44, 0x0C, 0x18000, 0x40000, 0, 4096, polynomial=1))),
    "threads": (ALL | THREADS, enabled_device() + 8 * submit(0, descriptor(0, 0x0C, 0x18000, 0, 0, 0)) + command(3)
                + submit(0, descriptor(0x44, 0x0C, 0x18000, 0x40000, 0, 65536, polynomial=1)) + command(9, 1)),
    "statistics": (ALL, enabled_device() + submit(0, STATISTICS)),
    "compress": (ALL | GNR, enabled_device() + submit(0, COMPRESS)),
    "decompress": (ALL | GNR, enabled_device() + submit(0, COMPRESS)
                   + submit(0, descriptor(0x42, 0x10C, 0x18000, 0x14000, 0x16000, 64, 0xF, 0, 4096))),
    "wrong-handle": (ALL, enabled_device() + submit(0, descriptor(0, 0x1C, 0x18000, 0, 0, 0))),
    "commands": (ALL, enabled_device() + command(8, 1) + command(12) + command(7, 1) + command(10, 1)
                 + command(2) + command(5) + command(31) + command(13, 1)),
    "event-log": (ALL, memory_on() + write64(0xE0, 0x1C000) + write64(0xE8, 64) + write32(0x88, 7)
                  + write32(0x80, 1 << 13) + enabled_device() + submit(0, b"\xff" * 64) + command(2)),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (setup, pieces) in SEEDS.items():
        (folder / name).write_bytes(bytes([setup]) + pieces)


if __name__ == "__main__":
    main()
