"""What aircraft do that cannot hover: circles and racetracks."""

import math
from dataclasses import dataclass

import numpy as np

from mobility.trajectory import Legs, Trajectory, Vector, vector


@dataclass(frozen=True)
class Orbit(Trajectory):
    """Level flight on a circle.

    Parameters
    ----------
    centre_m : Vector
        East, north and up in metres; up is the altitude of the flight.
    radius_m : float
        Radius of the circle.
    speed_mps : float
        Speed along it.
    bearing_deg : float
        Where on the circle it begins, seen from the centre: 0 is north, 90 is east.
    clockwise : bool
        Sense of rotation, seen from above.

    Raises
    ------
    ValueError
        If the centre is no point, or radius or speed are not above 0.
    """

    centre_m: Vector
    radius_m: float
    speed_mps: float
    bearing_deg: float = 0.0
    clockwise: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre_m", vector("centre_m", self.centre_m))
        _check_above_zero("radius_m", self.radius_m)
        _check_above_zero("speed_mps", self.speed_mps)
        _check_bearing("bearing_deg", self.bearing_deg)

    def legs(self, until_s: float) -> Legs:
        rate_radps = self.speed_mps / self.radius_m
        return Legs(
            np.zeros(1),
            np.array([self.centre_m]),
            np.zeros((1, 3)),
            np.array([[self.radius_m]]),
            np.array([[-rate_radps if self.clockwise else rate_radps]]),
            np.array([[math.radians(90.0 - self.bearing_deg)]]),
        )


@dataclass(frozen=True)
class Racetrack(Trajectory):
    """Level flight along two parallel lines that are joined by half circles.

    It begins at the start of one line, on the heading given; the other line is on the side it
    turns to.

    Parameters
    ----------
    start_m : Vector
        Where the first line begins: east, north and up in metres.
    heading_deg : float
        Course along the first line: 0 is north, 90 is east.
    length_m : float
        Length of the lines.
    radius_m : float
        Radius of the turns; the lines are twice that apart.
    speed_mps : float
        Speed.
    clockwise : bool
        Sense of rotation, seen from above.

    Raises
    ------
    ValueError
        If the start is no point, or length, radius or speed are not above 0.
    """

    start_m: Vector
    heading_deg: float
    length_m: float
    radius_m: float
    speed_mps: float
    clockwise: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "start_m", vector("start_m", self.start_m))
        for name in ("length_m", "radius_m", "speed_mps"):
            _check_above_zero(name, getattr(self, name))
        _check_bearing("heading_deg", self.heading_deg)

    @property
    def lap_s(self) -> float:
        """Time once around, in seconds."""
        return 2.0 * (self.length_m + math.pi * self.radius_m) / self.speed_mps

    def legs(self, until_s: float) -> Legs:
        side = -1.0 if self.clockwise else 1.0
        course = math.radians(90.0 - self.heading_deg)
        along = np.array([math.cos(course), math.sin(course), 0.0])
        across = side * np.array([-math.sin(course), math.cos(course), 0.0])
        first = np.array(self.start_m)
        second = first + along * self.length_m + across * (2.0 * self.radius_m)
        line_s = self.length_m / self.speed_mps
        turn_s = math.pi * self.radius_m / self.speed_mps
        # One lap: line, half circle about its far end, line back, half circle to the start.
        centre = across * self.radius_m
        places = np.array([first, first + along * self.length_m + centre, second, first + centre])
        speeds = np.array([along, np.zeros(3), -along, np.zeros(3)]) * self.speed_mps
        phase = course - side * math.pi / 2.0
        laps = int(max(until_s, 0.0) // self.lap_s) + 1
        within = np.array([0.0, line_s, line_s + turn_s, 2.0 * line_s + turn_s])
        return Legs(
            (np.arange(laps)[:, None] * self.lap_s + within).ravel(),
            np.tile(places, (laps, 1)),
            np.tile(speeds, (laps, 1)),
            np.tile([[0.0], [self.radius_m], [0.0], [self.radius_m]], (laps, 1)),
            np.full((4 * laps, 1), side * self.speed_mps / self.radius_m),
            np.tile([[0.0], [phase], [0.0], [phase + side * math.pi]], (laps, 1)),
        ).begun_by(until_s)


def _check_above_zero(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, not {value!r}")


def _check_bearing(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number of degrees, not {value!r}")
