"""TCP streams: which packets belong together, in which direction, and where in the byte stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from captures.packets import ACK, DSS_MAP, FIN, RST, SYN, Flows, Packets

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

# Packets this far from the first one are not taken for the start of a stream.
_NEAR_BYTES = 1 << 30


@dataclass(frozen=True)
class Endpoint:
    """Address and port of one side."""

    address: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Stream:
    """A TCP connection, or one subflow of a multipath one.

    The client is the side that sent the SYN; without a SYN in the capture the sender of the first
    packet is taken for it.

    Attributes
    ----------
    client, server : Endpoint
    forward, backward : int32 array
        Positions in `Packets` of what client and server sent, in file order.
    options : int64 array
        Positions in `Packets.options` of its MPTCP options.
    opened_ns, last_ns : int
        Time of the first and the last packet.
    """

    client: Endpoint
    server: Endpoint
    forward: I32
    backward: I32
    options: I64
    opened_ns: int
    last_ns: int

    @property
    def first_row(self) -> int:
        """Position of the first packet."""
        return min(int(rows[0]) for rows in (self.forward, self.backward) if len(rows))

    def half(self, packets: Packets, *, forward: bool) -> "Half":
        """One direction, placed in its byte stream."""
        return _half(packets, self.forward if forward else self.backward)


@dataclass(frozen=True)
class Half:
    """One direction of a TCP stream.

    Attributes
    ----------
    rows : int64 array
        Positions in `Packets`, in file order.
    position : int64 array
        Of each packet: relative sequence number of its first byte, unwrapped; the first byte of
        the stream is 1, as in a DSS option.
    payload_bytes : int64 array
    keep_alive : bool array
        Probes of an idle or closed window: no byte, or one, just below what comes next.
    initial : int
        Initial sequence number, as on the wire.
    start_known : bool
        The initial sequence number is certain: the SYN is in the capture.
    end : int or None
        Position of this side's FIN.
    reset : bool
        This side sent RST.
    """

    rows: I64
    position: I64
    payload_bytes: I64
    keep_alive: Mask
    initial: int
    start_known: bool
    end: int | None
    reset: bool


def streams(packets: Packets) -> list[Stream]:
    """Sort packets into TCP streams, in order of their first packets.

    A SYN on an old four-tuple with another initial sequence number, or with the same one after
    the stream has ended, opens a new stream.

    Parameters
    ----------
    packets : Packets
        Of one capture, or of several of the same host.

    Returns
    -------
    list of Stream
    """
    return sorted(_streams(packets), key=lambda stream: stream.first_row)


def _streams(packets: Packets) -> Iterator[Stream]:
    if not len(packets):
        return
    number, onwards = _numbers(packets)
    count = int(number.max()) + 1
    # Short numbers are sorted by digits, in linear time.
    key = number.astype(np.uint16) if count <= 1 << 16 else number
    order = np.argsort(key, kind="stable").astype(np.int32)
    option_number = number[packets.options.row]
    option_order = np.argsort(option_number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=count)).tolist()
    option_ends = np.cumsum(np.bincount(option_number, minlength=count)).tolist()
    begin = option_begin = 0
    for end, option_end in zip(ends, option_ends, strict=True):
        rows, options = order[begin:end], option_order[option_begin:option_end]
        # Of a selection, some four-tuples may have no packet.
        if len(rows):
            yield _stream(packets, rows, onwards[rows], options)
        begin, option_begin = end, option_end


def _numbers(packets: Packets) -> tuple[I32, Mask]:
    """A number for each packet's stream, and which of its two directions it goes."""
    pair_of_flow, onwards_of_flow = _pairs(packets.flows)
    pair, onwards = pair_of_flow[packets.flow], onwards_of_flow[packets.flow]
    reopening = _reopening(packets, pair, onwards)
    if not len(reopening):
        return pair, onwards
    order = np.argsort(pair, kind="stable")
    opens = np.zeros(len(pair), dtype=np.bool_)
    opens[reopening] = True
    opens = opens[order]
    opens[1:] |= np.diff(pair[order]) != 0
    number = np.empty_like(pair)
    number[order] = np.cumsum(opens)
    return number, onwards


