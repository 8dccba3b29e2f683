"""What the switch queues were told, what they sent, and what waited in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.run.directory import Event, JsonObject, RunDirectory, count, items, number
from analysis.run.links import link_to
from analysis.run.result import AllocationPeriod, QueueResult, Series, UserResult

F64 = NDArray[np.float64]

# Counters read shortly after each other say nothing about a rate.
_SHORTEST_RATE_S = 0.5


@dataclass(frozen=True)
class _Counted:
    """A sample of a counter: when it was read, and how old the queue said it was then."""

    t_s: float
    sent_bytes: int
    age_s: float | None


def queues(files: RunDirectory) -> list[QueueResult]:
    """Queues that were sampled or set, with their rates and backlog over time.

    Parameters
    ----------
    files : RunDirectory

    Returns
    -------
    list of QueueResult
        By port and number.
    """
    settings: dict[tuple[str, int], list[Event]] = {}
    for event in files.of_kind("queue_set"):
        queue_id = count(event.data.get("queue_id"))
        if queue_id is not None:
            key = (str(event.data.get("port", "")), queue_id)
            settings.setdefault(key, []).append(event)
    samples: dict[tuple[str, int], list[_Counted]] = {}
    datapaths: dict[tuple[str, int], str] = {}
    errors: dict[tuple[str, int], int] = {}
    backlog: dict[tuple[str, int], list[list[float]]] = {}
    for row in files.samples:
        queue_id, t_s = count(row.get("queue_id")), number(row.get("t_s"))
        kind = row.get("kind")
        if kind not in ("queue", "backlog") or queue_id is None or t_s is None:
            continue
        key = (str(row.get("port", "")), queue_id)
        waiting = [number(row.get(f"backlog_{unit}")) for unit in ("packets", "bytes")]
        sent = count(row.get("tx_bytes"))
        if kind == "backlog" and None not in waiting:
            backlog.setdefault(key, []).append([t_s, *(each or 0.0 for each in waiting)])
        elif kind == "queue" and sent is not None:
            age_s = number(row.get("duration_s"))
            samples.setdefault(key, []).append(_Counted(t_s, sent, age_s))
            datapaths[key] = str(row.get("datapath") or "")
            errors[key] = max(errors.get(key, 0), count(row.get("tx_errors")) or 0)
    found: list[QueueResult] = []
    for key in sorted(settings.keys() | samples.keys()):
        port, queue_id = key
        total, rates = _rates(samples.get(key, []))
        events = settings.get(key, [])
        about = next((event.data for event in reversed(events) if event.data.get("user")), {})
        found.append(
            QueueResult(
                datapath=datapaths.get(key) or port.split("-")[0],
                port=port,
                queue_id=queue_id,
                user=str(about["user"]) if about.get("user") else None,
                via=str(about["via"]) if about.get("via") else None,
                tx_bytes=total,
                tx_errors=errors.get(key, 0),
                settings=[
                    [event.t_s, low, high]
                    for event in events
                    if (low := number(event.data.get("min_bps"))) is not None
                    and (high := number(event.data.get("max_bps"))) is not None
                ],
                rates=rates,
                backlog=sorted(backlog.get(key, [])),
            )
        )
    return found


def _rates(rows: list[_Counted]) -> tuple[int, list[list[float]]]:
    """Bytes sent, and the rate between samples that are far enough apart.

    Samples that waited for a reader come in bursts: their times say when they were read, the
    queue's age says when they were taken.
    """
    rows = sorted(rows, key=lambda each: each.t_s)
    taken_s = _taken(rows)
    total = rows[0].sent_bytes if rows else 0
    rates: list[list[float]] = []
    grown = 0
    elapsed_s = 0.0
    for (before, since_s), (after, until_s) in pairwise(zip(rows, taken_s, strict=True)):
        # A counter that went back: the queue was made anew.
        more = after.sent_bytes - before.sent_bytes
        more = more if more >= 0 else after.sent_bytes
        total += more
        grown += more
        elapsed_s += max(until_s - since_s, 0.0)
        if elapsed_s >= _SHORTEST_RATE_S:
            rates.append([until_s, 8 * grown / elapsed_s])
            grown, elapsed_s = 0, 0.0
    return total, rates


def _taken(rows: list[_Counted]) -> list[float]:
    """When samples were taken: by the queue's age, and the sample that was read soonest."""
    times: list[float] = []
    life: list[_Counted] = []
    for row in [*rows, None]:
        renewed = row is None or (
            life and (row.age_s is None or life[-1].age_s is None or row.age_s < life[-1].age_s)
        )
        if renewed and life:
            born_s = (
                min(each.t_s - each.age_s for each in life if each.age_s is not None)
                if (life[0].age_s is not None)
                else None
            )
            times += [
                each.t_s if born_s is None or each.age_s is None else born_s + each.age_s
                for each in life
            ]
            life = []
        if row is not None:
            life.append(row)
    return times


