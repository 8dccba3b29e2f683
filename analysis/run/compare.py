"""Runs compared: groups of runs that differ in their seed only, and groups against each other.

Every run gives one value of each figure; the interval of a group's mean is Student's, over its
seeds. Two groups are compared seed by seed, as paired samples (the same seed is the same movement
and the same random numbers), which takes out of the interval what seeds have in common.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.run.analyse import analyse
from analysis.run.directory import JsonObject, check_regular, items, mapping, number
from analysis.run.result import FORMAT
from analysis.transfer.rates import jain_over_time

F64 = NDArray[np.float64]

# The protocols in the order they are compared in.
_ORDER = ("sptcp", "mptcp", "fdm")
_MOST_POINTS = 400


@dataclass(frozen=True)
class Figure:
    """A figure of a run that is compared.

    Attributes
    ----------
    key, label, unit : str
        `unit` after multiplication by `scale`.
    scale : float
    """

    key: str
    label: str
    unit: str
    scale: float = 1.0


FIGURES = (
    Figure("goodput_bps", "goodput, mean of users", "Mbit/s", 1e-6),
    Figure("mean_packet_delay_s", "packet delay, mean", "ms", 1e3),
    Figure("p95_packet_delay_s", "packet delay, p95", "ms", 1e3),
    Figure("longest_interruption_after_start_s", "longest interruption after start-up", "s"),
    Figure("handover_interruption_s", "longest interruption at a handover", "s"),
    Figure("interruptions", "interruptions of all users", ""),
    Figure("throughput_cov", "variation of the throughput, mean of users", ""),
    Figure("jain", "Jain index of the run", ""),
    Figure("jain_over_time", "Jain index of each second, mean", ""),
    Figure("handovers", "handovers", ""),
    Figure("completion_time_s", "file completion time, mean", "s"),
    Figure("response_time_s", "response time, mean", "ms", 1e3),
    Figure("message_delay_s", "message delay, mean", "ms", 1e3),
    Figure("datagram_delay_s", "datagram delay, mean", "ms", 1e3),
    Figure("datagram_loss", "datagrams lost", "%", 1e2),
)

_OF_APPLICATIONS = (
    "completion_time_s",
    "response_time_s",
    "message_delay_s",
    "datagram_delay_s",
    "datagram_loss",
)


@dataclass(frozen=True)
class Estimate:
    """A mean and where it probably lies.

    Attributes
    ----------
    mean : float
    low, high : float or None
        Ends of the confidence interval; ``None`` with fewer than two values.
    values : list of float or None
        One for each seed; ``None`` where the figure was not measured.
    """

    mean: float
    low: float | None
    high: float | None
    values: list[float | None]


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only.

    Attributes
    ----------
    label : str
        Protocol, and what parameters tell it from other groups.
    runs : list of str
    seeds : list of int or None
    estimates : dict of Estimate
        By the key of the figure; figures that no run has are missing.
    delay_cdf : list of (delay_s, share)
        Distribution of the packet delay over all users and runs, each packet counted alike.
    goodput_cdf : list of (rate_bps, share)
        Of the goodput of each user in each full second of sending.
    """

    label: str
    protocol: str
    runs: list[str]
    seeds: list[int | None]
    estimates: dict[str, Estimate]
    delay_cdf: list[list[float]] = field(default_factory=list)
    goodput_cdf: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class Difference:
    """What a figure of the second group has more than the first's, seed by seed.

    Attributes
    ----------
    estimate : Estimate
        Its values are one for each seed that both groups have.
    """

    figure: str
    first: str
    second: str
    estimate: Estimate

    @property
    def certain(self) -> bool | None:
        """Whether the interval leaves zero out; ``None`` without an interval."""
        low, high = self.estimate.low, self.estimate.high
        return None if low is None or high is None else low > 0 or high < 0


