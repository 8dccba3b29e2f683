"""Captures as pandas DataFrames, for notebooks and scripts.

    from analysis import connections_frame, packets_frame, subflows_frame
    from captures import read

    capture = read("server.pcap.gz")
    packets = packets_frame(capture)
    data = packets[packets.data_length > 0]
    print(data.groupby(["connection", "subflow", "direction"]).fresh_bytes.sum())

Everything here is a plain function: no event loop, no process, no network.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.capture.places import Place, place
from analysis.capture.result import (
    CaptureAnalysis,
    ConnectionResult,
    DirectionResult,
    SubflowDirection,
    Summary,
)
from captures import Capture, DataFlow
from captures.packets import address

I64 = NDArray[np.int64]

PACKET_COLUMNS: dict[str, str] = {
    "time": "UTC, nanoseconds",
    "file": "name of the file",
    "frame": "number in the file, from 1, as Wireshark shows it",
    "interface": "name of the interface, or its number in the file",
    "connection": "number of the connection, from 0, in order of first packets",
    "subflow": "number within the connection",
    "direction": "client_to_server or server_to_client, of the connection",
    "source": "IP address",
    "source_port": "TCP port",
    "destination": "IP address",
    "destination_port": "TCP port",
    "wire_bytes": "of the whole frame",
    "captured_bytes": "of it that were kept",
    "payload_bytes": "of TCP",
    "sequence": "TCP sequence number, as on the wire",
    "acknowledgment": "TCP acknowledgment number, as on the wire",
    "flags": "TCP flags as letters: F, S, R, P, A, U, E, C",
    "window_bytes": "receive window, scaled where the scale is known",
    "timestamp_value": "TSval of the TCP timestamp option; missing without one",
    "timestamp_echo": "TSecr of it",
    "options": "MPTCP options in the packet, separated by spaces",
    "data_sequence": "first byte in the connection's data, from 0; missing without data",
    "data_length": "bytes of data put in place",
    "fresh_bytes": "of them not seen before at this place",
    "in_order_bytes": "of the connection's data complete from the start, after this packet",
    "retransmitted": "TCP sent the packet again",
    "reinjected": "it has data that only other subflows had carried",
    "resent": "it has data that its subflow had carried under other TCP numbers",
    "redundant": "it brought the receiver nothing",
}
"""Names and meaning of the columns of `packets_frame`."""

_OPTIONS = (
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
)
_DIRECTIONS = ("client_to_server", "server_to_client")
_SYN = 2


def packets_frame(capture: Capture | Place) -> pd.DataFrame:
    """One row a TCP packet.

    Parameters
    ----------
    capture : Capture or Place

    Returns
    -------
    DataFrame
        Columns as in `PACKET_COLUMNS`. Numbers that may be missing are nullable integers.
    """
    parts = list(packet_frames(capture))
    return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]


def packet_frames(capture: Capture | Place, *, rows: int = 250_000) -> Iterator[pd.DataFrame]:
    """The same piece by piece, so that a large capture need not become one frame.

    Parameters
    ----------
    capture : Capture or Place
    rows : int
        Packets in a piece.

    Yields
    ------
    DataFrame
        At least one.
    """
    where = capture if isinstance(capture, Place) else place([0], [capture])
    table = _Packets(where)
    for begin in range(0, max(len(where.packets), 1), rows):
        yield table.frame(begin, min(begin + rows, len(where.packets)))


class _Packets:
    """What the packets of a place mean, looked up piece by piece."""

    def __init__(self, where: Place) -> None:
        self._where = where
        packets = where.packets
        count = len(packets)
        self._connection = np.full(count, -1, dtype=np.int32)
        self._subflow = np.full(count, -1, dtype=np.int16)
        self._backward = np.zeros(count, dtype=np.bool_)
        self._scale = np.zeros(count, dtype=np.int8)
        self._position = np.full(count, -1, dtype=np.int64)
        self._length = np.zeros(count, dtype=np.int32)
        self._fresh = np.zeros(count, dtype=np.int32)
        self._in_order = np.full(count, -1, dtype=np.int64)
        self._repeats = {
            name: np.zeros(count, dtype=np.bool_)
            for name in ("retransmitted", "reinjected", "resent", "redundant")
        }
        for number, connection in enumerate(where.each_connection()):
            directions = where.directions(connection)
            for backward, direction in enumerate(directions):
                for index, sent in enumerate(direction.subflows):
                    self._connection[sent.rows] = number
                    self._subflow[sent.rows] = index
                    self._backward[sent.rows] = bool(backward)
                    self._scale[sent.rows] = self._window_scale(sent.rows, sent.opposite_rows)
                self._data(direction.flow)
        flows = packets.flows
        versions = flows.ip_version.tolist()
        self._ends = [
            [
                address(version, high, low)
                for version, high, low in zip(versions, highs.tolist(), lows.tolist(), strict=True)
            ]
            for highs, lows in (
                (flows.source_high, flows.source_low),
                (flows.destination_high, flows.destination_low),
            )
        ]
        names = [_interface_name(where, each) for each in range(_interfaces(where))]
        self._interfaces = names

    def _window_scale(self, rows: I64, opposite: I64) -> int:
        """The shift of this side's windows: both SYNs must ask for scaling (RFC 7323)."""
        packets = self._where.packets
        found = []
        for each in (rows, opposite):
            syn = each[packets.flags[each] & _SYN != 0]
            scales = packets.window_scale[syn]
            found.append(int(scales.max()) if len(scales) else -1)
        return found[0] if min(found) >= 0 else 0

    def _data(self, flow: DataFlow) -> None:
        if not len(flow.row):
            return
        # A packet may be several pieces, where it crosses the end of a mapping.
        np.add.at(self._length, flow.row, flow.length.astype(np.int32))
        np.add.at(self._fresh, flow.row, flow.fresh.astype(np.int32))
        self._position[flow.row[::-1]] = flow.position[::-1]
        self._in_order[flow.row] = flow.in_order
        for name, column in self._repeats.items():
            column[flow.row] |= getattr(flow, name)

    def frame(self, begin: int, end: int) -> pd.DataFrame:
        """Rows from `begin` up to `end`."""
        packets = self._where.packets
        piece = slice(begin, end)
        flow = packets.flow[piece]
        flags = packets.flags[piece]
        scaled = np.where(flags & _SYN != 0, 0, self._scale[piece])
        position = self._position[piece]
        known = position >= 0
        stamped = packets.time_value[piece] >= 0
        several = len(self._where.captures) > 1
        files = [each.path.name for each in self._where.captures]
        interface = packets.interface[piece]
        return pd.DataFrame(
            {
                "time": pd.to_datetime(packets.time_ns[piece], unit="ns", utc=True),
                "file": _named(interface if several else np.zeros(end - begin, np.int64), files),
                "frame": packets.frame[piece],
                "interface": _named(interface, self._interfaces),
                "connection": _nullable(self._connection[piece], self._connection[piece] >= 0),
                "subflow": _nullable(self._subflow[piece], self._subflow[piece] >= 0),
                "direction": _named(self._backward[piece].astype(np.int64), list(_DIRECTIONS)),
                "source": _named(flow, self._ends[0]),
                "source_port": packets.flows.source_port[flow],
                "destination": _named(flow, self._ends[1]),
                "destination_port": packets.flows.destination_port[flow],
                "wire_bytes": packets.wire_bytes[piece],
                "captured_bytes": packets.captured_bytes[piece],
                "payload_bytes": packets.payload_bytes[piece],
                "sequence": packets.sequence[piece],
                "acknowledgment": packets.acknowledgment[piece],
                "flags": _named(flags, _FLAG_WORDS),
                "window_bytes": packets.window[piece].astype(np.int64) << scaled,
                "timestamp_value": _nullable(packets.time_value[piece], stamped),
                "timestamp_echo": _nullable(packets.time_echo[piece], stamped),
                "options": _option_words(packets.mptcp[piece]),
                "data_sequence": _nullable(position, known),
                "data_length": self._length[piece],
                "fresh_bytes": self._fresh[piece],
                "in_order_bytes": _nullable(self._in_order[piece], known),
                **{name: column[piece] for name, column in self._repeats.items()},
            }
        )


