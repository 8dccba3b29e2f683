"""A capture's connections and quality as plain data, ready to be printed as JSON."""

from typing import Any

import numpy as np

from captures.checksums import Checksums
from captures.connections import Connection, Subflow, SubflowTraffic, each_connection
from captures.dataflow import DataFlow
from captures.reading import Capture

Document = dict[str, Any]


def summary(capture: Capture) -> Document:
    """Summarise a capture.

    Parameters
    ----------
    capture : Capture

    Returns
    -------
    dict
        ``frames``, ``tcp_frames``, ``tcp_streams``, ``damage`` (a sentence or ``None``),
        ``quality``, ``connections`` (multipath) and ``tcp_connections`` (single-path, which
        includes those that asked for multipath TCP and were refused: ``fallback``). Keys end in
        the unit; times are seconds since the epoch; tokens are numbers.
    """
    multipath: list[Document] = []
    single_path: list[Document] = []
    streams = unmapped_bytes = conflicts = 0
    sides: set[str] = set()
    checked = Checksums()
    for connection in each_connection(capture.packets):
        (multipath if connection.protocol == "mptcp" else single_path).append(_plain(connection))
        streams += len(connection.subflows)
        for flow in (connection.forward, connection.backward):
            unmapped_bytes += flow.unmapped_bytes
            conflicts += flow.conflicting_mappings
        for subflow in connection.subflows:
            checked += subflow.forward.checksums + subflow.backward.checksums
        if connection.capture_side is not None:
            sides.add(connection.capture_side)
    return {
        "frames": capture.frames,
        "tcp_frames": len(capture.packets),
        "tcp_streams": streams,
        "damage": capture.damage,
        "quality": {
            **_quality(capture),
            "capture_side": sides.pop() if len(sides) == 1 else None,
            "unmapped_bytes": unmapped_bytes,
            "conflicting_mappings": conflicts,
            "checksums": vars(checked).copy(),
        },
        "connections": multipath,
        "tcp_connections": single_path,
    }


def _quality(capture: Capture) -> Document:
    limits = [each.snap_length_bytes for each in capture.interfaces if each.snap_length_bytes]
    backwards = int((np.diff(capture.packets.time_ns) < 0).sum())
    return {
        "snap_length_bytes": min(limits, default=None),
        "snapped_frames": capture.snapped_frames,
        "received": capture.received,
        "dropped": capture.dropped,
        "offload_frames": capture.large_frames,
        "largest_frame_bytes": capture.largest_frame_bytes,
        "undecoded": capture.undecoded,
        "fragments": capture.fragments,
        "interfaces": [
            {
                "name": each.name,
                "link_type": each.link_type,
                "snap_length_bytes": each.snap_length_bytes,
                "clock_ticks_per_second": each.ticks_per_second,
            }
            for each in capture.interfaces
        ],
        "first_s": None if capture.first_ns is None else capture.first_ns / 1e9,
        "last_s": None if capture.last_ns is None else capture.last_ns / 1e9,
        "times_out_of_order": backwards,
        "recorder": capture.application,
        "remarks": list(capture.remarks),
    }


def _plain(connection: Connection) -> Document:
    token = connection.server_token
    return {
        "version": connection.version,
        "client": str(connection.client),
        "server": str(connection.server),
        "token": connection.client_token if token is None else token,
        "client_token": connection.client_token,
        "server_token": connection.server_token,
        "fallback": connection.fallback,
        "closed": connection.closed,
        "capture_side": connection.capture_side,
        "opened_s": connection.opened_ns / 1e9,
        "last_s": connection.last_ns / 1e9,
        "subflows": [_subflow(each) for each in connection.subflows],
        "client_to_server": _direction(
            connection.forward, [each.forward for each in connection.subflows]
        ),
        "server_to_client": _direction(
            connection.backward, [each.backward for each in connection.subflows]
        ),
        "signals": [
            {
                "time_s": each.time_ns / 1e9,
                "subflow": each.subflow,
                "direction": "client_to_server" if each.forward else "server_to_client",
                "what": each.what,
                **each.fields,
            }
            for each in connection.signals
        ],
    }


def _subflow(subflow: Subflow) -> Document:
    return {
        "client": str(subflow.client),
        "server": str(subflow.server),
        "join": subflow.joined,
        "by_server": subflow.by_server,
        "verified": subflow.verified,
        "backup": subflow.backup,
        "closed": subflow.closed,
        "opened_s": subflow.opened_ns / 1e9,
        "last_s": subflow.last_ns / 1e9,
        "client_to_server": _traffic(subflow.forward),
        "server_to_client": _traffic(subflow.backward),
    }


def _traffic(traffic: SubflowTraffic) -> Document:
    return {**vars(traffic), "checksums": vars(traffic.checksums).copy()}


def _direction(flow: DataFlow, traffic: list[SubflowTraffic]) -> Document:
    stall = flow.longest_stall
    return {
        "payload_bytes": sum(each.payload_bytes for each in traffic),
        "announced_bytes": flow.announced_bytes,
        "captured_bytes": flow.captured_bytes,
        "in_order_bytes": flow.in_order_bytes,
        "acknowledged_bytes": flow.acknowledged_bytes,
        "retransmissions": sum(each.retransmissions for each in traffic),
        "inferred_retransmissions": sum(each.inferred_retransmissions for each in traffic),
        "reinjections": sum(each.reinjections for each in traffic),
        "resends": sum(each.resends for each in traffic),
        "redundant": sum(each.redundant for each in traffic),
        "reordered": sum(each.reordered for each in traffic),
        "longest_stall_s": 0.0 if stall is None else stall.length_s,
        "longest_stall_start_s": None if stall is None else stall.start_ns / 1e9,
        "fallback_bytes": flow.fallback_bytes,
        "unmapped_bytes": flow.unmapped_bytes,
        "gaps": flow.gaps,
        "end_bytes": flow.end_bytes,
        "complete": flow.complete,
        "checksums": vars(sum((each.checksums for each in traffic), Checksums())).copy(),
    }
