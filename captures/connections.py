"""Connections as an application sees them: multipath TCP with its subflows, or one TCP stream.

Both give the same structure, so that whoever measures does not need to know which it was:

>>> capture = read("tests/captures/data/v6_client.pcap")                     # doctest: +SKIP
>>> for connection in connections(capture.packets):                          # doctest: +SKIP
...     print(connection.protocol, connection.forward.captured_bytes)        # doctest: +SKIP

Data positions count from 0, the first byte of the connection, in both directions. In multipath
TCP they come from the mappings of the DSS option (one mapping covers many packets), from the data
length of MP_CAPABLE (the first data of version 1), and from an infinite mapping after a fallback;
in single-path TCP from the sequence numbers (RFC 8684, sections 3.1, 3.3 and 3.7).
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from captures.coverage import Coverage, cover
from captures.packets import (
    DSS,
    DSS_ACK,
    DSS_ACK8,
    DSS_FIN,
    DSS_MAP,
    DSS_MAP8,
    MP_CAPABLE,
    MP_FASTCLOSE,
    SYN,
    Packets,
)
from captures.streams import Endpoint, Half, Stream, streams, unwrap

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
_M64 = (1 << 64) - 1
_ENDLESS = 1 << 48


@dataclass(frozen=True)
class SubflowTraffic:
    """One direction of one subflow.

    Attributes
    ----------
    packets, data_packets : int
        All packets, and those that carry data.
    payload_bytes : int
        Carried, repeated ones included.
    fresh_bytes : int
        Data bytes that no subflow had carried before.
    retransmissions : int
        Data packets all of whose bytes this subflow had carried before (TCP retransmission).
    reinjections : int
        Data packets new to this subflow all of whose data had been carried before, by another
        subflow or by this one under other TCP sequence numbers.
    """

    packets: int
    data_packets: int
    payload_bytes: int
    fresh_bytes: int
    retransmissions: int
    reinjections: int


@dataclass(frozen=True)
class Subflow:
    """One TCP stream of a connection; `forward` goes from the *connection's* client to its server.

    Attributes
    ----------
    client, server : Endpoint
        Of the connection's client and server side, whoever opened the subflow.
    joined : bool
        It was added by MP_JOIN.
    backup : bool
        It was marked as backup when it was opened.
    closed : str
        "orderly" (FIN), "reset" or "open".
    """

    client: Endpoint
    server: Endpoint
    joined: bool
    backup: bool
    opened_ns: int
    last_ns: int
    closed: str
    forward: SubflowTraffic
    backward: SubflowTraffic


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
        The packet repeats only bytes that its subflow had carried before.
    reinjected : bool array
        The packet is new to its subflow, but all its data had been carried before: by another
        subflow, or by this one under other TCP sequence numbers.
    announced_bytes : int
        Covered by mappings, whether the packets were captured or not.
    captured_bytes : int
        Covered by captured packets.
    in_order_bytes : int
        Complete from the start.
    acknowledged_bytes : int
        Acknowledged by the other side at the data level.
    unmapped_bytes : int
        Payload that no mapping puts anywhere.
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
    announced_bytes: int
    captured_bytes: int
    in_order_bytes: int
    acknowledged_bytes: int
    unmapped_bytes: int
    gaps: int
    end_bytes: int | None

    @property
    def complete(self) -> bool:
        """The sender said where the data ends, and all of it was acknowledged."""
        return self.end_bytes is not None and self.acknowledged_bytes >= self.end_bytes


@dataclass(frozen=True)
class Connection:
    """A connection between two applications.

    Attributes
    ----------
    protocol : str
        "mptcp" or "tcp".
    version : int or None
        Of multipath TCP: 0 or 1; ``None`` for TCP, or when the opening is not in the capture.
    fallback : bool
        Multipath TCP was asked for, but plain TCP used, from the start or later.
    client, server : Endpoint
        Of the first subflow.
    client_token, server_token : int or None
        As far as the keys are in the capture.
    subflows : tuple of Subflow
    forward, backward : DataFlow
        From client to server and back.
    opened_ns, last_ns : int
        Time of the first and the last packet.
    closed : str
        "orderly" (DATA_FIN or FIN), "fastclose", "reset" or "open".
    """

    protocol: str
    version: int | None
    fallback: bool
    client: Endpoint
    server: Endpoint
    client_token: int | None
    server_token: int | None
    subflows: tuple[Subflow, ...]
    forward: DataFlow
    backward: DataFlow
    opened_ns: int
    last_ns: int
    closed: str


def token_and_initial_sequence(key: int, version: int) -> tuple[int, int]:
    """Token and initial data sequence number that belong to a key.

    Parameters
    ----------
    key : int
        64 bits.
    version : int
        Version 0 hashes with SHA-1 (RFC 6824), version 1 with SHA-256 (RFC 8684).

    Returns
    -------
    token : int
        The hash's first 32 bits.
    initial_data_sequence : int
        The hash's last 64 bits.
    """
    algorithm = hashlib.sha1 if version == 0 else hashlib.sha256
    digest = algorithm(key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[-8:], "big")


def connections(packets: Packets) -> tuple[Connection, ...]:
    """Find the connections in a capture, in order of their first packets.

    Parameters
    ----------
    packets : Packets
        Of one capture, or of several of the same host merged in order of time.

    Returns
    -------
    tuple of Connection
        Subflows whose connection's opening is not in the capture form a connection of their own
        for each token.
    """
    return tuple(_connection(packets, draft) for draft in _drafts(packets))


@dataclass(frozen=True)
class _Member:
    """A stream and how it takes part: `swapped` when the connection's server opened it."""

    stream: Stream
    joined: bool = False
    swapped: bool = False
    backup: bool = False

    def half(self, forward: bool) -> Half:
        return self.stream.forward if forward != self.swapped else self.stream.backward


