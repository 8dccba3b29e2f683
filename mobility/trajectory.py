"""Trajectories: position as a function of time, and ways to put them together."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = tuple[float, float, float]
"""East, north and up, in metres or metres per second."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Legs:
    """Motion in pieces, each a straight line with any number of circles added to it.

    During leg `i`, with τ the time since `start_s[i]` and a sum over the circles `j`,

        east  = position_m[i, 0] + velocity_mps[i, 0] τ + Σ radius_m[i, j] cos φ
        north = position_m[i, 1] + velocity_mps[i, 1] τ + Σ radius_m[i, j] sin φ
        up    = position_m[i, 2] + velocity_mps[i, 2] τ
        φ     = phase_rad[i, j] + rate_radps[i, j] τ

    The form is closed under addition, so a UAV that circles over a ship that zigzags is one of
    these as well. Without circles only ``+ - * /`` are used, which gives the same bits everywhere.

    Attributes
    ----------
    start_s : numpy.ndarray
        Shape (k,), not decreasing: when each leg begins; the last one has no end. The first
        begins at run time 0 or before.
    position_m, velocity_mps : numpy.ndarray
        Shape (k, 3): the straight line.
    radius_m, rate_radps, phase_rad : numpy.ndarray
        Shape (k, m): the circles, m of them, of radius 0 where a leg has fewer.
    """

    start_s: Array
    position_m: Array
    velocity_mps: Array
    radius_m: Array
    rate_radps: Array
    phase_rad: Array

    @classmethod
    def straight(cls, start_s: ArrayLike, position_m: ArrayLike, velocity_mps: ArrayLike) -> Self:
        """Return legs without circles."""
        starts = np.asarray(start_s, dtype=np.float64)
        none = np.zeros((starts.size, 0))
        return cls(
            starts,
            np.asarray(position_m, dtype=np.float64).reshape(-1, 3),
            np.asarray(velocity_mps, dtype=np.float64).reshape(-1, 3),
            none,
            none,
            none,
        )

    def __len__(self) -> int:
        return self.start_s.size

    def number(self, t_s: Array) -> NDArray[np.intp]:
        """Return which leg holds at each of the given times."""
        return np.maximum(np.searchsorted(self.start_s, t_s, side="right") - 1, 0)

    def position(self, t_s: Array) -> Array:
        """Return positions in metres, shape (n, 3), at n times."""
        leg = self.number(t_s)
        elapsed_s = t_s - self.start_s[leg]
        place = self.position_m[leg] + self.velocity_mps[leg] * elapsed_s[:, None]
        for circle in range(self.radius_m.shape[1]):
            angle = self.phase_rad[leg, circle] + self.rate_radps[leg, circle] * elapsed_s
            place[:, 0] += self.radius_m[leg, circle] * np.cos(angle)
            place[:, 1] += self.radius_m[leg, circle] * np.sin(angle)
        return place

    def velocity(self, t_s: Array) -> Array:
        """Return velocities in metres per second, shape (n, 3), at n times."""
        leg = self.number(t_s)
        elapsed_s = t_s - self.start_s[leg]
        speed = self.velocity_mps[leg]
        for circle in range(self.radius_m.shape[1]):
            rate = self.rate_radps[leg, circle]
            angle = self.phase_rad[leg, circle] + rate * elapsed_s
            speed[:, 0] -= self.radius_m[leg, circle] * rate * np.sin(angle)
            speed[:, 1] += self.radius_m[leg, circle] * rate * np.cos(angle)
        return speed

    def begun_by(self, until_s: float) -> Self:
        """Return the legs that begin by a time; at least the first."""
        count = max(int(np.searchsorted(self.start_s, until_s, side="right")), 1)
        return self._rows(slice(0, count), 0.0)

    def restarted(self, start_s: Array) -> Self:
        """Return the same motion cut at other times, which must not miss where a leg begins."""
        leg = self.number(start_s)
        return self._rows(leg, start_s - self.start_s[leg])

    def shifted(self, by_s: float) -> Self:
        """Return the same motion later."""
        return type(self)(
            self.start_s + by_s,
            self.position_m,
            self.velocity_mps,
            self.radius_m,
            self.rate_radps,
            self.phase_rad,
        )

    def plus(self, other: Self) -> Self:
        """Return the sum of two motions."""
        starts = np.union1d(self.start_s, other.start_s)
        # Both hold from their first leg on; before it there is nothing to add.
        starts = starts[starts >= max(self.start_s[0], other.start_s[0])]
        a, b = self.restarted(starts), other.restarted(starts)
        return type(self)(
            starts,
            a.position_m + b.position_m,
            a.velocity_mps + b.velocity_mps,
            np.hstack([a.radius_m, b.radius_m]),
            np.hstack([a.rate_radps, b.rate_radps]),
            np.hstack([a.phase_rad, b.phase_rad]),
        )

    def _rows(self, rows: slice | NDArray[np.intp], elapsed_s: float | Array) -> Self:
        late = np.reshape(elapsed_s, (-1, 1))
        return type(self)(
            self.start_s[rows] + elapsed_s,
            self.position_m[rows] + self.velocity_mps[rows] * late,
            self.velocity_mps[rows],
            self.radius_m[rows],
            self.rate_radps[rows],
            self.phase_rad[rows] + self.rate_radps[rows] * late,
        )


