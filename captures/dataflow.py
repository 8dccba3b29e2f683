"""The data in one direction of a connection: put in place, counted, and what came again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from captures import acknowledgments, mapping
from captures.acknowledgments import Acknowledgments
from captures.coverage import cover, union_bytes
from captures.mapping import Mappings, Pieces
from captures.packets import Packets
from captures.repeats import TcpRepeats
from captures.streams import Half, header_cut

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Stall:
    """A time without progress: the data complete from the start did not grow."""

    start_ns: int
    length_ns: int

    @property
    def length_s(self) -> float:
        """Seconds."""
        return self.length_ns / 1e9


@dataclass(frozen=True)
class DataFlow:
    """Data in one direction of a connection.

    The arrays have one entry for each piece of data that one mapping puts in place, which is one
    data packet except where a packet crosses the end of a mapping; they are in order of time.

    Attributes
    ----------
    row : int64 array
        Position in `Packets`.
    time_ns : int64 array
    subflow : int64 array
        Index into `Connection.subflows`.
    position : int64 array
        Of the first byte in the connection's data.
    length : int64 array
        Bytes.
    fresh : int64 array
        Bytes that had not been seen before.
    in_order : int64 array
        After this piece: bytes complete from the start, at the place of the capture.
    retransmitted : bool array
        TCP sent the packet again, see `captures.repeats`. At the receiver it may be the first
        copy to arrive.
    reinjected : bool array
        The packet has data that only other subflows had carried before.
    resent : bool array
        The packet has data that this subflow had carried before, under other sequence numbers.
    redundant : bool array
        The packet brings the receiver nothing: all its data had been acknowledged before it
        passed the capture, or, in a capture made at the receiver, had arrived before.
    announced_bytes : int
        Covered by mappings, whether the packets were captured or not.
    captured_bytes : int
        Covered by captured packets.
    in_order_bytes : int
        Complete from the start.
    acknowledged_bytes : int
        Acknowledged by the other side at the data level.
    fallback_bytes : int
        Of those captured: carried without mappings, after a fallback.
    unmapped_bytes : int
        Payload that no mapping puts anywhere.
    conflicting_mappings : int
        Mappings that contradict an earlier one.
    gaps : int
        Holes left below the highest captured byte.
    end_bytes : int or None
        All the sender had to send, as its DATA_FIN or FIN says; ``None`` if it did not say.
    """

    row: I64
    time_ns: I64
    subflow: I64
    position: I64
    length: I64
    fresh: I64
    in_order: I64
    retransmitted: Mask
    reinjected: Mask
    resent: Mask
    redundant: Mask
    announced_bytes: int
    captured_bytes: int
    in_order_bytes: int
    acknowledged_bytes: int
    fallback_bytes: int
    unmapped_bytes: int
    conflicting_mappings: int
    gaps: int
    end_bytes: int | None

    @property
    def complete(self) -> bool:
        """The sender said where the data ends, and all of it was acknowledged."""
        return self.end_bytes is not None and self.acknowledged_bytes >= self.end_bytes

    @cached_property
    def longest_stall(self) -> Stall | None:
        """The longest time between two steps of `in_order`; ``None`` with fewer than two."""
        times = self.time_ns[np.diff(self.in_order, prepend=0) > 0]
        if len(times) < 2:
            return None
        waited = np.diff(times)
        longest = int(np.argmax(waited))
        return Stall(int(times[longest]), int(waited[longest]))


@dataclass(frozen=True)
class Direction:
    """One direction of a connection before its data are put in place.

    Attributes
    ----------
    halves : list of Half
        That direction of each subflow.
    opposite : list of int32 array
        Rows of the other direction of each subflow.
    repeats : list of TcpRepeats
        For each half.
    """

    halves: list[Half]
    opposite: list[I32]
    repeats: list[TcpRepeats]


@dataclass(frozen=True)
class Announced:
    """What the mappings of one direction say.

    Attributes
    ----------
    mappings : list of Mappings
        For each subflow.
    initial : int or None
        Initial data sequence number, or one that puts the first data seen at position 0.
    """

    mappings: list[Mappings]
    initial: int | None

    @property
    def infinite(self) -> bool:
        """One of them ends multipath TCP."""
        return any(bool(each.infinite.any()) for each in self.mappings)


@dataclass(frozen=True)
class Placed:
    """Data in place; the arrays are those of `DataFlow`, and `endless` is as in `Pieces`."""

    row: I64
    time_ns: I64
    subflow: I64
    position: I64
    length: I64
    endless: Mask
    retransmitted: Mask
    acknowledged: Acknowledgments
    announced_bytes: int | None
    unmapped_bytes: int
    conflicting_mappings: int
    end_bytes: int | None


def place_single_path(packets: Packets, direction: Direction) -> Placed:
    """Put the data of one direction of a TCP stream in place."""
    (half,) = direction.halves
    carries = np.flatnonzero((half.payload_bytes > 0) & ~half.keep_alive)
    at, length = half.position[carries] - 1, half.payload_bytes[carries]
    endless = np.zeros(len(carries), dtype=np.bool_)
    acknowledged = acknowledgments.by_tcp(packets, half, direction.opposite[0])
    end = None if half.end is None else half.end - 1
    pieces = [Pieces(carries, at, length, endless, 0, 0)]
    return _placed(packets, direction, pieces, acknowledged, None, end)


def place_multipath(
    packets: Packets, direction: Direction, announced: Announced, *, fell_back: bool
) -> Placed:
    """Put the data of one direction of a multipath connection in place.

    Parameters
    ----------
    packets : Packets
    direction : Direction
    announced : Announced
        Its mappings are gone afterwards, as they may be large.
    fell_back : bool
        The connection became plain TCP: its one subflow goes on without mappings.
    """
    announced_bytes = union_bytes(*_finite(announced))
    pieces = [
        mapping.place(half, known, goes_on=fell_back)
        for half, known in zip(direction.halves, announced.mappings, strict=True)
    ]
    ends = [known.fin for known in announced.mappings if known.fin is not None]
    announced.mappings.clear()
    end = max(ends, default=None)
    if fell_back:
        # After a fallback only the subflow's own FIN and acknowledgments go on.
        half = direction.halves[0]
        end = end if half.end is None else half.end - 1
        acknowledged = acknowledgments.by_tcp(packets, half, direction.opposite[0])
    else:
        acknowledged = acknowledgments.by_data(packets, direction.opposite, announced.initial, end)
    return _placed(packets, direction, pieces, acknowledged, announced_bytes, end)


def _finite(announced: Announced) -> tuple[I64, I64]:
    """Where the data of finite mappings begin, and their lengths; repeated ones mostly once."""
    begins: list[I64] = []
    sizes: list[I64] = []
    for known in announced.mappings:
        use = ~known.infinite
        use[1:] &= (known.data[1:] != known.data[:-1]) | (known.length[1:] != known.length[:-1])
        begins.append(known.data[use])
        sizes.append(known.length[use])
    return np.concatenate(begins), np.concatenate(sizes)


def goes_silent(packets: Packets, half: Half, known: Mappings) -> bool:
    """Whether payload goes on behind the last mapping, without any DSS from there on.

    So it is when something on the way removes options, and both sides fall back (RFC 8684,
    section 3.7).
    """
    last = int((known.start + known.length).max()) if len(known.start) else 1
    beyond = (half.payload_bytes > 0) & ~half.keep_alive
    beyond &= half.position + half.payload_bytes > last
    if not beyond.any():
        return False
    rows = half.rows[np.argmax(beyond) :]
    return not packets.dss_flags[rows].any() and not header_cut(packets, rows).any()


def _placed(
    packets: Packets,
    direction: Direction,
    pieces: list[Pieces],
    acknowledged: Acknowledgments,
    announced_bytes: int | None,
    end_bytes: int | None,
) -> Placed:
    row = np.concatenate(
        [half.rows[each.packet] for half, each in zip(direction.halves, pieces, strict=True)]
    )
    again = np.concatenate(
        [
            repeat.retransmitted[each.packet]
            for repeat, each in zip(direction.repeats, pieces, strict=True)
        ]
    )
    subflow = np.repeat(np.arange(len(pieces)), [len(each.packet) for each in pieces])
    position = np.concatenate([each.position for each in pieces])
    length = np.concatenate([each.length for each in pieces])
    endless = np.concatenate([each.endless for each in pieces])
    unmapped_bytes = sum(each.unmapped_bytes for each in pieces)
    conflicts = sum(each.conflicts for each in pieces)
    pieces.clear()
    time_ns = packets.time_ns[row]
    # The files of several interfaces need not be in order of time.
    if (row[1:] < row[:-1]).any() or (time_ns[1:] < time_ns[:-1]).any():
        order = np.argsort(row, kind="stable")
        ordered = time_ns[order]
        if (ordered[1:] < ordered[:-1]).any():
            order = np.lexsort((row, time_ns))
        # One by one, so that no more than one column is there twice.
        row, time_ns = row[order], time_ns[order]
        again, subflow = again[order], subflow[order]
        position, length, endless = position[order], length[order], endless[order]
    return Placed(
        row=row,
        time_ns=time_ns,
        subflow=subflow,
        position=position,
        length=length,
        endless=endless,
        retransmitted=again,
        acknowledged=acknowledged,
        announced_bytes=announced_bytes,
        unmapped_bytes=unmapped_bytes,
        conflicting_mappings=conflicts,
        end_bytes=end_bytes,
    )


def measure(placed: Placed, *, at_receiver: bool) -> DataFlow:
    """Count what was new, and tell apart what came again.

    Parameters
    ----------
    placed : Placed
    at_receiver : bool
        The capture was made where the data arrive.
    """
    row, position, length = placed.row, placed.position, placed.length
    again = placed.retransmitted
    covered = cover(position, length)
    reinjected, resent, redundant = np.zeros((3, len(row)), dtype=np.bool_)
    before = length - covered.fresh
    if before.any():
        repeats = ~again & (_by_packet(row, before) > 0)
        resent = _resent(placed, repeats)
        reinjected = repeats & ~resent
        redundant = _by_packet(row, covered.fresh) == 0
        if not at_receiver:
            left = np.maximum(position + length - placed.acknowledged.before(row), 0)
            redundant &= _by_packet(row, left) == 0
    announced_bytes = placed.announced_bytes
    return DataFlow(
        row=row,
        time_ns=placed.time_ns,
        subflow=placed.subflow,
        position=position,
        length=length,
        fresh=covered.fresh,
        in_order=covered.edge,
        retransmitted=again,
        reinjected=reinjected,
        resent=resent,
        redundant=redundant,
        announced_bytes=covered.total if announced_bytes is None else announced_bytes,
        captured_bytes=covered.total,
        in_order_bytes=int(covered.edge[-1]) if len(row) else 0,
        acknowledged_bytes=placed.acknowledged.total,
        fallback_bytes=int(covered.fresh[placed.endless].sum()),
        unmapped_bytes=placed.unmapped_bytes,
        conflicting_mappings=placed.conflicting_mappings,
        gaps=covered.gaps,
        end_bytes=placed.end_bytes,
    )


def _by_packet(row: I64, values: I64) -> I64:
    """Sums over the pieces of each packet, for each of its pieces."""
    begins = np.ones(len(row), dtype=np.bool_)
    begins[1:] = row[1:] != row[:-1]
    if begins.all():
        return values
    sums = np.add.reduceat(values, np.flatnonzero(begins))
    spread: I64 = sums[np.cumsum(begins) - 1]
    return spread


def _resent(placed: Placed, candidates: Mask) -> Mask:
    """Which of the candidates have data that their own subflow had carried before."""
    found = np.zeros(len(candidates), dtype=np.bool_)
    for index in np.unique(placed.subflow[candidates]).tolist():
        mine = placed.subflow == index
        row, length = placed.row[mine], placed.length[mine]
        fresh = cover(placed.position[mine], length).fresh
        found[mine] = _by_packet(row, length - fresh) > 0
    return found & candidates
