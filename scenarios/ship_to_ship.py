"""Ship to ship: two ships meet a third, over its UAV or over a satellite's hub."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import mobility
from scenarios.components import (
    Captures,
    Controller,
    Duration,
    EntryTime,
    Load,
    Satcom,
    Ships,
    Uav,
    check_entry,
)
from scenarios.experiment import Experiment
from scenarios.parameters import Parameter
from scenarios.scenario import AccessPoint, Satellite, Scenario, Station

FLAGSHIP = "flagship"


@dataclass(frozen=True)
class ShipToShip(Experiment):
    """Two ships close on a flagship: over the satellite and its hub first, then over a UAV.

    It stands for a formation that gathers: pictures and orders go between ships both ways, far
    around over a satellite's hub on land, until a UAV above the flagship relays for all in its
    range. What is worth watching is how much sooner a file is there once the near path exists, and
    whether voice suffers from files that share its path.

    Ship to ship is a use that Q. Zhao, P. Du, M. Gerla, A. Brown and J. Kim, "Software Defined
    Multi-Path TCP Solution for Mobile Wireless Tactical Networks" (2018) name, and report no
    figures for.

    **How it is built**: the flagship is the host of the network, and behind every relay there is
    the leg to it. The UAV flies above the flagship and with it, so that the flagship is in its
    range all the time; it has its own terminal for the satellite. So the flagship hands over
    nothing, and has one address.

    **Chosen here**:

    - ``satcom.delay_s`` 0.5 s one way: in a star network, as most satellite terminals of ships are
      in, two ships hear each other over the hub only, up and down twice, 0.24 to 0.28 s each.
      ``satcom.rate_bps`` 4 Mbit/s, ``satcom.buffer_packets`` 500: 1.5 s.
    - ``uav`` as in direct move, with 2 Mbit/s: the second radio leg, from the UAV to the flagship.
      Of the two legs over the air the radio's own is that of Wi-Fi and no bottleneck.
    - The flagship, and the UAV above it, sail westwards with ``flagship_mps`` = 8 m/s, 16 knots;
      the others come towards them with ``ships.speed_mps`` 10 m/s, 19 knots. They enter the range
      at ``entry_time_s`` = 40 s and stay in it.
    - Every ship sends files of 200 kB both ways, with 0.8 Mbit/s on average each way: images, at
      one every two seconds; and a channel of 16 kbit/s in datagrams of 200 bytes each way,
      a vocoder's rate.

    The seed sets when files come.
    """

    name: ClassVar[str] = "ship-to-ship"

    duration_s: Duration = 100.0
    entry_time_s: EntryTime = 40.0
    flagship_mps: Annotated[
        float,
        Parameter(unit="m/s", meaning="speed of the flagship and its UAV", minimum=0, maximum=100),
    ] = 8.0
    satcom: Satcom = field(
        default_factory=lambda: Satcom(rate_bps=4e6, delay_s=0.5, buffer_packets=500)
    )
    uav: Uav = field(default_factory=lambda: Uav(rate_bps=2e6, buffer_packets=50))
    ships: Ships = field(default_factory=lambda: Ships(speed_mps=10.0))
    traffic: Load = field(
        default_factory=lambda: Load(
            rate_bps=0.8e6, kind="files", direction="both", datagrams_bps=16e3
        )
    )
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        check_entry(self.entry_time_s, self.duration_s)
        self.ships.check_range(
            "uav.range_m", self.uav.range_m, "uav.altitude_m", self.uav.altitude_m
        )

    def build(self, seed: int) -> Scenario:
        ships = self.ships
        above = mobility.Straight((0.0, 0.0, self.uav.altitude_m), (-self.flagship_mps, 0.0, 0.0))
        closing_mps = ships.speed_mps + self.flagship_mps
        stations = tuple(
            Station(
                f"ship{number}",
                mobility.Straight(
                    (
                        -self.uav.half_chord_m(offset_m) - closing_mps * self.entry_time_s,
                        offset_m,
                        0.0,
                    ),
                    (ships.speed_mps, 0.0, 0.0),
                ),
            )
            for number, offset_m in enumerate(ships.offsets_m, start=1)
        )
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=stations,
            satellites=(Satellite("satcom", self.satcom.backhaul),),
            access_points=(
                AccessPoint("uav", above, self.uav.range_m, self.uav.backhaul, self.uav.channel),
            ),
            host=FLAGSHIP,
            traffic=self.traffic.of(stations, FLAGSHIP, self.duration_s, seed),
            **self.controller.figures,
            snap_length_bytes=self.captures.snap_length_bytes,
        )
