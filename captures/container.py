"""The two file formats packets come in, pcap and pcapng, as a stream of record batches.

A batch is a piece of the file and where the packets lie in it; nothing is decoded here. Whatever
is wrong with a file ends the stream with a sentence in `Header.remarks` instead of an exception,
so that everything before the damage can be used. Memory is bounded: a batch holds a megabyte or
two, whatever lengths the file claims.
"""

import errno
import gzip
import stat
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from captures import compiled, records

_CHUNK_BYTES = 1 << 20
_FIRST_CHUNK_BYTES = 64 << 10
"""Small, so that little is read before `captures.compiled` is asked again."""

MOST_RECORDS = 16_384
"""In one batch."""

# libpcap's own limit; a longer record is taken for damage, as Wireshark does.
_LARGEST_RECORD_BYTES = 262_144
_NS = records.NS

# Byte order, nanoseconds per unit, bytes of a record's header. The last pair is the "modified"
# format of patched libpcaps, whose records also name the interface's index and the protocol.
_PCAP_MAGIC = {
    b"\xa1\xb2\xc3\xd4": (">", 1000, 16),
    b"\xd4\xc3\xb2\xa1": ("<", 1000, 16),
    b"\xa1\xb2\x3c\x4d": (">", 1, 16),
    b"\x4d\x3c\xb2\xa1": ("<", 1, 16),
    b"\xa1\xb2\xcd\x34": (">", 1000, 24),
    b"\x34\xcd\xb2\xa1": ("<", 1000, 24),
}


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
    compression: str = ""
    interfaces: list[Interface] = field(default_factory=list)
    application: str = ""
    received: int | None = None
    dropped: int | None = None
    remarks: list[str] = field(default_factory=list)
    first_damage: str | None = None

    @property
    def damaged(self) -> bool:
        """Something ended the reading early."""
        return self.first_damage is not None

    def damage(self, sentence: str) -> None:
        """Note what ended the reading early."""
        if self.first_damage is None:
            self.first_damage = sentence
        self.remarks.append(sentence)


@dataclass(frozen=True)
class Batch:
    """Some packets; valid until the next batch is asked for, which uses the same memory.

    Attributes
    ----------
    data : bytearray
        A piece of the file.
    array : uint8 array
        The same memory.
    records : int64 array (5, n)
        Where the packets lie, see `captures.records`.
    count : int
        How many of them.
    done_bytes : int
        Bytes of the (decompressed) file up to the end of the piece.
    """

    data: bytearray
    array: NDArray[np.uint8]
    records: NDArray[np.int64]
    count: int
    done_bytes: int


class _Source:
    """Reads on until a file, or the intact part of a compressed one, ends."""

    def __init__(self, path: Path, header: Header) -> None:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            # A pipe without a writer would be waited for, and a device has no end.
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        self._file = path.open("rb")
        self._header = header
        self._stream: BinaryIO = cast(BinaryIO, self._file)
        self._errors: tuple[type[Exception], ...] = ()
        self.ended = False
        magic = self._file.read(4)
        self._file.seek(0)
        if magic[:2] == b"\x1f\x8b":
            header.compression = "gzip"
            self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=self._file))
            self._errors = (EOFError, zlib.error, gzip.BadGzipFile)
        elif magic == b"\x28\xb5\x2f\xfd" or (
            # A frame to be skipped may come first.
            magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50
        ):
            header.compression = "zstd"
            self._stream, self._errors = _zstd(self._file)

    def read_into(self, room: memoryview) -> int:
        """Fill as much as there is; less than the room only at the end."""
        filled = 0
        while filled < len(room) and not self.ended:
            try:
                # Each decompressed piece at once, so that damage costs nothing before it.
                count = cast(Any, self._stream).readinto1(room[filled:])
            except self._errors as error:
                self._header.damage(f"compressed data is damaged or cut off ({error})")
                count = 0
            if count == 0:
                self.ended = True
            filled += count
        return filled

    def position(self) -> int:
        """Bytes of the file read so far, compressed as they may be."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def _zstd(file: Any) -> tuple[BinaryIO, tuple[type[Exception], ...]]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    # What the zstd program accepts; a file may not claim a window of gigabytes.
    options = {int(zstd.DecompressionParameter.window_log_max): 27}
    stream = zstd.ZstdFile(file, "r", options=options)
    return cast(BinaryIO, stream), (EOFError, zstd.ZstdError)


class _Window:
    """The piece of the file that is in memory: what is left of the last one, and more behind it."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self.data = bytearray(_FIRST_CHUNK_BYTES)
        self.array = np.frombuffer(self.data, dtype=np.uint8)
        self.start = self.end = 0
        self.base = 0
        """Place in the file of the buffer's first byte."""

    def more(self) -> bool:
        """Move what is left to the front and read on; false at the end of the file."""
        if self._source.ended:
            return False
        left = self.end - self.start
        size = len(self.data)
        whole = size if size < _CHUNK_BYTES and self.base == 0 and self.end == 0 else _CHUNK_BYTES
        # A record that fills the whole buffer needs a larger one.
        whole = max(whole, 2 * left)
        if whole > size:
            larger = bytearray(whole)
            larger[:left] = self.data[self.start : self.end]
            self.data, self.array = larger, np.frombuffer(larger, dtype=np.uint8)
        elif self.start:
            self.array[:left] = self.array[self.start : self.end].copy()
        self.base += self.start
        self.start, self.end = 0, left
        with memoryview(self.data) as view:
            count = self._source.read_into(view[left:])
        self.end += count
        return count > 0

    @property
    def done_bytes(self) -> int:
        return self.base + self.start


