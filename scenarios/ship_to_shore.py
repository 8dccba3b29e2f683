"""Ship to shore: a satellite, then a UAV, then an access point on the coast."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import mobility
from scenarios.components import (
    Association,
    Captures,
    Controller,
    Duration,
    EntryTime,
    Load,
    Satcom,
    Ships,
    Uav,
    WithBackhaul,
    check_entry,
)
from scenarios.errors import ScenarioError
from scenarios.experiment import Experiment
from scenarios.parameters import Parameter
from scenarios.scenario import (
    AccessPoint,
    Buffer,
    Channel,
    Delay,
    Loss,
    Range,
    Satellite,
    Scenario,
    Station,
)
from scenarios.traffic import Rate


@dataclass(frozen=True)
class Coast(WithBackhaul):
    """The access point on the coast: its line to the host, its radio, its mast."""

    rate_bps: Rate = 20e6
    delay_s: Delay = 0.005
    loss: Loss = 0.0
    buffer_packets: Buffer = 50
    range_m: Range = 1500.0
    mast_m: Annotated[
        float,
        Parameter(unit="m", meaning="height of the mast above the sea", minimum=0, maximum=1000),
    ] = 30.0
    channel: Channel = 6


@dataclass(frozen=True)
class ShipToShore(Experiment):
    """Two craft under a satellite approach a coast: past a UAV first, then to a wide near link.

    It stands for an amphibious landing, or for coming home: access gets better in steps, from slow
    to answer (SATCOM) over near but narrow (UAV) to near and wide (coast). What is worth watching
    is the handover between two access points, for which a craft with one radio has to leave the
    first, and how soon a transfer makes use of twenty times the rate.

    Ships, shore and UAVs are the nodes of Q. Zhao, P. Du, M. Gerla, A. Brown and J. Kim, "Software
    Defined Multi-Path TCP Solution for Mobile Wireless Tactical Networks" (2018), which names ship
    to shore as a use, and reports no figures for it.

    **As in direct move**: SATCOM, the UAV's link and height, 3 Mbit/s a user, buffers, the
    controller's figures.

    **Chosen here**:

    - ``ships.speed_mps`` 20 m/s, 39 knots: the U.S. Navy's landing craft LCAC does 40 knots with
      its payload. Parallel tracks ``ships.spacing_m`` apart, straight towards the coast.
    - ``uav.range_m`` 800 m (slant) from 300 m above a place ``offshore_m`` = 1500 m before the
      coast; ``coast.range_m`` 1500 m from a mast of 30 m. A directional antenna on land reaches
      farther than what a small UAV carries. Both are short for the sake of a short run: what
      matters is that they overlap.
    - All craft enter the UAV's range at ``entry_time_s`` = 20 s, and the coast's about 37 s after
      that; until then the UAV has them all.
    - ``association.ratio`` 1.2, 1.6 dB in free space, and ``association.dwell_s`` 2 s: a craft
      changes to the coast where that has been 1.2 times nearer for 2 s, relative to the ranges,
      at about 85 s. So there are 65 s of the UAV and 35 s of the coast. Cellular networks work
      with a few dB and up to 5 s (3GPP TS 36.331, event A3, timeToTrigger). With a dwell longer
      than the run, a craft keeps the UAV until it is lost, at 1.2 times its range.
    - ``coast`` 20 Mbit/s, 5 ms one way, a line on land that holds all users with ease.
      ``coast.buffer_packets`` 50 drain in 30 ms.
    - The radios' channels are 1 and 6, which do not overlap.

    A run differs between seeds only in what the network itself does: nothing here is random.
    """

    name: ClassVar[str] = "ship-to-shore"

    duration_s: Duration = 120.0
    entry_time_s: EntryTime = 20.0
    offshore_m: Annotated[
        float,
        Parameter(unit="m", meaning="how far before the coast the UAV is", minimum=0, maximum=1e6),
    ] = 1500.0
    satcom: Satcom = field(default_factory=Satcom)
    uav: Uav = field(default_factory=lambda: Uav(range_m=800.0))
    coast: Coast = field(default_factory=Coast)
    association: Association = field(default_factory=Association)
    ships: Ships = field(default_factory=lambda: Ships(speed_mps=20.0))
    traffic: Load = field(default_factory=Load)
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        check_entry(self.entry_time_s, self.duration_s)
        uav, coast = self.uav, self.coast
        self.ships.check_range("uav.range_m", uav.range_m, "uav.altitude_m", uav.altitude_m)
        self.ships.check_range("coast.range_m", coast.range_m, "coast.mast_m", coast.mast_m)
        if self.ships.speed_mps * (self.duration_s - self.entry_time_s) > self._ashore_m():
            longest_s = self.entry_time_s + self._ashore_m() / self.ships.speed_mps
            raise ScenarioError(
                "duration_s",
                f"must be at most {math.floor(longest_s)} s, when the first ship is ashore "
                f"(offshore_m, uav.range_m, ships.speed_mps), not {self.duration_s:g}",
                self.duration_s,
            )

    def build(self, seed: int) -> Scenario:
        hover = mobility.Fixed((-self.offshore_m, 0.0, self.uav.altitude_m))
        mast = mobility.Fixed((0.0, 0.0, self.coast.mast_m))
        stations = tuple(
            Station(
                f"ship{number}",
                mobility.Straight(
                    (
                        -self.offshore_m
                        - self.uav.half_chord_m(offset_m)
                        - self.ships.speed_mps * self.entry_time_s,
                        offset_m,
                        0.0,
                    ),
                    (self.ships.speed_mps, 0.0, 0.0),
                ),
            )
            for number, offset_m in enumerate(self.ships.offsets_m, start=1)
        )
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=stations,
            satellites=(Satellite("satcom", self.satcom.backhaul),),
            access_points=(
                AccessPoint("uav", hover, self.uav.range_m, self.uav.backhaul, self.uav.channel),
                AccessPoint(
                    "coast", mast, self.coast.range_m, self.coast.backhaul, self.coast.channel
                ),
            ),
            host="host",
            traffic=self.traffic.of(stations, "host", self.duration_s, seed),
            **self.controller.figures,
            snap_length_bytes=self.captures.snap_length_bytes,
            reluctance=self.association.reluctance,
        )

    def _ashore_m(self) -> float:
        """From where the first ship enters the UAV's range to the coast."""
        return self.offshore_m + self.uav.half_chord_m(self.ships.outermost_m)
