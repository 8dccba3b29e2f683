"""Where the packets of a pcap or pcapng file lie: the loops that go from record to record.

Plain Python that Numba can compile (`captures.compiled`), under the same two habits as
`captures.headers`: bytes are read only where the caller said there are some, and everything stays
within 64-bit signed integers. What is not a packet is left to the caller (`captures.container`).
"""

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Buffer = bytearray | NDArray[np.uint8]

NS = 1_000_000_000

# Why a loop ended.
MORE, FULL, OTHER_BLOCK = 0, 1, 2
LONG_RECORD, BAD_LENGTH, LENGTHS_DIFFER, UNKNOWN_INTERFACE, LONG_PACKET = 3, 4, 5, 6, 7

# Block types of pcapng (draft-ietf-opsawg-pcapng).
SECTION_HEADER = 0x0A0D0D0A
INTERFACE, OLD_PACKET, SIMPLE_PACKET, STATISTICS, PACKET = 1, 2, 3, 5, 6
_JOURNAL, _CUSTOM, _LOCAL_CUSTOM = 9, 0x00000BAD, 0x40000BAD

LARGEST_BLOCK_BYTES = 16 << 20
LATEST_NS = 1 << 62
"""146 years from 1970 either way; sums of two such times are still 64-bit numbers."""

MULTIPLY, DIVIDE, SHIFT = 0, 1, 2
"""How ticks become nanoseconds: times a factor, through a divisor, or by a power of two."""

SCALE_FIELDS = 4
"""Of an interface: one of the three above, its operand, nanoseconds to add, snap length."""


RECORD_OFFSET, RECORD_CAPTURED_BYTES, RECORD_WIRE_BYTES, RECORD_TIME_NS, RECORD_INTERFACE = range(5)
"""Rows of the table of records: place of the packet's first byte in the buffer, bytes kept, bytes
it had, nanoseconds since the epoch, interface (counted over all sections of the file; -1 for what
is no packet, but has a number of its own in Wireshark: custom blocks, journal entries)."""


def _number(data: Buffer, at: int, big: bool) -> int:
    # Products, not shifts, make signed numbers of unsigned bytes.
    if big:
        return (data[at] * 256 + data[at + 1]) * 65536 + data[at + 2] * 256 + data[at + 3]
    return (data[at + 3] * 256 + data[at + 2]) * 65536 + data[at + 1] * 256 + data[at]


def _short(data: Buffer, at: int, big: bool) -> int:
    return data[at] * 256 + data[at + 1] if big else data[at + 1] * 256 + data[at]


def walk_pcap(
    data: Buffer,
    position: int,
    end: int,
    big: bool,
    unit_ns: int,
    header_bytes: int,
    longest: int,
    records: I64,
) -> tuple[int, int, int]:
    """Note the records of a pcap file.

    Parameters
    ----------
    data, position, end
        The buffer, where to begin, and where its content ends.
    big : bool
        Numbers are big-endian.
    unit_ns : int
        Unit of the second half of time stamps.
    header_bytes : int
        Of each record.
    longest : int
        Largest record that is believed.
    records : int64 array (5, n)
        To fill.

    Returns
    -------
    count, position, reason : int
        Records noted, where the next one begins, and why no more: `MORE`, `FULL`, `LONG_RECORD`.
    """
    count = 0
    capacity = records.shape[1]
    while position + header_bytes <= end:
        if count == capacity:
            return count, position, FULL
        captured = _number(data, position + 8, big)
        if captured > longest:
            return count, position, LONG_RECORD
        if position + header_bytes + captured > end:
            break
        seconds = _number(data, position, big)
        records[RECORD_OFFSET, count] = position + header_bytes
        records[RECORD_CAPTURED_BYTES, count] = captured
        records[RECORD_WIRE_BYTES, count] = _number(data, position + 12, big)
        records[RECORD_TIME_NS, count] = seconds * NS + _number(data, position + 4, big) * unit_ns
        records[RECORD_INTERFACE, count] = 0
        count += 1
        position += header_bytes + captured
    return count, position, MORE