@dataclass(frozen=True)
class Comparison:
    """Groups of runs, and how they differ."""

    scenario: str
    confidence: float
    method: str
    groups: list[Group]
    differences: list[Difference]
    remarks: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)
        for told, difference in zip(plain["differences"], self.differences, strict=True):
            told["certain"] = difference.certain
        return plain


def load(run_directory: str | Path) -> JsonObject:
    """The result of a run, as ``result.json`` has it; measured anew where that is missing or old.

    Parameters
    ----------
    run_directory : str or Path

    Returns
    -------
    dict

    Raises
    ------
    RunDirectoryError
        If the path is no run directory.
    """
    directory = Path(run_directory)
    stored, events = directory / "result.json", directory / "events.jsonl"
    try:
        check_regular(stored)
        if stored.stat().st_mtime >= events.stat().st_mtime:
            document = mapping(json.loads(stored.read_text(encoding="utf-8")))
            if document.get("format") == FORMAT:
                return document
    except (OSError, ValueError, RecursionError):
        pass
    return analyse(directory).to_json()


def compare(results: Sequence[Mapping[str, Any]], *, confidence: float = 0.95) -> Comparison:
    """Group runs and compare the groups.

    Parameters
    ----------
    results : sequence of mapping
        As `load` or `RunResult.to_json` give them.
    confidence : float
        Of the intervals, between 0 and 1.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there is nothing to compare, or the confidence is no share.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: expected a number between 0 and 1, got {confidence:g}")
    remarks: list[str] = []
    usable: list[Mapping[str, Any]] = []
    for each in results:
        if each.get("state") != "done":
            remarks.append(f"{each.get('run')} is left out: it failed ({each.get('reason')})")
        elif not mapping(each.get("users")):
            remarks.append(f"{each.get('run')} is left out: nothing was measured")
        else:
            usable.append(each)
    if not usable:
        raise ValueError("none of the runs was done: " + "; ".join(remarks))
    overloaded = [str(each.get("run")) for each in usable if each.get("overloaded")]
    if overloaded:
        remarks.append(
            f"{len(overloaded)} of {len(usable)} runs were on a machine that could not keep up "
            f"and show it: {', '.join(overloaded)}"
        )
    labels = _labels(usable)
    groups: list[Group] = []
    for label in sorted(set(labels), key=lambda each: _place(each, labels, usable)):
        members = [each for each, name in zip(usable, labels, strict=True) if name == label]
        groups.append(_group(label, members, confidence, remarks))
    differences = [
        difference
        for first, second in combinations(groups, 2)
        for difference in _differences(first, second, confidence)
    ]
    scenarios = list(dict.fromkeys(str(each.get("scenario")) for each in usable))
    return Comparison(
        scenario=", ".join(scenarios),
        confidence=confidence,
        method="Student's t over seeds; groups compared as paired samples over common seeds",
        groups=groups,
        differences=differences,
        remarks=remarks,
    )


def _labels(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Protocol, with scenario and parameters where these differ; equal for runs of one group."""
    parameters = [mapping(each.get("parameters")) for each in results]
    names = dict.fromkeys(name for each in parameters for name in each)
    # What an earlier version did not know yet is no difference.
    known = {name: {repr(each[name]) for each in parameters if name in each} for name in names}
    differing = [name for name in names if len(known[name]) > 1]
    scenarios = {each.get("scenario") for each in results}
    labels: list[str] = []
    for each, values in zip(results, parameters, strict=True):
        said = [str(each.get("protocol") or "?")]
        said += [str(each.get("scenario"))] * (len(scenarios) > 1)
        for name in differing:
            value = values.get(name, "?")
            said.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
        labels.append(" ".join(said))
    return labels


def _place(
    label: str, labels: Sequence[str], results: Sequence[Mapping[str, Any]]
) -> tuple[int, str]:
    protocol = str(results[labels.index(label)].get("protocol"))
    return (_ORDER.index(protocol) if protocol in _ORDER else len(_ORDER)), label


