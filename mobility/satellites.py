"""Satellites that move: orbits from two-line elements, passes, delay and handovers.

Orbits are propagated with SGP4; the turning of the earth comes from Skyfield, offline: its time
scale is made of files of the package. Importing this module takes a while; nothing that runs
inside the virtual machine does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sgp4.api import Satrec, SatrecArray
from sgp4.io import compute_checksum
from skyfield.api import load
from skyfield.sgp4lib import theta_GMST1982

from mobility.draws import Draws
from mobility.radio import SPEED_OF_LIGHT_MPS
from mobility.satcom import Site
from mobility.steps import Steps
from mobility.traces.record import TraceError, expected, lines
from mobility.trajectory import Array, times_s

_LOOK_S = 60.0
"""Time between looks for a pass. A satellite is above the horizon of a place for minutes, and its
elevation has one maximum in each revolution, which takes 85 minutes at least."""

_EXACT_S = 1e-6

_WGS72_GM = 398_600.8e9
_WGS72_RADIUS_M = 6_378_135.0
"""Of the gravity model that two-line elements are made with (F. Hoots, R. Roehrich, Spacetrack
Report #3, 1980)."""


class Pass(NamedTuple):
    """A time during which a satellite is above the elevation mask of a site.

    Attributes
    ----------
    start_s, end_s : float
        From when to when, in seconds of run time; cut at the ends of the interval asked about.
    top_s, top_deg : float
        When it is highest, and how high.
    """

    start_s: float
    end_s: float
    top_s: float
    top_deg: float


class Serving(NamedTuple):
    """A time during which a terminal uses one satellite.

    Attributes
    ----------
    start_s, end_s : float
        From when to when, in seconds of run time.
    satellite : str
        Its name.
    """

    start_s: float
    end_s: float
    satellite: str


@dataclass(frozen=True)
class Satellite:
    """A satellite in orbit.

    Parameters
    ----------
    name : str
        Its name.
    line1, line2 : str
        Two-line elements.
    epoch : datetime
        What run time 0 is; with a time zone.

    Raises
    ------
    ValueError
        If a line or its checksum is wrong, or the epoch has no time zone.
    """

    name: str
    line1: str
    line2: str
    epoch: datetime

    def __post_init__(self) -> None:
        for number, line in ((1, self.line1), (2, self.line2)):
            if (problem := _wrong(number, line)) is not None:
                raise ValueError(f"elements of {self.name}: expected {problem}, found {line!r}")
        if self.line1[2:7] != self.line2[2:7]:
            raise ValueError(
                f"elements of {self.name}: expected the same catalogue number in both lines, found "
                f"{self.line1[2:7]!r} and {self.line2[2:7]!r}"
            )
        if self.epoch.tzinfo is None:
            raise ValueError(f"the epoch must have a time zone, not {self.epoch!r}")

    @cached_property
    def _orbit(self) -> Satrec:
        return Satrec.twoline2rv(self.line1, self.line2)

    def earth_fixed_m(self, t_s: ArrayLike) -> Array:
        """Return where it is in the earth-fixed frame, metres, shape (n, 3), at n times.

        The frame of SGP4, whose x axis is the mean equinox of date, is turned by Greenwich mean
        sidereal time (D. Vallado et al., "Revisiting Spacetrack Report #3", AIAA 2006-6753);
        polar motion, some 10 m, is left out, as Skyfield does.

        Raises
        ------
        ValueError
            If the orbit has no place then: it has decayed, or the elements are too old.
        """
        places: Array = _earth_fixed_m([self], t_s)[0]
        return places

    def look(self, site: Site, t_s: ArrayLike) -> tuple[Array, Array]:
        """Return elevation in degrees and slant range in metres from a site at n times."""
        away = self.earth_fixed_m(t_s) - np.array(site.earth_fixed_m())
        distance = np.sqrt(np.sum(away * away, axis=1))
        up = away @ site.axes()[2]
        return np.degrees(np.arcsin(up / distance)), distance

    def passes(self, site: Site, until_s: float, mask_deg: float = 10.0) -> tuple[Pass, ...]:
        """Return when it is above an elevation mask, from run time 0 to `until_s`.

        Parameters
        ----------
        site : Site
            From where.
        until_s : float
            End of the interval of interest.
        mask_deg : float
            Elevation above which it can be used.

        Returns
        -------
        tuple of Pass
            In order; times are exact to a microsecond.

        Raises
        ------
        ValueError
            If the mask is beyond -90 to 90 degrees, or as `earth_fixed_m`.
        """
        if not -90.0 <= mask_deg <= 90.0:
            raise ValueError(f"mask_deg must be from -90 to 90, not {mask_deg!r}")
        if until_s <= 0.0:
            return ()

        def height(times: Array) -> Array:
            return self.look(site, times)[0] - mask_deg

        times = np.linspace(0.0, until_s, max(math.ceil(until_s / _LOOK_S), 2) + 1)
        heights = height(times)
        # Tops between looks, so that a pass that is shorter than a look is not missed.
        peaks = np.flatnonzero(
            (heights >= np.append(-np.inf, heights[:-1]))
            & (heights >= np.append(heights[1:], -np.inf))
        )
        tops = _tops(
            height, times[np.maximum(peaks - 1, 0)], times[np.minimum(peaks + 1, times.size - 1)]
        )
        every = np.unique(np.concatenate([times, tops]))
        above = height(every) > 0.0
        changes = np.flatnonzero(above[1:] != above[:-1])
        edges = _zeros(height, every[changes], every[changes + 1])
        if above[0]:
            edges = np.append(0.0, edges)
        if above[-1]:
            edges = np.append(edges, until_s)
        found = []
        for start, end in edges.reshape(-1, 2).tolist():
            inside = np.array([start, end, *tops[(tops > start) & (tops < end)]])
            elevations = height(inside) + mask_deg
            best = int(np.argmax(elevations))
            found.append(Pass(start, end, float(inside[best]), float(elevations[best])))
        return tuple(found)

    def delay_s(self, a: Site, b: Site, t_s: ArrayLike) -> Array:
        """Return the propagation delay from one site over the satellite to another, at n times."""
        delay: Array = (self.look(a, t_s)[1] + self.look(b, t_s)[1]) / SPEED_OF_LIGHT_MPS
        return delay


def walker(
    count: int,
    planes: int,
    phasing: int,
    *,
    inclination_deg: float,
    altitude_m: float,
    epoch: datetime,
    after_s: float = 0.0,
) -> list[Satellite]:
    """Return a shell of satellites of our own making: a Walker delta pattern i: T/P/F.

    J. G. Walker, "Satellite constellations", J. British Interplanetary Society 37, 1984: T
    satellites in P planes of equal inclination, nodes spread evenly around the equator, satellites
    evenly around each plane, and each F · 360°/T ahead of its neighbour in the plane to the west.
    Orbits are circular, and their mean motion is that of two bodies, √(GM/a³), with GM and earth
    radius of WGS 72, which SGP4 works with.

    Parameters
    ----------
    count, planes, phasing : int
        T, P and F; T a multiple of P, and F below P.
    inclination_deg : float
        Inclination.
    altitude_m : float
        Above the equatorial radius, 160 km to 2000 km.
    epoch : datetime
        Epoch of the elements; with a time zone.
    after_s : float
        Run time 0 is so long after the epoch.

    Raises
    ------
    ValueError
        If the pattern or the orbit is impossible.
    """
    if not 1 <= planes <= count <= 99_999 or count % planes or not 0 <= phasing < planes:
        raise ValueError(
            "a pattern must have as many satellites in each plane, at most 99999 in all, and a "
            f"phasing below the number of planes, not {count}/{planes}/{phasing}"
        )
    if not 160e3 <= altitude_m <= 2000e3 or not 0.0 <= inclination_deg <= 180.0:
        raise ValueError(
            "a low orbit must be 160 km to 2000 km high with an inclination from 0 to 180 degrees, "
            f"not {altitude_m!r} m, {inclination_deg!r}"
        )
    axis_m = _WGS72_RADIUS_M + altitude_m
    turns_per_day = 86_400.0 * math.sqrt(_WGS72_GM / axis_m**3) / (2.0 * math.pi)
    midnight = epoch.replace(hour=0, minute=0, second=0, microsecond=0)
    day = epoch.timetuple().tm_yday + (epoch - midnight).total_seconds() / 86_400.0
    each = count // planes
    found = []
    for number in range(count):
        plane, place = divmod(number, each)
        node_deg = 360.0 * plane / planes
        anomaly_deg = (360.0 * place / each + 360.0 * phasing * plane / count) % 360.0
        first = (
            f"1 {number + 1:05d}U 00000A   {epoch.year % 100:02d}{day:012.8f}  .00000000  00000-0  "
            "00000-0 0    0"
        )
        second = (
            f"2 {number + 1:05d} {inclination_deg:8.4f} {node_deg:8.4f} 0000000   0.0000 "
            f"{anomaly_deg:8.4f} {turns_per_day:11.8f}    0"
        )
        found.append(
            Satellite(
                f"{plane + 1}-{place + 1}",
                first + str(compute_checksum(first)),
                second + str(compute_checksum(second)),
                epoch + timedelta(seconds=after_s),
            )
        )
    return found


def read_elements(file: FilePath | str, epoch: datetime) -> list[Satellite]:
    """Read satellites from a file of two-line elements, with or without lines of names.

    Parameters
    ----------
    file : path
        The file, as Celestrak and Space-Track serve it.
    epoch : datetime
        What run time 0 is; with a time zone.

    Raises
    ------
    TraceError
        With the line and what was expected there.
    """
    path = FilePath(file)
    found: list[Satellite] = []
    name, first, last = "", "", 0
    for number, text in lines(path):
        line, last = text.rstrip(), number
        if not line.strip():
            continue
        if first:
            if (problem := _wrong(2, line)) is not None:
                raise expected(path, number, problem, line)
            try:
                found.append(Satellite(name or first[2:7].strip(), first, line, epoch))
            except ValueError as error:
                raise TraceError(path, number, str(error)) from None
            name, first = "", ""
        elif line.startswith("1 ") and len(line) > 24:
            if (problem := _wrong(1, line)) is not None:
                raise expected(path, number, problem, line)
            first = line
        elif name:
            raise expected(path, number, f"line 1 of the elements of {name}", line)
        else:
            name = line.removeprefix("0 ").strip()
    if first or name:
        raise TraceError(
            path, last, f"expected the elements of {name or first[2:7]}, found the end"
        )
    if not found:
        raise TraceError(path, 0, "expected two-line elements, found none")
    return found


def handovers(
    satellites: Sequence[Satellite],
    sites: Sequence[Site],
    until_s: float,
    mask_deg: float = 10.0,
) -> tuple[Serving, ...]:
    """Return which satellite serves when, from run time 0 to `until_s`.

    A satellite is used until it sets, and then the one that will stay longest, which makes the
    fewest handovers there can be. With several sites (a terminal and its gateway: a bent pipe)
    all must see it.

    Parameters
    ----------
    satellites : sequence of Satellite
        The constellation.
    sites : sequence of Site
        Who must see it.
    until_s : float
        End of the interval of interest.
    mask_deg : float
        Elevation above which a satellite can be used.

    Returns
    -------
    tuple of Serving
        In order of time; between two of them there may be a gap.
    """
    windows: list[tuple[float, float, str]] = []
    for satellite in satellites:
        shared = [(0.0, until_s)]
        for site in sites:
            seen = satellite.passes(site, until_s, mask_deg)
            shared = [
                (max(start, each.start_s), min(end, each.end_s))
                for start, end in shared
                for each in seen
                if max(start, each.start_s) < min(end, each.end_s)
            ]
        windows += [(start, end, satellite.name) for start, end in shared]
    found: list[Serving] = []
    now_s = 0.0
    while now_s < until_s:
        up = [window for window in windows if window[0] <= now_s < window[1]]
        if up:
            _, end, name = max(up, key=lambda window: (window[1], window[2]))
            found.append(Serving(now_s, end, name))
            now_s = end
        else:
            now_s = min((start for start, _, _ in windows if start > now_s), default=until_s)
    return tuple(found)


def assignments(
    satellites: Sequence[Satellite],
    sites: Sequence[Site],
    until_s: float,
    mask_deg: float = 25.0,
    slot_s: float = 15.0,
    seed: int | None = None,
) -> tuple[Serving, ...]:
    """Return which satellite of a dense constellation serves when, if it is assigned in slots.

    So does Starlink, whose scheduler assigns satellites anew every 15 s (N. Mohan et al., "A
    multifaceted look at Starlink performance", WWW 2024), high ones above all (H. B. Tanveer et
    al., "Making sense of constellations", CoNEXT 2023). Here one serves for a slot of those that
    all sites see above the mask at its beginning and end.

    Parameters
    ----------
    satellites : sequence of Satellite
        The constellation; all with the same epoch.
    sites : sequence of Site
        Who must see it; the first one is the terminal.
    until_s : float
        End of the interval of interest; slots begin at run time 0.
    mask_deg : float
        Elevation above which a satellite can be used.
    slot_s : float
        Length of a slot.
    seed : int, optional
        Draw the satellite of each slot, as a scheduler that has others to serve as well: each with
        a weight of its height above the mask at the terminal. Without a seed it is the highest.

    Returns
    -------
    tuple of Serving
        In order of time; slots in a row of one satellite are one, and where none can be used there
        is a gap.

    Raises
    ------
    ValueError
        If the slot is not above 0, or epochs differ.
    """
    if not 0.0 < slot_s < math.inf:
        raise ValueError(f"slot_s must be above 0, not {slot_s!r}")
    edges = np.arange(math.ceil(until_s / slot_s) + 1) * slot_s
    places = _earth_fixed_m(satellites, edges)
    lowest, first = np.full(places.shape[:2], np.inf), np.empty(0)
    for number, site in enumerate(sites):
        away = places - np.array(site.earth_fixed_m())
        height = np.degrees(np.arcsin((away @ site.axes()[2]) / np.linalg.norm(away, axis=2)))
        lowest = np.minimum(lowest, height)
        first = height if number == 0 else first
    usable = np.minimum(lowest[:, :-1], lowest[:, 1:]) > mask_deg
    weights = np.where(usable, first[:, :-1] - mask_deg, 0.0)
    draws = None if seed is None else Draws(seed)
    found: list[Serving] = []
    for slot, weight in enumerate(weights.T):
        if not usable[:, slot].any():
            continue
        if draws is None:
            chosen = int(np.argmax(weight))
        else:
            rising = np.cumsum(weight)
            chosen = int(np.searchsorted(rising, draws.unit() * rising[-1], side="right"))
        start_s, name = float(edges[slot]), satellites[chosen].name
        end_s = min(float(edges[slot + 1]), until_s)
        if found and (found[-1].satellite, found[-1].end_s) == (name, start_s):
            start_s = found.pop().start_s
        found.append(Serving(start_s, end_s, name))
    return tuple(found)


def delay_over_time(
    satellites: Sequence[Satellite],
    servings: Sequence[Serving],
    a: Site,
    b: Site,
    step_s: float = 1.0,
) -> Steps:
    """Return the delay of a bent pipe while satellites take turns, in steps.

    Parameters
    ----------
    satellites : sequence of Satellite
        The constellation.
    servings : sequence of Serving
        As `handovers` gives them; in gaps the delay is infinite.
    a, b : Site
        The two ends.
    step_s : float
        Time between steps; the delay is that of their beginning.

    Raises
    ------
    ValueError
        If nobody serves, or the step is not above 0.
    """
    if not servings or not 0.0 < step_s < math.inf:
        raise ValueError("there must be a satellite that serves, and step_s must be above 0")
    by_name = {satellite.name: satellite for satellite in satellites}
    times: list[Array] = []
    values: list[Array] = []
    before_s = 0.0
    for serving in servings:
        if serving.start_s > before_s:
            times.append(np.array([before_s]))
            values.append(np.array([np.inf]))
        at = np.arange(serving.start_s, serving.end_s, step_s)
        times.append(at)
        values.append(by_name[serving.satellite].delay_s(a, b, at))
        before_s = serving.end_s
    return Steps(np.concatenate(times), np.concatenate(values))


def _wrong(number: int, line: str) -> str | None:
    """Return what should be there, if a line of elements is not as it should be."""
    if not line.startswith(f"{number} ") or len(line) < 69 or not line.isascii():
        return f"line {number} of two-line elements, 69 characters that begin with '{number} '"
    checksum = str(compute_checksum(line))
    if line[68] != checksum:
        return f"the checksum {checksum} at the end"
    return None


def _earth_fixed_m(satellites: Sequence[Satellite], t_s: ArrayLike) -> Array:
    """Return places of m satellites of one epoch at n times, shape (m, n, 3)."""
    (epoch, *others) = {satellite.epoch for satellite in satellites}
    if others:
        raise ValueError("the satellites must have one epoch")
    start = _timescale().from_datetime(epoch)
    moments = _timescale().tt_jd(start.whole, start.tt_fraction + times_s(t_s) / 86_400.0)
    utc = moments.ut1_fraction - moments.dut1 / 86_400.0
    orbits = SatrecArray([satellite._orbit for satellite in satellites])
    errors, place, _ = orbits.sgp4(np.full(utc.size, moments.whole), utc)
    if errors.any():
        name = satellites[int(np.flatnonzero(errors.any(axis=1))[0])].name
        raise ValueError(f"the elements of {name} give no place at the times given")
    angle, _ = theta_GMST1982(moments.whole, moments.ut1_fraction)
    x, y, z = 1000.0 * np.moveaxis(place, 2, 0)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([x * cos + y * sin, y * cos - x * sin, z], axis=2)


def _timescale() -> Any:
    global _SCALE
    if _SCALE is None:
        _SCALE = load.timescale(builtin=True)
    return _SCALE


_SCALE: Any = None


def _tops(height: Any, left: Array, right: Array) -> Array:
    """Return where a function with one maximum in each of some intervals has it."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while left.size and float(np.max(right - left)) > 1e-3:
        lower = right - golden * (right - left)
        upper = left + golden * (right - left)
        rises = height(lower) < height(upper)
        left, right = np.where(rises, lower, left), np.where(rises, right, upper)
    middle: Array = 0.5 * (left + right)
    return middle


def _zeros(height: Any, left: Array, right: Array) -> Array:
    """Return where a function changes its sign, once in each of some intervals."""
    above = height(left) > 0.0 if left.size else np.zeros(0, dtype=bool)
    while left.size and float(np.max(right - left)) > _EXACT_S:
        middle = 0.5 * (left + right)
        same = (height(middle) > 0.0) == above
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    zero: Array = 0.5 * (left + right)
    return zero
