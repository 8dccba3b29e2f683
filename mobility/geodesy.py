"""Charts: geodetic coordinates to metres in a local frame and back, by PROJ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyproj
from numpy.typing import ArrayLike

from mobility.trajectory import Array


@dataclass(frozen=True)
class LocalFrame:
    """East and north in metres about a point of the earth; up is the altitude.

    The projection is the azimuthal equidistant one on the WGS 84 ellipsoid: distance and bearing
    from the origin are true, other distances within 50 km of it to 1 in 100 000, and within 500 km
    to 1 in 1000. Up is not bent away with the earth, so that ships stay at 0 m; what the earth
    hides is a matter of `mobility.radio.horizon_m`.

    Parameters
    ----------
    latitude_deg, longitude_deg : float
        The origin, north and east positive.

    Raises
    ------
    ValueError
        If the origin is no place.

    Examples
    --------
    >>> frame = LocalFrame(54.32, 10.14)
    >>> frame.to_local(54.33, 10.14, 0.0).round(1).tolist()
    [[0.0, 1113.1, 0.0]]
    """

    latitude_deg: float
    longitude_deg: float

    def __post_init__(self) -> None:
        if not (-90.0 <= self.latitude_deg <= 90.0 and -180.0 <= self.longitude_deg <= 180.0):
            raise ValueError(
                "the origin of a local frame must have a latitude from -90 to 90 degrees and a "
                f"longitude from -180 to 180, not {self.latitude_deg!r}, {self.longitude_deg!r}"
            )

    @cached_property
    def _projection(self) -> pyproj.Proj:
        return pyproj.Proj(
            proj="aeqd", lat_0=self.latitude_deg, lon_0=self.longitude_deg, ellps="WGS84"
        )

    def to_local(
        self, latitude_deg: ArrayLike, longitude_deg: ArrayLike, altitude_m: ArrayLike
    ) -> Array:
        """Return east, north and up in metres, shape (n, 3), of n places."""
        latitude, longitude, altitude = (
            np.atleast_1d(np.asarray(column, dtype=np.float64))
            for column in (latitude_deg, longitude_deg, altitude_m)
        )
        east, north = self._projection(longitude, latitude)
        return np.column_stack([east, north, altitude])

    def to_geodetic(self, positions_m: ArrayLike) -> Array:
        """Return latitude and longitude in degrees and altitude in metres, shape (n, 3)."""
        east, north, up = np.asarray(positions_m, dtype=np.float64).reshape(-1, 3).T
        longitude, latitude = self._projection(east, north, inverse=True)
        return np.column_stack([latitude, longitude, up])