@dataclass
class _Draft:
    multipath: bool
    version: int | None
    fallback: bool
    members: list[_Member]
    client_key: int | None = None
    server_key: int | None = None
    token: int | None = None

    def key(self, forward: bool) -> int | None:
        """Key of the side that sends in this direction."""
        return self.client_key if forward else self.server_key


def _drafts(packets: Packets) -> list[_Draft]:
    drafts: list[_Draft] = []
    joins: list[Stream] = []
    for stream in streams(packets):
        rows = np.concatenate([stream.forward.rows, stream.backward.rows])
        options = packets.mptcp[rows]
        if (packets.join_token[rows] >= 0).any():
            joins.append(stream)
        elif (options & (1 << MP_CAPABLE) != 0).any():
            drafts.append(_opening(packets, stream))
        else:
            # Options of a connection whose opening was not recorded.
            multipath = bool((packets.dss_flags[rows] != 0).any() or (options & ~(1 << DSS)).any())
            version = None
            drafts.append(_Draft(multipath, version, False, [_Member(stream)]))
    by_token: dict[int, tuple[_Draft, bool]] = {}
    for draft in drafts:
        if draft.multipath and draft.version is not None:
            for key, of_client in ((draft.client_key, True), (draft.server_key, False)):
                if key is not None:
                    token, _ = token_and_initial_sequence(key, draft.version)
                    by_token[token] = (draft, of_client)
    for stream in joins:
        rows = np.concatenate([stream.forward.rows, stream.backward.rows])
        syn = rows[packets.join_token[rows] >= 0][0]
        token, backup = int(packets.join_token[syn]), bool(packets.join_backup[syn])
        if token not in by_token:
            # The token is the receiver's: whoever sent the SYN counts as the client.
            orphan = _Draft(True, None, False, [], token=token)
            drafts.append(orphan)
            by_token[token] = (orphan, False)
        draft, of_client = by_token[token]
        draft.members.append(_Member(stream, True, of_client, backup))
    return sorted(drafts, key=lambda draft: draft.members[0].stream.first_row)