def _group(
    label: str, members: Sequence[Mapping[str, Any]], confidence: float, remarks: list[str]
) -> Group:
    by_seed: dict[int | None, list[Mapping[str, Any]]] = {}
    for each in members:
        seed = each.get("seed")
        by_seed.setdefault(seed if isinstance(seed, int) else None, []).append(each)
    again = {seed: len(runs) for seed, runs in by_seed.items() if len(runs) > 1}
    if again:
        told = ", ".join(f"seed {seed} {times} times" for seed, times in again.items())
        remarks.append(f"{label}: repeated runs count as one, by their mean ({told})")
    estimates: dict[str, Estimate] = {}
    ordered = sorted(by_seed, key=lambda seed: (seed is None, seed or 0))
    for figure in FIGURES:
        values: list[float | None] = []
        for seed in ordered:
            found = [v for run in by_seed[seed] if (v := figures_of(run)[figure.key]) is not None]
            values.append(fmean(found) if found else None)
        estimate = _estimate(values, confidence)
        if estimate is not None:
            estimates[figure.key] = estimate
    if len(by_seed) < 2:
        remarks.append(f"{label}: one seed only, so there is no interval")
    return Group(
        label=label,
        protocol=str(members[0].get("protocol")),
        runs=[str(each.get("run")) for each in members],
        seeds=ordered,
        estimates=estimates,
        delay_cdf=_delay_cdf(members),
        goodput_cdf=_goodput_cdf(members),
    )


def figures_of(result: Mapping[str, Any]) -> dict[str, float | None]:
    """One value of each of `FIGURES` for a run; ``None`` where it was not measured.

    Delay, goodput and variation are means over users; of interruptions there are the longest of any
    user and the number of all.
    """
    users = [mapping(each) for each in mapping(result.get("users")).values()]

    def of_users(key: str) -> list[float]:
        return [value for each in users if (value := number(each.get(key))) is not None]

    def mean(values: Sequence[float]) -> float | None:
        return fmean(values) if values else None

    gaps = [
        length
        for story in map(mapping, items(result.get("handover_stories")))
        if (length := number(mapping(story.get("interruption")).get("length_s"))) is not None
    ]
    return {
        "goodput_bps": mean(of_users("goodput_bps")),
        "mean_packet_delay_s": mean(of_users("mean_packet_delay_s")),
        "p95_packet_delay_s": mean(of_users("p95_packet_delay_s")),
        "longest_interruption_after_start_s": max(
            of_users("longest_interruption_after_start_s"), default=None
        ),
        "handover_interruption_s": max(gaps, default=None),
        "interruptions": _count(each.get("interruptions") for each in users),
        "throughput_cov": mean(of_users("throughput_cov")),
        "jain": number(result.get("jain")),
        "jain_over_time": _jain_over_time(users),
        "handovers": number(result.get("handovers")),
        **{key: mean(of_users(key)) for key in _OF_APPLICATIONS},
    }


def _count(lists: Iterable[object]) -> float | None:
    found = [len(each) for each in lists if isinstance(each, list)]
    return float(sum(found)) if found else None


def _jain_over_time(users: Sequence[Mapping[str, Any]]) -> float | None:
    """Mean of Jain's index over the steps of the series in which all users send.

    The average of a whole run hides who waited for whom: data that are sent in the end count there
    as if they had come in time.
    """
    series = [mapping(each.get("series")) for each in users]
    rates = [[number(rate) or 0.0 for rate in items(each.get("goodput_bps"))] for each in series]
    grids = {(number(each.get("start_s")), number(each.get("step_s"))) for each in series}
    if len(rates) < 2 or len(grids) != 1:
        return None
    ((first_s, step_s),) = grids
    starts = [at for each in users if (at := number(each.get("sending_start_s"))) is not None]
    ends = [at for each in users if (at := number(each.get("sending_end_s"))) is not None]
    if first_s is None or not step_s or not len(starts) == len(ends) == len(rates):
        return None
    count = max(map(len, rates))
    padded = np.array([[*row, *[0.0] * (count - len(row))] for row in rates])
    edges = first_s + step_s * np.arange(count + 1)
    within = (edges[:-1] >= max(starts)) & (edges[1:] <= min(ends))
    index = jain_over_time(padded, np.tile(within, (len(rates), 1)))
    index = index[np.isfinite(index)]
    return float(index.mean()) if index.size else None


