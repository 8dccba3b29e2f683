"""Convoy: ten ships in formation that pass four UAVs, under two satellites."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import mobility
from scenarios.components import (
    Association,
    Captures,
    Controller,
    Duration,
    Load,
    Satcom,
    WithBackhaul,
)
from scenarios.errors import ScenarioError
from scenarios.experiment import Experiment
from scenarios.parameters import Parameter
from scenarios.scenario import (
    AccessPoint,
    Buffer,
    Delay,
    Loss,
    Range,
    Satellite,
    Scenario,
    Station,
)
from scenarios.traffic import Rate

_COLUMNS = 2
_CHANNELS = (1, 6, 11)
_MOST_TURNS = 10_000


@dataclass(frozen=True)
class Formation:
    """The ships: two columns that keep station on a guide."""

    count: Annotated[
        int, Parameter(unit="ships", meaning="number of ships", minimum=1, maximum=50)
    ] = 10
    speed_mps: Annotated[
        float,
        Parameter(unit="m/s", meaning="speed of the convoy", minimum=0, above=True, maximum=100),
    ] = 10.0
    spacing_m: Annotated[
        float,
        Parameter(
            unit="m", meaning="distance between stations", minimum=0, above=True, maximum=1e5
        ),
    ] = 200.0
    head_m: Annotated[
        float,
        Parameter(
            unit="m",
            meaning="how far the convoy's head is past the first UAV at the start",
            minimum=-1e6,
            maximum=1e6,
        ),
    ] = 0.0
    within_m: Annotated[
        float,
        Parameter(
            unit="m", meaning="how far a ship is from its station at most", minimum=1, maximum=1e5
        ),
    ] = 50.0
    least_correction_mps: Annotated[
        float,
        Parameter(
            unit="m/s",
            meaning="lowest speed relative to the convoy",
            minimum=0,
            above=True,
            maximum=100,
        ),
    ] = 1.0
    greatest_correction_mps: Annotated[
        float,
        Parameter(
            unit="m/s",
            meaning="highest speed relative to the convoy",
            minimum=0,
            above=True,
            maximum=100,
        ),
    ] = 3.0

    @property
    def stations_m(self) -> list[mobility.Vector]:
        """Reference points in the order of ships, the first pair ahead, from the convoy's head."""
        return [
            (
                -(number // _COLUMNS) * self.spacing_m,
                (number % _COLUMNS - (_COLUMNS - 1) / 2) * self.spacing_m,
                0.0,
            )
            for number in range(self.count)
        ]


@dataclass(frozen=True)
class Constellation(Satcom):
    """Low satellites that are in view at once, each with a terminal of its own on every ship."""

    count: Annotated[
        int, Parameter(unit="satellites", meaning="number in view at once", minimum=1, maximum=6)
    ] = 1

    @property
    def names(self) -> list[str]:
        """One is ``leo``, several have numbers."""
        return ["leo"] if self.count == 1 else [f"leo{n + 1}" for n in range(self.count)]


@dataclass(frozen=True)
class Uavs(WithBackhaul):
    """UAVs along the route, all with the same radio and link."""

    count: Annotated[
        int, Parameter(unit="UAVs", meaning="number of UAVs", minimum=1, maximum=50)
    ] = 4
    rate_bps: Rate = 1e6
    delay_s: Delay = 0.01
    loss: Loss = 0.0
    buffer_packets: Buffer = 8
    range_m: Range = 450.0
    altitude_m: Annotated[
        float,
        Parameter(unit="m", meaning="height of the UAVs above the sea", minimum=0, maximum=30_000),
    ] = 300.0
    spacing_m: Annotated[
        float,
        Parameter(
            unit="m", meaning="distance between UAVs along the route", minimum=0, maximum=1e6
        ),
    ] = 400.0
    speed_mps: Annotated[
        float,
        Parameter(
            unit="m/s", meaning="speed of those that circle", minimum=0, above=True, maximum=300
        ),
    ] = 25.0
    turn_m: Annotated[
        float,
        Parameter(
            unit="m", meaning="radius of their circles and turns", minimum=1, maximum=100_000
        ),
    ] = 100.0

    @property
    def motions(self) -> list[mobility.Trajectory]:
        """Where they are: one hovers, one circles, one flies a racetrack, the next one hovers."""
        return [self._motion(number, number * self.spacing_m) for number in range(self.count)]

    def _motion(self, number: int, east_m: float) -> mobility.Trajectory:
        match number % 3:
            case 0:
                return mobility.Fixed((east_m, 0.0, self.altitude_m))
            case 1:
                centre_m = (east_m, 0.0, self.altitude_m)
                return mobility.Orbit(centre_m, self.turn_m, self.speed_mps)
        return mobility.Racetrack(
            (east_m - self.turn_m, self.turn_m, self.altitude_m),
            heading_deg=90.0,
            length_m=2.0 * self.turn_m,
            radius_m=self.turn_m,
            speed_mps=self.speed_mps,
        )


@dataclass(frozen=True)
class Convoy(Experiment):
    """Ten ships in formation pass four UAVs, under a geostationary and a low satellite.

    It stands for a fleet: many users that share few access points, hand over in waves and not all
    at once, and crowd where two UAVs overlap. What is worth watching is whether an allocation
    still helps when every user has three paths and somebody hands over every few seconds.

    **Motion**: the reference point group of X. Hong, M. Gerla, G. Pei and C.-C. Chiang, "A group
    mobility model for ad hoc wireless networks" (MSWiM 1999). Each ship wanders about its station,
    seeded. Two columns, as in a convoy's tracks in AIS, at half its usual distances.

    Ships, satellites and UAVs are the nodes of Q. Zhao, P. Du, M. Gerla, A. Brown and J. Kim,
    "Software Defined Multi-Path TCP Solution for Mobile Wireless Tactical Networks" (2018), which
    has two of them in its experiments.

    **As in direct move**: the UAVs' 1 Mbit/s, 10 ms and buffers, the geostationary 250 ms, the
    controller's figures.

    **Chosen here**:

    - ``ships.speed_mps`` 10 m/s, 19 knots, along the line of UAVs; stations ``ships.spacing_m``
      = 200 m apart and kept to ``ships.within_m`` = 50 m with corrections of 1 to 3 m/s. The head
      of the convoy begins below the first UAV, and the last of its 800 m out of range.
    - ``uavs.range_m`` 450 m (slant) from 300 m cover discs of 335 m, and ``uavs.spacing_m`` is
      400 m, so that neighbours overlap. Two hover; one circles and one flies a racetrack, at
      25 m/s and with turns of 100 m, as a small aircraft with fixed wings does. Channels are 1, 6
      and 11 in turn, so that neighbours do not share one.
    - ``association`` as in ship to shore.
    - ``satcom`` (geostationary) 10 Mbit/s; ``leo`` 3 Mbit/s and 25 ms one way, half of the round
      trip of 50 ms that F. Michel et al., "A first look at Starlink performance" (IMC 2022)
      measured. All ships together want 8.6 Mbit/s on the wire, so that the near paths have to be
      shared and the far one takes the rest. A single path starts on ``satcom``.
    - ``traffic.rate_bps`` 0.8 Mbit/s a ship.
    - ``ships.count``, ``uavs.count`` and ``leo.count`` make a larger fleet of it; more than one
      low satellite have numbers (``leo1``, ``leo2``). What a larger one takes is in
      docs/emulation.md.
    - ``satcom.buffer_packets`` 500, ``leo.buffer_packets`` 50: 0.6 s and 0.2 s.

    The seed sets how ships wander, and with that when they hand over.
    """

    name: ClassVar[str] = "convoy"

    duration_s: Duration = 120.0
    satcom: Satcom = field(default_factory=lambda: Satcom(rate_bps=10e6))
    leo: Constellation = field(
        default_factory=lambda: Constellation(rate_bps=3e6, delay_s=0.025, buffer_packets=50)
    )
    uavs: Uavs = field(default_factory=Uavs)
    association: Association = field(default_factory=Association)
    ships: Formation = field(default_factory=Formation)
    traffic: Load = field(default_factory=lambda: Load(rate_bps=0.8e6))
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        least, most = self.ships.least_correction_mps, self.ships.greatest_correction_mps
        if least > most:
            raise ScenarioError(
                "ships.least_correction_mps",
                f"must be at most ships.greatest_correction_mps ({most:g}), not {least:g}",
                least,
            )
        turns = self.ships.greatest_correction_mps * self.duration_s / self.ships.within_m
        if turns > _MOST_TURNS:
            least_m = self.ships.greatest_correction_mps * self.duration_s / _MOST_TURNS
            raise ScenarioError(
                "ships.within_m",
                f"must be at least {least_m:g} m, so that a ship turns at most {_MOST_TURNS} times "
                f"in duration_s, not {self.ships.within_m:g}",
                self.ships.within_m,
            )
        if self.uavs.range_m <= self.uavs.altitude_m:
            raise ScenarioError(
                "uavs.range_m",
                f"must be more than uavs.altitude_m ({self.uavs.altitude_m:g} m), as it is a slant "
                f"range, not {self.uavs.range_m:g}",
                self.uavs.range_m,
            )

    def build(self, seed: int) -> Scenario:
        ships = self.ships
        guide = mobility.Straight((ships.head_m, 0.0, 0.0), (ships.speed_mps, 0.0, 0.0))
        motions = mobility.reference_point_group(
            guide,
            ships.stations_m,
            within_m=ships.within_m,
            speed_mps=(ships.least_correction_mps, ships.greatest_correction_mps),
            duration_s=self.duration_s,
            seed=seed,
        )
        stations = tuple(
            Station(f"ship{number}", motion) for number, motion in enumerate(motions, start=1)
        )
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=stations,
            satellites=(
                Satellite("satcom", self.satcom.backhaul),
                *(Satellite(name, self.leo.backhaul) for name in self.leo.names),
            ),
            access_points=tuple(
                AccessPoint(
                    f"uav{number + 1}",
                    motion,
                    self.uavs.range_m,
                    self.uavs.backhaul,
                    _CHANNELS[number % len(_CHANNELS)],
                )
                for number, motion in enumerate(self.uavs.motions)
            ),
            host="host",
            traffic=self.traffic.of(stations, "host", self.duration_s, seed),
            **self.controller.figures,
            snap_length_bytes=self.captures.snap_length_bytes,
            reluctance=self.association.reluctance,
        )