_FLAG_WORDS = [
    "".join(letter for bit, letter in enumerate("FSRPAUEC") if value >> bit & 1)
    for value in range(256)
]


def _named(number: Any, names: list[str]) -> pd.Categorical:
    """Numbers as words, each word kept once, also where several numbers share it."""
    unique = list(dict.fromkeys(names))
    place_of = {name: index for index, name in enumerate(unique)}
    codes = np.array([place_of[name] for name in names], dtype=np.int32)
    chosen: Any = codes[np.asarray(number, dtype=np.int64)] if len(names) else codes
    categories: Any = unique
    return pd.Categorical.from_codes(chosen, categories=categories)


def _option_words(mptcp: NDArray[np.int16]) -> pd.Categorical:
    values, codes = np.unique(mptcp, return_inverse=True)
    words = [
        " ".join(name for bit, name in enumerate(_OPTIONS) if int(value) >> bit & 1)
        for value in values
    ]
    return _named(codes, words)


def _nullable(values: Any, known: NDArray[np.bool_]) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.asarray(values).astype(np.int64), ~known)


def _interfaces(where: Place) -> int:
    return int(where.packets.interface.max(initial=-1)) + 1


def _interface_name(where: Place, number: int) -> str:
    if len(where.captures) > 1:
        names = [each.name for each in where.captures[number].interfaces]
        return names[0] if len(names) == 1 and names[0] else where.captures[number].path.name
    known = where.captures[0].interfaces
    return (known[number].name if number < len(known) else "") or str(number)