class Trajectory(ABC):
    """The motion of one node, from run time 0 on.

    A model describes itself as `Legs`. That keeps questions such as "when does it come into
    range" exact: they are equations about each pair of legs. Trajectories add up: a convoy's
    course and a ship's place in it, a ship and the UAV that circles over it.

    >>> from mobility import Fixed, Orbit, Straight
    >>> uav = Straight((0.0, 0.0, 300.0), (8.0, 0.0, 0.0)) + Orbit((0.0, 0.0, 0.0), 500.0, 25.0)
    >>> uav.position(0.0).round(6).tolist()
    [[0.0, 500.0, 300.0]]
    """

    @abstractmethod
    def legs(self, until_s: float) -> Legs:
        """Return the legs that begin by `until_s`, in order of time, the first at 0 s or before."""

    def position(self, t_s: ArrayLike) -> Array:
        """Return positions at the given times.

        Parameters
        ----------
        t_s : array_like
            Times in seconds of run time, a number or a sequence of n of them.

        Returns
        -------
        numpy.ndarray
            Shape (n, 3): east, north and up in metres; (1, 3) for a single number.

        Raises
        ------
        ValueError
            If the times are no row of finite numbers.
        """
        times = times_s(t_s)
        return self.legs(_latest(times)).position(times)

    def velocity(self, t_s: ArrayLike) -> Array:
        """Return velocities at the given times: shape (n, 3), metres per second.

        Where one leg ends and the next begins, it is the next one's.

        Raises
        ------
        ValueError
            If the times are no row of finite numbers.
        """
        times = times_s(t_s)
        return self.legs(_latest(times)).velocity(times)

    def top_speed_mps(self, until_s: float) -> float:
        """Return a speed that is not exceeded before `until_s`; reached where nothing circles."""
        legs = self.legs(until_s)
        line = np.sqrt(np.sum(legs.velocity_mps**2, axis=1))
        return float(np.max(line + np.sum(np.abs(legs.radius_m * legs.rate_radps), axis=1)))

    def __add__(self, other: "Trajectory") -> "Trajectory":
        if not isinstance(other, Trajectory):
            return NotImplemented
        return Together(self, other)