def allocation_periods(
    files: RunDirectory, users: dict[str, UserResult], found: Sequence[QueueResult]
) -> list[AllocationPeriod]:
    """What each path was given, and what it carried, between two deployments.

    Parameters
    ----------
    files : RunDirectory
    users : dict of UserResult
    found : sequence of QueueResult
        As `queues` gives them.

    Returns
    -------
    list of AllocationPeriod
        In order of time; empty if nothing was solved.
    """
    in_force = _in_force(files.events)
    periods: list[AllocationPeriod] = []
    for (since_s, flows), (until_s, _) in pairwise([*in_force, (np.inf, [])]):
        for flow in flows:
            user, via = str(flow.get("user", "")), str(flow.get("via", ""))
            solved_bps, measured = number(flow.get("rate_bps")), users.get(user)
            if solved_bps is None or measured is None:
                continue
            if measured.sending_start_s is None or measured.sending_end_s is None:
                continue
            start_s = max(since_s, measured.sending_start_s)
            end_s = min(until_s, measured.sending_end_s)
            if end_s <= start_s:
                continue
            # What comes back over the same path has a queue at its other end.
            mine = [q for q in found if (q.user, q.via) == (user, via)]
            queue = next((q for q in mine if q.datapath == via), mine[0] if mine else None)
            rates = [each for each in queue.settings if each[0] <= since_s] if queue else []
            periods.append(
                AllocationPeriod(
                    user=user,
                    via=via,
                    port=queue.port if queue else None,
                    queue_id=queue.queue_id if queue else None,
                    start_s=start_s,
                    end_s=end_s,
                    solved_bps=solved_bps,
                    min_bps=rates[-1][1] if rates else None,
                    max_bps=rates[-1][2] if rates else None,
                    captured_bps=_captured(measured.series, via, start_s, end_s),
                    counted_bps=_counted(queue, start_s, end_s) if queue else None,
                )
            )
    return periods


def _in_force(events: Sequence[Event]) -> list[tuple[float, list[JsonObject]]]:
    """Path flows, and from when they were deployed."""
    found: list[tuple[float, list[JsonObject]]] = []
    solved: list[JsonObject] = []
    for event in events:
        if event.kind == "solve":
            solved = [
                each for each in items(event.data.get("path_flows")) if isinstance(each, dict)
            ]
        elif event.kind == "assignment" and solved:
            found.append((event.t_s, solved))
    return found


def _captured(series: Series | None, via: str, start_s: float, end_s: float) -> float | None:
    """Mean rate of frames over a link, of steps cut at the ends in proportion."""
    link = link_to(via, series.frames_bps) if series is not None else None
    if series is None or link is None:
        return None
    steps = np.array(series.frames_bps[link])
    edges = series.start_s + series.step_s * np.arange(len(steps) + 1)
    inside = np.clip(np.minimum(edges[1:], end_s) - np.maximum(edges[:-1], start_s), 0, None)
    total = float(inside.sum())
    return float((steps * inside).sum() / total) if total > 0 else None


def _counted(queue: QueueResult, start_s: float, end_s: float) -> float | None:
    """Mean rate by the queue's counter over the samples that lie in the period."""
    bits = seconds = 0.0
    for (since_s, _), (until_s, rate_bps) in pairwise([[start_s, 0.0], *queue.rates]):
        inside_s = min(until_s, end_s) - max(since_s, start_s)
        if inside_s > 0:
            bits += rate_bps * inside_s
            seconds += inside_s
    return bits / seconds if seconds > 0 else None
