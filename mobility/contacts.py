"""When pairs of nodes are within range: the equations, for many pairs of legs at once.

The relative motion of two nodes during one pair of legs is a straight line plus circles. Without
circles the times at the range are the roots of a quadratic. With them the interval is halved
until it is certain that a part holds no root, or exactly one: with d the vector between the
nodes, the function g = |d|² - range² has

    g' = 2 d·d',   |g''| <= 2 V² + 2 D A

with V, A and D bounds of speed, acceleration and distance, so that a Taylor expansion about the
middle of a part encloses all its values. No contact is missed however short, and no time step
enters the result. (R. E. Moore, "Interval Analysis", 1966, is the source of the idea.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mobility.trajectory import Array, Legs

_TOUCH_S = 1e-9
"""Parts as short as this are not halved again: the nodes touch the range there."""

_TIE_M = 1e-7
"""Nodes this close to the range at irregular times of a part are exactly at it all the time."""

_IRREGULAR = (0.0901, 0.2361, 0.3820, 0.6457, 0.8284)

_NEWTON_STEPS = 60
_CLOSE = 1e-12
"""Share of the time by which the last of Newton's steps may move it: the next would be nothing."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Times during which pairs are within range, sorted by pair and time.

    Attributes
    ----------
    pair : numpy.ndarray
        Shape (n,): number of the pair.
    start_s, end_s : numpy.ndarray
        Shape (n,): from when to when, in seconds of run time.
    """

    pair: NDArray[np.intp]
    start_s: Array
    end_s: Array


@dataclass(frozen=True, eq=False)
class _Relative:
    """Relative motion during n pairs of legs, from τ = 0 to `length_s`."""

    place: Array
    speed: Array
    radius: Array
    rate: Array
    phase: Array
    length_s: Array
    range_m: Array

    def rows(self, rows: NDArray[np.intp]) -> "_Relative":
        return _Relative(
            self.place[rows],
            self.speed[rows],
            self.radius[rows],
            self.rate[rows],
            self.phase[rows],
            self.length_s[rows],
            self.range_m[rows],
        )


def within_range(
    node: Legs, others: Legs, counts: NDArray[np.intp], range_m: Array, until_s: float
) -> Intervals:
    """Return when one node is within range of each of some others, from run time 0 on.

    Parameters
    ----------
    node : Legs
        The one.
    others : Legs
        The legs of the others, j of them, one after the other; the pairs have their numbers.
    counts : numpy.ndarray
        Shape (j,): how many legs each of the others has.
    range_m : numpy.ndarray
        Shape (j,): slant range to each.
    until_s : float
        End of the interval of interest.
    """
    pair, start_s, end_s, relative = _common(node, others, counts, range_m, until_s)
    turning = np.any((relative.radius * relative.rate) != 0.0, axis=1)
    plain, curved = np.flatnonzero(~turning), np.flatnonzero(turning)
    row_a, enter_a, leave_a = _lines(relative.rows(plain))
    row_b, enter_b, leave_b = _curves(relative.rows(curved))
    row = np.concatenate([plain[row_a], curved[row_b]])
    enter = np.concatenate([enter_a, enter_b])
    leave = np.concatenate([leave_a, leave_b])
    whole = leave >= relative.length_s[row]
    starts = start_s[row] + enter
    # The end of a leg to the last bit, so that it meets the start of the next.
    ends = np.where(whole, end_s[row], np.minimum(start_s[row] + leave, end_s[row]))
    kept = ends > starts
    return _merged(pair[row][kept], starts[kept], ends[kept])


def _common(
    node: Legs, others: Legs, counts: NDArray[np.intp], range_m: Array, until_s: float
) -> tuple[NDArray[np.intp], Array, Array, _Relative]:
    """Cut the interval, for each pair, where either changes course."""
    pairs = np.arange(counts.size)
    pair = np.concatenate([np.repeat(pairs, counts), np.repeat(pairs, len(node))])
    at = np.concatenate([others.start_s, np.tile(node.start_s, counts.size)])
    at = np.clip(at, 0.0, until_s)
    is_node = np.arange(pair.size) >= len(others)
    order = np.lexsort((is_node, at, pair))
    pair, at, is_node = pair[order], at[order], is_node[order]
    # Within a pair, legs come in their own order: counting them gives the one that holds.
    leg_other = np.maximum(np.cumsum(~is_node) - 1, 0)
    leg_node = np.cumsum(is_node) - 1 - pair * len(node)
    last = np.append(pair[1:] != pair[:-1], True)
    ends = np.where(last, until_s, np.append(at[1:], until_s))
    used = (ends > at) & (leg_node >= 0)
    pair, at, ends = pair[used], at[used], ends[used]
    a, b = node, others
    leg_a, leg_b = leg_node[used], leg_other[used]
    late_a, late_b = at - a.start_s[leg_a], at - b.start_s[leg_b]
    relative = _Relative(
        (b.position_m[leg_b] + b.velocity_mps[leg_b] * late_b[:, None])
        - (a.position_m[leg_a] + a.velocity_mps[leg_a] * late_a[:, None]),
        b.velocity_mps[leg_b] - a.velocity_mps[leg_a],
        np.hstack([b.radius_m[leg_b], -a.radius_m[leg_a]]),
        np.hstack([b.rate_radps[leg_b], a.rate_radps[leg_a]]),
        np.hstack(
            [
                b.phase_rad[leg_b] + b.rate_radps[leg_b] * late_b[:, None],
                a.phase_rad[leg_a] + a.rate_radps[leg_a] * late_a[:, None],
            ]
        ),
        ends - at,
        range_m[pair],
    )
    return pair, at, ends, relative


def _lines(motion: _Relative) -> tuple[NDArray[np.intp], Array, Array]:
    """Solve the quadratics; rows in contact, and from when to when."""
    place = motion.place
    if motion.radius.shape[1]:  # circles that do not turn are a displacement
        place = place.copy()
        place[:, 0] += np.sum(motion.radius * np.cos(motion.phase), axis=1)
        place[:, 1] += np.sum(motion.radius * np.sin(motion.phase), axis=1)
    speed_squared = _dot(motion.speed, motion.speed)
    moving = speed_squared > 0.0
    safe = np.where(moving, speed_squared, 1.0)
    # Half the chord from the closest approach, rather than the textbook discriminant, which
    # loses half its digits when the nodes are far apart compared with the range.
    closest_s = -_dot(place, motion.speed) / safe
    nearest = place + motion.speed * closest_s[:, None]
    closest_m = np.sqrt(_dot(nearest, nearest))
    chord = (motion.range_m - closest_m) * (motion.range_m + closest_m) / safe
    half_s = np.sqrt(np.maximum(chord, 0.0))
    enter = np.where(moving, np.maximum(closest_s - half_s, 0.0), 0.0)
    leave = np.where(moving, np.minimum(closest_s + half_s, motion.length_s), motion.length_s)
    touching = np.where(moving, closest_m < motion.range_m, closest_m <= motion.range_m)
    row = np.flatnonzero(touching & (leave > enter))
    return row, enter[row], leave[row]


def _curves(motion: _Relative) -> tuple[NDArray[np.intp], Array, Array]:
    """Find the contacts of motions with circles; rows, and from when to when, in no order."""
    rows = np.arange(motion.length_s.size)
    left, right = np.zeros(rows.size), motion.length_s.copy()
    line_speed = np.sqrt(_dot(motion.speed, motion.speed))
    reach = np.sum(np.abs(motion.radius), axis=1)
    turning = np.abs(motion.radius * motion.rate)
    top_speed = line_speed + np.sum(turning, axis=1)
    top_acceleration = np.sum(turning * np.abs(motion.rate), axis=1)
    inside_parts: list[tuple[NDArray[np.intp], Array, Array]] = []
    single_parts: list[tuple[NDArray[np.intp], Array, Array]] = []
    while rows.size:
        half = 0.5 * (right - left)
        middle = left + half
        part = motion.rows(rows)
        line, place, speed = _state(part, middle)
        distance = np.sqrt(_dot(place, place))
        range_m = part.range_m
        gap = (distance - range_m) * (distance + range_m)
        slope = 2.0 * _dot(place, speed)
        farthest = distance + top_speed[rows] * half
        bend = 2.0 * top_speed[rows] ** 2 + 2.0 * farthest * top_acceleration[rows]
        from_line = np.sqrt(_dot(line, line))
        drift = line_speed[rows] * half + reach[rows]
        settled = (
            (np.abs(gap) > np.abs(slope) * half + 0.5 * bend * half * half)
            | (np.abs(distance - range_m) > top_speed[rows] * half)
            | (np.abs(from_line - range_m) > drift)
            | (half < _TOUCH_S)
        )
        # Motion during a pair of legs is analytic: at the range for a while is at it throughout.
        whole = (left == 0.0) & (right == part.length_s)
        near = np.abs(distance - range_m) < _TIE_M
        tied = _tied(part, left, right, whole & near & ~settled)
        settled |= tied
        inside = settled & ((distance <= range_m) | tied)
        single = ~settled & (np.abs(slope) > bend * half)
        inside_parts.append((rows[inside], left[inside], right[inside]))
        single_parts.append((rows[single], left[single], right[single]))
        again = ~(settled | single)
        rows = np.concatenate([rows[again], rows[again]])
        left, right = (
            np.concatenate([left[again], middle[again]]),
            np.concatenate([middle[again], right[again]]),
        )
    if not inside_parts:
        return rows, left, right
    rows, left, right = (np.concatenate(column) for column in zip(*single_parts, strict=True))
    inside_parts.append(_one_root(motion.rows(rows), rows, left, right))
    row, enter, leave = (np.concatenate(column) for column in zip(*inside_parts, strict=True))
    return row, enter, leave


def _tied(
    motion: _Relative, left: Array, right: Array, candidates: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the parts that are at the range throughout, as a UAV that circles at that distance."""
    tied = candidates.copy()
    for share in _IRREGULAR:
        rows = np.flatnonzero(tied)
        if not rows.size:
            break
        part = motion.rows(rows)
        _, place, _ = _state(part, left[rows] + share * (right[rows] - left[rows]))
        tied[rows] = np.abs(np.sqrt(_dot(place, place)) - part.range_m) < _TIE_M
    return tied


