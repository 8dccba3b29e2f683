"""Direct move: two ships sail straight into the range of a UAV."""

from dataclasses import dataclass, field
from typing import ClassVar

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
from scenarios.scenario import AccessPoint, Satellite, Scenario, Station


@dataclass(frozen=True)
class DirectMove(Experiment):
    """Two ships under a satellite sail straight into the range of a UAV (Zhao et al. 2018).

    It stands for the plainest handover there is: users that have only a slow-to-answer satellite
    gain a quick but narrow path at a known instant, and keep it. What is worth watching is how
    long the transfer pauses at that instant and how the narrow path is shared afterwards.

    The experiment is the first of Q. Zhao, P. Du, M. Gerla, A. Brown and J. Kim, "Software
    Defined Multi-Path TCP Solution for Mobile Wireless Tactical Networks" (2018, slides 17-19).

    **Taken from there**: two users and one host; 3 Mbit/s sent by each user with iperf3; SATCOM
    an Open vSwitch with 250 ms and 50 Mbit/s; UAV an Open vSwitch access point with 10 ms and
    1 Mbit/s; 100 s in all; both users enter the UAV's range at 60 s. The averages it reports
    (0.4875 Mbit/s for single-path TCP, 0.3728 for MPTCP, 0.4188 for MPTCP with flow deviation)
    are kept as `REFERENCE_GOODPUT_BPS` and printed beside ours; it does not say what limits them
    to a sixth of what is sent over a path of 50 Mbit/s, and nothing here is tuned towards them.

    **Chosen here**, where it is silent:

    - ``satcom.delay_s``, ``uav.delay_s`` are one way, so a round trip over the satellite takes
      0.5 s. A geostationary bent pipe takes 0.24 to 0.28 s one way, which is the figure given.
    - The UAV's 1 Mbit/s is its own link to shore, shared by the users associated with it. Were
      it the radio of each user, nothing would be contended and there would be nothing to
      allocate.
    - SATCOM is always in range and its 50 Mbit/s are shared as well.
    - ``ships.speed_mps`` 15 m/s, about 30 knots: a frigate in a hurry. Parallel tracks eastwards
      ``ships.spacing_m`` = 200 m apart, symmetric about the UAV's ground point.
    - ``uav.range_m`` 3000 m is a *slant* range, measured through space, as radio is; the UAV
      hovers at ``uav.altitude_m`` = 300 m over the origin. That is the order of a line-of-sight
      Wi-Fi link with an unobstructed path over water. The ships are in range for about 400 s, so
      at the defaults they stay to the end; with ``uav.range_m=350`` they leave again 20 s after
      they entered, which gives the handover back.
    - Start positions follow from the rest: every ship crosses the range exactly at
      ``entry_time_s``. Outer tracks have a shorter chord and so start a little further east.
    - One connection a user, for the whole run, from its start.
    - ``traffic.congestion_control`` is cubic, the default of Linux.
    - ``traffic.block_bytes`` 1400, just less than one segment: at 3 Mbit/s iperf3 then writes
      every 4 ms. Its default of 128 KiB is one burst every 0.35 s, and a delay model with
      Poisson arrivals says little about a queue that is fed in bursts of 90 packets.
    - ``satcom.buffer_packets`` 500: one bandwidth-delay product at 12 Mbit/s, four times what a
      user sends, so that slow start and catching up after a handover fit; it drains in 0.12 s.
    - ``uav.buffer_packets`` 8: a TCP sender fills whatever buffer a queue has. Eight full packets
      drain in 0.24 s at the 0.388 Mbit/s that flow deviation gives each of two users, so that
      even a full queue makes the UAV no slower than the satellite. One bandwidth-delay product
      would be two packets, too few for TCP; Linux's own 1000 would be 12 s of queue.
    - ``controller.header_overhead`` 1.07: a full Ethernet frame of 1514 bytes carries 1420 bytes
      of data under 14 bytes of Ethernet, 40 of IPv4 and TCP, 12 of timestamps and up to 28 of
      MPTCP's DSS option (1514/1420 = 1.066). Queues count frames, so the demand on the wire is
      what the controller must solve for.
    - ``controller.mean_packet_bits`` 12000, a packet of 1500 bytes; ``controller.kappa`` 1, plain
      M/M/1; ``controller.capacity_share`` 0.95, which leaves room for acknowledgements, address
      resolution and the rounding of rates.
    - ``captures.snap_length_bytes`` 128: the headers with the longest MPTCP options take 14 + 20 +
      60 bytes, the rest is slack for tunnels and IPv6.

    A run differs between seeds only in what the network itself does: nothing here is random.
    """

    name: ClassVar[str] = "direct-move"
    REFERENCE_GOODPUT_BPS: ClassVar[dict[str, float]] = {
        "sptcp": 487_500.0,
        "mptcp": 372_800.0,
        "fdm": 418_800.0,
    }
    REFERENCE: ClassVar[str] = "Zhao et al. 2018"

    duration_s: Duration = 100.0
    entry_time_s: EntryTime = 60.0
    satcom: Satcom = field(default_factory=Satcom)
    uav: Uav = field(default_factory=Uav)
    ships: Ships = field(default_factory=Ships)
    traffic: Load = field(default_factory=Load)
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        check_entry(self.entry_time_s, self.duration_s)
        self.ships.check_range(
            "uav.range_m", self.uav.range_m, "uav.altitude_m", self.uav.altitude_m
        )

    def build(self, seed: int) -> Scenario:
        hover = mobility.Fixed((0.0, 0.0, self.uav.altitude_m))
        stations = []
        for number, offset_m in enumerate(self.ships.offsets_m, start=1):
            half_chord_m = self.uav.half_chord_m(offset_m)
            start_m = -half_chord_m - self.ships.speed_mps * self.entry_time_s
            track = mobility.Straight((start_m, offset_m, 0.0), (self.ships.speed_mps, 0.0, 0.0))
            stations.append(Station(f"ship{number}", track))
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=tuple(stations),
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
