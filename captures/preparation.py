"""Compile the loops ahead of time."""

import struct
import tempfile
from pathlib import Path

from captures import compiled
from captures.connections import connections
from captures.reading import read


def prepare() -> None:
    """Compile what reading and analysis of captures need, once for each machine.

    Takes some ten seconds, and half a second when it is done already. Without it, a capture of
    more than a few megabytes waits for the same when it is first analysed.
    """
    compiled.load()
    with tempfile.TemporaryDirectory() as folder:
        for content in (_pcap(), _pcapng()):
            file = Path(folder, "sample")
            file.write_bytes(content)
            connections(read(file).packets)


_KEYS = bytes(range(16))


def _frames() -> list[bytes]:
    """A multipath connection of version 1 with two bytes of data, as raw IPv4."""

    def frame(client: bool, sequence: int, flags: int, option: bytes, data: bytes = b"") -> bytes:
        ends = [bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))]
        ports = [40_000, 5201]
        option += b"\1" * (-len(option) % 4)
        header = 20 + len(option)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + header + len(data), 0, 0, 64, 6, 0)
        source, destination = (0, 1) if client else (1, 0)
        return (
            ip
            + ends[source]
            + ends[destination]
            + struct.pack(">HHII", ports[source], ports[destination], sequence, 1)
            + struct.pack(">BBHHH", header << 2, flags, 1000, 0, 0)
            + option
            + data
        )

    mapping = struct.pack(">BBBBIQIH", 30, 20, 0x20, 0x0D, 1, 1, 1, 2)
    return [
        frame(True, 0, 0x02, b"\x1e\x04\x01\x01"),
        frame(False, 0, 0x12, b"\x1e\x0c\x01\x01" + _KEYS[8:]),
        frame(True, 1, 0x10, b"\x1e\x14\x01\x01" + _KEYS),
        frame(True, 1, 0x18, mapping, b"ab"),
        frame(True, 1, 0x18, mapping, b"ab"),
        frame(False, 1, 0x10, b"\x1e\x08\x20\x01\x00\x00\x00\x03"),
    ]


def _pcap() -> bytes:
    packets = b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in _frames())
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, 101) + packets


def _pcapng() -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 101, 0, 0))
    packets = (block(6, struct.pack("<5I", 0, 0, 0, len(f), len(f)) + f) for f in _frames())
    return section + interface + b"".join(packets)
