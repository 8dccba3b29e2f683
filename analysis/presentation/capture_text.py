"""Connections of captures, as text for a terminal."""

from collections.abc import Sequence

from analysis.capture.result import (
    CaptureAnalysis,
    ConnectionResult,
    DirectionResult,
    FileQuality,
    SubflowDirection,
    SubflowResult,
    Summary,
)
from analysis.presentation.quantities import NOTHING, megabits, milliseconds, seconds, whole

_LISTED_CONNECTIONS = 20
_LISTED_REMARKS = 12
_LISTED_INTERRUPTIONS = 3
_HEADS = ("", "in order", "Mbit/s", "stall s", "retr.", "reinj.", "resent", "RTT ms", "one way ms")


def capture_table(analysis: CaptureAnalysis) -> str:
    """Files, what to know about them, and the connections with most data.

    Parameters
    ----------
    analysis : CaptureAnalysis

    Returns
    -------
    str
        No line end after the last line.
    """
    lines = [_file(each) for each in analysis.files]
    remarks = list(analysis.remarks)
    if len(remarks) > _LISTED_REMARKS:
        remarks[_LISTED_REMARKS:] = [f"and {len(remarks) - _LISTED_REMARKS} more"]
    lines += [f"  {each}" for each in remarks]
    shown = analysis.largest(_LISTED_CONNECTIONS)
    rows: list[tuple[str, ...]] = [_HEADS]
    for each in shown:
        rows += _connection(each)
    if len(rows) > 1:
        lines += ["", *_aligned(rows)]
    rest = len(analysis.connections) - len(shown)
    if rest > 0:
        lines.append(f"{rest} smaller connections are not listed; --json has all")
    return "\n".join(lines)


def _file(each: FileQuality) -> str:
    kept = f"first {each.snap_length_bytes} bytes kept" if each.snap_length_bytes else "kept whole"
    dropped = f"{whole(each.dropped)} dropped" if each.dropped is not None else "drops not told"
    span = f" in {seconds(each.duration_s)} s" if each.duration_s is not None else ""
    return (
        f"{each.file}: {whole(each.frames)} packets{span}, {whole(each.tcp_frames)} of TCP; "
        f"{kept}, {dropped}"
    )


def _connection(each: ConnectionResult) -> list[tuple[str, ...]]:
    kind = "TCP"
    if each.protocol == "mptcp":
        kind = "MPTCP" if each.version is None else f"MPTCP v{each.version}"
    notes = [
        kind,
        "fell back to TCP" if each.fallback and each.protocol == "mptcp" else "",
        "multipath refused" if each.fallback and each.protocol != "mptcp" else "",
        f"captured near the {each.capture_side}"
        if each.capture_side in ("client", "server")
        else "",
        each.closed,
    ]
    rows: list[tuple[str, ...]] = [
        (f"{each.client} > {each.server}  {', '.join(note for note in notes if note)}",)
    ]
    for name, arrow in (("client_to_server", ">"), ("server_to_client", "<")):
        found: DirectionResult = getattr(each, name)
        if not found.payload_bytes and not found.announced_bytes:
            continue
        near_receiver = each.near_receiver(forward=arrow == ">")
        rows.append((f"  {arrow}", *_direction(found, near_receiver=near_receiver)))
        if len(each.subflows) > 1:
            rows += [
                (f"    {arrow} {sub.client}", *_subflow(each, sub, name)) for sub in each.subflows
            ]
        rows += [(f"      {said}",) for said in _notes(found)]
    return rows


def _direction(found: DirectionResult, *, near_receiver: bool) -> tuple[str, ...]:
    return (
        whole(found.in_order_bytes),
        megabits(found.goodput_bps["in_order"] if found.goodput_bps else None),
        seconds(found.longest_stall_s),
        whole(found.retransmissions),
        whole(found.reinjections),
        whole(found.resends),
        NOTHING if near_receiver else _median(found.data_round_trip),
        "",
    )


def _subflow(connection: ConnectionResult, subflow: SubflowResult, name: str) -> tuple[str, ...]:
    way: SubflowDirection = getattr(subflow, name)
    return (
        whole(way.fresh_bytes),
        megabits(way.throughput_bps),
        "",
        whole(way.retransmissions),
        whole(way.reinjections),
        whole(way.resends),
        _median(connection.round_trip(subflow, forward=name == "client_to_server")),
        _median(way.one_way_delay),
    )


def _median(found: Summary | None) -> str:
    return milliseconds(found.median_s) if found is not None else NOTHING


def _notes(found: DirectionResult) -> list[str]:
    notes = []
    four = {
        "announced": found.announced_bytes,
        "captured": found.captured_bytes,
        "acknowledged": found.acknowledged_bytes,
    }
    apart = [f"{whole(size)} {name}" for name, size in four.items() if size != found.in_order_bytes]
    if apart:
        notes.append(f"bytes: {', '.join(apart)}")
    worst = sorted(found.interruptions, key=lambda each: -each.length_s)[:_LISTED_INTERRUPTIONS]
    if worst:
        said = ", ".join(
            f"{seconds(e.length_s)} s at {seconds(e.start_s)} s ({e.cause})" for e in worst
        )
        count = len(found.interruptions)
        of = f"{count} interruptions, longest" if count > len(worst) else "interrupted"
        notes.append(f"{of}: {said}")
    return notes


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [
        max((len(row[column]) for row in rows if len(row) > 1), default=0)
        for column in range(len(_HEADS))
    ]
    return [
        "  ".join(
            [
                f"{row[0]:<{widths[0]}}",
                *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=False)),
            ]
        ).rstrip()
        for row in rows
    ]
