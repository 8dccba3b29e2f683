"""Data sequence mappings: which data each packet carries (RFC 8684, section 3.3).

One mapping covers many packets and is repeated on them; a packet's data sequence number is that of
the mapping plus the distance of the packet from where the mapping begins on the subflow.
"""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.options import Capable
from captures.packets import DSS_FIN, DSS_MAP, DSS_MAP8, SYN, Packets
from captures.streams import Half, unwrap

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

ENDLESS = 1 << 48
"""Length of an infinite mapping: more than any subflow carries."""

_NEAR_BYTES = 1 << 30
"""Data this far below the first ones seen are not taken for the beginning."""

_M64 = (1 << 64) - 1


@dataclass(frozen=True)
class Mappings:
    """Mappings of one direction of one subflow, as packets announce them, in file order.

    Attributes
    ----------
    packet : int64 array
        Position in `Half.rows` of the packet with the mapping.
    start : int64 array
        First byte on the subflow, as `Half.position`.
    data : int64 array
        First byte of the connection's data, from 0.
    length : int64 array
        Bytes; `ENDLESS` for an infinite mapping, 0 for a DATA_FIN without data.
    fin : int or None
        Data that the sender had to send in all, as its DATA_FIN says.
    """

    packet: I64
    start: I64
    data: I64
    length: I64
    fin: int | None

    @property
    def infinite(self) -> Mask:
        """Which of them end multipath TCP."""
        ends: Mask = self.length == ENDLESS
        return ends


@dataclass(frozen=True)
class Pieces:
    """Payload put in place: a packet, or the part of it that one mapping covers.

    Attributes
    ----------
    packet : int64 array
        Position in `Half.rows`.
    position : int64 array
        First byte in the connection's data.
    length : int64 array
    endless : bool array
        Placed by an infinite mapping, or by what goes on without any.
    unmapped_bytes : int
        Payload left over.
    conflicts : int
        Mappings that contradict an earlier one, which then counts.
    """

    packet: I64
    position: I64
    length: I64
    endless: Mask
    unmapped_bytes: int
    conflicts: int


def relative_numbers(numbers: NDArray[np.uint64], long: Mask, initial: int) -> I64:
    """Data sequence numbers of 8 and 4 bytes as positions in the data.

    Parameters
    ----------
    numbers : uint64 array
        As in DSS, in order of time.
    long : bool array
        Those of 8 bytes.
    initial : int
        Initial data sequence number; the byte after it has position 0.

    Returns
    -------
    int64 array
    """
    difference = numbers - np.uint64(initial + 1 & _M64)
    exact = difference.view(np.int64)
    if long.all():
        return exact
    low = (difference & np.uint64(0xFFFFFFFF)).astype(np.int64)
    continued = unwrap(low, int(exact[np.argmax(long)]) if long.any() else 0)
    if long.any():
        # The two agree up to a multiple of 2**32 that the longer one settles.
        example = np.argmax(long)
        continued += exact[example] - continued[example]
    return np.where(long, exact, continued)


def mappings(
    packets: Packets, halves: list[Half], initial: int | None, of_first_data: dict[int, Capable]
) -> tuple[list[Mappings], int | None]:
    """All mappings of one direction of a connection.

    Parameters
    ----------
    packets : Packets
    halves : list of Half
        That direction of each subflow.
    initial : int or None
        Initial data sequence number, if it is known.
    of_first_data : dict
        Packets of the first subflow (rows) whose MP_CAPABLE maps their payload.

    Returns
    -------
    list of Mappings
        One for each half.
    initial : int or None
        The given one; otherwise such that the first data seen have position 0.
    """
    at = [np.flatnonzero(packets.dss_flags[half.rows] & DSS_MAP) for half in halves]
    rows = np.concatenate([half.rows[packet] for half, packet in zip(halves, at, strict=True)])
    numbers, initial = _numbers(packets, rows, initial)
    found: list[Mappings] = []
    begin = 0
    for index, (half, packet) in enumerate(zip(halves, at, strict=True)):
        own = numbers[begin : begin + len(packet)]
        begin += len(packet)
        first = of_first_data if index == 0 else {}
        found.append(_announced(packets, half, packet, own, first))
    return found, initial


