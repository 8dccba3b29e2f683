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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures import checksums, mapping
from captures.checksums import Checksums
from captures.dataflow import (
    Announced,
    DataFlow,
    Direction,
    goes_silent,
    measure,
    place_multipath,
    place_single_path,
)
from captures.handshakes import Draft, drafts
from captures.options import Capable, Fail, FastClose
from captures.packets import DSS_FIN, Packets
from captures.repeats import TcpRepeats, capture_side, handshake_ns, tcp_repeats
from captures.signalling import Signal, signals
from captures.streams import Endpoint, Half, streams

Mask = NDArray[np.bool_]

_RELEASED_PACKETS = 500_000
"""So many are looked at before memory is given back."""


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
        Packets (data, SYN, FIN) that TCP sent again: under sequence numbers used before.
    inferred_retransmissions : int
        Those of them whose first copy was lost before it came to the capture.
    reordered : int
        Data packets overtaken on the way.
    reinjections : int
        Data packets new to this subflow with data that only other subflows had carried before.
    resends : int
        Data packets with data that this subflow had carried before, under other sequence numbers.
    redundant : int
        Data packets that brought the receiver nothing: see `DataFlow.redundant`.
    checksums : Checksums
    """

    packets: int
    data_packets: int
    payload_bytes: int
    fresh_bytes: int
    retransmissions: int
    inferred_retransmissions: int
    reordered: int
    reinjections: int
    resends: int
    redundant: int
    checksums: Checksums


@dataclass(frozen=True)
class Subflow:
    """One TCP stream of a connection; `forward` goes from the *connection's* client to its server.

    Attributes
    ----------
    client, server : Endpoint
        Of the connection's client and server side, whoever opened the subflow.
    joined : bool
        It was added by MP_JOIN.
    by_server : bool
        The connection's server opened it.
    verified : bool or None
        Whether the HMACs of MP_JOIN are right; ``None`` if keys or options are missing.
    backup : bool
        It was marked as backup when it was opened; `Connection.signals` has later changes.
    closed : str
        "orderly" (FIN), "reset" or "open".
    """

    client: Endpoint
    server: Endpoint
    joined: bool
    by_server: bool
    verified: bool | None
    backup: bool
    opened_ns: int
    last_ns: int
    closed: str
    forward: SubflowTraffic
    backward: SubflowTraffic


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
    signals : tuple of Signal
        Options about subflows, addresses and failures, in order of time.
    capture_side : str or None
        "client" or "server" if the handshake shows that the capture was made there.
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
    signals: tuple[Signal, ...]
    capture_side: str | None
    opened_ns: int
    last_ns: int
    closed: str


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
    return tuple(each_connection(packets))


def each_connection(packets: Packets) -> Iterator[Connection]:
    """The same as `connections`, one by one: large captures need not be in memory at once."""
    found = drafts(packets, streams(packets))
    touched = len(packets)
    for draft in found:
        if touched > _RELEASED_PACKETS:
            packets.release()
            touched = 0
        touched += sum(
            len(each.stream.forward) + len(each.stream.backward) for each in draft.members
        )
        yield _connection(packets, draft)


def _connection(packets: Packets, draft: Draft) -> Connection:
    handshakes = [handshake_ns(packets, member.stream) for member in draft.members]
    side = capture_side(handshakes[0])
    if len(draft.members) == 1:
        ways = {way: _begun(packets, draft, handshakes, way) for way in (True, False)}
        fell_back = draft.multipath and _fell_back(packets, draft, ways)
        seen = {way: _seen(packets, ways.pop(way), side, fell_back) for way in (True, False)}
    else:
        # One after the other: they may be large.
        seen = {
            way: _seen(packets, _begun(packets, draft, handshakes, way), side, False)
            for way in (True, False)
        }
    subflows = tuple(
        Subflow(
            client=member.stream.server if member.swapped else member.stream.client,
            server=member.stream.client if member.swapped else member.stream.server,
            joined=member.joined,
            by_server=member.swapped,
            verified=member.verified,
            backup=member.backup,
            opened_ns=member.stream.opened_ns,
            last_ns=member.stream.last_ns,
            closed=next((end for end in ("reset", "orderly") if end in ends), "open"),
            forward=sent,
            backward=received,
        )
        for member, sent, received, *ends in zip(
            draft.members,
            seen[True].traffic,
            seen[False].traffic,
            seen[True].ends,
            seen[False].ends,
            strict=True,
        )
    )
    client_token, server_token = draft.tokens()
    said = signals(packets, draft)
    return Connection(
        protocol="mptcp" if draft.multipath else "tcp",
        version=draft.version,
        fallback=draft.refused or seen[True].fell_back or seen[False].fell_back,
        client=subflows[0].client,
        server=subflows[0].server,
        client_token=client_token if draft.multipath else None,
        server_token=server_token if draft.multipath else None,
        subflows=subflows,
        forward=seen[True].flow,
        backward=seen[False].flow,
        signals=said,
        capture_side=side,
        opened_ns=min(each.opened_ns for each in subflows),
        last_ns=max(each.last_ns for each in subflows),
        closed=_end(packets, draft, said, subflows),
    )


@dataclass
class _Begun:
    """One direction before its data are put in place."""

    forward: bool
    direction: Direction
    announced: Announced | None
    checked: list[Checksums]


@dataclass(frozen=True)
class _Seen:
    """One direction; of each subflow its traffic and how its sender ended it."""

    flow: DataFlow
    traffic: list[SubflowTraffic]
    ends: list[str]
    fell_back: bool


def _begun(
    packets: Packets, draft: Draft, handshakes: list[tuple[int, int] | None], forward: bool
) -> _Begun:
    halves = [member.half(packets, forward=forward) for member in draft.members]
    direction = Direction(
        halves=halves,
        opposite=[
            member.stream.backward if forward != member.swapped else member.stream.forward
            for member in draft.members
        ],
        repeats=[
            tcp_repeats(packets, half, None if times is None else sum(times))
            for half, times in zip(halves, handshakes, strict=True)
        ],
    )
    _give_back(packets, direction)
    if not draft.multipath:
        return _Begun(forward, direction, None, [Checksums()])
    initial = draft.initial_sequence(forward=forward)
    of_first_data = {
        sent.row: sent.option
        for sent in draft.members[0].options
        if forward and sent.forward and isinstance(sent.option, Capable) and sent.option.data_bytes
    }
    known, numbered_from = mapping.mappings(packets, halves, initial, of_first_data)
    checked = [
        checksums.verify(packets, half, each, initial, of_first_data)
        for half, each in zip(halves, known, strict=True)
    ]
    return _Begun(forward, direction, Announced(known, numbered_from), checked)


def _fell_back(packets: Packets, draft: Draft, ways: dict[bool, _Begun]) -> bool:
    """Whether a connection of one subflow became plain TCP."""
    if any(isinstance(each.option, Fail) for each in draft.members[0].options):
        return True
    for way in ways.values():
        assert way.announced is not None
        if way.announced.infinite:
            return True
        if draft.version is not None:
            half, known = way.direction.halves[0], way.announced.mappings[0]
            if goes_silent(packets, half, known):
                return True
    return False


def _seen(packets: Packets, begun: _Begun, side: str | None, fell_back: bool) -> _Seen:
    direction, announced = begun.direction, begun.announced
    _give_back(packets, direction)
    if announced is None:
        placed = place_single_path(packets, direction)
    else:
        infinite = announced.infinite
        placed = place_multipath(packets, direction, announced, fell_back=fell_back)
        fell_back = fell_back or infinite
    _give_back(packets, direction)
    flow = measure(placed, at_receiver=side == ("server" if begun.forward else "client"))
    each = zip(direction.halves, direction.repeats, begun.checked, strict=True)
    return _Seen(
        flow=flow,
        traffic=[_traffic(flow, index, *about) for index, about in enumerate(each)],
        ends=[
            "reset" if half.reset else "open" if half.end is None else "orderly"
            for half in direction.halves
        ],
        fell_back=fell_back,
    )


def _give_back(packets: Packets, direction: Direction) -> None:
    """Give memory of columns back after a large step."""
    if sum(len(half.rows) for half in direction.halves) > _RELEASED_PACKETS:
        packets.release()


def _end(
    packets: Packets, draft: Draft, said: tuple[Signal, ...], subflows: tuple[Subflow, ...]
) -> str:
    if draft.multipath:
        if any(isinstance(each.option, FastClose) for each in said):
            return "fastclose"
        rows = [
            way for each in draft.members for way in (each.stream.forward, each.stream.backward)
        ]
        if any(bool((packets.dss_flags[each] & DSS_FIN).any()) for each in rows):
            return "orderly"
    ends = {each.closed for each in subflows}
    # A connection lives as long as one of its subflows.
    return next((end for end in ("open", "orderly") if end in ends), "reset")


def _traffic(
    flow: DataFlow, subflow: int, half: Half, repeats: TcpRepeats, checked: Checksums
) -> SubflowTraffic:
    here = flow.subflow == subflow

    def packets_where(mask: Mask) -> int:
        return len(np.unique(flow.row[here & mask])) if mask.any() else 0

    return SubflowTraffic(
        packets=len(half.rows),
        data_packets=int((half.payload_bytes > 0).sum()),
        payload_bytes=int(half.payload_bytes.sum()),
        fresh_bytes=int(flow.fresh[here].sum()),
        retransmissions=int(repeats.retransmitted.sum()),
        inferred_retransmissions=int(repeats.inferred.sum()),
        reordered=int(repeats.reordered.sum()),
        reinjections=packets_where(flow.reinjected),
        resends=packets_where(flow.resent),
        redundant=packets_where(flow.redundant),
        checksums=checked,
    )
