"""Two captures, two clocks: how far apart they are, and how far that can be known.

A packet that leaves one capture at `t` and reaches the other after a delay `d` gets the stamp
`t + d + θ(t)` there, where θ is what the other clock is ahead. Packets of both directions bound it:
no delay is negative, so θ is at most the smallest difference of stamps one way, and at least minus
the smallest difference the other way. The middle is the offset if the shortest delays of both
directions are equal (V. Paxson, "On calibrating measurements of packet transit times", SIGMETRICS
1998); the two bounds hold without any assumption. What no measurement between two clocks can tell
is the asymmetry of the path between them, so half the smallest round trip stays as uncertainty.

The skew is the slope of the line below all differences that comes closest to them: the edge of
their lower convex hull that lies above their mean time, which is the optimum of the linear
programme in S. Moon, P. Skelly, D. Towsley, "Estimation and removal of clock skew from network
delay measurements", INFOCOM 1999.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# Oscillators are within 100 ppm, clocks that NTP slews within 500 more.
LARGEST_SKEW = 600e-6
# A line through a shorter time, or fewer packets, says nothing about a skew of parts per million.
_SHORTEST_SPAN_S = 5.0
_FEWEST_PACKETS = 50
_HULL_BINS = 4096


@dataclass(frozen=True)
class Crossings:
    """Packets that were seen at both captures, one direction of one path.

    Attributes
    ----------
    sent_ns, received_ns : int64 array
        By the clock where each was recorded.
    """

    sent_ns: I64
    received_ns: I64


@dataclass(frozen=True)
class ClockRelation:
    """What the second clock shows when the first shows `t`: `t + offset + skew (t - origin)`.

    Attributes
    ----------
    offset_s : float
        What the second clock is ahead at `origin_ns`.
    lowest_offset_s, highest_offset_s : float
        Bounds of it that hold whatever the asymmetry of the path: no delay is negative. Equal to
        minus and plus infinity where no packet went that way.
    skew : float
        Seconds that the second clock gains in a second of the first; 0 if not `skew_known`.
    skew_uncertainty : float
        Half the difference of the slopes that the two directions give.
    skew_known : bool
        Enough packets over a long enough time, and both directions agree.
    consistent : bool
        The bounds do not contradict each other. If they do, a clock was set while both captures
        were taken, or drifted in another way than by a constant skew.
    applied : bool
        Times are corrected by it. They are left as recorded where the two clocks may be one.
    origin_ns : int
        By the first clock.
    packets : int
        That it rests on.
    """

    offset_s: float
    lowest_offset_s: float
    highest_offset_s: float
    skew: float
    skew_uncertainty: float
    skew_known: bool
    consistent: bool
    applied: bool
    origin_ns: int
    packets: int

    @property
    def uncertainty_s(self) -> float:
        """Half the width between the bounds: the largest error of the offset."""
        return (self.highest_offset_s - self.lowest_offset_s) / 2

    @property
    def may_be_one_clock(self) -> bool:
        """No packet contradicts that both captures were stamped by the same clock."""
        return (
            self.consistent
            and self.lowest_offset_s <= 0 <= self.highest_offset_s
            and not self.skew_known
        )

    def to_first(self, time_ns: I64) -> I64:
        """Stamps of the second clock as the first would have given them."""
        if not self.applied:
            return time_ns
        level = time_ns - round(self.offset_s * 1e9)
        gained_ns = self.skew / (1 + self.skew) * (level - self.origin_ns)
        corrected: I64 = level - np.round(gained_ns).astype(np.int64)
        return corrected


def relate(
    there: list[Crossings], back: list[Crossings], *, tolerance_s: float = 0.0, apply: bool | None
) -> ClockRelation | None:
    """Offset and skew of a second clock against a first.

    Parameters
    ----------
    there, back : list of Crossings
        From the first capture to the second and back; one entry a path, both lists alike. Either
        may hold entries without packets.
    tolerance_s : float
        Resolution of the stamps: two clocks that contradict each other by less may be one.
    apply : bool or None
        Whether times shall be corrected; ``None`` leaves them where the two clocks may be one.

    Returns
    -------
    ClockRelation or None
        ``None`` if no packet was seen at both.
    """
    every = [each for each in (*there, *back) if len(each.sent_ns)]
    if not every:
        return None
    origin_ns = min(int(each.sent_ns.min()) for each in every)
    ahead = [_differences(each, origin_ns, 1) for each in there]
    behind = [_differences(each, origin_ns, -1) for each in back]
    skew, skew_uncertainty, known = _skew(ahead, behind)
    # Without the skew, the differences differ from the offset by the delays alone.
    highest = _smallest(ahead, skew)
    lowest = [-each for each in _smallest(behind, -skew)]
    high, low = min(highest, default=np.inf), max(lowest, default=-np.inf)
    both = [(h - lo, (h + lo) / 2) for h, lo in zip(highest, lowest, strict=True)]
    both = [each for each in both if np.isfinite(each[0])]
    # The path with the shortest round trip leaves the least to asymmetry.
    offset = min(both)[1] if both else high if np.isfinite(high) else low
    consistent = low - high <= 2 * tolerance_s
    low, high = min(low, high), max(low, high)
    relation = ClockRelation(
        offset_s=float(np.clip(offset, low, high)),
        lowest_offset_s=low - tolerance_s,
        highest_offset_s=high + tolerance_s,
        skew=skew,
        skew_uncertainty=skew_uncertainty,
        skew_known=known,
        consistent=consistent,
        applied=False,
        origin_ns=origin_ns,
        packets=sum(len(each.sent_ns) for each in every),
    )
    applied = not relation.may_be_one_clock if apply is None else apply
    return replace(relation, applied=applied)


Differences = tuple[F64, F64]


def _differences(crossings: Crossings, origin_ns: int, sign: int) -> Differences:
    """When, by the first clock (nearly), and difference of the stamps, seconds."""
    stamps = crossings.sent_ns if sign > 0 else crossings.received_ns
    at_s = (stamps - origin_ns) / 1e9
    return at_s, (crossings.received_ns - crossings.sent_ns) / 1e9


def _smallest(paths: list[Differences], slope: float) -> list[float]:
    return [
        float((difference - slope * at_s).min()) if len(at_s) else np.inf
        for at_s, difference in paths
    ]


def _skew(ahead: list[Differences], behind: list[Differences]) -> tuple[float, float, bool]:
    """Skew, its uncertainty, and whether it is known and different from none."""
    slopes = [(_slope(path), 1.0, path) for path in ahead]
    slopes += [(_slope(path), -1.0, path) for path in behind]
    found = [(sign * slope, path) for slope, sign, path in slopes if slope is not None]
    if not found:
        return 0.0, 0.0, False
    # The path whose differences stay closest to their line shows the slope best.
    found.sort(key=lambda each: _spread(each[1], each[0]))
    best = found[: 2 if len(found) > 1 else 1]
    skew = sum(slope for slope, _ in best) / len(best)
    uncertainty = abs(best[0][0] - best[-1][0]) / 2
    span_s = min(float(np.ptp(path[0])) for _, path in best)
    # A microsecond of resolution at either end of the line.
    uncertainty = max(uncertainty, 2e-6 / span_s)
    known = uncertainty < abs(skew) / 2 and abs(skew) <= LARGEST_SKEW
    return (skew, uncertainty, True) if known else (0.0, uncertainty, False)


def _spread(path: Differences, slope: float) -> float:
    at_s, difference = path
    left = difference - abs(slope) * at_s
    return float(np.median(left) - left.min())


def _slope(path: Differences) -> float | None:
    """Slope of the edge of the lower convex hull above the mean time."""
    at_s, difference = path
    if len(at_s) < _FEWEST_PACKETS or np.ptp(at_s) < _SHORTEST_SPAN_S:
        return None
    hull = lower_hull(*_lowest_in_bins(at_s, difference))
    mean = float(at_s.mean())
    times = np.array([at for at, _ in hull])
    edge = int(np.clip(np.searchsorted(times, mean) - 1, 0, len(hull) - 2))
    (t0, y0), (t1, y1) = hull[edge], hull[edge + 1]
    return float((y1 - y0) / (t1 - t0)) if t1 > t0 else None


def _lowest_in_bins(at_s: F64, difference: F64) -> Differences:
    """The lowest point of each short time: all others are above the hull anyway."""
    bins = np.minimum((at_s - at_s.min()) / np.ptp(at_s) * _HULL_BINS, _HULL_BINS - 1).astype(int)
    order = np.lexsort((difference, bins))
    first = np.r_[True, np.diff(bins[order]) > 0]
    chosen = order[first]
    chosen = chosen[np.argsort(at_s[chosen], kind="stable")]
    return at_s[chosen], difference[chosen]


def lower_hull(x: F64, y: F64) -> list[tuple[float, float]]:
    """Lower convex hull of points with ascending x (A. M. Andrew, 1979)."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) >= 2:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (x1 - x0) * (point[1] - y0) > (y1 - y0) * (point[0] - x0):
                break
            hull.pop()
        hull.append(point)
    return hull
