"""Quantities that change in steps, such as a rate over time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mobility.trajectory import Array, times_s


@dataclass(frozen=True, eq=False)
class Steps:
    """A quantity that keeps a value until the next time.

    Parameters
    ----------
    times_s : numpy.ndarray
        Shape (k,), increasing: when each value begins to hold.
    values : numpy.ndarray
        Shape (k,): the values; the last one has no end, the first also held before.

    Raises
    ------
    ValueError
        If there are no times, they do not increase, or shapes differ.
    """

    times_s: Array
    values: Array

    def __post_init__(self) -> None:
        times = np.asarray(self.times_s, dtype=np.float64)
        values = np.asarray(self.values, dtype=np.float64)
        if times.ndim != 1 or not times.size or times.shape != values.shape:
            raise ValueError(
                "steps must be a row of times and as many values, not shapes "
                f"{times.shape} and {values.shape}"
            )
        if not (np.diff(times) > 0.0).all() or not np.isfinite(times).all():
            raise ValueError("times of steps must be finite and increase")
        object.__setattr__(self, "times_s", times)
        object.__setattr__(self, "values", values)

    def at(self, t_s: ArrayLike) -> Array:
        """Return the values that hold at n given times."""
        step = np.searchsorted(self.times_s, times_s(t_s), side="right") - 1
        return self.values[np.maximum(step, 0)]

    def changes(self) -> "Steps":
        """Return the same quantity without times at which it stays what it is."""
        new = np.append(True, self.values[1:] != self.values[:-1])
        return Steps(self.times_s[new], self.values[new])

    def mean(self, from_s: float, until_s: float) -> float:
        """Return the mean over an interval of time."""
        edges = np.concatenate([[from_s], self.times_s, [until_s]])
        edges = np.unique(np.clip(edges, from_s, until_s))
        return float(np.sum(self.at(edges[:-1]) * np.diff(edges)) / (until_s - from_s))
