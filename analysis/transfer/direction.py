"""One direction of a connection as series: its data, what each subflow sent, what was answered."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures import Connection, DataFlow, Endpoint, Packets, Stream, Subflow, streams
from captures.packets import ACK, DSS_ACK, DSS_MAP, RST

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

StreamKey = tuple[Endpoint, Endpoint, int]


@dataclass(frozen=True)
class Answers:
    """Acknowledgments in order of time.

    Attributes
    ----------
    row : int64 array
        Position in `Packets`.
    time_ns : int64 array
    acknowledged : int64 array
        Bytes from the start that each acknowledges, with those before it: it never falls.
    """

    row: I64
    time_ns: I64
    acknowledged: I64


@dataclass(frozen=True)
class Sent:
    """What one subflow carried in one direction, and what came back for it.

    Attributes
    ----------
    rows : int64 array
        Positions in `Packets` of all its packets in this direction, ascending.
    opposite_rows : int64 array
        Those of the other direction.
    data_row, time_ns : int64 array
        Of the packets that carry data.
    start, length : int64 array
        Their first byte, from 0, in the subflow's own numbering, and their payload.
    repeated : bool array
        TCP sent them again.
    answers : Answers
        In the subflow's own numbering.
    """

    rows: I64
    opposite_rows: I64
    data_row: I64
    time_ns: I64
    start: I64
    length: I64
    repeated: Mask
    answers: Answers


@dataclass(frozen=True)
class Direction:
    """One direction of a connection, as one capture saw it.

    Attributes
    ----------
    flow : DataFlow
    subflows : tuple of Sent
        As `Connection.subflows`.
    answers : Answers
        Acknowledgments of the connection's data: DATA_ACK, or TCP's own where there are none.
    """

    flow: DataFlow
    subflows: tuple[Sent, ...]
    answers: Answers


def streams_by_key(packets: Packets) -> dict[StreamKey, Stream]:
    """The TCP streams of a capture, to be found by their ends and their first packet's time."""
    return {(each.client, each.server, each.opened_ns): each for each in streams(packets)}


def directions(
    packets: Packets, connection: Connection, found: Mapping[StreamKey, Stream]
) -> tuple[Direction, Direction]:
    """Both directions of a connection.

    Parameters
    ----------
    packets : Packets
    connection : Connection
        Found in these packets.
    found : mapping
        From `streams_by_key` of these packets.

    Returns
    -------
    tuple of Direction
        From client to server, and back.
    """
    return (
        _direction(packets, connection, found, connection.forward, forward=True),
        _direction(packets, connection, found, connection.backward, forward=False),
    )


def _direction(
    packets: Packets,
    connection: Connection,
    found: Mapping[StreamKey, Stream],
    flow: DataFlow,
    *,
    forward: bool,
) -> Direction:
    subflows = tuple(
        _sent(packets, each, found, flow, forward=forward) for each in connection.subflows
    )
    plain = connection.protocol == "tcp" or (connection.fallback and len(subflows) == 1)
    answers = subflows[0].answers if plain else _data_answers(packets, flow, subflows)
    return Direction(flow, subflows, answers)


def _sent(
    packets: Packets,
    subflow: Subflow,
    found: Mapping[StreamKey, Stream],
    flow: DataFlow,
    *,
    forward: bool,
) -> Sent:
    ends = (subflow.client, subflow.server)
    if subflow.by_server:
        ends = (subflow.server, subflow.client)
    stream = found[(*ends, subflow.opened_ns)]
    half = stream.half(packets, forward=forward != subflow.by_server)
    opposite = stream.half(packets, forward=forward == subflow.by_server).rows
    carries = np.flatnonzero((half.payload_bytes > 0) & ~half.keep_alive)
    start, length = half.position[carries] - 1, half.payload_bytes[carries]
    data_row = half.rows[carries]
    return Sent(
        rows=half.rows,
        opposite_rows=opposite,
        data_row=data_row,
        time_ns=packets.time_ns[data_row],
        start=start,
        length=length,
        repeated=np.isin(data_row, flow.row[flow.retransmitted]),
        answers=_own_answers(packets, half.rows, half.position, opposite),
    )


def _own_answers(packets: Packets, rows: I64, position: I64, opposite: I64) -> Answers:
    answering = opposite[packets.flags[opposite] & (ACK | RST) == ACK]
    if not len(rows) or not len(answering):
        return _NO_ANSWERS
    # The number on the wire of the byte whose position in the data is 0.
    base = int(packets.sequence[rows[0]]) - (int(position[0]) - 1)
    numbers = packets.acknowledgment[answering].astype(np.int64)
    return _answers(packets, answering, numbers - base)


def _data_answers(packets: Packets, flow: DataFlow, subflows: tuple[Sent, ...]) -> Answers:
    opposite = np.sort(np.concatenate([each.opposite_rows for each in subflows]))
    answering = opposite[packets.dss_flags[opposite] & DSS_ACK != 0]
    if not len(answering):
        return _NO_ANSWERS
    low = (packets.data_acknowledgment[answering] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    base = _first_data_number(packets, flow, subflows)
    if base is None:
        # No mapping to compare with: the last acknowledgment is known to be of so many bytes.
        base = int(low[-1]) - flow.acknowledged_bytes
    return _answers(packets, answering, low - base)


def _first_data_number(packets: Packets, flow: DataFlow, subflows: tuple[Sent, ...]) -> int | None:
    """The lower half of the number on the wire of the connection's first byte of data."""
    for index, sent in enumerate(subflows):
        own = np.flatnonzero(flow.subflow == index)
        own = own[packets.dss_flags[flow.row[own]] & DSS_MAP != 0]
        own = own[packets.mapping_bytes[flow.row[own]] > 0]
        if not len(own):
            continue
        at = np.searchsorted(sent.data_row, flow.row[own])
        into = sent.start[at] + 1 - packets.subflow_sequence[flow.row[own]].astype(np.int64)
        low = (packets.data_sequence[flow.row[own]] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        base = (low + into - flow.position[own]) & 0xFFFFFFFF
        values, counts = np.unique(base, return_counts=True)
        return int(values[np.argmax(counts)])
    return None


def _answers(packets: Packets, rows: I64, relative: I64) -> Answers:
    steps = np.diff(relative & 0xFFFFFFFF, prepend=np.int64(0))
    unwrapped = np.cumsum((steps + (1 << 31)) % (1 << 32) - (1 << 31))
    return Answers(rows, packets.time_ns[rows], np.maximum.accumulate(np.maximum(unwrapped, 0)))


_NONE = np.zeros(0, dtype=np.int64)
_NO_ANSWERS = Answers(_NONE, _NONE, _NONE)
