"""Range: whether moving nodes reach each other, and exactly when that changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mobility.contacts import within_range
from mobility.trajectory import Array, Trajectory, joined


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


class Contact(NamedTuple):
    """A time during which a node is within range of an access point.

    Attributes
    ----------
    start_s, end_s : float
        From when to when, in seconds of run time; cut at the ends of the interval asked about.
    node, access_point : int
        Numbers of the two in the sequences given.
    """

    start_s: float
    end_s: float
    node: int
    access_point: int


@dataclass(frozen=True, eq=False)
class Contacts:
    """All contacts of some nodes with some access points, sorted by node, access point and time.

    Attributes
    ----------
    node, access_point : numpy.ndarray
        Shape (n,): numbers of the two.
    start_s, end_s : numpy.ndarray
        Shape (n,): from when to when, in seconds of run time.
    until_s : float
        End of the interval asked about; a contact that ends then may go on.
    """

    node: NDArray[np.intp]
    access_point: NDArray[np.intp]
    start_s: Array
    end_s: Array
    until_s: float

    def __len__(self) -> int:
        return self.node.size

    def in_order(self) -> list[Contact]:
        """Return the contacts by the time they begin."""
        order = np.lexsort((self.access_point, self.node, self.start_s))
        return [
            Contact(float(start), float(end), int(node), int(access_point))
            for start, end, node, access_point in zip(
                self.start_s[order],
                self.end_s[order],
                self.node[order],
                self.access_point[order],
                strict=True,
            )
        ]


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
    _ranges(range_m, 1)
    apart: NDArray[np.bool_] = distance_m(a, b, t_s) <= range_m
    return apart


def distance_m(a: Trajectory, b: Trajectory, t_s: ArrayLike) -> Array:
    """Return the slant distance of two nodes in metres at n given times."""
    apart = a.position(t_s) - b.position(t_s)
    distance: Array = np.sqrt(apart[:, 0] ** 2 + apart[:, 1] ** 2 + apart[:, 2] ** 2)
    return distance


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
    The times are solved for, not sampled (`mobility.contacts`): they are right to rounding
    (about 1e-9 s for distances of kilometres) whatever the speed.
    """
    contacts = contact_schedule([a], [b], range_m, until_s)
    crossings: list[Crossing] = []
    for start_s, end_s in zip(contacts.start_s.tolist(), contacts.end_s.tolist(), strict=True):
        crossings.append(Crossing(start_s, entering=True))
        if end_s < until_s:
            crossings.append(Crossing(end_s, entering=False))
    return tuple(crossings)


def contact_schedule(
    nodes: Sequence[Trajectory],
    access_points: Sequence[Trajectory],
    range_m: ArrayLike,
    until_s: float,
) -> Contacts:
    """Return every time during which a node is within range of an access point.

    Parameters
    ----------
    nodes, access_points : sequence of Trajectory
        The moving users, and what they come into range of, which may move as well.
    range_m : array_like
        Slant range in metres, one for all access points or one for each.
    until_s : float
        End of the interval of interest, which begins at run time 0.

    Returns
    -------
    Contacts
        To rounding, not to a time step.

    Raises
    ------
    ValueError
        If a range is negative or not a number, or there are neither one nor as many as access
        points.
    """
    ranges = _ranges(range_m, len(access_points))
    parts = []
    if access_points and until_s > 0.0:
        each = [access_point.legs(until_s) for access_point in access_points]
        others = joined(each)
        counts = np.array([len(legs) for legs in each], dtype=np.intp)
        parts = [
            within_range(node.legs(until_s), others, counts, ranges, until_s) for node in nodes
        ]
    return Contacts(
        np.repeat(np.arange(len(parts)), [part.pair.size for part in parts]),
        np.concatenate([part.pair for part in parts]) if parts else np.zeros(0, dtype=np.intp),
        np.concatenate([part.start_s for part in parts]) if parts else np.zeros(0),
        np.concatenate([part.end_s for part in parts]) if parts else np.zeros(0),
        until_s,
    )


def _ranges(range_m: ArrayLike, count: int) -> Array:
    ranges = np.asarray(range_m, dtype=np.float64)
    if not (ranges >= 0.0).all():
        raise ValueError(f"range_m must be a distance in metres, 0 or more, not {range_m!r}")
    if ranges.ndim and ranges.shape != (count,):
        raise ValueError(
            f"range_m must be one distance or one for each of {count} access points, "
            f"not shape {ranges.shape}"
        )
    return np.broadcast_to(ranges, (count,))
