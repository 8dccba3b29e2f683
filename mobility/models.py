"""Random motion: walks, waypoints, drifts and groups, each the same for the same seed anywhere.

T. Camp, J. Boleng and V. Davies, "A survey of mobility models for ad hoc network research",
Wireless Communications and Mobile Computing 2(5), 2002, describes them all. Every model returns a
`Path` (or a sum of paths), computed at once for the length of a run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mobility.draws import Draws
from mobility.trajectory import Fixed, Path, Trajectory, Vector

Boundary = Literal["reflect", "wrap"]
"""What happens at the edge of an area: reflect as light, or come in again on the other side."""

Span = tuple[float, float]
"""Least and greatest value; both the same for a constant."""

_MOST_WAYPOINTS = 2_000_000


@dataclass(frozen=True)
class Area:
    """A rectangle to move in.

    Parameters
    ----------
    west_m, south_m, east_m, north_m : float
        Its edges, in metres.

    Raises
    ------
    ValueError
        If it is empty or not finite.
    """

    west_m: float
    south_m: float
    east_m: float
    north_m: float

    def __post_init__(self) -> None:
        edges = (self.west_m, self.south_m, self.east_m, self.north_m)
        if not all(math.isfinite(edge) for edge in edges) or not (
            self.west_m < self.east_m and self.south_m < self.north_m
        ):
            raise ValueError(
                "an area must have its west edge west of its east edge and its south edge south "
                f"of its north edge, not west, south, east, north = {edges!r} m"
            )

    @classmethod
    def square(cls, side_m: float, centre_m: tuple[float, float] = (0.0, 0.0)) -> "Area":
        """Return a square about a point, the origin unless another is given."""
        east, north = centre_m
        half = side_m / 2.0
        return cls(east - half, north - half, east + half, north + half)

    @property
    def shortest_side_m(self) -> float:
        """The shorter of width and height, in metres."""
        return min(self.east_m - self.west_m, self.north_m - self.south_m)

    def contains(self, east_m: float, north_m: float) -> bool:
        """Return whether a point is in the area, edges included."""
        return self.west_m <= east_m <= self.east_m and self.south_m <= north_m <= self.north_m

    def draw(self, draws: Draws) -> tuple[float, float]:
        """Return a point of the area, evenly spread."""
        return (
            min(draws.between(self.west_m, self.east_m), self.east_m),
            min(draws.between(self.south_m, self.north_m), self.north_m),
        )


def random_walk(
    area: Area,
    *,
    speed_mps: Span,
    leg_s: Span,
    duration_s: float,
    seed: int,
    stream: int = 0,
    start_m: tuple[float, float] | None = None,
    altitude_m: float = 0.0,
    boundary: Boundary = "reflect",
) -> Path:
    """Return a walk of straight legs, each in a direction, at a speed and for a time of its own.

    Parameters
    ----------
    area : Area
        Where it happens.
    speed_mps : tuple of float
        Least and greatest speed; each leg's is drawn evenly between.
    leg_s : tuple of float
        Shortest and longest leg, drawn evenly between.
    duration_s : float
        When the walk ends; the node stays there.
    seed, stream : int
        The walk of one seed and stream is always the same; nodes take streams 0, 1, 2, ….
    start_m : tuple of float, optional
        East and north of the start; drawn evenly in the area if not given.
    altitude_m : float
        Height, which does not change.
    boundary : {"reflect", "wrap"}
        What happens at the edge.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If a span or the duration is impossible, or the start is outside the area.
    """
    _check_span("speed_mps", speed_mps)
    _check_span("leg_s", leg_s, above_zero=True)
    _check_duration(duration_s)
    _check_effort(duration_s / leg_s[0] + 2.0 * speed_mps[1] * duration_s / area.shortest_side_m)
    draws = Draws(seed, stream)
    walk = _Walk(area, _start(area, start_m, draws), altitude_m, boundary)
    while walk.time_s < duration_s:
        east, north = draws.direction()
        speed = draws.between(*speed_mps)
        until_s = min(walk.time_s + draws.between(*leg_s), duration_s)
        walk.go((east * speed, north * speed), until_s)
    return walk.path()


def random_waypoint(
    area: Area,
    *,
    speed_mps: Span,
    pause_s: Span = (0.0, 0.0),
    duration_s: float,
    seed: int,
    stream: int = 0,
    start_m: tuple[float, float] | None = None,
    altitude_m: float = 0.0,
    warm_up_s: float = 0.0,
) -> Path:
    """Return straight trips to points drawn evenly in the area, with a pause at each.

    Parameters
    ----------
    area, duration_s, seed, stream, start_m, altitude_m
        As for `random_walk`.
    speed_mps : tuple of float
        Least and greatest speed of a trip, above 0: with a least speed of 0 the mean speed sinks
        for ever (J. Yoon, M. Liu and B. Noble, "Random waypoint considered harmful", INFOCOM
        2003).
    pause_s : tuple of float
        Shortest and longest pause.
    warm_up_s : float
        How long it has been going on at run time 0. The model starts with nodes spread evenly
        and ends with most of them in the middle (W. Navidi and T. Camp, "Stationary distributions
        for the random waypoint mobility model", IEEE Trans. Mobile Computing 3(1), 2004); a few
        crossings of the area make the start like the rest.

    Returns
    -------
    Path
        Its first waypoint is at ``-warm_up_s``.

    Raises
    ------
    ValueError
        If a span or a duration is impossible, or the start is outside the area.
    """
    _check_span("speed_mps", speed_mps, above_zero=True)
    _check_span("pause_s", pause_s)
    _check_duration(duration_s)
    if not 0.0 <= warm_up_s < math.inf:
        raise ValueError(f"warm_up_s must be 0 or more, not {warm_up_s!r}")
    _check_effort(10.0 * speed_mps[1] * (duration_s + warm_up_s) / area.shortest_side_m)
    draws = Draws(seed, stream)
    walk = _Walk(area, _start(area, start_m, draws), altitude_m, "reflect", -warm_up_s)
    while walk.time_s < duration_s:
        walk.head_for(area.draw(draws), draws.between(*speed_mps), duration_s)
        walk.wait(draws.between(*pause_s), duration_s)
    return walk.path()


def gauss_markov(
    area: Area,
    *,
    mean_velocity_mps: tuple[float, float] = (0.0, 0.0),
    deviation_mps: float,
    memory: float,
    step_s: float,
    top_speed_mps: float,
    duration_s: float,
    seed: int,
    stream: int = 0,
    start_m: tuple[float, float] | None = None,
    altitude_m: float = 0.0,
) -> Path:
    """Return a drift whose velocity changes a little at every step (Gauss-Markov).

    Each component of the velocity follows B. Liang and Z. J. Haas, "Predictive distance-based
    mobility management for PCS networks", INFOCOM 1999:

        v[n] = α v[n-1] + (1 - α) μ + σ √(1 - α²) w[n-1],   w normal

    A velocity above the limit is scaled back to it. At an edge of the area the node is reflected,
    and so is its mean velocity.

    Parameters
    ----------
    area, duration_s, seed, stream, start_m, altitude_m
        As for `random_walk`.
    mean_velocity_mps : tuple of float
        μ, east and north.
    deviation_mps : float
        σ of each component.
    memory : float
        α, from 0 (every step anew) to 1 (a straight line).
    step_s : float
        Time between changes.
    top_speed_mps : float
        Speed limit.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If a parameter is impossible, or the start is outside the area.
    """
    if not 0.0 <= memory <= 1.0:
        raise ValueError(f"memory must be from 0 to 1, not {memory!r}")
    if not 0.0 <= deviation_mps < math.inf:
        raise ValueError(f"deviation_mps must be 0 or more, not {deviation_mps!r}")
    for name, value in (("step_s", step_s), ("top_speed_mps", top_speed_mps)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be above 0, not {value!r}")
    _check_duration(duration_s)
    _check_effort(duration_s / step_s + 2.0 * top_speed_mps * duration_s / area.shortest_side_m)
    draws = Draws(seed, stream)
    walk = _Walk(area, _start(area, start_m, draws), altitude_m, "reflect")
    spread = deviation_mps * math.sqrt(1.0 - memory * memory)
    mean = mean_velocity_mps
    velocity = (
        mean[0] + deviation_mps * draws.normal(),
        mean[1] + deviation_mps * draws.normal(),
    )
    step = 0
    while walk.time_s < duration_s:
        step += 1
        velocity = _limited(velocity, top_speed_mps)
        bounced = walk.go(velocity, min(step * step_s, duration_s))
        velocity = (velocity[0] * bounced[0], velocity[1] * bounced[1])
        mean = (mean[0] * bounced[0], mean[1] * bounced[1])
        velocity = (
            memory * velocity[0] + (1.0 - memory) * mean[0] + spread * draws.normal(),
            memory * velocity[1] + (1.0 - memory) * mean[1] + spread * draws.normal(),
        )
    return walk.path()


def station_keeping(
    guide: Trajectory,
    station_m: Vector,
    *,
    within_m: float,
    speed_mps: Span,
    duration_s: float,
    seed: int,
    stream: int = 0,
) -> Trajectory:
    """Return a ship that keeps its station on a guide, give or take.

    It wanders between points drawn evenly in a circle about the station, which moves with the
    guide. Directions are those of the compass: when the guide turns, the formation does not.

    Parameters
    ----------
    guide : Trajectory
        What the station moves with; a `Fixed` one for a ship that holds a place.
    station_m : Vector
        East, north and up from the guide to the station, in metres.
    within_m : float
        Radius of the circle it stays in.
    speed_mps : tuple of float
        Least and greatest speed relative to the guide, above 0.
    duration_s, seed, stream
        As for `random_walk`.

    Raises
    ------
    ValueError
        If a parameter is impossible.
    """
    _check_span("speed_mps", speed_mps, above_zero=True)
    _check_duration(duration_s)
    if not 0.0 <= within_m < math.inf:
        raise ValueError(f"within_m must be 0 or more, not {within_m!r}")
    place = guide + Fixed(station_m)
    if within_m == 0.0:
        return place
    _check_effort(10.0 * speed_mps[1] * duration_s / within_m)
    draws = Draws(seed, stream)

    def somewhere() -> tuple[float, float]:
        east, north = draws.disc()
        return east * within_m, north * within_m

    circle = Area.square(2.0 * within_m)
    walk = _Walk(circle, somewhere(), 0.0, "reflect")
    while walk.time_s < duration_s:
        walk.head_for(somewhere(), draws.between(*speed_mps), duration_s)
    return place + walk.path()


def reference_point_group(
    centre: Trajectory,
    stations_m: Sequence[Vector],
    *,
    within_m: float,
    speed_mps: Span,
    duration_s: float,
    seed: int,
    top_speed_mps: float = math.inf,
) -> tuple[Trajectory, ...]:
    """Return the members of a group: a convoy with its screen.

    X. Hong, M. Gerla, G. Pei and C.-C. Chiang, "A group mobility model for ad hoc wireless
    networks", MSWiM 1999: a member's place is that of the group's centre, plus its reference
    point, plus a motion of its own within a circle about it.

    Parameters
    ----------
    centre : Trajectory
        Motion of the group; any model.
    stations_m : sequence of Vector
        Reference point of each member: east, north and up from the centre, in metres.
    within_m : float
        Radius of the circle about its reference point that a member stays in.
    speed_mps : tuple of float
        Least and greatest speed relative to the group.
    duration_s, seed
        As for `random_walk`; member `i` takes stream `i`.
    top_speed_mps : float
        What a member can do; the group must leave it as much as `speed_mps` needs.

    Raises
    ------
    ValueError
        If a parameter is impossible, or a member would have to exceed its top speed.
    """
    needed = centre.top_speed_mps(duration_s) + speed_mps[1]
    if needed > top_speed_mps:
        raise ValueError(
            f"a member may need {needed:g} m/s to keep up with its group, which is more than its "
            f"top speed of {top_speed_mps:g} m/s"
        )
    return tuple(
        station_keeping(
            centre,
            station,
            within_m=within_m,
            speed_mps=speed_mps,
            duration_s=duration_s,
            seed=seed,
            stream=number,
        )
        for number, station in enumerate(stations_m)
    )


class _Walk:
    """Waypoints as they come, inside an area."""

    def __init__(
        self,
        area: Area,
        start_m: tuple[float, float],
        altitude_m: float,
        boundary: Boundary,
        start_s: float = 0.0,
    ) -> None:
        if boundary not in ("reflect", "wrap"):
            raise ValueError(f"boundary must be 'reflect' or 'wrap', not {boundary!r}")
        self.time_s = start_s
        self._area = area
        self._wraps = boundary == "wrap"
        self._place = start_m
        self._altitude_m = altitude_m
        self._times = [start_s]
        self._places = [(*start_m, altitude_m)]

    def go(self, velocity_mps: tuple[float, float], until_s: float) -> tuple[float, float]:
        """Hold a velocity until a time, seen to the edges; the signs it has changed by."""
        area = self._area
        (x, y), (vx, vy) = self._place, velocity_mps
        sign_x = sign_y = 1.0
        while True:
            wall_x = area.east_m if vx > 0.0 else area.west_m
            wall_y = area.north_m if vy > 0.0 else area.south_m
            to_x = (wall_x - x) / vx if vx else math.inf
            to_y = (wall_y - y) / vy if vy else math.inf
            takes = min(to_x, to_y)
            if self.time_s + takes >= until_s:
                break
            at_x, at_y = to_x <= to_y, to_y <= to_x
            x = wall_x if at_x else self._held(x + vx * takes, area.west_m, area.east_m)
            y = wall_y if at_y else self._held(y + vy * takes, area.south_m, area.north_m)
            self._note(self.time_s + takes, x, y)
            if self._wraps:
                if at_x:
                    x = area.west_m if vx > 0.0 else area.east_m
                if at_y:
                    y = area.south_m if vy > 0.0 else area.north_m
                self._note(self.time_s, x, y)
            else:
                vx, sign_x = (-vx, -sign_x) if at_x else (vx, sign_x)
                vy, sign_y = (-vy, -sign_y) if at_y else (vy, sign_y)
        takes = until_s - self.time_s
        x = self._held(x + vx * takes, area.west_m, area.east_m)
        y = self._held(y + vy * takes, area.south_m, area.north_m)
        self._note(until_s, x, y)
        return sign_x, sign_y

    def head_for(self, goal_m: tuple[float, float], speed_mps: float, limit_s: float) -> None:
        """Go straight to a place, or as far as a time limit allows."""
        (x, y), (goal_x, goal_y) = self._place, goal_m
        length = math.sqrt((goal_x - x) * (goal_x - x) + (goal_y - y) * (goal_y - y))
        takes = length / speed_mps
        if self.time_s + takes <= limit_s:
            self._note(self.time_s + takes, goal_x, goal_y)
        else:
            share = (limit_s - self.time_s) / takes
            self._note(limit_s, x + (goal_x - x) * share, y + (goal_y - y) * share)

    def wait(self, pause_s: float, limit_s: float) -> None:
        """Stay for a time, or until a time limit."""
        if pause_s > 0.0 and self.time_s < limit_s:
            self._note(min(self.time_s + pause_s, limit_s), *self._place)

    def path(self) -> Path:
        """Return the walk so far."""
        return Path(self._times, self._places)

    def _note(self, time_s: float, x: float, y: float) -> None:
        self.time_s = time_s
        self._place = (x, y)
        self._times.append(time_s)
        self._places.append((x, y, self._altitude_m))

    @staticmethod
    def _held(value: float, low: float, high: float) -> float:
        return min(max(value, low), high)


def _start(area: Area, start_m: tuple[float, float] | None, draws: Draws) -> tuple[float, float]:
    if start_m is None:
        return area.draw(draws)
    if not area.contains(*start_m):
        raise ValueError(f"start_m must be in the area, not {start_m!r}")
    return start_m


def _limited(velocity: tuple[float, float], top_speed_mps: float) -> tuple[float, float]:
    speed = math.sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1])
    if speed <= top_speed_mps:
        return velocity
    share = top_speed_mps / speed
    return velocity[0] * share, velocity[1] * share


def _check_span(name: str, span: Span, above_zero: bool = False) -> None:
    low, high = span
    if not 0.0 <= low <= high < math.inf or (above_zero and low == 0.0):
        least = "above 0" if above_zero else "0 or more"
        raise ValueError(
            f"{name} must be a least value, {least}, and a greatest, no less, not {span!r}"
        )


def _check_duration(duration_s: float) -> None:
    if not 0.0 < duration_s < math.inf:
        raise ValueError(f"duration_s must be above 0, not {duration_s!r}")


def _check_effort(waypoints: float) -> None:
    if waypoints > _MOST_WAYPOINTS:
        raise ValueError(
            f"about {waypoints:.0f} waypoints would be needed, and {_MOST_WAYPOINTS} are the most: "
            "make the time shorter, the legs longer or the area larger"
        )