def _opening(packets: Packets, stream: Stream) -> _Draft:
    there, back = stream.forward.rows, stream.backward.rows
    asked = there[packets.mptcp[there] & (1 << MP_CAPABLE) != 0]
    answered = back[packets.mptcp[back] & (1 << MP_CAPABLE) != 0]
    versions = packets.capable_version[np.concatenate([answered, asked])]
    version = int(versions[0]) if versions[0] in (0, 1) else None

    client_key = server_key = None
    with_keys = asked[packets.capable_keys[asked] >= 1]
    if len(with_keys):
        client_key = int(packets.sender_key[with_keys[0]])
    with_keys = answered[packets.capable_keys[answered] >= 1]
    if len(with_keys):
        server_key = int(packets.sender_key[with_keys[0]])
    both = asked[packets.capable_keys[asked] == 2]
    if len(both) and server_key is None:
        server_key = int(packets.receiver_key[both[0]])

    # Agreed: the server's SYN said so, or the client repeated both keys.
    agreed = bool(len(answered)) or bool(len(both))
    draft = _Draft(agreed, version, not agreed, [_Member(stream)], client_key, server_key)
    if not agreed:
        draft.version = None
    return draft


def _connection(packets: Packets, draft: _Draft) -> Connection:
    members = draft.members
    if draft.multipath:
        forward, infinite_there = _multipath_flow(packets, draft, True)
        backward, infinite_back = _multipath_flow(packets, draft, False)
        fallback = draft.fallback or infinite_there or infinite_back
    else:
        forward = _single_path_flow(packets, members[0], True)
        backward = _single_path_flow(packets, members[0], False)
        fallback = draft.fallback
    forward = _with_repeats(forward, [member.half(True) for member in members])
    backward = _with_repeats(backward, [member.half(False) for member in members])
    subflows = tuple(
        Subflow(
            client=member.stream.server if member.swapped else member.stream.client,
            server=member.stream.client if member.swapped else member.stream.server,
            joined=member.joined,
            backup=member.backup,
            opened_ns=member.stream.opened_ns,
            last_ns=member.stream.last_ns,
            closed=_stream_end(member.stream),
            forward=_traffic(member.half(True), forward, index),
            backward=_traffic(member.half(False), backward, index),
        )
        for index, member in enumerate(members)
    )
    tokens: list[int | None] = [None, None]
    if draft.version is not None:
        for index, key in enumerate((draft.client_key, draft.server_key)):
            if key is not None:
                tokens[index] = token_and_initial_sequence(key, draft.version)[0]
    return Connection(
        protocol="mptcp" if draft.multipath else "tcp",
        version=draft.version,
        fallback=fallback,
        client=subflows[0].client,
        server=subflows[0].server,
        client_token=tokens[0],
        server_token=tokens[1] if tokens[1] is not None else draft.token,
        subflows=subflows,
        forward=forward,
        backward=backward,
        opened_ns=min(each.opened_ns for each in subflows),
        last_ns=max(each.last_ns for each in subflows),
        closed=_end(packets, draft),
    )


def _stream_end(stream: Stream) -> str:
    if stream.forward.reset or stream.backward.reset:
        return "reset"
    ended = stream.forward.end is not None or stream.backward.end is not None
    return "orderly" if ended else "open"


def _end(packets: Packets, draft: _Draft) -> str:
    rows = np.concatenate(
        [half.rows for each in draft.members for half in (each.half(True), each.half(False))]
    )
    if draft.multipath:
        if (packets.mptcp[rows] & (1 << MP_FASTCLOSE) != 0).any():
            return "fastclose"
        if (packets.dss_flags[rows] & DSS_FIN != 0).any():
            return "orderly"
    ends = {_stream_end(each.stream) for each in draft.members}
    # A connection lives as long as one of its subflows.
    return next((end for end in ("open", "orderly") if end in ends), "reset")


def _with_repeats(flow: DataFlow, halves: list[Half]) -> DataFlow:
    repeated: list[I64] = []
    for half in halves:
        carries = half.payload_bytes > 0
        own = cover(half.position[carries] - 1, half.payload_bytes[carries])
        repeated.append(half.rows[carries][own.fresh == 0])
    retransmitted = np.isin(flow.row, np.concatenate(repeated))
    brings_news = np.isin(flow.row, flow.row[flow.fresh > 0])
    return replace(flow, retransmitted=retransmitted, reinjected=~retransmitted & ~brings_news)