def _numbers(packets: Packets, rows: I64, initial: int | None) -> tuple[I64, int | None]:
    """Data numbers of mappings as positions, and what they count from."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64), initial
    estimated = initial is None
    if initial is None:
        initial = int(packets.data_sequence[rows.min()]) - 1 & _M64
    long = packets.dss_flags[rows] & DSS_MAP8 != 0
    if long.all():
        numbers = relative_numbers(packets.data_sequence[rows], long, initial)
    else:
        # Shorter numbers need the order of time, over all subflows.
        order = np.argsort(rows, kind="stable")
        numbers = np.empty(len(rows), dtype=np.int64)
        ordered = packets.data_sequence[rows[order]]
        numbers[order] = relative_numbers(ordered, long[order], initial)
    if estimated:
        # The first packet recorded may have overtaken others, or carry no data.
        near = (numbers > -_NEAR_BYTES) & (packets.mapping_bytes[rows] > 0)
        lowest = int(numbers[near].min()) if near.any() else 0
        numbers, initial = numbers - lowest, initial + lowest & _M64
    return numbers, initial


def _announced(
    packets: Packets, half: Half, packet: I64, data: I64, of_first_data: dict[int, Capable]
) -> Mappings:
    rows, at = half.rows[packet], half.position[packet]
    length = packets.mapping_bytes[rows].astype(np.int64)
    subflow_sequence = packets.subflow_sequence[rows].astype(np.int64)
    start = at + (subflow_sequence - at + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
    infinite = length == 0
    # Subflow number 0 in an infinite mapping: it begins with this very packet.
    start = np.where(infinite & (subflow_sequence == 0), at, start)
    # A DATA_FIN takes one number of its own; alone it maps nothing, on subflow number 0.
    fin = (packets.dss_flags[rows] & DSS_FIN != 0) & ~infinite
    length = np.where(infinite, ENDLESS, length - fin)
    end = int((data + length)[fin].max()) if fin.any() else None
    keep = (length >= 0) & (packets.flags[rows] & SYN == 0)
    if not keep.all():
        packet, start, data, length = packet[keep], start[keep], data[keep], length[keep]
    if of_first_data:
        first_rows = np.array(sorted(of_first_data), dtype=np.int64)
        first_packet = np.searchsorted(half.rows, first_rows)
        packet = np.concatenate([first_packet, packet])
        start = np.concatenate([np.ones_like(first_packet), start])
        data = np.concatenate([np.zeros_like(first_packet), data])
        sizes = [of_first_data[row].data_bytes for row in first_rows.tolist()]
        length = np.concatenate([np.array(sizes, dtype=np.int64), length])
        order = np.argsort(packet, kind="stable")
        packet, start, data, length = packet[order], start[order], data[order], length[order]
    return Mappings(packet, start, data, length, end)


def place(half: Half, known: Mappings, *, goes_on: bool) -> Pieces:
    """Put the payload of one direction of a subflow where its mappings say.

    Parameters
    ----------
    half : Half
    known : Mappings
        A packet's own mapping counts first, then whichever was announced first.
    goes_on : bool
        After a fallback: what lies behind the last mapping continues it without any.
    """
    carries = np.flatnonzero((half.payload_bytes > 0) & ~half.keep_alive)
    at, size = half.position[carries], half.payload_bytes[carries]
    table = known
    if goes_on:
        table = _continued(known, half)

    # Most packets are covered by the mapping that they carry themselves.
    own = np.searchsorted(known.packet, carries)
    has_own = np.zeros(len(carries), dtype=np.bool_)
    inside = own < len(known.packet)
    has_own[inside] = known.packet[own[inside]] == carries[inside]
    own = np.where(has_own, own, 0)
    if len(known.packet):
        begins, length = known.start[own], known.length[own]
        has_own &= (begins <= at) & (at + size <= begins + length) & (length < ENDLESS)
    packet, position, length = carries[has_own], at[has_own], size[has_own]
    if len(packet):
        use = own[has_own]
        position = known.data[use] + position - known.start[use]
    endless = np.zeros(len(packet), dtype=np.bool_)
    if has_own.all():
        return Pieces(packet, position, length, endless, 0, 0)

    rest = ~has_own
    start, stop, shift, infinite, conflicts = _disjoint(table)
    begin, end = at[rest], (at + size)[rest]
    first = np.searchsorted(stop, begin, side="right")
    count = np.maximum(np.searchsorted(start, end, side="left") - first, 0)
    which = np.repeat(first, count) + _ramp(count)
    left = np.maximum(np.repeat(begin, count), start[which])
    right = np.minimum(np.repeat(end, count), stop[which])
    unmapped = int((end - begin).sum() - (right - left).sum())
    packet = np.concatenate([packet, np.repeat(carries[rest], count)])
    order = np.argsort(packet, kind="stable")
    return Pieces(
        packet=packet[order],
        position=np.concatenate([position, left + shift[which]])[order],
        length=np.concatenate([length, right - left])[order],
        endless=np.concatenate([endless, infinite[which]])[order],
        unmapped_bytes=unmapped,
        conflicts=conflicts,
    )


def _ramp(count: I64) -> I64:
    """0, 1, … count - 1 for each count, one after the other."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)


