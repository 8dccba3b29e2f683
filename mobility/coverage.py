"""Range: whether two moving nodes reach each other, and exactly when that changes."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mobility.trajectory import Leg, Trajectory


class Crossing(NamedTuple):
    """The instant at which two nodes come into range of each other, or leave it.

    Attributes
    ----------
    time_s : float
        Seconds of run time.
    entering : bool
        True when they come into range, False when they leave it.
    """

    time_s: float
    entering: bool


def in_range(a: Trajectory, b: Trajectory, range_m: float, t_s: ArrayLike) -> NDArray[np.bool_]:
    """Return whether two nodes are within range of each other at the given times.

    Parameters
    ----------
    a, b : Trajectory
        The two nodes; the answer is the same either way round.
    range_m : float
        Slant range in metres: the distance through space, altitude included. The boundary
        itself is in range.
    t_s : array_like
        Times in seconds of run time, a number or a sequence of n of them.

    Returns
    -------
    numpy.ndarray
        n booleans.

    Raises
    ------
    ValueError
        If the range is negative or not a number.

    Notes
    -----
    At a crossing the two nodes are exactly on the boundary, where rounding decides. To follow a
    schedule use `range_crossings`, which is consistent with itself.
    """
    _check_range(range_m)
    apart: NDArray[np.bool_] = np.linalg.norm(a.position(t_s) - b.position(t_s), axis=1) <= range_m
    return apart


def range_crossings(
    a: Trajectory, b: Trajectory, range_m: float, until_s: float
) -> tuple[Crossing, ...]:
    """Return when two nodes enter and leave range, from run time 0 to `until_s`.

    Parameters
    ----------
    a, b : Trajectory
        The two nodes; the answer is the same either way round.
    range_m : float
        Slant range in metres.
    until_s : float
        End of the interval of interest, in seconds of run time.

    Returns
    -------
    tuple of Crossing
        In order of time, entering and leaving in turn. Nodes that are in range from the start
        have a first crossing that enters at 0 s, so the list alone tells the whole story.
        Touching the boundary without passing it is no crossing.

    Raises
    ------
    ValueError
        If the range is negative or not a number.

    Notes
    -----
    The times are roots of a quadratic per pair of legs, not samples: they are right to rounding
    (about 1e-9 s for distances of kilometres) whatever the speed.
    """
    _check_range(range_m)
    contacts: list[tuple[float, float]] = []
    for start_s, end_s, first, second in _common_legs(a, b, until_s):
        contact = _contact(first, second, range_m, start_s, end_s)
        if contact is None:
            continue
        if contacts and contact[0] <= contacts[-1][1]:
            contacts[-1] = (contacts[-1][0], contact[1])
        else:
            contacts.append(contact)
    crossings: list[Crossing] = []
    for entered_s, left_s in contacts:
        crossings.append(Crossing(entered_s, entering=True))
        if left_s < until_s:
            crossings.append(Crossing(left_s, entering=False))
    return tuple(crossings)


def _common_legs(
    a: Trajectory, b: Trajectory, until_s: float
) -> list[tuple[float, float, Leg, Leg]]:
    """Cut [0, until_s] where either node changes course."""
    legs_a, legs_b = a.legs(until_s), b.legs(until_s)
    starts = sorted({leg.start_s for leg in (*legs_a, *legs_b) if leg.start_s < until_s})
    pieces = []
    at_a = at_b = 0
    for start_s, end_s in zip(starts, [*starts[1:], until_s], strict=True):
        while at_a + 1 < len(legs_a) and legs_a[at_a + 1].start_s <= start_s:
            at_a += 1
        while at_b + 1 < len(legs_b) and legs_b[at_b + 1].start_s <= start_s:
            at_b += 1
        pieces.append((start_s, end_s, legs_a[at_a], legs_b[at_b]))
    return pieces


def _contact(
    a: Leg, b: Leg, range_m: float, start_s: float, end_s: float
) -> tuple[float, float] | None:
    """Return the part of [start_s, end_s] in which two legs are within range, if any."""
    speed = [vb - va for va, vb in zip(a.velocity_mps, b.velocity_mps, strict=True)]
    apart = [
        (pb + vb * (start_s - b.start_s)) - (pa + va * (start_s - a.start_s))
        for pa, va, pb, vb in zip(
            a.position_m, a.velocity_mps, b.position_m, b.velocity_mps, strict=True
        )
    ]
    speed_squared = math.fsum(v * v for v in speed)
    if speed_squared == 0.0:
        return (start_s, end_s) if math.hypot(*apart) <= range_m else None
    # Half the chord from the closest approach, rather than the textbook discriminant, which
    # loses half its digits when the nodes are far apart compared with the range.
    closest_s = -math.fsum(p * v for p, v in zip(apart, speed, strict=True)) / speed_squared
    closest_m = math.hypot(*(p + v * closest_s for p, v in zip(apart, speed, strict=True)))
    if closest_m >= range_m:
        return None
    half_s = math.sqrt((range_m - closest_m) * (range_m + closest_m) / speed_squared)
    entered_s = max(start_s, start_s + closest_s - half_s)
    left_s = min(end_s, start_s + closest_s + half_s)
    return (entered_s, left_s) if entered_s < left_s else None


def _check_range(range_m: float) -> None:
    if not range_m >= 0.0:
        raise ValueError(f"range_m must be a distance in metres, 0 or more, not {range_m!r}")