def _traffic(half: Half, flow: DataFlow, subflow: int) -> SubflowTraffic:
    here = flow.subflow == subflow
    return SubflowTraffic(
        packets=len(half.rows),
        data_packets=int((half.payload_bytes > 0).sum()),
        payload_bytes=int(half.payload_bytes.sum()),
        fresh_bytes=int(flow.fresh[here].sum()),
        retransmissions=len(np.unique(flow.row[here & flow.retransmitted])),
        reinjections=len(np.unique(flow.row[here & flow.reinjected])),
    )


@dataclass(frozen=True)
class _Pieces:
    """Data put in place: columns of `DataFlow` before they are merged and ordered."""

    row: I64
    subflow: I64
    position: I64
    length: I64


def _single_path_flow(packets: Packets, member: _Member, forward: bool) -> DataFlow:
    half = member.half(forward)
    carries = np.flatnonzero(half.payload_bytes > 0)
    pieces = _Pieces(
        half.rows[carries],
        np.zeros(len(carries), dtype=np.int64),
        half.position[carries] - 1,
        half.payload_bytes[carries],
    )
    flow = _flow(packets, pieces)
    return replace(
        flow,
        announced_bytes=flow.captured_bytes,
        acknowledged_bytes=_acknowledged(half),
        end_bytes=None if half.end is None else half.end - 1,
    )


def _acknowledged(half: Half) -> int:
    """Payload bytes acknowledged; the acknowledgment of a FIN counts one more on the wire."""
    acknowledged = half.acknowledged - 1
    if half.end is not None:
        acknowledged = min(acknowledged, half.end - 1)
    return max(acknowledged, 0)


def _highest(flow: DataFlow) -> int:
    return int((flow.position + flow.length).max()) if len(flow.row) else 0


def _flow(packets: Packets, pieces: _Pieces) -> DataFlow:
    order = np.lexsort((pieces.row, packets.time_ns[pieces.row]))
    row, position, length = pieces.row[order], pieces.position[order], pieces.length[order]
    covered: Coverage = cover(position, length)
    return DataFlow(
        row=row,
        time_ns=packets.time_ns[row],
        subflow=pieces.subflow[order],
        position=position,
        length=length,
        fresh=covered.fresh,
        in_order=covered.edge,
        retransmitted=np.zeros(len(row), dtype=np.bool_),
        reinjected=np.zeros(len(row), dtype=np.bool_),
        announced_bytes=0,
        captured_bytes=covered.total,
        in_order_bytes=int(covered.edge[-1]) if len(row) else 0,
        acknowledged_bytes=0,
        unmapped_bytes=0,
        gaps=covered.gaps,
        end_bytes=None,
    )


@dataclass(frozen=True)
class _Mappings:
    """Mappings of one direction of one subflow, as their packets announce them."""

    row: I64
    start: I64  # on the subflow, as `Half.position`
    data: I64  # on the connection, from 0
    length: I64


def _multipath_flow(packets: Packets, draft: _Draft, forward: bool) -> tuple[DataFlow, bool]:
    """Data of one direction, and whether an infinite mapping or none at all was used."""
    key = draft.key(forward)
    initial: int | None = None
    if key is not None and draft.version is not None:
        initial = token_and_initial_sequence(key, draft.version)[1]
    halves = [member.half(forward) for member in draft.members]
    announced = _data_numbers(packets, halves, initial)
    infinite = False
    unmapped = 0
    parts: list[_Pieces] = []
    mapped: list[tuple[I64, I64]] = []
    for index, (half, (numbers, initial_here)) in enumerate(zip(halves, announced, strict=True)):
        mappings = _mappings(packets, half, numbers, initial_here)
        ends = mappings.length == 0
        if ends.any():
            infinite = True
        carries = half.payload_bytes > 0
        if not len(mappings.row) and len(halves) == 1 and carries.any():
            # Agreed, but never used: everything after the handshake is plain TCP.
            infinite = True
            one = np.ones(1, dtype=np.int64)
            mappings = _Mappings(half.rows[:1], one, one - 1, one - 1)
            ends = mappings.length == 0
        finite = mappings.length[~ends]
        mapped.append((mappings.data[~ends], finite))
        mappings = replace(mappings, length=np.where(ends, _ENDLESS, mappings.length))
        pieces, left = _place(half, mappings, index)
        unmapped += left
        parts.append(pieces)
    together = _Pieces(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("row", "subflow", "position", "length")
        )
    )
    flow = _flow(packets, together)
    data = np.concatenate([part for part, _ in mapped])
    length = np.concatenate([part for _, part in mapped])
    order = np.argsort(data, kind="stable")
    announced_bytes = cover(data[order], length[order]).total
    end = _data_end(packets, halves, [numbers for numbers, _ in announced])
    if infinite and len(halves) == 1 and halves[0].end is not None:
        end = halves[0].end - 1
    acknowledged = _data_acknowledged(packets, draft, forward, initial, flow, infinite, end)
    flow = replace(
        flow,
        announced_bytes=announced_bytes,
        acknowledged_bytes=acknowledged,
        unmapped_bytes=unmapped,
        end_bytes=end,
    )
    return flow, infinite