class _Opened:
    """What the SYNs, FINs and RSTs of the newest stream of a four-tuple have said, by side."""

    def __init__(self) -> None:
        self.initial: dict[bool, int] = {}
        self.finished: set[bool] = set()
        self.reset = False

    def continued_by(self, side: bool, initial: int, answered: int | None) -> bool:
        """Whether a SYN of this side, or one that answers a SYN, belongs to this stream."""
        mine, others = self.initial.get(side), self.initial.get(not side)
        ended = self.reset or len(self.finished) == 2
        if answered is not None:
            # Whoever keeps no state answers a repeated SYN with another number.
            return mine == initial or others == answered or (mine is None and others is not None)
        if mine is None:
            # A simultaneous open (RFC 9293, section 3.5), or a SYN recorded after its answer.
            return others is not None and not ended and not self.finished
        return mine == initial and not (ended and others is not None)


def _reopening(packets: Packets, pair: I32, onwards: Mask) -> I64:
    """Rows of the packets that open another stream on a four-tuple that was in use."""
    control = np.flatnonzero(packets.flags & (SYN | FIN | RST))
    begins = np.empty(int(pair.max()) + 1, dtype=np.int64)
    begins[pair[::-1]] = np.arange(len(pair) - 1, -1, -1)
    columns = (
        control,
        pair[control],
        begins[pair[control]] == control,
        onwards[control],
        packets.flags[control],
        packets.sequence[control],
        packets.acknowledgment[control],
    )
    newest: dict[int, _Opened] = {}
    found: list[int] = []
    for row, number, is_first, side, flags, sequence, acknowledgment in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        stream = newest.setdefault(number, _Opened())
        if flags & SYN:
            answered = acknowledgment - 1 & 0xFFFFFFFF if flags & ACK else None
            if not is_first and not stream.continued_by(side, sequence, answered):
                found.append(row)
                stream = newest[number] = _Opened()
            stream.initial[side] = sequence
        if flags & FIN:
            stream.finished.add(side)
        stream.reset |= flags & RST != 0
    return np.array(found, dtype=np.int64)