def _one_root(
    motion: _Relative, rows: NDArray[np.intp], left: Array, right: Array
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return what is in range of parts in which the distance only grows or only shrinks."""

    def gap_at(times: Array) -> tuple[Array, Array]:
        _, place, speed = _state(motion, times)
        distance = np.sqrt(_dot(place, place))
        return (distance - motion.range_m) * (distance + motion.range_m), 2.0 * _dot(place, speed)

    at_left, _ = gap_at(left)
    at_right, _ = gap_at(right)
    crosses = (at_left > 0.0) != (at_right > 0.0)
    low, high = left.copy(), right.copy()
    guess = 0.5 * (low + high)
    for _ in range(_NEWTON_STEPS):
        gap, slope = gap_at(guess)
        outside_first = (gap > 0.0) == (at_left > 0.0)
        low = np.where(outside_first, guess, low)
        high = np.where(outside_first, high, guess)
        step = np.divide(gap, slope, out=np.zeros_like(gap), where=slope != 0.0)
        newton = guess - step
        bracketed = (newton > low) & (newton < high)
        better = np.where(bracketed, newton, 0.5 * (low + high))
        done = np.abs(better - guess) <= _CLOSE * np.maximum(np.abs(guess), 1.0)
        guess = better
        if (done | ~crosses).all():
            break
    enter = np.where(crosses & (at_left > 0.0), guess, left)
    leave = np.where(crosses & (at_right > 0.0), guess, right)
    kept = crosses | (at_left <= 0.0)
    return rows[kept], enter[kept], leave[kept]


def _state(motion: _Relative, times: Array) -> tuple[Array, Array, Array]:
    """Return the straight part of the relative position, all of it, and the relative velocity."""
    line = motion.place + motion.speed * times[:, None]
    angle = motion.phase + motion.rate * times[:, None]
    east, north = motion.radius * np.cos(angle), motion.radius * np.sin(angle)
    place, speed = line.copy(), motion.speed.copy()
    place[:, 0] += np.sum(east, axis=1)
    place[:, 1] += np.sum(north, axis=1)
    speed[:, 0] -= np.sum(motion.rate * north, axis=1)
    speed[:, 1] += np.sum(motion.rate * east, axis=1)
    return line, place, speed


def _merged(pair: NDArray[np.intp], start_s: Array, end_s: Array) -> Intervals:
    """Sort, and join what follows without a gap."""
    order = np.lexsort((start_s, pair))
    pair, start_s, end_s = pair[order], start_s[order], end_s[order]
    if not pair.size:
        return Intervals(pair, start_s, end_s)
    apart = (pair[1:] != pair[:-1]) | (start_s[1:] > end_s[:-1] + _TOUCH_S)
    first = np.flatnonzero(np.append(True, apart))
    return Intervals(pair[first], start_s[first], np.maximum.reduceat(end_s, first))


def _dot(a: Array, b: Array) -> Array:
    # Not einsum: it may fuse a multiplication and an addition, and then its bits depend on the
    # processor.
    total: Array = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]
    return total
