"""What is known about captures as plain data, ready to be printed as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from analysis.capture.result import CaptureAnalysis, ConnectionResult
from captures import Capture, summary

Document = dict[str, Any]

# Moments, which are seconds since the epoch in the document.
_MOMENTS = ("opened_s", "last_s", "start_s", "end_s", "time_s")
_DIRECTIONS = ("client_to_server", "server_to_client")


def capture_document(analysis: CaptureAnalysis, captures: Sequence[Capture]) -> Document:
    """An analysis of captures as plain data.

    Parameters
    ----------
    analysis : CaptureAnalysis
    captures : sequence of Capture
        That were analysed.

    Returns
    -------
    dict
        That of `captures.summary`, with the measures of `ConnectionResult` in its connections. Of
        several files: the same keys for all of them together, and ``files`` with each by itself.
        Keys end in the unit; moments are seconds since the epoch; numbers that are not finite are
        ``None``.
    """
    files = [{"file": str(each.path), **summary(each)} for each in captures]
    quality = {
        "places": [_plain(each) for each in analysis.places],
        "files": [_plain(each) for each in analysis.files],
    }
    measured: Document = {
        "connections": [_connection(e) for e in analysis.connections if e.protocol == "mptcp"],
        "tcp_connections": [_connection(e) for e in analysis.connections if e.protocol != "mptcp"],
        "fairness": [_plain(each) for each in analysis.fairness],
    }
    if len(files) == 1:
        only = files[0]
        kinds = ("connections", "tcp_connections")
        together = {kind: _both(only[kind], measured[kind]) for kind in kinds}
        document = {**measured, **only, **together}
        document["quality"] = {**quality, **only["quality"]}
        return document
    damage = [f"{each['file']}: {each['damage']}" for each in files if each["damage"]]
    return {
        "frames": analysis.frames,
        "tcp_frames": analysis.tcp_frames,
        "tcp_streams": analysis.tcp_streams,
        "damage": "; ".join(damage) or None,
        "quality": {
            **quality,
            "unmapped_bytes": analysis.unmapped_bytes,
            "remarks": list(analysis.remarks),
        },
        **measured,
        "files": files,
    }


def _both(said: list[Document], measured: list[Document]) -> list[Document]:
    """Each with its measures.

    Measuring puts packets in order of time. Of a file whose times run backwards that may make
    other connections, so they are found by their ends; without a partner there are no measures.
    """
    waiting: dict[tuple[str, str], list[Document]] = {}
    for each in measured:
        waiting.setdefault((each["client"], each["server"]), []).append(each)
    found: list[Document] = []
    for each in said:
        partners = waiting.get((each["client"], each["server"]))
        found.append(_joined(each, partners.pop(0)) if partners else each)
    return found


def _joined(said: Document, measured: Document) -> Document:
    """What either says; where both do, what the first says, unless that is nothing."""
    found = dict(measured)
    for key, value in said.items():
        other = found.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            found[key] = _joined(value, other)
        elif key == "subflows" and isinstance(other, list):
            found[key] = _both(value, other)
        elif value is not None or key not in found:
            found[key] = value
    return found


def _connection(result: ConnectionResult) -> Document:
    document: Document = _since_epoch(_plain(result), result.origin_s)
    del document["protocol"], document["origin_s"]
    document["token"] = (
        result.server_token if result.server_token is not None else result.client_token
    )
    document["signals"] = [
        {key: value for key, value in each.items() if key != "fields"} | each["fields"]
        for each in document["signals"]
    ]
    for name in _DIRECTIONS:
        # A direction without two steps of progress was never stalled.
        document[name]["longest_stall_s"] = document[name]["longest_stall_s"] or 0.0
    return document


def _since_epoch(value: Any, origin_s: float) -> Any:
    if isinstance(value, dict):
        return {
            key: each + origin_s
            if key in _MOMENTS and isinstance(each, float)
            else _since_epoch(each, origin_s)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_since_epoch(each, origin_s) for each in value]
    return value


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: _plain(getattr(value, each.name))
            for each in fields(value)
            if each.name != "trace"
        }
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