def _pairs(flows: Flows) -> tuple[I32, Mask]:
    """A number for the four-tuple of each flow, the same for both directions; which one it is."""
    one: list[NDArray[Any]] = [flows.source_high, flows.source_low, flows.source_port]
    two: list[NDArray[Any]] = [
        flows.destination_high,
        flows.destination_low,
        flows.destination_port,
    ]
    onwards = np.zeros(len(flows), dtype=np.bool_)
    equal = np.ones(len(flows), dtype=np.bool_)
    for a, b in zip(one, two, strict=True):
        onwards |= equal & (a < b)
        equal &= a == b
    onwards |= equal
    keys = [np.where(onwards, a, b) for a, b in zip(one, two, strict=True)]
    keys += [np.where(onwards, b, a) for a, b in zip(one, two, strict=True)]
    keys.append(flows.ip_version)
    order = np.lexsort(keys)
    changes = np.zeros(len(flows), dtype=np.bool_)
    for key in keys:
        ordered = key[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    pair = np.empty(len(flows), dtype=np.int32)
    pair[order] = np.cumsum(changes)
    return pair, onwards


def _stream(packets: Packets, rows: I32, onwards: Mask, options: I64) -> Stream:
    opening = packets.flags[rows] & (SYN | ACK)
    syn, answer = opening == SYN, opening == SYN | ACK
    client: bool | np.bool_ = onwards[0]
    if syn.any():
        client = onwards[np.argmax(syn)]
    elif answer.any():
        client = not onwards[np.argmax(answer)]
    forward, backward = rows[onwards == client], rows[onwards != client]
    ends: list[Literal["source", "destination"]] = ["source", "destination"]
    if not len(forward):
        ends.reverse()
    example = int(forward[0] if len(forward) else backward[0])
    times = packets.time_ns[rows]
    return Stream(
        client=_endpoint(packets, example, ends[0]),
        server=_endpoint(packets, example, ends[1]),
        forward=forward,
        backward=backward,
        options=options,
        opened_ns=int(times.min()),
        last_ns=int(times.max()),
    )


def _endpoint(packets: Packets, row: int, end: Literal["source", "destination"]) -> Endpoint:
    text = packets.source(row) if end == "source" else packets.destination(row)
    flows, flow = packets.flows, packets.flow[row]
    port = flows.source_port if end == "source" else flows.destination_port
    return Endpoint(text, int(port[flow]))


def _start(packets: Packets, rows: I64) -> tuple[int, bool]:
    """Initial sequence number of one direction, and whether it is certain."""
    syn = rows[packets.flags[rows] & SYN != 0]
    if len(syn):
        return int(packets.sequence[syn[0]]), True
    # Without the SYN, a DSS option still says how far into the subflow its packet is, if the
    # packet is the first of the mapping: take what most mappings agree on.
    mapped = rows[(packets.dss_flags[rows] & DSS_MAP != 0) & (packets.subflow_sequence[rows] > 0)]
    if len(mapped):
        _, first = np.unique(packets.subflow_sequence[mapped], return_index=True)
        mapped = mapped[first]
        sequence = packets.sequence[mapped].astype(np.int64)
        start = (sequence - packets.subflow_sequence[mapped].astype(np.int64)) & 0xFFFFFFFF
        values, counts = np.unique(start, return_counts=True)
        return int(values[np.argmax(counts)]), False
    data = rows[packets.payload_bytes[rows] > 0]
    if not len(data):
        return int(packets.sequence[rows[0]]) - 1 & 0xFFFFFFFF, False
    # The lowest byte seen: the first packet recorded may have overtaken others.
    base = int(packets.sequence[data[0]])
    distance = unwrap((packets.sequence[data].astype(np.int64) - base) & 0xFFFFFFFF)
    lowest = int(distance[distance > -_NEAR_BYTES].min())
    return base + lowest - 1 & 0xFFFFFFFF, False


def header_cut(packets: Packets, rows: I64 | I32) -> Mask:
    """Of which of these packets not even the header, with all its options, was captured."""
    header_bytes = packets.wire_bytes[rows] - packets.payload_bytes[rows]
    cut: Mask = packets.captured_bytes[rows] < header_bytes
    return cut


def unwrap(values: I64, near: int = 0) -> I64:
    """Numbers modulo 2**32 as a continuous series; the first one is taken closest to `near`."""
    steps = np.empty(len(values), dtype=np.int64)
    steps[:1] = values[:1] - near
    np.subtract(values[1:], values[:-1], out=steps[1:])
    return near + np.cumsum((steps + (1 << 31) & 0xFFFFFFFF) - (1 << 31))


def _half(packets: Packets, short_rows: I32) -> Half:
    rows = short_rows.astype(np.int64)
    if not len(rows):
        return Half(rows, rows, rows, np.zeros(0, dtype=np.bool_), 0, False, None, False)
    initial, known = _start(packets, rows)
    flags = packets.flags[rows]
    syn, fin = flags & SYN != 0, flags & FIN != 0
    relative = (packets.sequence[rows].astype(np.int64) - initial) & 0xFFFFFFFF
    position = unwrap(relative) + syn
    payload = packets.payload_bytes[rows].astype(np.int64)
    end = position + payload
    following = np.zeros(len(rows), dtype=np.int64)
    np.maximum.accumulate((end + fin)[:-1], out=following[1:])
    keep_alive = (payload <= 1) & (position == following - 1) & (flags & (SYN | FIN | RST) == 0)
    return Half(
        rows=rows,
        position=position,
        payload_bytes=payload,
        keep_alive=keep_alive,
        initial=initial,
        start_known=known,
        end=int(end[fin].max()) if fin.any() else None,
        reset=bool((flags & RST != 0).any()),
    )
