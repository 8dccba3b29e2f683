"""Random walk: two ships that come into the range of a UAV and leave it again and again."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import mobility
from scenarios.components import Captures, Controller, Duration, Load, Satcom, Uav
from scenarios.errors import ScenarioError
from scenarios.experiment import Experiment
from scenarios.parameters import Parameter
from scenarios.scenario import AccessPoint, Satellite, Scenario, Station


@dataclass(frozen=True)
class Walk:
    """How the ships move."""

    count: Annotated[
        int, Parameter(unit="ships", meaning="number of ships", minimum=1, maximum=50)
    ] = 2
    least_speed_mps: Annotated[
        float, Parameter(unit="m/s", meaning="lowest speed of a leg", minimum=0, maximum=100)
    ] = 10.0
    greatest_speed_mps: Annotated[
        float,
        Parameter(unit="m/s", meaning="highest speed of a leg", minimum=0, above=True, maximum=100),
    ] = 20.0
    shortest_leg_s: Annotated[
        float,
        Parameter(unit="s", meaning="shortest leg", minimum=0.1, maximum=86_400),
    ] = 5.0
    longest_leg_s: Annotated[
        float,
        Parameter(unit="s", meaning="longest leg", minimum=0.1, maximum=86_400),
    ] = 15.0
    area_m: Annotated[
        float,
        Parameter(
            unit="m",
            meaning="side of the square, with the UAV above its middle, that ships stay in",
            minimum=1,
            maximum=1e6,
        ),
    ] = 400.0


@dataclass(frozen=True)
class RandomWalk(Experiment):
    """Two ships under a satellite wander in and out of the range of a UAV (Zhao et al. 2018).

    It stands for dense handovers: what an allocation costs when it must be made again every few
    seconds, and what a transfer keeps of the quick path when it is there only half of the time.

    The experiment is the second of Q. Zhao, P. Du, M. Gerla, A. Brown and J. Kim, "Software
    Defined Multi-Path TCP Solution for Mobile Wireless Tactical Networks" (2018, slides 20-22).

    **Taken from there**: everything that direct move takes from it, but for the motion: "2 users
    randomly move". The averages it reports (0.3121 Mbit/s for single-path TCP, 0.4738 for MPTCP,
    0.4602 for MPTCP with flow deviation) are kept as `REFERENCE_GOODPUT_BPS`.

    **Chosen here**, where it is silent, and otherwise as in direct move:

    - A random walk (T. Camp et al., "A survey of mobility models for ad hoc network research",
      2002): legs of a direction, a speed and a time of their own, each drawn evenly, reflected at
      the edges of ``ships.area_m`` = 400 m.
    - ``ships`` sail 10 to 20 m/s, 20 to 39 knots, and turn every 5 to 15 s. With the range below
      a ship changes its access every 15 s or so, which is dense, and still longer than
      TCP takes to find the new path's rate.
    - ``uav.range_m`` 350 m from ``uav.altitude_m`` 300 m covers a disc of 180 m about the middle,
      so that a ship is in range for 0.64 of the time on average.
    - Starts are drawn evenly in the area. Every seed is a walk of its own, the same on any
      machine and for every protocol.
    """

    name: ClassVar[str] = "random-walk"
    REFERENCE_GOODPUT_BPS: ClassVar[dict[str, float]] = {
        "sptcp": 312_100.0,
        "mptcp": 473_800.0,
        "fdm": 460_200.0,
    }
    REFERENCE: ClassVar[str] = "Zhao et al. 2018"

    duration_s: Duration = 100.0
    satcom: Satcom = field(default_factory=Satcom)
    uav: Uav = field(default_factory=lambda: Uav(range_m=350.0))
    ships: Walk = field(default_factory=Walk)
    traffic: Load = field(default_factory=Load)
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        for low, high in (
            ("least_speed_mps", "greatest_speed_mps"),
            ("shortest_leg_s", "longest_leg_s"),
        ):
            least, most = getattr(self.ships, low), getattr(self.ships, high)
            if least > most:
                raise ScenarioError(
                    f"ships.{low}",
                    f"must be at most ships.{high} ({most:g}), not {least:g}",
                    least,
                )
        corner_m = math.hypot(self.ships.area_m / 2, self.ships.area_m / 2)
        if not self.uav.altitude_m < self.uav.range_m < math.hypot(corner_m, self.uav.altitude_m):
            raise ScenarioError(
                "uav.range_m",
                f"must be more than uav.altitude_m ({self.uav.altitude_m:g} m) and less than the "
                f"way to the corners of the area ({math.hypot(corner_m, self.uav.altitude_m):g} "
                f"m), because the experiment is about handovers, not {self.uav.range_m:g}",
                self.uav.range_m,
            )

    def build(self, seed: int) -> Scenario:
        ships = self.ships
        stations = tuple(
            Station(
                f"ship{number + 1}",
                mobility.random_walk(
                    mobility.Area.square(ships.area_m),
                    speed_mps=(ships.least_speed_mps, ships.greatest_speed_mps),
                    leg_s=(ships.shortest_leg_s, ships.longest_leg_s),
                    duration_s=self.duration_s,
                    seed=seed,
                    stream=number,
                ),
            )
            for number in range(ships.count)
        )
        hover = mobility.Fixed((0.0, 0.0, self.uav.altitude_m))
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=stations,
            satellites=(Satellite("satcom", self.satcom.backhaul),),
            access_points=(
                AccessPoint("uav", hover, self.uav.range_m, self.uav.backhaul, self.uav.channel),
            ),
            host="host",
            traffic=self.traffic.of(stations, "host", self.duration_s, seed),
            **self.controller.figures,
            snap_length_bytes=self.captures.snap_length_bytes,
            reference_goodput_bps=dict(self.REFERENCE_GOODPUT_BPS) if self.as_published else {},
            reference=self.REFERENCE if self.as_published else "",
        )
