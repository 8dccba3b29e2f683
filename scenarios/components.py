"""The parts that the shipped experiments are made of, each with its parameters and defaults.

The defaults are those of `scenarios.direct_move.DirectMove`, which says where they come from.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

import mobility
from mobility import satcom
from mobility.steps import Steps
from scenarios.errors import ScenarioError
from scenarios.parameters import Parameter
from scenarios.scenario import (
    Buffer,
    Channel,
    Delay,
    Link,
    LinkState,
    Loss,
    Prediction,
    QueueDiscipline,
    Range,
    Station,
)
from scenarios.traffic import (
    LARGEST_DATAGRAM_BYTES,
    Application,
    Block,
    CongestionControl,
    Constant,
    Files,
    Messages,
    OnOff,
    Rate,
    Requests,
    Traffic,
)

_DIRECTIONS = ("up", "down")

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
            maximum=100, later=True,
        ),
    ] = 0.0  # fmt: skip
    clear_sky_db: Annotated[
        float,
        Parameter(
            unit="dB",
            meaning="signal to noise (Es/N0) without rain",
            minimum=-2.35,
            maximum=40,
            later=True,
        ),
    ] = 12.0
    start_s: Annotated[
        float,
        Parameter(unit="s", meaning="when it begins", minimum=0, maximum=86_400, later=True),
    ] = 20.0
    rise_s: Annotated[
        float,
        Parameter(unit="s", meaning="how long it grows", minimum=0, maximum=86_400, later=True),
    ] = 10.0
    hold_s: Annotated[
        float,
        Parameter(unit="s", meaning="how long it stays", minimum=0, maximum=86_400, later=True),
    ] = 20.0
    fall_s: Annotated[
        float,
        Parameter(unit="s", meaning="how long it goes", minimum=0, maximum=86_400, later=True),
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
            rate_bps = math.floor(clear.rate_bps * (left / most))
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

    def check_range(self, key: str, range_m: float, height_key: str, height_m: float) -> None:
        """Refuse a range that not all ships come into which pass below its centre.

        Parameters
        ----------
        key, height_key : str
            Dotted names of the slant range, and of the height of its centre above the sea.
        range_m, height_m : float

        Raises
        ------
        ScenarioError
            If the outermost ship stays out of it.
        """
        nearest_m = math.hypot(self.outermost_m, height_m)
        if range_m <= nearest_m:
            raise ScenarioError(
                key,
                f"must be more than {nearest_m:g} m, the closest that the outermost ship comes "
                f"({height_key}, ships.spacing_m), not {range_m:g}",
                range_m,
            )


def check_entry(entry_time_s: float, duration_s: float) -> None:
    """Refuse a run that ends before ships come into range.

    Raises
    ------
    ScenarioError
        If it does.
    """
    if entry_time_s >= duration_s:
        raise ScenarioError(
            "entry_time_s",
            f"must be less than duration_s ({duration_s:g} s), because the experiment is about "
            f"handovers, not {entry_time_s:g}",
            entry_time_s,
        )


@dataclass(frozen=True)
class Load:
    """What each ship sends to the host, or gets from there: the same for all of them.

    ``kind`` says how ``rate_bps``, the mean rate of each connection, comes about
    (`scenarios.traffic`). Only for ``requests`` the rate follows from what the network answers, and
    ``rate_bps`` plays no part.
    """

    rate_bps: Rate = 3e6
    congestion_control: CongestionControl = "cubic"
    block_bytes: Block = 1400
    kind: Annotated[
        str,
        Parameter(
            meaning="how traffic comes about",
            pattern="bulk|constant|on-off|messages|files|requests",
            pattern_meaning="bulk (iperf3), constant (messages at equal distances), on-off, "
            "messages (Poisson), files (Poisson) or requests (with responses)",
            later=True,
        ),
    ] = "bulk"
    direction: Annotated[
        str,
        Parameter(
            meaning="the way of the data; with requests, of the responses",
            pattern="up|down|both",
            pattern_meaning="up (to the host), down or both",
            later=True,
        ),
    ] = "up"
    transport: Annotated[
        str,
        Parameter(
            meaning="transport protocol of constant, on-off and messages",
            pattern="tcp|udp",
            pattern_meaning="tcp (multipath TCP under mptcp and fdm) or udp",
            later=True,
        ),
    ] = "tcp"
    connections: Annotated[
        int,
        Parameter(
            meaning="connections of a ship and direction, each with rate_bps; with files, "
            "independent sources",
            minimum=1,
            maximum=16,
            later=True,
        ),
    ] = 1
    size_bytes: Annotated[
        int,
        Parameter(
            unit="bytes", meaning="size of a file or response", minimum=1, maximum=10**9, later=True
        ),
    ] = 200_000
    request_bytes: Annotated[
        int,
        Parameter(
            unit="bytes", meaning="size of a request", minimum=1, maximum=1 << 20, later=True
        ),
    ] = 300
    think_s: Annotated[
        float,
        Parameter(
            unit="s",
            meaning="mean time from a response to the next request",
            minimum=1e-3,
            maximum=86_400,
            later=True,
        ),
    ] = 2.0
    on_s: Annotated[
        float,
        Parameter(
            unit="s", meaning="how long on-off is on, mean", minimum=0.01, maximum=3600, later=True
        ),
    ] = 2.0
    off_s: Annotated[
        float,
        Parameter(
            unit="s", meaning="how long on-off is off, mean", minimum=0.01, maximum=3600, later=True
        ),
    ] = 2.0
    datagrams_bps: Annotated[
        float,
        Parameter(
            unit="bit/s",
            meaning="rate of UDP datagrams beside, at equal distances; 0 is none",
            minimum=0,
            maximum=1e9,
            whole=True,
            later=True,
        ),
    ] = 0.0
    datagram_bytes: Annotated[
        int,
        Parameter(
            unit="bytes",
            meaning="size of such a datagram",
            minimum=64,
            maximum=LARGEST_DATAGRAM_BYTES,
            later=True,
        ),
    ] = 200

    def check(self) -> None:
        """Raise ScenarioError where parameters do not fit together."""
        if self.transport == "udp":
            if self.kind in ("bulk", "files", "requests"):
                raise ScenarioError(
                    "traffic.transport",
                    f"must be tcp with traffic.kind {self.kind}, which needs every byte, not 'udp'",
                    self.transport,
                )
            if self.block_bytes > LARGEST_DATAGRAM_BYTES:
                raise ScenarioError(
                    "traffic.block_bytes",
                    f"must be at most {LARGEST_DATAGRAM_BYTES} with traffic.transport udp, so that "
                    f"a datagram is one packet, not {self.block_bytes}",
                    self.block_bytes,
                )

    def of(
        self, stations: Sequence[Station], host: str, duration_s: float, seed: int
    ) -> tuple[Traffic | Application, ...]:
        """The same traffic between every station and the host, for the whole run.

        Parameters
        ----------
        stations : sequence of Station
        host : str
            Its name.
        duration_s : float
            Of the run.
        seed : int
            Of the run; every application draws numbers of its own.
        """
        directions = ("up", "down") if self.direction == "both" else (self.direction,)
        return tuple(
            each
            for index, station in enumerate(stations)
            for direction in directions
            for each in self._between(
                direction,
                (index, _DIRECTIONS.index(direction)),
                {
                    "user": station.name,
                    "host": host,
                    "start_s": 0.0,
                    "duration_s": duration_s,
                    "direction": direction,
                    "congestion_control": self.congestion_control,
                },
                seed,
            )
        )

    def _between(
        self, direction: str, stream: tuple[int, ...], ends: dict[str, Any], seed: int
    ) -> Iterator[Traffic | Application]:
        """What one station has in one direction."""
        if self.kind == "bulk":
            yield Traffic(
                **ends,
                rate_bps=self.rate_bps,
                block_bytes=self.block_bytes,
                connections=self.connections,
            )
        else:
            for connection in range(self.connections):
                yield self._application({**ends, "seed": seed, "stream": (*stream, connection)})
        if self.datagrams_bps > 0:
            yield Constant(
                **ends,
                rate_bps=self.datagrams_bps,
                block_bytes=self.datagram_bytes,
                transport="udp",
            )

    def _application(self, common: dict[str, Any]) -> Application:
        if self.kind == "files":
            interval_s = 8.0 * self.size_bytes / self.rate_bps
            return Files(**common, size_bytes=self.size_bytes, interval_s=interval_s)
        if self.kind == "requests":
            return Requests(
                **common,
                request_bytes=self.request_bytes,
                response_bytes=self.size_bytes,
                think_s=self.think_s,
            )
        common |= {"block_bytes": self.block_bytes, "transport": self.transport}
        if self.kind == "on-off":
            while_on_bps = float(round(self.rate_bps * (1.0 + self.off_s / self.on_s)))
            return OnOff(**common, rate_bps=while_on_bps, on_s=self.on_s, off_s=self.off_s)
        kind = Constant if self.kind == "constant" else Messages
        return kind(**common, rate_bps=self.rate_bps)


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