def _nanoseconds(ticks: int, method: int, operand: int) -> int:
    """Time of signed 64-bit ticks; `LATEST_NS` or more if out of range."""
    if method == MULTIPLY:
        return ticks * operand if -LATEST_NS < ticks * 1.0 * operand < LATEST_NS else LATEST_NS
    if method == DIVIDE:
        return ticks // operand
    # 2**operand ticks a second. Split, so that no product exceeds 64 bits.
    seconds = ticks >> operand
    if not -(LATEST_NS // NS) <= seconds < LATEST_NS // NS:
        return LATEST_NS
    rest = ticks - (seconds << operand)
    if operand < 32:
        return seconds * NS + (rest * NS >> operand)
    high, low = rest >> 32, rest & 0xFFFFFFFF
    return seconds * NS + (high * NS + (low * NS >> 32) >> operand - 32)


def walk_pcapng(
    data: Buffer,
    position: int,
    end: int,
    big: bool,
    first: int,
    scales: I64,
    interfaces: int,
    clock: I64,
    records: I64,
) -> tuple[int, int, int]:
    """Note the packets of a pcapng file up to the next block that says something about others.

    Parameters
    ----------
    data, position, end, big
        As for `walk_pcap`.
    first : int
        Index of the section's first interface: numbers start again in each section.
    scales : int64 array (n, SCALE_FIELDS)
        Of the interfaces so far.
    interfaces : int
        How many there are.
    clock : int64 array (2)
        Time of the last packet, for those without; and how many times were impossible.
    records : int64 array (5, n)
        To fill.

    Returns
    -------
    count, position, reason : int
        As for `walk_pcap`; `OTHER_BLOCK` is a section header that begins, or a whole interface
        description or statistics block, at `position`.
    """
    count = 0
    capacity = records.shape[1]
    while position + 12 <= end:
        kind = _number(data, position, big)
        if kind == SECTION_HEADER:  # reads the same in both byte orders
            return count, position, OTHER_BLOCK
        length = _number(data, position + 4, big)
        if length < 12 or length % 4 or length > LARGEST_BLOCK_BYTES:
            return count, position, BAD_LENGTH
        if position + length > end:
            break
        if _number(data, position + length - 4, big) != length:
            return count, position, LENGTHS_DIFFER
        body, stop = position + 8, position + length - 4
        number = captured = wire = at = high = low = 0
        if (kind in (PACKET, OLD_PACKET)) and stop - body >= 20:
            number = _number(data, body, big) if kind == PACKET else _short(data, body, big)
            high, low = _number(data, body + 4, big), _number(data, body + 8, big)
            captured, wire = _number(data, body + 12, big), _number(data, body + 16, big)
            at = body + 20
        elif kind == SIMPLE_PACKET and stop - body >= 4:
            wire = _number(data, body, big)
            at = body + 4
            captured = min(wire, stop - at)
            if first < interfaces and scales[first, 3]:
                captured = min(captured, int(scales[first, 3]))
        elif kind in (INTERFACE, STATISTICS):
            return count, position, OTHER_BLOCK
        elif kind not in (_JOURNAL, _CUSTOM, _LOCAL_CUSTOM):
            position += length
            continue
        if count == capacity:
            return count, position, FULL
        index = first + number if at else -1
        if index >= interfaces:
            return count, position, UNKNOWN_INTERFACE
        if captured > stop - at:
            return count, position, LONG_PACKET
        if kind != SIMPLE_PACKET and at:
            # Some recorders write times before 1970 (a clock that was not set) as negative.
            ticks = ((high - (1 << 32) if high >> 31 else high) << 32) | low
            method, operand = int(scales[index, 0]), int(scales[index, 1])
            since = _nanoseconds(ticks, method, operand)
            stamp = since + int(scales[index, 2])
            if -LATEST_NS < since < LATEST_NS and -LATEST_NS < stamp < LATEST_NS:
                clock[0] = stamp
            else:
                clock[1] += 1
        records[RECORD_OFFSET, count] = at
        records[RECORD_CAPTURED_BYTES, count] = captured
        records[RECORD_WIRE_BYTES, count] = wire
        records[RECORD_TIME_NS, count] = clock[0]
        records[RECORD_INTERFACE, count] = index
        count += 1
        position += length
    return count, position, MORE
