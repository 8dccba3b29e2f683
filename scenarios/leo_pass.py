"""LEO pass: satellites of a low constellation take turns over two ships, beside a far, wide one."""

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar

import numpy as np

import mobility
from mobility.draws import Draws
from mobility.satcom import Site
from mobility.steps import Steps
from scenarios.components import (
    Captures,
    Controller,
    Duration,
    Load,
    Satcom,
    Ships,
)
from scenarios.errors import ScenarioError
from scenarios.experiment import Experiment
from scenarios.parameters import Parameter
from scenarios.scenario import (
    Buffer,
    Link,
    LinkState,
    Loss,
    Satellite,
    Scenario,
    Service,
    Station,
)
from scenarios.traffic import Rate

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Of the elements, and of the day from which a seed draws its moment."""

LOOK_S = 1.0

DELAY_STEP_S = 1e-4
"""The link is set anew when its delay has moved by so much, looked at every `LOOK_S`.

A satellite 550 km high comes or goes by at most 7 km/s as seen from the ground, which is 0.05 ms a
second over both legs."""

_DAY_S = 86_400.0

Latitude = Annotated[
    float, Parameter(unit="degrees", meaning="latitude, north positive", minimum=-90, maximum=90)
]
Longitude = Annotated[
    float, Parameter(unit="degrees", meaning="longitude, east positive", minimum=-180, maximum=180)
]


@dataclass(frozen=True)
class Place:
    """A place on the earth."""

    latitude_deg: Latitude
    longitude_deg: Longitude

    @property
    def site(self) -> Site:
        """The same, at sea level."""
        return Site(self.latitude_deg, self.longitude_deg)


@dataclass(frozen=True)
class Constellation:
    """The link over the low satellites, and where they are."""

    rate_bps: Rate = 4e6
    loss: Loss = 0.0
    buffer_packets: Buffer = 50
    ground_delay_s: Annotated[
        float,
        Parameter(
            unit="s", meaning="delay one way besides propagation: medium access, way from the "
            "gateway to the host", minimum=0, maximum=10,
        ),
    ] = 0.01  # fmt: skip
    satellites: Annotated[
        int, Parameter(meaning="satellites of the shell", minimum=1, maximum=5000)
    ] = 1584
    planes: Annotated[int, Parameter(meaning="planes of orbit", minimum=1, maximum=5000)] = 72
    phasing: Annotated[
        int,
        Parameter(meaning="Walker's F: phase between planes, in 360°/satellites", minimum=0,
                  maximum=4999),
    ] = 17  # fmt: skip
    altitude_m: Annotated[
        float, Parameter(unit="m", meaning="height of the orbits", minimum=160e3, maximum=2000e3)
    ] = 550e3
    inclination_deg: Annotated[
        float, Parameter(unit="degrees", meaning="inclination", minimum=0, maximum=180)
    ] = 53.0
    mask_deg: Annotated[
        float,
        Parameter(
            unit="degrees", meaning="elevation above which a satellite is used", minimum=0,
            maximum=89,
        ),
    ] = 25.0  # fmt: skip
    slot_s: Annotated[
        float,
        Parameter(
            unit="s", meaning="how often the satellite is chosen anew", minimum=1, maximum=3600
        ),
    ] = 15.0
    choice: Annotated[
        str,
        Parameter(
            meaning="which of the satellites in sight serves in a slot",
            pattern="drawn|highest",
            pattern_meaning="drawn (by lot, high ones more often) or highest",
        ),
    ] = "drawn"
    interruption_s: Annotated[
        float,
        Parameter(
            unit="s", meaning="how long nothing passes at a handover; 0: make before break",
            minimum=0, maximum=1, below=True,
        ),
    ] = 0.1  # fmt: skip


@dataclass(frozen=True)
class LeoPass(Experiment):
    """Two ships use a low constellation, whose satellites take turns, and a geostationary one.

    It stands for ships with two satellite terminals. The near path is quick, but its delay is never
    the same for long, and every few slots another satellite serves, with a pause and a jump of the
    delay; the far path is slow to answer, and wide. What is worth watching is what a transfer makes
    of pauses and jumps, and whether an allocation that knows the delay of both keeps the near path
    full and short.

    **As in direct move**: SATCOM with 250 ms and 50 Mbit/s, two ships on parallel tracks, 3 Mbit/s
    a user, the controller's figures.

    **From geometry**: the constellation is a Walker pattern of circular orbits, made as two-line
    elements (`mobility.satellites.walker`) and propagated with SGP4. A satellite serves while ships
    and gateway both see it above ``leo.mask_deg``; which one is decided anew in each slot
    (`mobility.satellites.assignments`). The delay is the way from ship over satellite to gateway at
    the speed of light, plus ``leo.ground_delay_s``; it is set anew whenever it has moved by 0.1 ms.

    **Taken from others**: 550 km, 53°, 72 planes of 22 and a mask of 25° are those of Starlink's
    first shell (FCC 21-48, on application SAT-MOD-20200417-00037), and so are the
    slots of 15 s (N. Mohan et al., "A multifaceted look at Starlink performance", WWW 2024).

    **Chosen here**:

    - ``leo.rate_bps`` 4 Mbit/s, shared: too little for both ships, so that there is something to
      allocate; a busy cell leaves each of its terminals no more.
    - ``leo.choice`` drawn: the operator's scheduler has others to serve, too, so that the satellite
      changes nearly every slot, as terminals see it. The highest would stay for a minute or two.
    - ``leo.interruption_s`` 0.1: break before make; packets that are sent meanwhile are lost. With
      0 the next satellite is there before the last one goes.
    - ``leo.ground_delay_s`` 10 ms, so that a round trip takes some 30 ms, as terminals of that
      constellation report; propagation is a third of it.
    - ``leo.buffer_packets`` 50, 0.15 s at the full rate. ``leo.phasing`` 17.
    - The ships are off Los Angeles, the gateway inland of it. They are points for the geometry:
      a kilometre changes the delay by 3 µs.
    - Every seed is another moment of a day, so another sequence of satellites.

    A station of one path starts on the low satellites and stays there; with several paths it uses
    both at once. There is no radio of short range.
    """

    name: ClassVar[str] = "leo-pass"

    duration_s: Duration = 100.0
    satcom: Satcom = field(default_factory=Satcom)
    leo: Constellation = field(default_factory=Constellation)
    place: Place = field(default_factory=lambda: Place(33.5, -119.5))
    gateway: Place = field(default_factory=lambda: Place(34.6, -117.4))
    ships: Ships = field(default_factory=Ships)
    traffic: Load = field(default_factory=Load)
    controller: Controller = field(default_factory=Controller)
    captures: Captures = field(default_factory=Captures)

    def check(self) -> None:
        if self.leo.satellites % self.leo.planes:
            raise ScenarioError(
                "leo.satellites",
                f"must be a multiple of leo.planes ({self.leo.planes}), not {self.leo.satellites}",
                self.leo.satellites,
            )
        if self.leo.phasing >= self.leo.planes:
            raise ScenarioError(
                "leo.phasing",
                f"must be less than leo.planes ({self.leo.planes}), not {self.leo.phasing}",
                self.leo.phasing,
            )

    def build(self, seed: int) -> Scenario:
        services, profile = self._pass(seed)
        nominal = next(state for state in profile if state.loss < 1.0)
        link = Link(
            rate_bps=self.leo.rate_bps,
            delay_s=nominal.delay_s,
            loss=self.leo.loss,
            buffer_packets=self.leo.buffer_packets,
            profile=profile if profile[0].loss == 1.0 else profile[1:],
        )
        stations = tuple(
            Station(
                f"ship{number}",
                mobility.Straight((0.0, offset_m, 0.0), (self.ships.speed_mps, 0.0, 0.0)),
            )
            for number, offset_m in enumerate(self.ships.offsets_m, start=1)
        )
        return Scenario(
            name=self.name,
            duration_s=self.duration_s,
            stations=stations,
            satellites=(
                Satellite("leo", link, services),
                Satellite("satcom", self.satcom.backhaul),
            ),
            access_points=(),
            host="host",
            traffic=self.traffic.of(stations, "host", self.duration_s, seed),
            **self.controller.figures,
            snap_length_bytes=self.captures.snap_length_bytes,
        )

    def _pass(self, seed: int) -> tuple[tuple[Service, ...], tuple[LinkState, ...]]:
        """Which spacecraft serves when, and what the link is like meanwhile."""
        # Takes a while to import, and no other experiment needs it.
        from mobility import satellites as orbits

        leo, ends = self.leo, (self.place.site, self.gateway.site)
        shell = orbits.walker(
            leo.satellites,
            leo.planes,
            leo.phasing,
            inclination_deg=leo.inclination_deg,
            altitude_m=leo.altitude_m,
            epoch=EPOCH,
            after_s=float(int(Draws(seed).between(0.0, _DAY_S))),
        )
        servings = orbits.assignments(
            shell,
            ends,
            self.duration_s,
            leo.mask_deg,
            leo.slot_s,
            seed if leo.choice == "drawn" else None,
        )
        if not servings:
            raise ScenarioError(
                "leo.mask_deg",
                "must let ships and gateway see a satellite of the constellation in the "
                f"{self.duration_s:g} s of the run (leo.satellites, place, gateway), not "
                f"{leo.mask_deg:g}",
                leo.mask_deg,
            )
        delay = orbits.delay_over_time(shell, servings, *ends, step_s=LOOK_S)
        services = tuple(Service(*serving) for serving in servings)
        return services, self._profile(services, delay)

    def _profile(self, services: tuple[Service, ...], delay: Steps) -> tuple[LinkState, ...]:
        """What the link is like, from the delay of propagation; where there is none, it is down."""
        leo = self.leo
        arriving = {service.start_s: service.spacecraft for service in services}
        first_s = float(delay.values[np.isfinite(delay.values)][0])
        states = [LinkState(0.0, leo.rate_bps, self._one_way_s(first_s), 1.0, "no satellite")]
        for time_s, propagation_s in zip(
            delay.times_s.tolist(), delay.values.tolist(), strict=True
        ):
            last = states[-1]
            if math.isinf(propagation_s):
                states.append(replace(last, time_s=time_s, loss=1.0, cause="no satellite"))
                continue
            delay_s = self._one_way_s(propagation_s)
            if time_s in arriving:
                cause = f"{arriving[time_s]} serves"
                if last.loss < 1.0 and leo.interruption_s > 0.0:
                    states.append(LinkState(time_s, leo.rate_bps, delay_s, 1.0, "handover"))
                    time_s += leo.interruption_s
                states.append(LinkState(time_s, leo.rate_bps, delay_s, leo.loss, cause))
            elif abs(delay_s - last.delay_s) >= DELAY_STEP_S:
                states.append(replace(last, time_s=time_s, delay_s=delay_s))
        if (end_s := services[-1].end_s) < self.duration_s:
            states.append(replace(states[-1], time_s=end_s, loss=1.0, cause="no satellite"))
        # Of several states of one moment, as at the start, the last one counts.
        return tuple({state.time_s: state for state in states}.values())

    def _one_way_s(self, propagation_s: float) -> float:
        """In whole microseconds, as netem takes it."""
        return round(propagation_s + self.leo.ground_delay_s, 6)