def _data_end(packets: Packets, halves: list[Half], numbers: list[I64]) -> int | None:
    """Position of the DATA_FIN, the number after the last data byte."""
    ends: list[int] = []
    both = DSS_FIN | DSS_MAP
    for half, number in zip(halves, numbers, strict=True):
        last = packets.dss_flags[half.rows] & both == both
        end = (number + np.maximum(packets.mapping_bytes[half.rows] - 1, 0))[last]
        if len(end):
            ends.append(int(end.max()))
    return max(ends, default=None)


def _data_numbers(
    packets: Packets, halves: list[Half], initial: int | None
) -> list[tuple[I64, int | None]]:
    """For the packets with a mapping of each half: their data numbers, relative and unwrapped.

    Returned for all packets of the half; meaningful where there is a mapping. The number of the
    first data byte is 0. Numbers of 4 bytes are continued across all subflows in order of time.
    """
    rows = np.concatenate([half.rows for half in halves])
    mapped = rows[(packets.dss_flags[rows] & DSS_MAP != 0)]
    mapped = mapped[np.lexsort((mapped, packets.time_ns[mapped]))]
    if initial is None and len(mapped):
        # Relative to the first data seen, as there is nothing better.
        first = mapped[packets.mapping_bytes[mapped] > 0]
        example = first[0] if len(first) else mapped[0]
        initial = int(packets.data_sequence[example]) - 1 & _M64
    numbers = np.zeros(len(packets), dtype=np.int64)
    if initial is not None and len(mapped):
        first_byte = np.uint64(initial + 1 & _M64)
        difference = packets.data_sequence[mapped] - first_byte
        low = (difference & np.uint64(0xFFFFFFFF)).astype(np.int64)
        long = packets.dss_flags[mapped] & DSS_MAP8 != 0
        exact = difference.view(np.int64)
        near = int(exact[np.argmax(long)]) if long.any() else 0
        continued = unwrap(low, near)
        if long.any():
            # The two agree up to a multiple of 2**32 that the longer one settles.
            continued += exact[np.argmax(long)] - continued[np.argmax(long)]
        numbers[mapped] = np.where(long, exact, continued)
    return [(numbers[half.rows], initial) for half in halves]


def _mappings(packets: Packets, half: Half, numbers: I64, initial: int | None) -> _Mappings:
    rows = half.rows
    flags, length = packets.dss_flags[rows], packets.mapping_bytes[rows]
    # A DATA_FIN takes one number of its own; alone it maps nothing, on subflow number 0.
    fin = flags & DSS_FIN != 0
    length = np.where(fin, length - 1, length)
    alone = fin & (length <= 0)
    uses = (flags & DSS_MAP != 0) & ~alone & (length >= 0)
    at = half.position
    near = (packets.subflow_sequence[rows] - at + (1 << 31)) % (1 << 32) - (1 << 31)
    start = at + near
    if (uses & (length == 0)).any():
        # Subflow number 0 in an infinite mapping: it begins with this very packet.
        zero = uses & (length == 0) & (packets.subflow_sequence[rows] == 0)
        start = np.where(zero, at, start)
    capable = packets.capable_data_bytes[rows] > 0
    if capable.any() and initial is not None:
        start = np.where(capable, 1, start)
        numbers = np.where(capable, 0, numbers)
        length = np.where(capable, packets.capable_data_bytes[rows], length)
        uses = uses | capable
    keep = np.flatnonzero(uses & (packets.flags[rows] & (SYN) == 0))
    return _Mappings(rows[keep], start[keep], numbers[keep], length[keep])