def connections_frame(analysis: CaptureAnalysis) -> pd.DataFrame:
    """One row a direction of a connection.

    Parameters
    ----------
    analysis : CaptureAnalysis

    Returns
    -------
    DataFrame
        Columns as the attributes of `ConnectionResult` and `DirectionResult`; rates in bit/s,
        times in seconds. Of delays `…_median_s` and `…_p95_s`.
    """
    rows = [
        {
            "connection": number,
            "direction": name,
            "protocol": each.protocol,
            "version": each.version,
            "fallback": each.fallback,
            "client": each.client,
            "server": each.server,
            "token": each.server_token,
            "subflows": len(each.subflows),
            "capture_side": each.capture_side,
            "closed": each.closed,
            "opened_s": each.opened_s,
            "last_s": each.last_s,
            **_direction_row(getattr(each, name)),
        }
        for number, each in enumerate(analysis.connections)
        for name in _DIRECTIONS
    ]
    frame = pd.DataFrame(rows)
    return frame.astype({"version": "Int64", "token": "Int64"}) if rows else frame


def _direction_row(found: DirectionResult) -> dict[str, Any]:
    rates = found.goodput_bps or {}
    held, late = found.head_of_line, found.reordering
    return {
        "payload_bytes": found.payload_bytes,
        "announced_bytes": found.announced_bytes,
        "captured_bytes": found.captured_bytes,
        "in_order_bytes": found.in_order_bytes,
        "acknowledged_bytes": found.acknowledged_bytes,
        "unmapped_bytes": found.unmapped_bytes,
        "goodput_bps": rates.get("in_order"),
        "start_s": found.start_s,
        "end_s": found.end_s,
        "completion_time_s": found.completion_time_s,
        "retransmissions": found.retransmissions,
        "reinjections": found.reinjections,
        "resends": found.resends,
        "redundant": found.redundant,
        "redundant_bytes": found.redundant_bytes,
        "longest_stall_s": found.longest_stall_s,
        "interruptions": len(found.interruptions),
        "reordered_pieces": late.pieces if late else 0,
        "blocked_s": held.blocked_s if held else 0.0,
        **_summary_row("data_round_trip", found.data_round_trip),
    }


def subflows_frame(analysis: CaptureAnalysis) -> pd.DataFrame:
    """One row a direction of a subflow.

    Parameters
    ----------
    analysis : CaptureAnalysis

    Returns
    -------
    DataFrame
        Columns as the attributes of `SubflowResult` and `SubflowDirection`; rates in bit/s, times
        in seconds.
    """
    rows = [
        {
            "connection": number,
            "subflow": index,
            "direction": name,
            "client": sub.client,
            "server": sub.server,
            "join": sub.join,
            "by_server": sub.by_server,
            "backup": sub.backup,
            "closed": sub.closed,
            "opened_s": sub.opened_s,
            "last_s": sub.last_s,
            "handshake_s": sub.handshake_s,
            **_subflow_row(getattr(sub, name)),
        }
        for number, each in enumerate(analysis.connections)
        for index, sub in enumerate(each.subflows)
        for name in _DIRECTIONS
    ]
    frame = pd.DataFrame(rows)
    return frame.astype({"lost_packets": "Int64"}) if rows else frame