def batches(
    path: Path, header: Header, progress: Callable[[int], None] | None = None
) -> Iterator[Batch]:
    """Stream the packets of a pcap or pcapng file, compressed with gzip or zstd or not.

    Parameters
    ----------
    path : Path
        The file.
    header : Header
        Filled in while the batches are consumed.
    progress : callable, optional
        Told after each batch how many bytes of the file were read.

    Yields
    ------
    Batch
        In file order.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    """
    source = _Source(path, header)
    try:
        window = _Window(source)
        if not window.more():
            if not header.damaged:
                header.damage("the file is empty")
            return
        magic = bytes(window.data[: min(4, window.end)])
        if magic in _PCAP_MAGIC:
            header.format = "pcap"
            found = _pcap(window, header)
        elif magic == b"\x0a\x0d\x0d\x0a":
            header.format = "pcapng"
            found = _pcapng(window, header)
        else:
            header.damage(f"neither pcap nor pcapng: the file starts with {magic.hex(' ')}")
            return
        for batch in found:
            yield batch
            if progress:
                progress(source.position())
    finally:
        source.close()


def _pcap(window: _Window, header: Header) -> Iterator[Batch]:
    order, unit_ns, header_bytes = _PCAP_MAGIC[bytes(window.data[:4])]
    if window.end < 24:
        header.damage(f"the file header is cut off after {window.end} of 24 bytes")
        return
    snap_length, link = struct.unpack_from(order + "II", window.data, 16)
    header.interfaces.append(Interface("", link & 0xFFFF, snap_length, _NS // unit_ns))
    longest = max(_LARGEST_RECORD_BYTES, min(snap_length, records.LARGEST_BLOCK_BYTES))
    room = np.zeros((5, MOST_RECORDS), dtype=np.int64)
    window.start = 24
    while True:
        walk = compiled.fast(records.walk_pcap, window.done_bytes)
        data = window.data if walk is records.walk_pcap else window.array
        count, window.start, reason = walk(
            data, window.start, window.end, order == ">", unit_ns, header_bytes, longest, room
        )
        if count:
            yield Batch(window.data, window.array, room, count, window.done_bytes)
        if reason == records.LONG_RECORD:
            (captured,) = struct.unpack_from(order + "I", window.data, window.start + 8)
            header.damage(
                f"damaged at byte {window.done_bytes}: a record of {captured} bytes "
                f"(at most {longest} are possible)"
            )
            return
        if reason == records.MORE and not window.more():
            if window.start < window.end and not header.damaged:
                header.damage(f"cut off at byte {window.base + window.end}, inside the last record")
            return


class _Section:
    """What the blocks of a pcapng file say about the packets that follow."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.order = "<"
        self.first = 0
        """Index of the section's first interface: numbers start again in each section."""
        self.scales = np.zeros((8, records.SCALE_FIELDS), dtype=np.int64)
        self._statistics: dict[int, tuple[int | None, int | None]] = {}

    def read(self, data: bytearray, at: int, end: int) -> tuple[int, str]:
        """Take in the block at `at`; returns its length (0: not all there) and what is wrong."""
        (kind,) = struct.unpack_from(self.order + "I", data, at)
        if kind == records.SECTION_HEADER:
            mark = bytes(data[at + 8 : at + 12])
            if mark not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                return 0, "a section header without its byte-order mark"
            self.order = ">" if mark[0] == 0x1A else "<"
        (length,) = struct.unpack_from(self.order + "I", data, at + 4)
        if length < 12 or length % 4 or length > records.LARGEST_BLOCK_BYTES:
            return 0, f"a block of {length} bytes"
        if at + length > end:
            return 0, ""
        body, stop = at + 8, at + length - 4
        (repeated,) = struct.unpack_from(self.order + "I", data, stop)
        if repeated != length:
            return 0, f"a block whose two lengths differ ({length} and {repeated})"
        header = self._header
        if kind == records.SECTION_HEADER:
            self.first = len(header.interfaces)
            options = _options(data, body + 16, stop, self.order)
            if 4 in options and not header.application:
                header.application = options[4].decode("utf-8", "replace")
        elif kind == records.INTERFACE and stop - body >= 8:
            self._add(_interface(data, body, stop, self.order))
        elif kind == records.STATISTICS and stop - body >= 12:
            (number,) = struct.unpack_from(self.order + "I", data, body)
            options = _options(data, body + 12, stop, self.order)
            dropped = _counter(options.get(5), self.order)
            if dropped is None:
                dropped = _counter(options.get(7), self.order)
            self._statistics[self.first + number] = (
                _counter(options.get(4), self.order),
                dropped,
            )
        return length, ""

    def _add(self, interface: Interface) -> None:
        index = len(self._header.interfaces)
        self._header.interfaces.append(interface)
        if index == len(self.scales):
            self.scales = np.concatenate([self.scales, np.zeros_like(self.scales)])
        ticks = interface.ticks_per_second
        if _NS % ticks == 0:
            method, operand = records.MULTIPLY, _NS // ticks
        elif ticks % _NS == 0:
            method, operand = records.DIVIDE, ticks // _NS
        else:
            method, operand = records.SHIFT, ticks.bit_length() - 1
        farthest = records.LATEST_NS - 1
        offset_ns = max(min(interface.offset_s * _NS, farthest), -farthest)
        self.scales[index] = method, operand, offset_ns, interface.snap_length_bytes

    def add_up(self) -> None:
        """Put the recorder's counters into the header."""
        received = [value for value, _ in self._statistics.values() if value is not None]
        dropped = [value for _, value in self._statistics.values() if value is not None]
        self._header.received = sum(received) if received else None
        self._header.dropped = sum(dropped) if dropped else None


def _pcapng(window: _Window, header: Header) -> Iterator[Batch]:
    section = _Section(header)
    clock = np.zeros(2, dtype=np.int64)
    room = np.zeros((5, MOST_RECORDS), dtype=np.int64)
    problem = ""
    while not problem:
        walk = compiled.fast(records.walk_pcapng, window.done_bytes)
        data = window.data if walk is records.walk_pcapng else window.array
        count, window.start, reason = walk(
            data,
            window.start,
            window.end,
            section.order == ">",
            section.first,
            section.scales,
            len(header.interfaces),
            clock,
            room,
        )
        if count:
            yield Batch(window.data, window.array, room, count, window.done_bytes)
        if reason == records.OTHER_BLOCK:
            length, problem = section.read(window.data, window.start, window.end)
            if length:
                window.start += length
                continue
        elif reason not in (records.MORE, records.FULL):
            problem = _problem(window.data, window.start, section.order, reason)
        if problem or (reason != records.FULL and not window.more()):
            break
    section.add_up()
    if problem:
        header.damage(f"damaged at byte {window.done_bytes}: {problem}")
    elif window.start < window.end and not header.damaged:
        header.damage(f"cut off at byte {window.base + window.end}, inside the last block")
    if clock[1]:
        header.remarks.append(f"{clock[1]} time stamps out of range")


def _problem(data: bytearray, at: int, order: str, reason: int) -> str:
    """What made the loop stop at the block at `at`."""
    kind, length = struct.unpack_from(order + "II", data, at)
    if reason == records.BAD_LENGTH:
        return f"a block of {length} bytes"
    if reason == records.LENGTHS_DIFFER:
        (repeated,) = struct.unpack_from(order + "I", data, at + length - 4)
        return f"a block whose two lengths differ ({length} and {repeated})"
    number = 0
    if kind != records.SIMPLE_PACKET:
        (number,) = struct.unpack_from(
            order + ("I" if kind == records.PACKET else "H"), data, at + 8
        )
    if reason == records.UNKNOWN_INTERFACE:
        return f"a packet of interface {number}, which was not described"
    (captured,) = struct.unpack_from(order + "I", data, at + 20)
    return f"a packet of {captured} bytes in a block with room for {length - 32}"


def _options(data: bytearray, position: int, stop: int, order: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while position + 4 <= stop:
        code, length = struct.unpack_from(order + "HH", data, position)
        if code == 0 or position + 4 + length > stop:
            break
        found.setdefault(code, bytes(data[position + 4 : position + 4 + length]))
        position += 4 + length + (-length) % 4
    return found


def _counter(value: bytes | None, order: str) -> int | None:
    if value is None or len(value) != 8:
        return None
    return int(struct.unpack(order + "Q", value)[0])


def _interface(data: bytearray, body: int, stop: int, order: str) -> Interface:
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
