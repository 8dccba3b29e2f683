"""Series of a transfer for figures: small, whatever the size of the capture."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.transfer.direction import Sent
from analysis.transfer.rates import edges_s, rates_bps
from captures import DataFlow

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# More than a page or a printed figure can show apart.
_PIXELS = (700, 300)
_QUANTILES = 501
_LINE_STEPS = 1000

NEW, RETRANSMISSION, REINJECTION, RESEND = range(4)
KINDS = ("new data", "retransmission", "reinjection", "resend")


@dataclass(frozen=True)
class Points:
    """Data of one kind that one path carried: when, and its place in the connection's data.

    Attributes
    ----------
    path : int
        Index into the labels of the trace.
    kind : int
        `NEW`, `RETRANSMISSION`, `REINJECTION` or `RESEND`.
    time_s, position_bytes : float64 array
    """

    path: int
    kind: int
    time_s: F64
    position_bytes: F64


@dataclass(frozen=True)
class Line:
    """A quantity over time, the largest value of each short time.

    Attributes
    ----------
    time_s, value : float64 array
    """

    time_s: F64
    value: F64


@dataclass(frozen=True)
class Trace:
    """One direction of a connection, ready to be drawn.

    Attributes
    ----------
    paths : tuple of str
        What carried the data: subflows, or links.
    edges_s : float64 array
        Limits of the steps that rates and counts are of.
    points : tuple of Points
        The data sequence, as the sender sent it if its side was recorded.
    arriving_bps : tuple of float64 array
        New data in each step, for each path.
    goodput_bps : float64 array
        Data that became complete from the start in each step.
    delays_s : dict of str to float64 array
        One-way delays of each path, at equally spaced quantiles.
    round_trips_s : dict of str to float64 array
        Round trips of each path and of the data level, likewise.
    repeats : tuple of float64 array
        Packets of each kind of repeat in each step, in the order of `KINDS`.
    flight : dict of str to Line
        Unacknowledged bytes of each subflow.
    waiting : Line or None
        Bytes that had arrived but waited for earlier ones.
    """

    paths: tuple[str, ...]
    edges_s: F64
    points: tuple[Points, ...]
    arriving_bps: tuple[F64, ...] = ()
    goodput_bps: F64 = field(default_factory=lambda: np.zeros(0))
    delays_s: dict[str, F64] = field(default_factory=dict)
    round_trips_s: dict[str, F64] = field(default_factory=dict)
    repeats: tuple[F64, ...] = ()
    flight: dict[str, Line] = field(default_factory=dict)
    waiting: Line | None = None


def rates_of(
    time_s: F64, fresh: I64, in_order: I64, path: I64, paths: int, edges: F64
) -> tuple[tuple[F64, ...], F64]:
    """New data of each path, and data that became complete, in each step (bit/s)."""
    arriving = tuple(
        rates_bps(time_s[path == each], fresh[path == each], edges) for each in range(paths)
    )
    return arriving, rates_bps(time_s, np.diff(in_order, prepend=0), edges)


def sequence_points(
    time_s: F64, position: I64, length: I64, path: I64, kind: I64
) -> tuple[Points, ...]:
    """The data sequence as points, of which only those that can be seen apart are kept.

    Parameters
    ----------
    time_s : float64 array
        When each piece of data was seen.
    position, length : int64 array
        Its first byte, and its bytes.
    path, kind : int64 array
        As in `Points`.

    Returns
    -------
    tuple of Points
        Repeats last, so that they are drawn above the rest.
    """
    found: list[Points] = []
    if not len(time_s):
        return ()
    place = _pixel(time_s, _PIXELS[0]) * _PIXELS[1] + _pixel(position, _PIXELS[1])
    for each_kind in range(len(KINDS)):
        here = np.flatnonzero(kind == each_kind)
        here = here[_one_of_each(place[here], length[here])]
        for each_path in np.unique(path[here]).tolist():
            kept = here[path[here] == each_path]
            found.append(
                Points(each_path, each_kind, time_s[kept], position[kept].astype(np.float64))
            )
    return tuple(found)


def _one_of_each(place: I64, length: I64) -> I64:
    """One piece of each place, drawn by its bytes: paths appear as often as they carry.

    The draw is the same each time.
    """
    order = np.argsort(place, kind="stable")
    upto = np.cumsum(length[order])
    first = np.flatnonzero(np.r_[True, np.diff(place[order]) > 0]) if len(order) else order
    before = np.r_[0, upto][first]
    after = np.r_[before[1:], upto[-1:]]
    drawn = before + (after - before) * np.random.default_rng(0).random(len(first))
    chosen: I64 = order[np.minimum(np.searchsorted(upto, drawn, side="right"), len(order) - 1)]
    return np.sort(chosen)


def _pixel(values: F64 | I64, count: int) -> I64:
    low, width = float(values.min()), float(np.ptp(values)) or 1.0
    return np.minimum((values - low) / width * count, count - 1).astype(np.int64)


def quantiles(samples: F64) -> F64:
    """Samples in ascending order; of very many, equally spaced quantiles from least to most."""
    finite = samples[np.isfinite(samples)]
    if len(finite) <= _QUANTILES:
        return np.sort(finite)
    found: F64 = np.quantile(finite, np.linspace(0, 1, _QUANTILES))
    return found


def line(time_s: F64, value: I64) -> Line:
    """A quantity that holds from each time to the next, as its largest value of each short time."""
    if len(time_s) <= 2 * _LINE_STEPS:
        return Line(time_s, value.astype(np.float64))
    edges = np.linspace(time_s[0], time_s[-1], _LINE_STEPS + 1)
    begin = np.searchsorted(time_s, edges[:-1])
    # What was there before still holds when a step begins.
    highest = np.maximum.reduceat(value, np.minimum(begin, len(value) - 1))
    held = value[np.maximum(begin - 1, 0)]
    empty = np.r_[begin[1:], len(value)] <= begin
    return Line(edges[:-1], np.where(empty, held, np.maximum(highest, held)).astype(np.float64))


def flight_bytes(sent: Sent) -> tuple[I64, I64]:
    """Bytes of a subflow that were sent and not acknowledged, at the place of the capture.

    Parameters
    ----------
    sent : Sent

    Returns
    -------
    time_ns, outstanding_bytes : int64 array
        After each data packet and each acknowledgment, in order of time.
    """
    time_ns = np.concatenate([sent.time_ns, sent.answers.time_ns])
    order = np.argsort(time_ns, kind="stable")
    lowest = np.int64(0)
    reached = np.concatenate(
        [sent.start + sent.length, np.full(len(sent.answers.row), lowest, dtype=np.int64)]
    )[order]
    answered = np.concatenate(
        [np.full(len(sent.start), lowest, dtype=np.int64), sent.answers.acknowledged]
    )[order]
    if not len(time_ns):
        return time_ns, reached
    outstanding = np.maximum.accumulate(reached) - np.maximum.accumulate(answered)
    return time_ns[order], np.maximum(outstanding, 0)


def repeat_kinds(flow: DataFlow) -> I64:
    """What each piece of data is, see `KINDS`."""
    kinds = np.full(len(flow.row), NEW, dtype=np.int64)
    kinds[flow.resent] = RESEND
    kinds[flow.reinjected] = REINJECTION
    kinds[flow.retransmitted] = RETRANSMISSION
    return kinds


def repeats_over_time(time_s: F64, kind: I64, edges: F64) -> tuple[F64, ...]:
    """Packets of each kind of repeat in each step."""
    return tuple(
        np.histogram(time_s[kind == each], bins=edges)[0].astype(np.float64)
        for each in range(RETRANSMISSION, len(KINDS))
    )


def covering(times_s: Sequence[F64], step: float) -> F64:
    """Steps that cover all these times."""
    known = [each for each in times_s if len(each)]
    if not known:
        return edges_s(0.0, step, step)
    return edges_s(min(float(e.min()) for e in known), max(float(e.max()) for e in known), step)