def _place(half: Half, mappings: _Mappings, subflow: int) -> tuple[_Pieces, int]:
    """Put the payload of one half where its mappings say; also the bytes left over."""
    carries = np.flatnonzero(half.payload_bytes > 0)
    row, at, missing = half.rows[carries], half.position[carries], half.payload_bytes[carries]
    # Distinct mappings in subflow order; of two for the same start, the later announced wins.
    order = np.lexsort((mappings.row, mappings.start))
    start, data, length = mappings.start[order], mappings.data[order], mappings.length[order]
    if len(start):
        same = np.r_[
            (start[1:] == start[:-1]) & (data[1:] == data[:-1]) & (length[1:] == length[:-1]), False
        ]
        start, data, length = start[~same], data[~same], length[~same]
    out: list[tuple[I64, I64, I64]] = []
    left = 0
    # Nearly always one round: a second one is for packets that cross the end of a mapping.
    for _ in range(64):
        if not len(row) or not len(start):
            break
        found = np.searchsorted(start, at, side="right") - 1
        usable = np.zeros(len(at), dtype=np.bool_)
        # Mappings may overlap (a shorter one sent later), so look back a few.
        for _ in range(4):
            usable = (found >= 0) & (start[found] + length[found] > at)
            if usable.all():
                break
            found = np.where(usable | (found < 0), found, found - 1)
        usable = (found >= 0) & (start[found] + length[found] > at)
        following = np.searchsorted(start, at, side="right")
        next_start = np.where(
            following < len(start), start[np.minimum(following, len(start) - 1)], at + missing
        )
        room = np.where(usable, start[found] + length[found] - at, next_start - at)
        # An infinite mapping ends where a later mapping begins.
        endless = usable & (length[found] >= _ENDLESS)
        room = np.where(endless, np.minimum(room, np.maximum(next_start - at, 1)), room)
        taken = np.minimum(missing, np.maximum(room, 1))
        position = data[found] + at - start[found]
        out.append((row[usable], position[usable], taken[usable]))
        left += int(taken[~usable].sum())
        rest = missing > taken
        row, at, missing = row[rest], (at + taken)[rest], (missing - taken)[rest]
    left += int(missing.sum())
    if not out:
        empty = np.zeros(0, dtype=np.int64)
        return _Pieces(empty, empty, empty, empty), left
    rows, positions, lengths = (np.concatenate(columns) for columns in zip(*out, strict=True))
    return _Pieces(rows, np.full(len(rows), subflow, dtype=np.int64), positions, lengths), left


def _data_acknowledged(
    packets: Packets,
    draft: _Draft,
    forward: bool,
    initial: int | None,
    flow: DataFlow,
    infinite: bool,
    end: int | None,
) -> int:
    """Data bytes acknowledged by the other side."""
    if infinite and len(draft.members) == 1:
        # After a fallback only the subflow's own acknowledgments go on.
        return _acknowledged(draft.members[0].half(forward))
    if initial is None:
        return 0
    rows = np.concatenate([member.half(not forward).rows for member in draft.members])
    rows = rows[packets.dss_flags[rows] & DSS_ACK != 0]
    if not len(rows):
        return 0
    difference = packets.data_acknowledgment[rows] - np.uint64(initial + 1 & _M64)
    long = packets.dss_flags[rows] & DSS_ACK8 != 0
    exact = difference.view(np.int64)
    low = (difference & np.uint64(0xFFFFFFFF)).astype(np.int64)
    low = np.where(low >> 31 == 1, low - (1 << 32), low)
    # 4-byte acknowledgments: the multiple of 2**32 that brings them below what was sent.
    highest = _highest(flow)
    low += np.maximum((highest + 1 - low) >> 32, 0) << 32
    acknowledged = int(np.where(long, exact, low).max())
    if end is not None:
        # The acknowledgment of a DATA_FIN counts one more.
        acknowledged = min(acknowledged, end)
    return max(acknowledged, 0)
