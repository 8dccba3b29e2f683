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
    multipath_flow,
    single_path_flow,
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
    halves = {
        forward: [member.half(packets, forward=forward) for member in draft.members]
        for forward in (True, False)
    }
    handshakes = [handshake_ns(packets, member.stream) for member in draft.members]
    side = capture_side(handshakes[0])
    directions = {
        forward: Direction(
            halves=halves[forward],
            opposite=halves[not forward],
            repeats=[
                tcp_repeats(packets, half, None if times is None else sum(times))
                for half, times in zip(halves[forward], handshakes, strict=True)
            ],
            at_receiver=side == ("server" if forward else "client"),
        )
        for forward in (True, False)
    }
    fallback = draft.refused
    checked: dict[bool, list[Checksums]] = {}
    if draft.multipath:
        flows, checked, fallback = _multipath(packets, draft, directions)
    else:
        flows = {way: single_path_flow(packets, each) for way, each in directions.items()}
    traffic = {
        way: [
            _traffic(flows[way], index, half, repeats, check)
            for index, (half, repeats, check) in enumerate(
                zip(
                    direction.halves,
                    direction.repeats,
                    checked.get(way, [Checksums()] * len(direction.halves)),
                    strict=True,
                )
            )
        ]
        for way, direction in directions.items()
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
            closed=_subflow_end(there, back),
            forward=sent,
            backward=received,
        )
        for member, there, back, sent, received in zip(
            draft.members, halves[True], halves[False], traffic[True], traffic[False], strict=True
        )
    )
    client_token, server_token = draft.tokens()
    said = signals(packets, draft)
    return Connection(
        protocol="mptcp" if draft.multipath else "tcp",
        version=draft.version,
        fallback=fallback,
        client=subflows[0].client,
        server=subflows[0].server,
        client_token=client_token if draft.multipath else None,
        server_token=server_token if draft.multipath else None,
        subflows=subflows,
        forward=flows[True],
        backward=flows[False],
        signals=said,
        capture_side=side,
        opened_ns=min(each.opened_ns for each in subflows),
        last_ns=max(each.last_ns for each in subflows),
        closed=_end(packets, draft, said, subflows),
    )


def _multipath(
    packets: Packets, draft: Draft, directions: dict[bool, Direction]
) -> tuple[dict[bool, DataFlow], dict[bool, list[Checksums]], bool]:
    """Data and checksums of both directions, and whether the connection fell back to TCP."""
    opening = draft.members[0].options
    announced: dict[bool, Announced] = {}
    checked: dict[bool, list[Checksums]] = {}
    for way, direction in directions.items():
        initial = draft.initial_sequence(forward=way)
        of_first_data = {
            sent.row: sent.option
            for sent in opening
            if way and sent.forward and isinstance(sent.option, Capable) and sent.option.data_bytes
        }
        known, numbered_from = mapping.mappings(packets, direction.halves, initial, of_first_data)
        announced[way] = Announced(known, numbered_from)
        checked[way] = [
            checksums.verify(packets, half, each, initial, of_first_data)
            for half, each in zip(direction.halves, known, strict=True)
        ]
    fell_back = False
    if len(draft.members) == 1:
        failed = any(isinstance(each.option, Fail) for each in opening)
        fell_back = failed or any(each.infinite for each in announced.values())
        if draft.version is not None:
            fell_back = fell_back or any(
                goes_silent(packets, directions[way].halves[0], announced[way].mappings[0])
                for way in (True, False)
            )
    flows = {
        way: multipath_flow(packets, direction, announced[way], fell_back=fell_back)
        for way, direction in directions.items()
    }
    return flows, checked, fell_back or any(each.infinite for each in announced.values())


def _subflow_end(there: Half, back: Half) -> str:
    if there.reset or back.reset:
        return "reset"
    return "open" if there.end is None and back.end is None else "orderly"


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
