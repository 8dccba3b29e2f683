"""TCP streams: which packets belong together, in which direction, and where in the byte stream."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.packets import ACK, DSS_MAP, FIN, RST, SYN, Packets, address

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Endpoint:
    """Address and port of one side."""

    address: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


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
    acknowledged : int
        Highest relative sequence number that the *other* direction acknowledged, 0 if none.
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
    acknowledged: int
    start_known: bool
    end: int | None
    reset: bool


@dataclass(frozen=True)
class Stream:
    """A TCP connection, or one subflow of a multipath one.

    `forward` goes from `client`, the side that sent the SYN, to `server`; without a SYN in the
    capture the sender of the first packet is taken for the client.
    """

    client: Endpoint
    server: Endpoint
    forward: Half
    backward: Half
    first_row: int
    opened_ns: int
    last_ns: int


def streams(packets: Packets) -> list[Stream]:
    """Sort packets into TCP streams, in order of their first packets.

    A new SYN on an old four-tuple with another initial sequence number opens a new stream.

    Parameters
    ----------
    packets : Packets
        Of one capture, or of several of the same host.

    Returns
    -------
    list of Stream
    """
    if not len(packets):
        return []
    number, upwards = _number_streams(packets)
    order = np.argsort(number, kind="stable")
    cuts = np.flatnonzero(np.diff(number[order])) + 1
    found = [_stream(packets, rows, upwards[rows]) for rows in np.split(order, cuts)]
    return sorted(found, key=lambda stream: stream.first_row)


def _number_streams(packets: Packets) -> tuple[I64, NDArray[np.bool_]]:
    """A number for each packet's stream; whether it goes from the lower endpoint to the higher."""
    one = (packets.source_high, packets.source_low, packets.source_port)
    two = (packets.destination_high, packets.destination_low, packets.destination_port)
    upwards = np.zeros(len(packets), dtype=np.bool_)
    equal = np.ones(len(packets), dtype=np.bool_)
    for a, b in zip(one, two, strict=True):
        upwards |= equal & (a < b)
        equal &= a == b
    upwards |= equal
    keys = [np.where(upwards, a, b) for a, b in zip(one, two, strict=True)]
    keys += [np.where(upwards, b, a) for a, b in zip(one, two, strict=True)]
    keys.append(packets.ip_version)
    order = np.lexsort(keys)
    changes = np.zeros(len(packets), dtype=np.bool_)
    for key in keys:
        ordered = key[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(packets), dtype=np.int64)
    number[order] = np.cumsum(changes)

    # Port reuse: SYNs are few, so they are looked at one by one.
    last: dict[int, tuple[bool, int]] = {}
    reopened: dict[int, list[int]] = {}
    for row in np.flatnonzero(packets.flags & (SYN | ACK) == SYN).tolist():
        tuple_number = int(number[row])
        opening = (bool(upwards[row]), int(packets.sequence[row]))
        if last.setdefault(tuple_number, opening) != opening:
            reopened.setdefault(tuple_number, []).append(row)
            last[tuple_number] = opening
    following = int(number.max()) + 1
    for tuple_number, syns in reopened.items():
        members = np.flatnonzero(number == tuple_number)
        for row in syns:
            number[members[members >= row]] = following
            following += 1
    return number, upwards


def _stream(packets: Packets, rows: I64, upwards: NDArray[np.bool_]) -> Stream:
    flags = packets.flags[rows]
    syn, syn_ack = flags & (SYN | ACK) == SYN, flags & (SYN | ACK) == SYN | ACK
    if syn.any():
        forwards = bool(upwards[np.argmax(syn)])
    elif syn_ack.any():
        forwards = not bool(upwards[np.argmax(syn_ack)])
    else:
        forwards = bool(upwards[0])
    with_client = rows[upwards == forwards]
    with_server = rows[upwards != forwards]
    if len(with_client):
        example, ends = int(with_client[0]), ("source", "destination")
    else:
        example, ends = int(with_server[0]), ("destination", "source")
    client, server = (_endpoint(packets, example, end) for end in ends)
    there, back = _start(packets, with_client), _start(packets, with_server)
    return Stream(
        client=client,
        server=server,
        forward=_half(packets, with_client, with_server, there),
        backward=_half(packets, with_server, with_client, back),
        first_row=int(rows.min()),
        opened_ns=int(packets.time_ns[rows].min()),
        last_ns=int(packets.time_ns[rows].max()),
    )


def _endpoint(packets: Packets, row: int, end: str) -> Endpoint:
    high, low = getattr(packets, f"{end}_high")[row], getattr(packets, f"{end}_low")[row]
    text = address(int(packets.ip_version[row]), int(high), int(low))
    return Endpoint(text, int(getattr(packets, f"{end}_port")[row]))


def _start(packets: Packets, rows: I64) -> tuple[int, bool]:
    """Initial sequence number of one direction, and whether it is certain."""
    if not len(rows):
        return 0, False
    syn = rows[packets.flags[rows] & SYN != 0]
    if len(syn):
        return int(packets.sequence[syn[0]]), True
    # Without the SYN, a DSS option still says how far into the subflow its packet is, if the
    # packet is the first of the mapping: take what most mappings agree on.
    mapped = rows[(packets.dss_flags[rows] & DSS_MAP != 0) & (packets.subflow_sequence[rows] > 0)]
    if len(mapped):
        _, first = np.unique(packets.subflow_sequence[mapped], return_index=True)
        mapped = mapped[first]
        start = (packets.sequence[mapped] - packets.subflow_sequence[mapped]) & 0xFFFFFFFF
        values, counts = np.unique(start, return_counts=True)
        return int(values[np.argmax(counts)]), False
    data = rows[packets.payload_bytes[rows] > 0]
    first_row = data[0] if len(data) else rows[0]
    return int(packets.sequence[first_row]) - 1 & 0xFFFFFFFF, False


def unwrap(values: I64, near: int = 0) -> I64:
    """Numbers modulo 2**32 as a continuous series; the first one is taken closest to `near`."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    steps = np.diff(values, prepend=np.int64(near))
    return near + np.cumsum((steps + (1 << 31)) % (1 << 32) - (1 << 31))


def _half(packets: Packets, rows: I64, opposite: I64, start: tuple[int, bool]) -> Half:
    initial, known = start
    relative = (packets.sequence[rows] - initial) & 0xFFFFFFFF
    position = unwrap(relative) + (packets.flags[rows] & SYN != 0)
    acknowledging = opposite[packets.flags[opposite] & (ACK | RST) == ACK]
    acknowledged = unwrap((packets.acknowledgment[acknowledging] - initial) & 0xFFFFFFFF)
    fin = packets.flags[rows] & FIN != 0
    return Half(
        rows=rows,
        position=position,
        payload_bytes=packets.payload_bytes[rows],
        acknowledged=max(int(acknowledged.max()), 0) if len(rows) and len(acknowledged) else 0,
        start_known=known,
        end=int((position + packets.payload_bytes[rows])[fin].max()) if fin.any() else None,
        reset=bool((packets.flags[rows] & RST != 0).any()),
    )
