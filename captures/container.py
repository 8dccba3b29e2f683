"""The two file formats packets come in, pcap and pcapng, as a stream of record batches.

A batch is a piece of the file and where the packets lie in it; nothing is decoded here. Whatever
is wrong with a file ends the stream with a sentence in `Header.remarks` instead of an exception,
so that everything before the damage can be used.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 8 << 20
# libpcap's own limit; a longer record is taken for damage, as Wireshark does.
_LARGEST_RECORD_BYTES = 262_144
_LARGEST_BLOCK_BYTES = 16 << 20
_NS = 1_000_000_000

_PCAP_MAGIC = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
# Block types of pcapng (draft-ietf-opsawg-pcapng).
_SECTION_HEADER = 0x0A0D0D0A
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _STATISTICS, _PACKET = 1, 2, 3, 5, 6


@dataclass(frozen=True)
class Interface:
    """One interface of a capture file.

    Attributes
    ----------
    name : str
        As the recorder named it; empty in pcap files, which have no names.
    link_type : int
        LINKTYPE_ number of www.tcpdump.org/linktypes.html (1 is Ethernet).
    snap_length_bytes : int
        Most bytes kept of a packet; 0 means no limit.
    ticks_per_second : int
        Resolution of the time stamps.
    offset_s : int
        Added to each time stamp.
    """

    name: str
    link_type: int
    snap_length_bytes: int
    ticks_per_second: int
    offset_s: int = 0


@dataclass
class Header:
    """What is known about a file so far; complete when its batches are exhausted."""

    format: str = ""
    interfaces: list[Interface] = field(default_factory=list)
    application: str = ""
    received: int | None = None
    dropped: int | None = None
    remarks: list[str] = field(default_factory=list)
    damaged: bool = False

    def damage(self, sentence: str) -> None:
        """Note what ended the reading early."""
        self.damaged = True
        self.remarks.append(sentence)


@dataclass(frozen=True)
class Records:
    """A piece of the file and the packets in it, one entry a packet."""

    data: bytes
    offset: NDArray[np.int64]
    captured_bytes: NDArray[np.int64]
    wire_bytes: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    interface: NDArray[np.int32]


_Row = tuple[int, int, int, int, int]


def _records(data: bytes, rows: list[_Row]) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    return Records(
        data, table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4].astype(np.int32)
    )


class _Source:
    """Reads on until a file, or the intact part of a compressed one, ends."""

    def __init__(self, path: Path, header: Header) -> None:
        self._file = path.open("rb")
        self._header = header
        self._read: Callable[[int], bytes] = self._file.read
        compressed = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        if compressed:
            # read1 hands out each decompressed piece, so that damage costs nothing before it.
            self._read = gzip.GzipFile(fileobj=self._file).read1

    def read(self) -> bytes:
        """About `_CHUNK_BYTES` more; empty at the end."""
        pieces: list[bytes] = []
        missing = _CHUNK_BYTES
        while missing > 0:
            try:
                piece = self._read(missing)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self._header.damage(f"compressed data is damaged or cut off ({error})")
                self._read = lambda _: b""
                break
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self._file.close()


def batches(path: Path, header: Header) -> Iterator[Records]:
    """Stream the packets of a pcap or pcapng file, compressed with gzip or not.

    Parameters
    ----------
    path : Path
        The file.
    header : Header
        Filled in while the batches are consumed.

    Yields
    ------
    Records
        In file order.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    """
    source = _Source(path, header)
    try:
        data = source.read()
        if not data:
            header.damage("the file is empty")
            return
        magic = data[:4]
        if magic in _PCAP_MAGIC:
            header.format = "pcap"
            yield from _pcap(source, data, header)
        elif magic == b"\x0a\x0d\x0d\x0a":
            header.format = "pcapng"
            yield from _pcapng(source, data, header)
        else:
            header.damage(f"neither pcap nor pcapng: the file starts with {magic.hex(' ')}")
    finally:
        source.close()


def _pcap(source: _Source, data: bytes, header: Header) -> Iterator[Records]:
    order, nanoseconds = _PCAP_MAGIC[data[:4]]
    if len(data) < 24:
        header.damage(f"the file header is cut off after {len(data)} of 24 bytes")
        return
    snap_length, link = struct.unpack_from(order + "II", data, 16)
    header.interfaces.append(Interface("", link & 0xFFFF, snap_length, _NS // nanoseconds))
    longest = max(_LARGEST_RECORD_BYTES, min(snap_length, _LARGEST_BLOCK_BYTES))
    unpack = struct.Struct(order + "IIII").unpack_from
    position, base = 24, 0
    while True:
        rows: list[_Row] = []
        end, damaged = len(data), False
        while position + 16 <= end:
            seconds, fraction, captured, wire = unpack(data, position)
            if captured > longest:
                header.damage(
                    f"damaged at byte {base + position}: a record of {captured} bytes "
                    f"(at most {longest} are possible)"
                )
                damaged = True
                break
            following = position + 16 + captured
            if following > end:
                break
            rows.append((position + 16, captured, wire, seconds * _NS + fraction * nanoseconds, 0))
            position = following
        if rows:
            yield _records(data, rows)
        if damaged:
            return
        more = source.read()
        if not more:
            if position < end and not header.damaged:
                header.damage(f"cut off at byte {base + end}, inside the last record")
            return
        data, base, position = data[position:] + more, base + position, 0


def _pcapng(source: _Source, data: bytes, header: Header) -> Iterator[Records]:
    order = "<"
    position = base = 0
    first = 0  # index of the section's first interface: numbers start again in each section
    last_ns = impossible_times = 0
    statistics: dict[int, tuple[int | None, int | None]] = {}
    scale: dict[int, tuple[int, int, int]] = {}
    while True:
        rows: list[_Row] = []
        end = len(data)
        problem = ""
        while position + 12 <= end:
            kind, length = struct.unpack_from(order + "II", data, position)
            if kind == _SECTION_HEADER:
                mark = data[position + 8 : position + 12]
                if mark == b"\x1a\x2b\x3c\x4d":
                    order = ">"
                elif mark == b"\x4d\x3c\x2b\x1a":
                    order = "<"
                else:
                    problem = "a section header without its byte-order mark"
                    break
                (length,) = struct.unpack_from(order + "I", data, position + 4)
            if length < 12 or length % 4 or length > _LARGEST_BLOCK_BYTES:
                problem = f"a block of {length} bytes"
                break
            if position + length > end:
                break
            (repeated,) = struct.unpack_from(order + "I", data, position + length - 4)
            if repeated != length:
                problem = f"a block whose two lengths differ ({length} and {repeated})"
                break
            body, stop = position + 8, position + length - 4
            if kind == _PACKET and stop - body >= 20:
                number, high, low, captured, wire = struct.unpack_from(order + "5I", data, body)
                at = body + 20
            elif kind == _OLD_PACKET and stop - body >= 20:
                number, _drops, high, low, captured, wire = struct.unpack_from(
                    order + "HH4I", data, body
                )
                at = body + 20
            elif kind == _SIMPLE_PACKET and stop - body >= 4:
                (wire,) = struct.unpack_from(order + "I", data, body)
                number, high, low, at = 0, -1, -1, body + 4
                captured = min(wire, stop - at)
                if first < len(header.interfaces):
                    snap = header.interfaces[first].snap_length_bytes
                    captured = min(captured, snap) if snap else captured
            else:
                if kind == _SECTION_HEADER:
                    first = len(header.interfaces)
                    options = _options(data, body + 16, stop, order)
                    if 4 in options and not header.application:
                        header.application = options[4].decode("utf-8", "replace")
                elif kind == _INTERFACE and stop - body >= 8:
                    header.interfaces.append(_interface(data, body, stop, order))
                elif kind == _STATISTICS and stop - body >= 12:
                    (number,) = struct.unpack_from(order + "I", data, body)
                    options = _options(data, body + 12, stop, order)
                    statistics[first + number] = (
                        _counter(options.get(4), order),
                        _counter(options.get(5), order),
                    )
                position += length
                continue
            index = first + number
            if index not in scale:
                if index >= len(header.interfaces):
                    problem = f"a packet of interface {number}, which was not described"
                    break
                interface = header.interfaces[index]
                divisor, factor = interface.ticks_per_second, 0
                if divisor <= _NS and _NS % divisor == 0:
                    divisor, factor = 1, _NS // divisor
                scale[index] = (factor, divisor, interface.offset_s * _NS)
            if captured > stop - at:
                problem = f"a packet of {captured} bytes in a block with room for {stop - at}"
                break
            if high >= 0:
                # Some recorders write times before 1970 (a clock that was not set) as negative.
                ticks = ((high - (1 << 32) if high >> 31 else high) << 32) | low
                factor, divisor, offset = scale[index]
                stamp = (ticks * factor if factor else ticks * _NS // divisor) + offset
                if -(1 << 62) < stamp < 1 << 62:
                    last_ns = stamp
                else:
                    impossible_times += 1
            rows.append((at, captured, wire, last_ns, index))
            position += length
        if rows:
            yield _records(data, rows)
        if statistics:
            received = [value for value, _ in statistics.values() if value is not None]
            dropped = [value for _, value in statistics.values() if value is not None]
            header.received = sum(received) if received else None
            header.dropped = sum(dropped) if dropped else None
        if problem:
            header.damage(f"damaged at byte {base + position}: {problem}")
        more = b"" if problem else source.read()
        if not more:
            if impossible_times:
                header.remarks.append(f"{impossible_times} time stamps out of range")
            if position < end and not header.damaged:
                header.damage(f"cut off at byte {base + end}, inside the last block")
            return
        data, base, position = data[position:] + more, base + position, 0


def _options(data: bytes, position: int, stop: int, order: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while position + 4 <= stop:
        code, length = struct.unpack_from(order + "HH", data, position)
        if code == 0 or position + 4 + length > stop:
            break
        found.setdefault(code, data[position + 4 : position + 4 + length])
        position += 4 + length + (-length) % 4
    return found


def _counter(value: bytes | None, order: str) -> int | None:
    if value is None or len(value) != 8:
        return None
    return int(struct.unpack(order + "Q", value)[0])


def _interface(data: bytes, body: int, stop: int, order: str) -> Interface:
    link, _reserved, snap_length = struct.unpack_from(order + "HHI", data, body)
    options = _options(data, body + 8, stop, order)
    ticks = 1_000_000
    resolution = options.get(9, b"")
    if len(resolution) == 1:
        exponent = resolution[0] & 0x7F
        # Exponents beyond these have no use and would only make huge numbers.
        ticks = 1 << min(exponent, 63) if resolution[0] & 0x80 else 10 ** min(exponent, 18)
    offset = options.get(14, b"")
    offset_s = int(struct.unpack(order + "q", offset)[0]) if len(offset) == 8 else 0
    name = options.get(2, b"").decode("utf-8", "replace").rstrip("\0")
    return Interface(name, link, snap_length, ticks, offset_s)
