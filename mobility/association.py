"""Association: which access point a node uses when, and how reluctantly it changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mobility.coverage import contact_schedule, distance_m
from mobility.trajectory import Array, Trajectory

_EXACT_S = 1e-9
_LASTING_S = 1e-6
_TIE = 1e-10
_IRREGULAR = np.array([0.0901, 0.2361, 0.3820, 0.6457, 0.8284])
_NEVER = float("inf")


class Association(NamedTuple):
    """A time during which a node uses one access point.

    Attributes
    ----------
    start_s, end_s : float
        From when to when, in seconds of run time.
    access_point : int
        Number of the access point.
    ended : {"lost", "better", "end"}
        Why: it went out of range, another was nearer, or the interval asked about was over.
    """

    start_s: float
    end_s: float
    access_point: int
    ended: Literal["lost", "better", "end"]


@dataclass(frozen=True)
class Reluctance:
    """What keeps a node from changing its access point back and forth.

    Distances are compared as shares of the access points' ranges, so that the nearer one is the
    one received better, also where powers differ.

    Parameters
    ----------
    ratio : float
        1 or more. Another access point must be that many times nearer before it is changed to;
        and one in use is lost only at that many times the range at which it was found. In dB it
        is `mobility.radio.distance_ratio`.
    dwell_s : float
        How long the other must have been that much nearer without interruption ("time to
        trigger" in cellular networks).

    Raises
    ------
    ValueError
        If the ratio is below 1 or the time below 0.
    """

    ratio: float = 1.0
    dwell_s: float = 0.0

    def __post_init__(self) -> None:
        if not 1.0 <= self.ratio < _NEVER:
            raise ValueError(f"ratio must be 1 or more, not {self.ratio!r}")
        if not 0.0 <= self.dwell_s < _NEVER:
            raise ValueError(f"dwell_s must be 0 or more, not {self.dwell_s!r}")


@dataclass(frozen=True)
class Selection:
    """What a node uses whose way nobody knows beforehand; found step by step, as `associations`.

    Attributes
    ----------
    access_point : int or None
        Number of the access point in use.
    usable : frozenset of int
        Those that were found and have not been lost since.
    nearer_since_s : mapping
        Since when others have been so much nearer that they may be changed to.
    """

    access_point: int | None = None
    usable: frozenset[int] = frozenset()
    nearer_since_s: Mapping[int, float] = field(default_factory=dict)

    def after(
        self, shares: Sequence[float], now_s: float, reluctance: Reluctance | None = None
    ) -> "Selection":
        """Return what is used at `now_s`, not long after this.

        Parameters
        ----------
        shares : sequence of float
            Distance of each access point as a share of its range.
        """
        ratio = reluctance.ratio if reluctance else 1.0
        usable = frozenset(
            number
            for number, share in enumerate(shares)
            if share <= 1.0 or (number in self.usable and share <= ratio)
        )
        used = self.access_point
        if used not in usable:
            nearest = min(usable, key=lambda number: shares[number], default=None)
            return Selection(nearest, usable)
        if used is None or reluctance is None:
            return Selection(used, usable)
        nearer = {
            number: self.nearer_since_s.get(number, now_s)
            for number in sorted(usable)
            if number != used and shares[used] > ratio * shares[number]
        }
        since_s, other = min(
            ((at_s, number) for number, at_s in nearer.items()), default=(0.0, used)
        )
        if other != used and now_s >= since_s + reluctance.dwell_s:
            return Selection(other, usable)
        return Selection(used, usable, nearer)


def associations(
    node: Trajectory,
    access_points: Sequence[Trajectory],
    range_m: ArrayLike,
    until_s: float,
    reluctance: Reluctance | None = None,
) -> tuple[Association, ...]:
    """Return which access point a node uses when, from run time 0 to `until_s`.

    A node without one takes the first that comes into range, and when it loses one the nearest in
    range. While it has one it changes only as `Reluctance` says; without any it stays with an
    access point until it is lost.

    Parameters
    ----------
    node : Trajectory
        The node.
    access_points : sequence of Trajectory
        What it may associate with; a beam of a satellite is one with the beam's centre and
        radius.
    range_m : array_like
        Slant range in metres, one for all or one for each.
    until_s : float
        End of the interval of interest.
    reluctance : Reluctance, optional
        When to change to a nearer one.

    Returns
    -------
    tuple of Association
        In order of time. Times of finding and losing are those of `contact_schedule`; times at
        which another becomes nearer are enclosed to a nanosecond.

    Raises
    ------
    ValueError
        As `contact_schedule`.
    """
    ranges = np.broadcast_to(np.asarray(range_m, dtype=np.float64), (len(access_points),))
    ratio = reluctance.ratio if reluctance else 1.0
    usable = _usable(node, access_points, ranges, ratio, until_s)
    found: list[Association] = []
    leads: dict[tuple[int, int], list[tuple[float, float]]] = {}
    now_s = 0.0
    current: int | None = None
    while now_s < until_s:
        if current is None:
            current = _best(node, access_points, ranges, usable, now_s)
        if current is None:
            now_s = min(
                (start for each in usable for start, _ in each if start > now_s), default=until_s
            )
            continue
        lost_s = next(end for start, end in usable[current] if start <= now_s < end)
        change_s, other = _NEVER, current
        if reluctance:
            for rival in range(len(usable)):
                if rival == current:
                    continue
                pair = (current, rival)
                if pair not in leads:
                    leads[pair] = _leads(node, access_points, ranges, usable, pair, ratio)
                after_s = _overtaken(leads[pair], now_s, lost_s, reluctance.dwell_s)
                change_s, other = min((change_s, other), (after_s, rival))
        ends_s = min(lost_s, change_s)
        why: Literal["lost", "better", "end"] = "better" if change_s < lost_s else "lost"
        if ends_s > now_s:
            found.append(Association(now_s, ends_s, current, "end" if ends_s >= until_s else why))
        now_s = ends_s
        current = other if why == "better" else None
    return tuple(found)


def _usable(
    node: Trajectory,
    access_points: Sequence[Trajectory],
    ranges: Array,
    ratio: float,
    until_s: float,
) -> list[list[tuple[float, float]]]:
    """Return for each access point from when it is found until when it is lost."""
    inner = contact_schedule([node], access_points, ranges, until_s)
    outer = contact_schedule([node], access_points, ranges * ratio, until_s)
    usable: list[list[tuple[float, float]]] = []
    for number in range(len(access_points)):
        finds = inner.start_s[inner.access_point == number]
        windows = []
        mine = outer.access_point == number
        for start, end in zip(outer.start_s[mine], outer.end_s[mine], strict=True):
            within = finds[(finds >= start) & (finds < end)]
            if within.size:
                windows.append((float(within[0]), float(end)))
        usable.append(windows)
    return usable


def _best(
    node: Trajectory,
    access_points: Sequence[Trajectory],
    ranges: Array,
    usable: list[list[tuple[float, float]]],
    now_s: float,
) -> int | None:
    in_reach = [
        number
        for number, windows in enumerate(usable)
        if any(start <= now_s < end for start, end in windows)
    ]
    return min(
        in_reach,
        key=lambda number: float(
            distance_m(node, access_points[number], now_s)[0] / ranges[number]
        ),
        default=None,
    )


def _leads(
    node: Trajectory,
    access_points: Sequence[Trajectory],
    ranges: Array,
    usable: list[list[tuple[float, float]]],
    pair: tuple[int, int],
    ratio: float,
) -> list[tuple[float, float]]:
    """Return when the second of a pair is so much nearer than the first, and both are there."""
    here, there = (access_points[number] for number in pair)
    here_m, there_m = (float(ranges[number]) for number in pair)

    def lead(times: Array) -> Array:
        share: Array = distance_m(node, here, times) / here_m
        return share - ratio * distance_m(node, there, times) / there_m

    found: list[tuple[float, float]] = []
    for start, end in usable[pair[0]]:
        for begin, finish in usable[pair[1]]:
            window = max(start, begin), min(end, finish)
            if window[0] < window[1]:
                speed = node.top_speed_mps(window[1])
                steepest = (speed + here.top_speed_mps(window[1])) / here_m
                steepest += ratio * (speed + there.top_speed_mps(window[1])) / there_m
                found += positive(lead, steepest, *window)
    return sorted(found)


def _overtaken(
    leads: list[tuple[float, float]], now_s: float, lost_s: float, dwell_s: float
) -> float:
    """Return when another access point has been nearer for long enough, or infinity."""
    for start, end in leads:
        since_s = max(start, now_s)
        # Just after a change the roles are swapped, and rounding may see a lead that is none.
        if min(end, lost_s) - since_s > max(dwell_s, _LASTING_S):
            return since_s + dwell_s
    return _NEVER


def positive(
    function: Callable[[Array], Array], steepest: float, from_s: float, until_s: float
) -> list[tuple[float, float]]:
    """Return where a function of time is positive, given how fast it can change at most.

    Parts of the interval are halved until the value in the middle is too great for the function
    to reach 0 within the part, or the part is shorter than a nanosecond. So no change of sign is
    missed that lasts longer than that. Where the function is 0 all the time it is not positive.

    Parameters
    ----------
    function : callable
        Takes n times and returns n values.
    steepest : float
        Bound of the absolute value of its derivative.
    from_s, until_s : float
        The interval.

    Returns
    -------
    list of (float, float)
        From when to when, in order.
    """
    left, right = np.array([from_s]), np.array([until_s])
    parts: list[tuple[float, float]] = []
    while left.size:
        half = 0.5 * (right - left)
        middle = left + half
        value = function(middle)
        sure = (np.abs(value) > steepest * half) | (half < _EXACT_S)
        yes = sure & (value > 0.0)
        for part in np.flatnonzero(~sure & (np.abs(value) < _TIE)):
            within = function(left[part] + _IRREGULAR * (right[part] - left[part]))
            sure[part] = bool((np.abs(within) < _TIE).all())
        parts += zip(left[yes].tolist(), right[yes].tolist(), strict=True)
        left, right = (
            np.concatenate([left[~sure], middle[~sure]]),
            np.concatenate([middle[~sure], right[~sure]]),
        )
    joined: list[tuple[float, float]] = []
    for start, end in sorted(parts):
        if joined and start <= joined[-1][1] + 2.0 * _EXACT_S:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
