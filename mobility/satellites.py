"""Satellites that move: orbits from two-line elements, passes, delay and handovers.

Orbits are propagated with SGP4; the turning of the earth comes from Skyfield, offline: its time
scale is made of files of the package. Importing this module takes a while; nothing that runs
inside the virtual machine does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sgp4.api import Satrec
from sgp4.io import compute_checksum
from skyfield.api import load
from skyfield.sgp4lib import theta_GMST1982

from mobility.radio import SPEED_OF_LIGHT_MPS
from mobility.satcom import Site
from mobility.steps import Steps
from mobility.traces.record import TraceError, expected, lines
from mobility.trajectory import Array, times_s

_LOOK_S = 60.0
"""Time between looks for a pass. A satellite is above the horizon of a place for minutes, and its
elevation has one maximum in each revolution, which takes 85 minutes at least."""

_EXACT_S = 1e-6


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
        epoch = _timescale().from_datetime(self.epoch)
        moments = _timescale().tt_jd(epoch.whole, epoch.tt_fraction + times_s(t_s) / 86_400.0)
        utc = moments.ut1_fraction - moments.dut1 / 86_400.0
        errors, place, _ = self._orbit.sgp4_array(np.full(utc.size, moments.whole), utc)
        if errors.any():
            raise ValueError(f"the elements of {self.name} give no place at the times given")
        angle, _ = theta_GMST1982(moments.whole, moments.ut1_fraction)
        x, y, z = 1000.0 * place.T
        cos, sin = np.cos(angle), np.sin(angle)
        return np.column_stack([x * cos + y * sin, y * cos - x * sin, z])

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
