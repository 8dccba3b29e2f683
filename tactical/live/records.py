"""What a run leaves behind while it happens: events and samples, as one kind of record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.run.directory import RunDirectory


class Record(NamedTuple):
    """Something that was told about a run.

    Attributes
    ----------
    t_s : float or None
        Run time; None before the run's zero is known.
    kind : str
        As in ``events.jsonl``; ``sample`` for a line of ``samples.jsonl``, ``arrival`` for a rate
        that the analysis found in the captures.
    node : str
    data : mapping
    """

    t_s: float | None
    kind: str
    node: str
    data: Mapping[str, Any]

    @property
    def order(self) -> float:
        """Run time to sort by; what has none comes first."""
        return -math.inf if self.t_s is None else self.t_s


def of_event(line: Mapping[str, Any]) -> Record | None:
    """The record of a line of ``events.jsonl``; None if it is not one."""
    data, kind, node = line.get("data"), line.get("kind"), line.get("node")
    if not isinstance(data, Mapping) or not isinstance(kind, str) or not isinstance(node, str):
        return None
    return Record(_time(line.get("t_s")), kind, node, _finite(data))


def of_sample(line: Mapping[str, Any]) -> Record:
    """The record of a line of ``samples.jsonl``."""
    return Record(_time(line.get("t_s")), "sample", str(line.get("datapath", "")), _finite(line))


def of_run(run: RunDirectory) -> list[Record]:
    """All records of a run that has ended, in order of time."""
    found = [Record(_time(e.t_s), e.kind, e.node, _finite(e.data)) for e in run.events]
    found += [of_sample(row) for row in run.samples]
    found += arrivals(run.path)
    return sorted(found, key=lambda record: record.order)


def arrivals(run_dir: Path) -> list[Record]:
    """What arrived at the host, for every user and path, as the analysis found it.

    Empty for a run that was not analysed.
    """
    try:
        result = json.loads((run_dir / "result.json").read_text(encoding="utf-8"))
        return [
            record
            for user, figures in result["users"].items()
            for record in _arrivals_of(user, _finite(figures.get("series") or {}))
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _arrivals_of(user: str, series: Mapping[str, Any]) -> Iterator[Record]:
    start_s, step_s = series.get("start_s"), series.get("step_s")
    if start_s is None or not step_s:
        return
    rates = [(None, series.get("goodput_bps") or [])]
    rates += list((series.get("frames_bps") or {}).items())
    for via, values in rates:
        for number, rate_bps in enumerate(values):
            if rate_bps is not None:
                # A rate is known at the end of the step that it is about.
                end_s = start_s + (number + 1) * step_s
                yield Record(end_s, "arrival", user, {"via": via, "rate_bps": rate_bps})


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