def _estimate(values: list[float | None], confidence: float) -> Estimate | None:
    """Mean of some values with Student's interval; nothing if none is known."""
    known = [each for each in values if each is not None]
    if not known:
        return None
    mean = fmean(known)
    if len(known) < 2:
        return Estimate(mean, None, None, values)
    from scipy.stats import t

    factor = float(t.ppf((1 + confidence) / 2, len(known) - 1))
    half = factor * stdev(known) / math.sqrt(len(known))
    return Estimate(mean, mean - half, mean + half, values)


def _differences(first: Group, second: Group, confidence: float) -> list[Difference]:
    common = [seed for seed in first.seeds if seed in second.seeds and seed is not None]
    found: list[Difference] = []
    for figure in FIGURES:
        one, other = first.estimates.get(figure.key), second.estimates.get(figure.key)
        if one is None or other is None:
            continue
        values: list[float | None] = []
        for seed in common:
            before = one.values[first.seeds.index(seed)]
            after = other.values[second.seeds.index(seed)]
            values.append(None if before is None or after is None else after - before)
        estimate = _estimate(values, confidence)
        if estimate is not None:
            found.append(Difference(figure.key, first.label, second.label, estimate))
    return found


def _delay_cdf(members: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Shares of all packets below a delay, from the quantiles of each user."""
    known: list[tuple[F64, float]] = []
    for run in members:
        for user in map(mapping, mapping(run.get("users")).values()):
            quantiles = [number(each) for each in items(user.get("delay_quantiles_s"))]
            weight = number(user.get("matched_packets")) or 0.0
            if len(quantiles) > 1 and None not in quantiles and weight > 0:
                known.append((np.array(quantiles, dtype=np.float64), weight))
    if not known:
        return []
    grid = np.unique(np.concatenate([quantiles for quantiles, _ in known]))
    shares = sum(
        weight * np.interp(grid, q, np.linspace(0, 1, len(q)), left=0, right=1)
        for q, weight in known
    ) / sum(weight for _, weight in known)
    return _thinned(grid, np.asarray(shares))


def _goodput_cdf(members: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Shares of the full seconds of sending with a goodput at or below a rate."""
    rates: list[float] = []
    for run in members:
        for user in map(mapping, mapping(run.get("users")).values()):
            series = mapping(user.get("series"))
            start_s, step_s = number(series.get("start_s")), number(series.get("step_s"))
            begin_s, end_s = number(user.get("sending_start_s")), number(user.get("sending_end_s"))
            if None in (start_s, step_s, begin_s, end_s):
                continue
            for index, rate in enumerate(items(series.get("goodput_bps"))):
                at_s = (start_s or 0.0) + index * (step_s or 1.0)
                inside = at_s >= (begin_s or 0.0) and at_s + (step_s or 1.0) <= (end_s or 0.0)
                value = number(rate)
                if inside and value is not None:
                    rates.append(value)
    if not rates:
        return []
    ordered = np.sort(np.array(rates))
    return _thinned(ordered, np.arange(1, len(ordered) + 1) / len(ordered))


def _thinned(values: F64, shares: F64) -> list[list[float]]:
    """A distribution with not more points than a figure shows."""
    keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_POINTS)).astype(int))
    points: list[list[float]] = np.column_stack([values[keep], shares[keep]]).tolist()
    return points
