"""Satellite links by geometry and weather: delay, rain fade, and the rate that is left.

Places are in the earth-centred, earth-fixed frame of WGS 84, metres. Nothing here needs an orbit;
satellites that move are in `mobility.satellites`.
"""

import math
from dataclasses import dataclass

import numpy as np

from mobility.draws import Draws
from mobility.radio import SPEED_OF_LIGHT_MPS
from mobility.steps import Steps
from mobility.trajectory import Array, Vector

WGS84_RADIUS_M = 6_378_137.0
"""Equatorial radius of the WGS 84 ellipsoid."""

WGS84_FLATTENING = 1.0 / 298.257223563

GEOSTATIONARY_RADIUS_M = 42_164_172.0
"""Radius of the geostationary orbit: (GM T² / 4π²)^(1/3) for the sidereal day."""

DVB_S2: tuple[tuple[float, float], ...] = (
    (-2.35, 0.490243),
    (-1.24, 0.656448),
    (-0.30, 0.789412),
    (1.00, 0.988858),
    (2.23, 1.188304),
    (3.10, 1.322253),
    (4.03, 1.487473),
    (4.68, 1.587196),
    (5.18, 1.654663),
    (5.50, 1.779991),
    (6.62, 1.980636),
    (7.91, 2.228124),
    (8.97, 2.637201),
    (10.21, 2.966728),
    (11.03, 3.165623),
    (11.61, 3.300184),
    (12.73, 3.703295),
    (13.64, 3.951571),
    (14.28, 4.119540),
    (15.69, 4.397854),
    (16.05, 4.453027),
)
"""Es/N0 in dB and bits per symbol of those modes of DVB-S2, from QPSK 1/4 to 32APSK 9/10, to which
no other is better in both (ETSI EN 302 307-1, table 13)."""


@dataclass(frozen=True)
class Look:
    """A satellite as seen from a place.

    Attributes
    ----------
    elevation_deg : float
        Above the horizon of the ellipsoid.
    azimuth_deg : float
        Clockwise from north.
    range_m : float
        Slant range.
    """

    elevation_deg: float
    azimuth_deg: float
    range_m: float


@dataclass(frozen=True)
class Site:
    """A place on the earth.

    Parameters
    ----------
    latitude_deg, longitude_deg : float
        Geodetic coordinates of WGS 84, north and east positive.
    altitude_m : float
        Above the ellipsoid.

    Raises
    ------
    ValueError
        If the latitude is beyond a pole, or the longitude beyond once around.
    """

    latitude_deg: float
    longitude_deg: float
    altitude_m: float = 0.0

    def __post_init__(self) -> None:
        if not (-90.0 <= self.latitude_deg <= 90.0 and -360.0 <= self.longitude_deg <= 360.0):
            raise ValueError(
                "a site must have a latitude from -90 to 90 degrees and a longitude from -360 to "
                f"360, not {self.latitude_deg!r}, {self.longitude_deg!r}"
            )
        if not math.isfinite(self.altitude_m):
            raise ValueError(f"altitude_m must be a finite number, not {self.altitude_m!r}")

    def earth_fixed_m(self) -> Vector:
        """Return the place in the earth-fixed frame."""
        latitude, longitude = math.radians(self.latitude_deg), math.radians(self.longitude_deg)
        flat = WGS84_FLATTENING * (2.0 - WGS84_FLATTENING)
        normal = WGS84_RADIUS_M / math.sqrt(1.0 - flat * math.sin(latitude) ** 2)
        across = (normal + self.altitude_m) * math.cos(latitude)
        return (
            across * math.cos(longitude),
            across * math.sin(longitude),
            (normal * (1.0 - flat) + self.altitude_m) * math.sin(latitude),
        )

    def axes(self) -> Array:
        """Return east, north and up as rows, in the earth-fixed frame."""
        latitude, longitude = math.radians(self.latitude_deg), math.radians(self.longitude_deg)
        sin_lat, cos_lat = math.sin(latitude), math.cos(latitude)
        sin_lon, cos_lon = math.sin(longitude), math.cos(longitude)
        return np.array(
            [
                [-sin_lon, cos_lon, 0.0],
                [-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat],
                [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat],
            ]
        )

    def look(self, satellite_m: Vector) -> Look:
        """Return where a satellite, given in the earth-fixed frame, is seen."""
        away = np.subtract(satellite_m, self.earth_fixed_m())
        east, north, up = (float(x) for x in self.axes() @ away)
        distance = math.sqrt(east * east + north * north + up * up)
        return Look(
            math.degrees(math.asin(up / distance)),
            math.degrees(math.atan2(east, north)) % 360.0,
            distance,
        )


def geostationary_m(longitude_deg: float) -> Vector:
    """Return the place of a geostationary satellite in the earth-fixed frame."""
    longitude = math.radians(longitude_deg)
    return (
        GEOSTATIONARY_RADIUS_M * math.cos(longitude),
        GEOSTATIONARY_RADIUS_M * math.sin(longitude),
        0.0,
    )