def _continued(known: Mappings, half: Half) -> Mappings:
    """The same with an infinite mapping that begins where the last finite one ends."""
    if known.infinite.any():
        return known
    start, data = 1, 0
    if len(known.start):
        last = int(np.argmax(known.start + known.length))
        start = int((known.start + known.length)[last])
        data = int((known.data + known.length)[last])
    return Mappings(
        np.append(known.packet, len(half.rows)),
        np.append(known.start, start),
        np.append(known.data, data),
        np.append(known.length, ENDLESS),
        known.fin,
    )


def _disjoint(known: Mappings) -> tuple[I64, I64, I64, Mask, int]:
    """Start, stop, distance to the data, and kind of intervals that do not overlap; conflicts."""
    # The same mapping is announced by many packets.
    order = np.lexsort((np.arange(len(known.start)), known.length, known.data, known.start))
    columns = [column[order] for column in (known.start, known.data, known.length)]
    distinct = np.ones(len(order), dtype=np.bool_)
    distinct[1:] = np.logical_or.reduce([np.diff(column) != 0 for column in columns])
    start, data, length = (column[distinct] for column in columns)
    announced = order[distinct]
    stop, shift, infinite = start + length, data - start, length == ENDLESS
    # An infinite mapping ends where another one begins.
    following = np.append(start, np.int64(ENDLESS))[np.searchsorted(start, start, side="right")]
    stop = np.where(infinite, following, stop)
    conflicts = 0
    if len(start) > 1:
        before = np.maximum.accumulate(stop)[:-1]
        overlap = np.flatnonzero(start[1:] < before) + 1
        if len(overlap):
            start, stop, shift, infinite, conflicts = _resolved(
                start, stop, shift, infinite, announced
            )
    keep = stop > start
    return start[keep], stop[keep], shift[keep], infinite[keep], conflicts


def _resolved(
    start: I64, stop: I64, shift: I64, infinite: Mask, announced: I64
) -> tuple[I64, I64, I64, Mask, int]:
    """Cut overlapping intervals so that each byte belongs to the one announced first."""
    starts: list[int] = []
    stops: list[int] = []
    owner: list[int] = []
    conflicts = 0
    for index in np.argsort(announced, kind="stable").tolist():
        begin, end = int(start[index]), int(stop[index])
        at = bisect_right(stops, begin)
        contradicts = False
        while begin < end:
            limit = min(starts[at], end) if at < len(starts) else end
            if begin < limit:
                starts.insert(at, begin)
                stops.insert(at, limit)
                owner.insert(at, index)
                at += 1
            begin = limit
            if begin < end:
                contradicts |= bool(shift[owner[at]] != shift[index])
                begin = stops[at]
                at += 1
        conflicts += contradicts and not infinite[index]
    used = np.array(owner, dtype=np.int64)
    ends = np.array(stops, dtype=np.int64)
    return np.array(starts, dtype=np.int64), ends, shift[used], infinite[used], conflicts
