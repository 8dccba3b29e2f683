"""Radio: loss over distance, the horizon, and the rate a link supports.

Every model of loss grows with distance and can be inverted, so a step of rate is a distance, and
the times at which the rate changes are solved for exactly like those of a range.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mobility.coverage import contact_schedule
from mobility.draws import Draws
from mobility.steps import Steps
from mobility.trajectory import Array, Trajectory

SPEED_OF_LIGHT_MPS = 299_792_458.0
EARTH_RADIUS_M = 6_371_000.0
"""Mean radius of the earth (IUGG)."""

EFFECTIVE_EARTH = 4.0 / 3.0
"""By how much refraction of a standard atmosphere enlarges the earth's radius for radio
(Recommendation ITU-R P.452)."""

WIFI_20MHZ: tuple[tuple[float, float], ...] = (
    (-82.0, 6e6),
    (-81.0, 9e6),
    (-79.0, 12e6),
    (-77.0, 18e6),
    (-74.0, 24e6),
    (-70.0, 36e6),
    (-66.0, 48e6),
    (-65.0, 54e6),
)
"""Least received power in dBm and rate in bit/s of OFDM in 20 MHz: the minimum sensitivities of
IEEE 802.11-2020, table 17-18."""


class PathLoss(ABC):
    """Loss between isotropic antennas as a growing function of distance."""

    @abstractmethod
    def loss_db(self, distance_m: ArrayLike) -> Array:
        """Return the loss in dB at distances in metres, above 0."""

    @abstractmethod
    def distance_m(self, loss_db: float) -> float:
        """Return the distance in metres at which the loss is the given one."""


@dataclass(frozen=True)
class FreeSpace(PathLoss):
    """Spreading alone: ``20 log10(4 π d f / c)`` (Recommendation ITU-R P.525).

    Parameters
    ----------
    frequency_hz : float
        Carrier frequency.

    Raises
    ------
    ValueError
        If the frequency is not above 0.
    """

    frequency_hz: float

    def __post_init__(self) -> None:
        _check_above_zero("frequency_hz", self.frequency_hz)

    def loss_db(self, distance_m: ArrayLike) -> Array:
        waves = np.asarray(distance_m, dtype=np.float64) / self._wavelength_m
        return np.asarray(20.0 * np.log10(4.0 * math.pi * waves))

    def distance_m(self, loss_db: float) -> float:
        return float(10.0 ** (loss_db / 20.0) * self._wavelength_m / (4.0 * math.pi))

    @property
    def _wavelength_m(self) -> float:
        return SPEED_OF_LIGHT_MPS / self.frequency_hz


@dataclass(frozen=True)
class TwoRay(PathLoss):
    """A direct ray and one reflected by a flat sea.

    Up to the distance ``4 π h1 h2 / λ`` it is free space, beyond it the two rays cancel
    ever better and the loss is ``40 log10 d - 20 log10(h1 h2)``, whatever the frequency
    (T. S. Rappaport, "Wireless Communications", 2nd edition 2002, section 4.6). The ripple
    below that distance, which depends on wavelengths, is left out.

    Parameters
    ----------
    frequency_hz : float
        Carrier frequency.
    height_a_m, height_b_m : float
        Heights of the antennas above the sea.

    Raises
    ------
    ValueError
        If a parameter is not above 0.
    """

    frequency_hz: float
    height_a_m: float
    height_b_m: float

    def __post_init__(self) -> None:
        for name in ("frequency_hz", "height_a_m", "height_b_m"):
            _check_above_zero(name, getattr(self, name))

    @property
    def crossover_m(self) -> float:
        """Distance from which on the rays cancel, in metres."""
        heights = self.height_a_m * self.height_b_m
        return 4.0 * math.pi * heights * self.frequency_hz / SPEED_OF_LIGHT_MPS

    def loss_db(self, distance_m: ArrayLike) -> Array:
        distance = np.asarray(distance_m, dtype=np.float64)
        heights_db = 20.0 * math.log10(self.height_a_m * self.height_b_m)
        far = 40.0 * np.log10(distance) - heights_db
        near = FreeSpace(self.frequency_hz).loss_db(distance)
        return np.where(distance < self.crossover_m, near, far)

    def distance_m(self, loss_db: float) -> float:
        near = FreeSpace(self.frequency_hz).distance_m(loss_db)
        if near < self.crossover_m:
            return near
        return float(10.0 ** (loss_db / 40.0) * math.sqrt(self.height_a_m * self.height_b_m))


@dataclass(frozen=True)
class LogDistance(PathLoss):
    """Free space up to a reference distance, then a power of distance, and shadowing.

    ``L(d0) + 10 n log10(d / d0) + X`` (Rappaport, section 4.9).

    Parameters
    ----------
    frequency_hz : float
        Carrier frequency, for the loss at the reference distance.
    exponent : float
        n: 2 in free space, 2.7 to 3.5 in towns.
    reference_m : float
        d0.
    shadowing_db : float
        X, which is of one link and does not change with time; see `shadowing_db`.

    Raises
    ------
    ValueError
        If a parameter is impossible.
    """

    frequency_hz: float
    exponent: float
    reference_m: float = 1.0
    shadowing_db: float = 0.0

    def __post_init__(self) -> None:
        for name in ("frequency_hz", "exponent", "reference_m"):
            _check_above_zero(name, getattr(self, name))
        if not math.isfinite(self.shadowing_db):
            raise ValueError(f"shadowing_db must be a finite number, not {self.shadowing_db!r}")

    def loss_db(self, distance_m: ArrayLike) -> Array:
        far = np.log10(np.asarray(distance_m, dtype=np.float64) / self.reference_m)
        return np.asarray(self._at_reference_db + 10.0 * self.exponent * far)

    def distance_m(self, loss_db: float) -> float:
        beyond_db = loss_db - self._at_reference_db
        return float(self.reference_m * 10.0 ** (beyond_db / (10.0 * self.exponent)))

    @property
    def _at_reference_db(self) -> float:
        free = FreeSpace(self.frequency_hz).loss_db(self.reference_m)
        return float(free) + self.shadowing_db


def shadowing_db(deviation_db: float, seed: int, *link: int) -> float:
    """Return the shadowing of one link: normal, of mean 0, the same for the same seed anywhere.

    Parameters
    ----------
    deviation_db : float
        Standard deviation; 4 to 12 dB over land.
    seed : int
        0 or more.
    *link : int
        Numbers that tell links apart, such as those of the two nodes.
    """
    return deviation_db * Draws(seed, *link).normal()


def horizon_m(height_a_m: float, height_b_m: float, factor: float = EFFECTIVE_EARTH) -> float:
    """Return how far two antennas see each other over a smooth sea.

    Parameters
    ----------
    height_a_m, height_b_m : float
        Heights above the sea in metres, 0 or more.
    factor : float
        Effective radius of the earth over its radius.

    Returns
    -------
    float
        Slant distance in metres: with k R the effective radius, the way over the ground is
        ``√(2 k R h1) + √(2 k R h2)`` (Recommendation ITU-R P.452, for heights far below the
        radius), and the difference of heights is added at a right angle.

    Raises
    ------
    ValueError
        If a height is negative.
    """
    if not (height_a_m >= 0.0 and height_b_m >= 0.0):
        raise ValueError(
            f"heights must be 0 m or more above the sea, not {height_a_m!r} and {height_b_m!r}"
        )
    diameter = 2.0 * factor * EARTH_RADIUS_M
    ground = math.sqrt(diameter * height_a_m) + math.sqrt(diameter * height_b_m)
    return math.hypot(ground, height_a_m - height_b_m)


def distance_ratio(difference_db: float, exponent: float = 2.0) -> float:
    """Return how much farther a link is whose loss is greater by a difference in dB."""
    return float(10.0 ** (difference_db / (10.0 * exponent)))


@dataclass(frozen=True)
class Radio:
    """A link between two antennas: its power, its loss, and the rates it steps through.

    Parameters
    ----------
    power_dbm : float
        Transmitted power plus the gains of both antennas less cable losses.
    path_loss : PathLoss
        Loss over distance.
    rates : sequence of (float, float)
        Least received power in dBm and the rate in bit/s from there on, weakest first.
    limit_m : float
        Distance beyond which nothing is received, such as the `horizon_m`.

    Raises
    ------
    ValueError
        If the table is empty, or a rate does not grow with power.
    """

    power_dbm: float
    path_loss: PathLoss
    rates: Sequence[tuple[float, float]] = WIFI_20MHZ
    limit_m: float = math.inf

    def __post_init__(self) -> None:
        table = np.asarray(self.rates, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 2 or not (np.diff(table, axis=0) > 0.0).all():
            raise ValueError(
                "rates must be pairs of received power in dBm and rate in bit/s, both growing, "
                f"not {self.rates!r}"
            )

    def received_dbm(self, distance_m: ArrayLike) -> Array:
        """Return received power in dBm at distances in metres, minus infinity past the limit."""
        distance = np.asarray(distance_m, dtype=np.float64)
        received = self.power_dbm - self.path_loss.loss_db(distance)
        return np.where(distance <= self.limit_m, received, -np.inf)

    def ranges_m(self) -> list[float]:
        """Return the distance within which each rate of the table is had, the greatest first."""
        return [
            min(self.path_loss.distance_m(self.power_dbm - least_dbm), self.limit_m)
            for least_dbm, _ in self.rates
        ]

    @property
    def range_m(self) -> float:
        """Distance within which there is a link at all."""
        return self.ranges_m()[0]

    def rate_over_time(self, a: Trajectory, b: Trajectory, until_s: float) -> Steps:
        """Return the rate between two nodes in bit/s, from run time 0, 0 where out of range.

        Parameters
        ----------
        a, b : Trajectory
            The nodes.
        until_s : float
            End of the interval of interest, in seconds of run time.

        Returns
        -------
        Steps
            The times of change are exact.
        """
        ranges = self.ranges_m()
        contacts = contact_schedule([a], [b] * len(ranges), ranges, until_s)
        times = np.unique(np.concatenate([[0.0], contacts.start_s, contacts.end_s]))
        # Ranges are nested: the best rate that holds is that of the last step in contact.
        times = times[times < until_s] if until_s > 0.0 else times[:1]
        values = np.zeros(times.size)
        for step, (_, rate_bps) in enumerate(self.rates):
            of_step = contacts.access_point == step
            starts, ends = contacts.start_s[of_step], contacts.end_s[of_step]
            begun = np.searchsorted(starts, times, side="right")
            over = np.searchsorted(ends, times, side="right")
            values[begun > over] = rate_bps
        return Steps(times, values).changes()


def _check_above_zero(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, not {value!r}")