def slant_range_m(elevation_deg: float, orbit_radius_m: float = GEOSTATIONARY_RADIUS_M) -> float:
    """Return how far a satellite is that is seen at an elevation, from a spherical earth.

    Parameters
    ----------
    elevation_deg : float
        0 to 90.
    orbit_radius_m : float
        From the centre of the earth, whose radius is `WGS84_RADIUS_M` here.

    Raises
    ------
    ValueError
        If the elevation is below the horizon or the orbit below the ground.
    """
    if not 0.0 <= elevation_deg <= 90.0:
        raise ValueError(f"elevation_deg must be from 0 to 90, not {elevation_deg!r}")
    if not WGS84_RADIUS_M < orbit_radius_m < math.inf:
        raise ValueError(f"orbit_radius_m must be above the ground, not {orbit_radius_m!r}")
    elevation = math.radians(elevation_deg)
    level = WGS84_RADIUS_M * math.cos(elevation)
    rise = WGS84_RADIUS_M * math.sin(elevation)
    return math.sqrt((orbit_radius_m - level) * (orbit_radius_m + level)) - rise


def bent_pipe_delay_s(a: Site, satellite_m: Vector, b: Site) -> float:
    """Return the propagation delay from one site over a satellite to another."""
    way = a.look(satellite_m).range_m + b.look(satellite_m).range_m
    return way / SPEED_OF_LIGHT_MPS


def rain_shower(
    peak_db: float, *, start_s: float, rise_s: float, hold_s: float, fall_s: float, step_s: float
) -> Steps:
    """Return the fade of one shower: it comes, stays and goes linearly in dB.

    Parameters
    ----------
    peak_db : float
        Attenuation at the worst.
    start_s : float
        When it begins, in seconds of run time.
    rise_s, hold_s, fall_s : float
        How long it grows, stays and recedes.
    step_s : float
        Time between steps of the profile.

    Returns
    -------
    Steps
        Attenuation in dB, from run time 0, 0 before and after.

    Raises
    ------
    ValueError
        If a time or the peak is negative, or the step is not above 0.
    """
    given = (peak_db, start_s, rise_s, hold_s, fall_s)
    if not all(0.0 <= value < math.inf for value in given) or not 0.0 < step_s < math.inf:
        raise ValueError("peak_db and times must be 0 or more, and step_s above 0")
    end_s = start_s + rise_s + hold_s + fall_s
    steps = np.arange(math.ceil((end_s - start_s) / step_s) + 1, dtype=np.float64) * step_s
    corners = np.cumsum([0.0, rise_s, hold_s, fall_s])
    middle = np.minimum(steps + 0.5 * step_s, end_s - start_s)
    fade = np.interp(middle, corners, [0.0, peak_db, peak_db, 0.0])
    fade[-1] = 0.0
    times, values = start_s + steps, fade
    if start_s > 0.0:
        times, values = np.append(0.0, times), np.append(0.0, values)
    return Steps(times, values).changes()


def rain_fade(
    median_db: float,
    deviation: float,
    *,
    relaxation_s: float,
    duration_s: float,
    step_s: float,
    seed: int,
    stream: int = 0,
) -> Steps:
    """Return a random rain fade: its logarithm drifts back to its mean.

    T. Maseng and P. M. Bakken, "A stochastic dynamic model of rain attenuation", IEEE Trans.
    Communications 29(5), 1981, on which Recommendation ITU-R P.1853 builds: attenuation is
    ``m exp(σ x)`` where x is a normal process of variance 1 and correlation exp(-t / τ).

    Parameters
    ----------
    median_db : float
        m.
    deviation : float
        σ, of the natural logarithm; 1 to 1.5 in measurements.
    relaxation_s : float
        τ; the recommendation gives 5000 s.
    duration_s, step_s : float
        Length of the profile and time between its steps.
    seed, stream : int
        As for `mobility.random_walk`.

    Returns
    -------
    Steps
        Attenuation in dB, whole multiples of 2^-10 dB, so that it does not depend on the
        machine's exponential.

    Raises
    ------
    ValueError
        If a parameter is not above 0.
    """
    for name, value in (
        ("median_db", median_db),
        ("relaxation_s", relaxation_s),
        ("duration_s", duration_s),
        ("step_s", step_s),
    ):
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be a finite number above 0, not {value!r}")
    if not 0.0 <= deviation < math.inf:
        raise ValueError(f"deviation must be 0 or more, not {deviation!r}")
    draws = Draws(seed, stream)
    kept = round(math.exp(-step_s / relaxation_s) * 2.0**40) / 2.0**40
    fresh = math.sqrt((1.0 - kept) * (1.0 + kept))
    state = draws.normal()
    fades = []
    for _ in range(max(math.ceil(duration_s / step_s), 1)):
        fades.append(round(median_db * math.exp(deviation * state) * 1024.0) / 1024.0)
        state = kept * state + fresh * draws.normal()
    return Steps(np.arange(len(fades), dtype=np.float64) * step_s, np.array(fades)).changes()


def capacity(
    fade_db: Steps,
    *,
    clear_sky_db: float,
    symbols_per_s: float,
    modes: tuple[tuple[float, float], ...] = DVB_S2,
) -> Steps:
    """Return the rate that adaptive coding and modulation leaves of a link in rain.

    Parameters
    ----------
    fade_db : Steps
        Attenuation in dB. The noise is taken as constant, though rain adds some.
    clear_sky_db : float
        Es/N0 without rain.
    symbols_per_s : float
        Symbol rate.
    modes : tuple of (float, float)
        Least Es/N0 in dB and bits per symbol, weakest first.

    Returns
    -------
    Steps
        Whole bit/s; 0 where even the weakest mode fails.
    """
    least, bits = np.array(modes).T
    mode = np.searchsorted(least, clear_sky_db - fade_db.values, side="right")
    rates = np.floor(np.append(0.0, bits)[mode] * symbols_per_s)
    return Steps(fade_db.times_s, rates).changes()