@dataclass(frozen=True)
class Fixed(Trajectory):
    """A node that does not move: a base station, a UAV that hovers.

    Parameters
    ----------
    position_m : Vector
        East, north and up in metres.

    Raises
    ------
    ValueError
        If the position is not three finite numbers.
    """

    position_m: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "position_m", vector("position_m", self.position_m))

    def legs(self, until_s: float) -> Legs:
        return Legs.straight([0.0], self.position_m, (0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Straight(Trajectory):
    """A node that holds its course and speed.

    Parameters
    ----------
    start_m : Vector
        Position at run time 0, in metres.
    velocity_mps : Vector
        Velocity in metres per second.

    Raises
    ------
    ValueError
        If the start or the velocity is not three finite numbers.
    """

    start_m: Vector
    velocity_mps: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "start_m", vector("start_m", self.start_m))
        object.__setattr__(self, "velocity_mps", vector("velocity_mps", self.velocity_mps))

    def legs(self, until_s: float) -> Legs:
        return Legs.straight([0.0], self.start_m, self.velocity_mps)


class Path(Trajectory):
    """A node that goes from waypoint to waypoint, in a straight line and at constant speed.

    Before the first waypoint it waits there, after the last it stays there. Two waypoints at the
    same time are a jump; at that instant the second holds.

    Parameters
    ----------
    times_s : array_like
        Shape (k,): when it is at each waypoint, in seconds of run time, not decreasing.
    positions_m : array_like
        Shape (k, 3): the waypoints, east, north and up in metres.

    Raises
    ------
    ValueError
        If there is no waypoint, a number is not finite, times decrease, or the shapes differ.

    Examples
    --------
    >>> Path([0.0, 10.0, 20.0], [(0, 0, 0), (100, 0, 0), (100, 50, 0)]).position(15.0).tolist()
    [[100.0, 25.0, 0.0]]
    """

    def __init__(self, times_s: ArrayLike, positions_m: ArrayLike) -> None:
        times = np.array(times_s, dtype=np.float64)
        places = np.array(positions_m, dtype=np.float64)
        if times.ndim != 1 or not times.size or places.shape != (times.size, 3):
            raise ValueError(
                "a path must have one row of times and as many waypoints of three coordinates, "
                f"not shapes {times.shape} and {places.shape}"
            )
        if not (np.isfinite(times).all() and np.isfinite(places).all()):
            raise ValueError("times and waypoints of a path must be finite numbers")
        takes_s = np.diff(times)
        if (takes_s < 0.0).any():
            late = int(np.argmax(takes_s < 0.0))
            raise ValueError(
                f"times of a path must not decrease, but {float(times[late + 1])!r} s follows "
                f"{float(times[late])!r} s"
            )
        moves = takes_s > 0.0
        with np.errstate(over="ignore"):
            speeds = np.diff(places, axis=0)[moves] / takes_s[moves, None]
        if not np.isfinite(speeds).all():
            raise ValueError("waypoints of a path are too far apart for the time between them")
        self.times_s = times
        self.positions_m = places
        starts = np.append(times[:-1][moves], times[-1])
        begins = np.vstack([places[:-1][moves], places[-1:]])
        speeds = np.vstack([speeds, np.zeros((1, 3))])
        if starts[0] > 0.0:
            starts = np.append(0.0, starts)
            begins = np.vstack([places[:1], begins])
            speeds = np.vstack([np.zeros((1, 3)), speeds])
        self._legs = Legs.straight(starts, begins, speeds)

    def legs(self, until_s: float) -> Legs:
        return self._legs.begun_by(until_s)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        return np.array_equal(self.times_s, other.times_s) and np.array_equal(
            self.positions_m, other.positions_m
        )

    def __hash__(self) -> int:
        return hash((self.times_s.tobytes(), self.positions_m.tobytes()))

    def __repr__(self) -> str:
        return (
            f"Path of {self.times_s.size} waypoints from {self.times_s[0]:g} s "
            f"to {self.times_s[-1]:g} s"
        )


@dataclass(frozen=True)
class Together(Trajectory):
    """The sum of two motions: a group's and its member's own. Written ``a + b``."""

    a: Trajectory
    b: Trajectory

    def legs(self, until_s: float) -> Legs:
        return self.a.legs(until_s).plus(self.b.legs(until_s))


@dataclass(frozen=True)
class Between(Trajectory):
    """A motion that starts late, stops early, or both.

    The node waits where the motion begins until `start_s`, then performs it from its time 0, and
    at `stop_s` stays where it is.

    Parameters
    ----------
    motion : Trajectory
        What it does in between.
    start_s, stop_s : float
        Seconds of run time; `stop_s` may be infinite.

    Raises
    ------
    ValueError
        If ``0 <= start_s <= stop_s`` does not hold.
    """

    motion: Trajectory
    start_s: float
    stop_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.start_s <= self.stop_s or math.isinf(self.start_s):
            raise ValueError(
                "a motion must start at 0 s or later and stop no earlier than it starts, "
                f"not start_s {self.start_s!r} and stop_s {self.stop_s!r}"
            )

    def legs(self, until_s: float) -> Legs:
        runs_s = max(min(until_s, self.stop_s) - self.start_s, 0.0)
        inner = self.motion.legs(runs_s)
        at = np.append(0.0, inner.start_s[(inner.start_s > 0.0) & (inner.start_s < runs_s)])
        moving = inner.restarted(at).shifted(self.start_s)
        ends = np.array([0.0, runs_s]) if runs_s > 0.0 else np.zeros(1)
        still = Legs.straight(ends, inner.position(ends), np.zeros((ends.size, 3)))
        parts = [moving] if runs_s > 0.0 else []
        if self.start_s > 0.0 or not parts:
            parts.insert(0, still._rows(slice(0, 1), 0.0))
        if math.isfinite(self.stop_s) and until_s >= self.stop_s and runs_s > 0.0:
            parts.append(still._rows(slice(1, 2), 0.0).shifted(self.start_s))
        return joined(parts)


def joined(parts: Sequence[Legs]) -> Legs:
    """Return legs one after the other, with as many circles in each as the most have."""
    circles = max(part.radius_m.shape[1] for part in parts)

    def wide(columns: Array) -> Array:
        return np.pad(columns, ((0, 0), (0, circles - columns.shape[1])))

    return Legs(
        np.concatenate([part.start_s for part in parts]),
        np.concatenate([part.position_m for part in parts]),
        np.concatenate([part.velocity_mps for part in parts]),
        np.concatenate([wide(part.radius_m) for part in parts]),
        np.concatenate([wide(part.rate_radps) for part in parts]),
        np.concatenate([wide(part.phase_rad) for part in parts]),
    )


def times_s(t_s: ArrayLike) -> Array:
    """Return times as a row, or raise ValueError if they are none."""
    times = np.atleast_1d(np.asarray(t_s, dtype=np.float64))
    if times.ndim != 1:
        raise ValueError(f"times must be a number or one row of numbers, not shape {times.shape}")
    if not np.isfinite(times).all():
        raise ValueError("times must be finite numbers of seconds")
    return times


def _latest(times: Array) -> float:
    return float(times.max()) if times.size else 0.0


def vector(name: str, value: Sequence[float]) -> Vector:
    """Return three finite numbers, or raise ValueError with the name of what they should be."""
    numbers = tuple(float(coordinate) for coordinate in value)
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{name} must be three finite numbers (east, north, up), not {value!r}")
    return numbers[0], numbers[1], numbers[2]
