"""Positions of many nodes at many times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mobility.trajectory import Array, Legs, Trajectory, times_s

_CHUNK_BYTES = 32 << 20


@dataclass(frozen=True)
class Fleet:
    """Nodes that are asked together.

    Parameters
    ----------
    trajectories : sequence of Trajectory
        The nodes; results are in their order.

    Examples
    --------
    >>> from mobility import Fixed, Straight
    >>> fleet = Fleet([Fixed((0.0, 0.0, 0.0)), Straight((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))])
    >>> fleet.positions([0.0, 5.0])[:, :, 0].tolist()
    [[0.0, 0.0], [0.0, 5.0]]
    """

    trajectories: Sequence[Trajectory]

    def positions(self, t_s: ArrayLike) -> Array:
        """Return all positions at once.

        Parameters
        ----------
        t_s : array_like
            n times in seconds of run time, in any order.

        Returns
        -------
        numpy.ndarray
            Shape (nodes, n, 3): east, north and up in metres, the same to the last bit as those of
            each `Trajectory.position`, if nothing circles. It takes 24 bytes for each node and
            time; `in_chunks` takes as little as there is.
        """
        times = times_s(t_s)
        out = np.empty((len(self.trajectories), 3, times.size))
        self._fill(out, 0, times)
        return out.transpose(0, 2, 1)

    def in_chunks(
        self, t_s: ArrayLike, most_bytes: int = _CHUNK_BYTES
    ) -> Iterator[tuple[slice, Array]]:
        """Yield positions of some nodes after the other, in bounded memory.

        Parameters
        ----------
        t_s : array_like
            n times in seconds of run time.
        most_bytes : int
            Size of a chunk, unless a single node needs more.

        Yields
        ------
        nodes : slice
            Which nodes.
        positions : numpy.ndarray
            Shape (nodes, n, 3). The memory is used again for the next chunk: take a copy of what
            shall last.
        """
        times = times_s(t_s)
        count = max(min(most_bytes // max(24 * times.size, 1), len(self.trajectories)), 1)
        out = np.empty((count, 3, times.size))
        for first in range(0, len(self.trajectories), count):
            nodes = slice(first, min(first + count, len(self.trajectories)))
            chunk = out[: nodes.stop - first]
            self._fill(chunk, first, times)
            yield nodes, chunk.transpose(0, 2, 1)

    def _fill(self, out: Array, first: int, times: Array) -> None:
        order = None if (np.diff(times) >= 0.0).all() else np.argsort(times, kind="stable")
        in_order = times if order is None else times[order]
        latest_s = float(in_order[-1]) if in_order.size else 0.0
        for row, place in enumerate(out):
            legs = self.trajectories[first + row].legs(latest_s)
            if order is None:
                _evaluate(legs, in_order, place)
            else:
                sorted_place = np.empty_like(place)
                _evaluate(legs, in_order, sorted_place)
                place[:, order] = sorted_place


def _evaluate(legs: Legs, times: Array, out: Array) -> None:
    """Write positions at increasing times into rows east, north and up."""
    if legs.radius_m.shape[1]:
        out[:] = legs.position(times).T
        return
    if len(legs) == 1:
        elapsed_s = times - legs.start_s[0]
        for axis in range(3):
            np.multiply(elapsed_s, legs.velocity_mps[0, axis], out=out[axis])
            out[axis] += legs.position_m[0, axis]
        return
    # Which leg holds when, as how many times fall into each: repeating is quicker than looking up.
    bounds = np.searchsorted(times, legs.start_s[1:], side="left")
    counts = np.diff(np.concatenate([[0], bounds, [times.size]]))
    elapsed_s = times - np.repeat(legs.start_s, counts)
    for axis in range(3):
        speeds = legs.velocity_mps[:, axis]
        places = legs.position_m[:, axis]
        if speeds.any():
            np.multiply(elapsed_s, np.repeat(speeds, counts), out=out[axis])
            out[axis] += np.repeat(places, counts)
        else:
            out[axis] = places[0] if (places == places[0]).all() else np.repeat(places, counts)
