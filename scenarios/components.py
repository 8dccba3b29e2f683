"""The parts that the shipped experiments are made of, each with its parameters and defaults.

The defaults are those of `scenarios.direct_move.DirectMove`, which says where they come from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

import mobility
from mobility import satcom
from mobility.steps import Steps
from scenarios.parameters import Parameter
from scenarios.scenario import (
    Block,
    Buffer,
    Channel,
    CongestionControl,
    Delay,
    Link,
    LinkState,
    Loss,
    Prediction,
    QueueDiscipline,
    Range,
    Rate,
    Station,
    Traffic,
)

Duration = Annotated[
    float, Parameter(unit="s", meaning="length of a run", minimum=1, maximum=86_400, whole=True)
]
EntryTime = Annotated[
    float,
    Parameter(
        unit="s",
        meaning="when the ships enter the UAV's range",
        minimum=0,
        above=True,
        maximum=86_400,
    ),
]


class WithBackhaul:
    """What has a link to shore among its parameters."""

    rate_bps: float
    delay_s: float
    loss: float
    buffer_packets: int

    @property
    def backhaul(self) -> Link:
        """The link to shore."""
        return Link(
            rate_bps=self.rate_bps,
            delay_s=self.delay_s,
            loss=self.loss,
            buffer_packets=self.buffer_packets,
        )


RAIN_STEP_S = 1.0
"""How often a satellite modem looks for another mode."""

LEAST_RATE_BPS = 1000
"""The lowest rate that a link may have."""


@dataclass(frozen=True)
class Rain:
    """A shower in the satellite's path: the modem falls back to modes of a lower rate.

    The fade comes, stays and goes linearly in dB (`mobility.satcom.rain_shower`), and every second
    the modem takes the fastest of DVB-S2's modes that the signal still allows
    (`mobility.satcom.capacity`; ETSI EN 302 307-1, table 13). ``rate_bps`` of the link is the rate
    in a clear sky; where no mode is left, the link is down.
    """

    peak_db: Annotated[
        float,
        Parameter(
            unit="dB", meaning="attenuation at the worst of a shower; 0: no rain", minimum=0,
            maximum=100,
        ),
    ] = 0.0  # fmt: skip
    clear_sky_db: Annotated[
        float,
        Parameter(
            unit="dB", meaning="signal to noise (Es/N0) without rain", minimum=-2.35, maximum=40
        ),
    ] = 12.0
    start_s: Annotated[
        float, Parameter(unit="s", meaning="when it begins", minimum=0, maximum=86_400)
    ] = 20.0
    rise_s: Annotated[
        float, Parameter(unit="s", meaning="how long it grows", minimum=0, maximum=86_400)
    ] = 10.0
    hold_s: Annotated[
        float, Parameter(unit="s", meaning="how long it stays", minimum=0, maximum=86_400)
    ] = 20.0
    fall_s: Annotated[
        float, Parameter(unit="s", meaning="how long it goes", minimum=0, maximum=86_400)
    ] = 10.0

    def over(self, clear: Link) -> Link:
        """Return a link with this rain in its path."""
        if self.peak_db == 0.0:
            return clear
        fade = satcom.rain_shower(
            self.peak_db, start_s=self.start_s, rise_s=self.rise_s, hold_s=self.hold_s,
            fall_s=self.fall_s, step_s=RAIN_STEP_S,
        )  # fmt: skip
        # In steps of 2^-20 bits per symbol, which rounds no two modes to one.
        bits = satcom.capacity(fade, clear_sky_db=self.clear_sky_db, symbols_per_s=2.0**20)
        most = satcom.capacity(
            Steps(np.zeros(1), np.zeros(1)),
            clear_sky_db=self.clear_sky_db,
            symbols_per_s=2.0**20,
        ).values[0]
        states: list[LinkState] = []
        for time_s, left in zip(bits.times_s.tolist(), bits.values.tolist(), strict=True):
            before = states[-1] if states else clear.at(0.0)
            cause = f"rain fade {fade.at(time_s)[0]:.1f} dB"
            rate_bps = math.floor(clear.rate_bps * left / most)
            if rate_bps < LEAST_RATE_BPS:
                state = replace(before, time_s=time_s, loss=1.0, cause=cause)
            else:
                state = LinkState(time_s, rate_bps, clear.delay_s, clear.loss, cause)
            if replace(state, time_s=0.0, cause="") != replace(before, time_s=0.0, cause=""):
                states.append(state)
        return replace(clear, profile=tuple(states))


@dataclass(frozen=True)
class Satcom(WithBackhaul):
    """The satellite path, in range all the time."""

    rate_bps: Rate = 50e6
    delay_s: Delay = 0.25
    loss: Loss = 0.0
    buffer_packets: Buffer = 500
    rain: Rain = field(default_factory=Rain)

    @property
    def backhaul(self) -> Link:
        """The link to shore, with the weather in its path."""
        return self.rain.over(super().backhaul)


@dataclass(frozen=True)
class Uav(WithBackhaul):
    """The UAV: its link to shore, its radio, its place above the sea."""

    rate_bps: Rate = 1e6
    delay_s: Delay = 0.01
    loss: Loss = 0.0
    buffer_packets: Buffer = 8
    range_m: Range = 3000.0
    altitude_m: Annotated[
        float,
        Parameter(unit="m", meaning="height of the UAV above the sea", minimum=0, maximum=30_000),
    ] = 300.0
    channel: Channel = 1

    def half_chord_m(self, offset_m: float) -> float:
        """Half of the way through its range, at sea level, of a track that passes beside it."""
        closest_m = math.hypot(offset_m, self.altitude_m)
        return math.sqrt((self.range_m - closest_m) * (self.range_m + closest_m))


@dataclass(frozen=True)
class Ships:
    """The mobile users."""

    count: Annotated[
        int, Parameter(unit="ships", meaning="number of ships", minimum=1, maximum=50)
    ] = 2
    speed_mps: Annotated[
        float,
        Parameter(unit="m/s", meaning="speed of every ship", minimum=0, above=True, maximum=100),
    ] = 15.0
    spacing_m: Annotated[
        float,
        Parameter(unit="m", meaning="distance between neighbouring tracks", minimum=0, maximum=1e5),
    ] = 200.0

    @property
    def offsets_m(self) -> list[float]:
        """Where their parallel tracks are, from the middle of them."""
        middle = (self.count - 1) / 2
        return [(number - middle) * self.spacing_m for number in range(self.count)]

    @property
    def outermost_m(self) -> float:
        """How far the outermost track is from the middle."""
        return max(self.offsets_m)


@dataclass(frozen=True)
class Load:
    """What each ship sends to the host."""

    rate_bps: Rate = 3e6
    congestion_control: CongestionControl = "cubic"
    block_bytes: Block = 1400

    def of(self, stations: Sequence[Station], host: str, duration_s: float) -> tuple[Traffic, ...]:
        """One connection from every station to the host, for the whole run."""
        return tuple(
            Traffic(
                user=station.name,
                host=host,
                rate_bps=self.rate_bps,
                start_s=0.0,
                duration_s=duration_s,
                congestion_control=self.congestion_control,
                block_bytes=self.block_bytes,
            )
            for station in stations
        )


@dataclass(frozen=True)
class Association:
    """When the radio of a ship changes to an access point that is nearer than its own.

    Distances are compared as shares of the ranges (`mobility.Reluctance`).
    """

    ratio: Annotated[
        float,
        Parameter(
            meaning="how many times nearer another access point must be, and how many times its "
            "range one in use may be away",
            minimum=1,
            maximum=10,
        ),
    ] = 1.2
    dwell_s: Annotated[
        float,
        Parameter(
            unit="s",
            meaning="how long the other must have been that much nearer",
            minimum=0,
            maximum=86_400,
        ),
    ] = 2.0

    @property
    def reluctance(self) -> mobility.Reluctance:
        """The same, as a scenario takes it."""
        return mobility.Reluctance(self.ratio, self.dwell_s)


@dataclass(frozen=True)
class Controller:
    """Figures the controller solves and deploys with."""

    capacity_share: Annotated[
        float,
        Parameter(
            meaning="share of a link that guaranteed queue rates may add up to",
            minimum=0,
            above=True,
            maximum=1,
        ),
    ] = 0.95
    mean_packet_bits: Annotated[
        float,
        Parameter(
            unit="bit", meaning="mean packet of the delay model", minimum=0, above=True, maximum=1e6
        ),
    ] = 12000.0
    kappa: Annotated[
        float,
        Parameter(
            meaning="coefficient of the queueing delay; 1 is M/M/1",
            minimum=0,
            above=True,
            maximum=1000,
        ),
    ] = 1.0
    header_overhead: Annotated[
        float,
        Parameter(
            meaning="bits on the wire for each bit of application data", minimum=1, maximum=10
        ),
    ] = 1.07
    queue_discipline: QueueDiscipline = "codel"
    prediction: Prediction = "none"
    killed_at_s: Annotated[
        float,
        Parameter(
            unit="s",
            meaning="when the controller is killed, as by a crash; 0 is never",
            minimum=0,
            maximum=86_400,
        ),
    ] = 0.0
    away_s: Annotated[
        float,
        Parameter(
            unit="s",
            meaning="how long a killed controller stays away",
            minimum=1,
            maximum=86_400,
        ),
    ] = 10.0

    @property
    def figures(self) -> dict[str, Any]:
        """What a scenario takes from here, by the names that it has there."""
        killed = self.killed_at_s > 0
        return {
            "mean_packet_bits": self.mean_packet_bits,
            "capacity_share": self.capacity_share,
            "kappa": self.kappa,
            "header_overhead": self.header_overhead,
            "queue_discipline": self.queue_discipline,
            "prediction": self.prediction,
            "outage_s": (self.killed_at_s, self.killed_at_s + self.away_s) if killed else None,
        }


@dataclass(frozen=True)
class Captures:
    """What is recorded of every packet."""

    snap_length_bytes: Annotated[
        int,
        Parameter(unit="byte", meaning="bytes kept of every packet", minimum=96, maximum=262_144),
    ] = 128