def _subflow_row(found: SubflowDirection) -> dict[str, Any]:
    return {
        "packets": found.packets,
        "data_packets": found.data_packets,
        "payload_bytes": found.payload_bytes,
        "fresh_bytes": found.fresh_bytes,
        "throughput_bps": found.throughput_bps,
        "retransmissions": found.retransmissions,
        "reinjections": found.reinjections,
        "resends": found.resends,
        "redundant": found.redundant,
        "lost_packets": found.lost_packets,
        "largest_flight_bytes": found.largest_flight_bytes,
        "mean_flight_bytes": found.mean_flight_bytes,
        **_summary_row("round_trip", found.round_trip),
        **_summary_row("timestamp_round_trip", found.timestamp_round_trip),
        **_summary_row("one_way_delay", found.one_way_delay),
    }


def _summary_row(name: str, found: Summary | None) -> dict[str, float | None]:
    return {
        f"{name}_{key}": getattr(found, key) if found is not None else None
        for key in ("min_s", "mean_s", "median_s", "p95_s", "max_s")
    }


def interruptions_frame(analysis: CaptureAnalysis) -> pd.DataFrame:
    """One row an interruption: when it began, how long it was (seconds), and its cause."""
    return pd.DataFrame(
        [
            (number, name, each.start_s, each.length_s, each.cause)
            for number, connection in enumerate(analysis.connections)
            for name in _DIRECTIONS
            for each in getattr(connection, name).interruptions
        ],
        columns=["connection", "direction", "start_s", "length_s", "cause"],
    )


def series_frame(connection: ConnectionResult, *, forward: bool = True) -> pd.DataFrame:
    """Rates over time of one direction of a connection that has series.

    Parameters
    ----------
    connection : ConnectionResult
    forward : bool
        From client to server.

    Returns
    -------
    DataFrame
        Index: start of each step, seconds. Columns: `goodput_bps`, and for each path
        `<path>_bps`, new data.

    Raises
    ------
    ValueError
        If it has no series: only the transfers with most data do.
    """
    trace = (connection.client_to_server if forward else connection.server_to_client).trace
    if trace is None:
        raise ValueError(
            f"{connection.client} – {connection.server} has no series in this direction: "
            "only the transfers with most data do"
        )
    columns = {"goodput_bps": trace.goodput_bps}
    columns |= {
        f"{path}_bps": rates for path, rates in zip(trace.paths, trace.arriving_bps, strict=True)
    }
    return pd.DataFrame(columns, index=pd.Index(trace.edges_s[:-1], name="start_s"))


def export_packets(captures: list[Capture], path: str | Path) -> Path:
    """Write one row a TCP packet of some captures, as Parquet or CSV.

    Parameters
    ----------
    captures : list of Capture
        Each is looked at on its own; the column `file` tells them apart.
    path : str or Path
        Ends in .parquet or .csv.

    Returns
    -------
    Path
        The written file. Parquet holds the meaning of the columns in its metadata.

    Raises
    ------
    ValueError
        If the name ends otherwise.
    OSError
        If the file cannot be written.
    """
    target = Path(path)
    if target.suffix not in (".parquet", ".csv"):
        raise ValueError(f"{target.name} must end in .parquet or .csv")
    frames = (piece for capture in captures for piece in packet_frames(capture))
    if target.suffix == ".csv":
        with target.open("w", newline="") as stream:
            for number, piece in enumerate(frames):
                piece.to_csv(stream, index=False, header=number == 0)
        return target
    import pyarrow
    from pyarrow import parquet

    writer = None
    try:
        for piece in frames:
            table = pyarrow.Table.from_pandas(_plain_words(piece), preserve_index=False)
            if writer is None:
                described = [
                    each.with_metadata({"description": PACKET_COLUMNS[each.name]})
                    for each in table.schema
                ]
                schema = pyarrow.schema(described, metadata=table.schema.metadata)
                writer = parquet.ParquetWriter(target, schema, compression="zstd")
            writer.write_table(table.cast(schema))
    finally:
        if writer is not None:
            writer.close()
    return target


def _plain_words(piece: pd.DataFrame) -> pd.DataFrame:
    """Words instead of categories, whose numbers differ from piece to piece."""
    words = [name for name, kind in piece.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    return piece.astype(dict.fromkeys(words, "string"))
