"""Trajectories: position as a function of time."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = tuple[float, float, float]
"""East, north and up, in metres or metres per second."""


class Leg(NamedTuple):
    """Motion at constant velocity from an instant until the next leg begins.

    Attributes
    ----------
    start_s : float
        When the leg begins, in seconds of run time.
    position_m : Vector
        Position at `start_s`, in metres.
    velocity_mps : Vector
        Velocity during the leg, in metres per second.
    """

    start_s: float
    position_m: Vector
    velocity_mps: Vector


class Trajectory(ABC):
    """The motion of one node.

    A model describes itself as legs of constant velocity. That keeps questions such as "when
    does it come into range" exact: each pair of legs is one quadratic equation.
    """

    @abstractmethod
    def position(self, t_s: ArrayLike) -> NDArray[np.float64]:
        """Return positions at the given times.

        Parameters
        ----------
        t_s : array_like
            Times in seconds of run time, a number or a sequence of n of them.

        Returns
        -------
        numpy.ndarray
            Shape (n, 3): east, north and up in metres; (1, 3) for a single number.
        """

    @abstractmethod
    def legs(self, until_s: float) -> Sequence[Leg]:
        """Return the legs that begin before `until_s`, in order of time, the first at 0 s."""


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
        object.__setattr__(self, "position_m", _vector("position_m", self.position_m))

    def position(self, t_s: ArrayLike) -> NDArray[np.float64]:
        times = _times(t_s)
        return np.tile(np.array(self.position_m), (times.size, 1))

    def legs(self, until_s: float) -> Sequence[Leg]:
        return (Leg(0.0, self.position_m, (0.0, 0.0, 0.0)),)


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
        object.__setattr__(self, "start_m", _vector("start_m", self.start_m))
        object.__setattr__(self, "velocity_mps", _vector("velocity_mps", self.velocity_mps))

    def position(self, t_s: ArrayLike) -> NDArray[np.float64]:
        times = _times(t_s)
        return np.array(self.start_m) + np.outer(times, np.array(self.velocity_mps))

    def legs(self, until_s: float) -> Sequence[Leg]:
        return (Leg(0.0, self.start_m, self.velocity_mps),)


def _times(t_s: ArrayLike) -> NDArray[np.float64]:
    times = np.atleast_1d(np.asarray(t_s, dtype=np.float64))
    if times.ndim != 1:
        raise ValueError(f"times must be a number or one row of numbers, not shape {times.shape}")
    return times


def _vector(name: str, value: Sequence[float]) -> Vector:
    numbers = tuple(float(coordinate) for coordinate in value)
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{name} must be three finite numbers (east, north, up), not {value!r}")
    return numbers[0], numbers[1], numbers[2]
