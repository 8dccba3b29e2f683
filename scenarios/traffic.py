"""Who sends what to whom and when: bulk transfers, and applications whose schedule is data.

A `Traffic` is a bulk connection that offers a rate for a time. An `Application` sends messages,
files or requests of which each has its moment and its size; `Application.schedule` says all of them
before anything runs, the same for the same seed on any machine.

Directions are seen from a station: ``up`` is from the station to the host, ``down`` from the host
to the station. Every connection is opened by the station, whichever way its data go.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from mobility.draws import Draws
from scenarios.errors import ScenarioError
from scenarios.parameters import Parameter, check

Rate = Annotated[
    float, Parameter(unit="bit/s", meaning="rate", minimum=1e3, maximum=1e11, whole=True)
]
CongestionControl = Annotated[
    str,
    Parameter(
        meaning="TCP congestion control",
        pattern=r"[a-z][a-z0-9_]{0,14}",
        pattern_meaning="the name of a congestion control of the kernel, such as cubic or bbr",
    ),
]
Block = Annotated[
    int,
    Parameter(
        unit="bytes", meaning="bytes the application writes at a time", minimum=64, maximum=1 << 20
    ),
]
Direction = Annotated[
    str,
    Parameter(
        meaning="the way of the data",
        pattern="up|down",
        pattern_meaning="up (from the station to the host) or down",
    ),
]
Transport = Annotated[
    str,
    Parameter(
        meaning="transport protocol",
        pattern="tcp|udp",
        pattern_meaning="tcp (multipath TCP under mptcp and fdm) or udp",
    ),
]
Size = Annotated[
    int, Parameter(unit="bytes", meaning="size of a file or response", minimum=1, maximum=10**9)
]
Request = Annotated[
    int, Parameter(unit="bytes", meaning="size of a request", minimum=1, maximum=1 << 20)
]
Start = Annotated[float, Parameter(unit="s", meaning="run time at which it starts", minimum=0)]
Period = Annotated[
    float,
    Parameter(unit="s", meaning="how long on average", minimum=1e-3, maximum=86_400),
]
Seed = Annotated[int, Parameter(meaning="what the draws depend on", minimum=0)]

LARGEST_DATAGRAM_BYTES = 1400
"""So that a datagram is one frame of every link, also within a tunnel."""
MOST_ITEMS = 1_000_000
"""Messages, files or requests of one application."""


@dataclass(frozen=True)
class Traffic:
    """One bulk transfer between a station and the host at a given rate.

    Attributes
    ----------
    user, host : str
        Names of the station and of the host.
    rate_bps : float
        Application rate of each connection in whole bits per second.
    start_s, duration_s : float
        When it starts, in seconds of run time, and how long it sends, in whole seconds.
    congestion_control : str
        Name of a congestion control of the Linux kernel.
    block_bytes : int
        Bytes the application writes at a time.
    direction : str
        ``up`` or ``down``.
    connections : int
        Parallel connections.

    Raises
    ------
    ScenarioError
        If a value is outside its bounds.
    """

    user: str
    host: str
    rate_bps: Rate
    start_s: Start
    duration_s: Annotated[
        float, Parameter(unit="s", meaning="how long it sends", minimum=1, whole=True)
    ]
    congestion_control: CongestionControl
    block_bytes: Block
    direction: Direction = "up"
    connections: Annotated[
        int, Parameter(meaning="parallel connections", minimum=1, maximum=64)
    ] = 1

    def __post_init__(self) -> None:
        check(self, "traffic.")

    @property
    def transport_protocol(self) -> str:
        """``tcp``."""
        return "tcp"

    def offered_bps(self, direction: str) -> float:
        """Return what it offers in a direction, application data only."""
        return self.rate_bps * self.connections if direction == self.direction else 0.0

    def packet_bytes(self) -> int | None:
        """Return ``None``: TCP fills its segments."""
        return None


class Schedule(NamedTuple):
    """What an application sends, in order.

    Attributes
    ----------
    at_s : tuple of float
        When each item begins, in seconds of run time. For `Requests` it is the time to think
        before each, as the rest depends on the network.
    size_bytes : tuple of int
        Size of each, at least 8 bytes.
    """

    at_s: tuple[float, ...]
    size_bytes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Application(ABC):
    """A program at a station and its peer at the host.

    Attributes
    ----------
    user, host : str
        Names of the station and of the host.
    start_s, duration_s : float
        When it begins, in seconds of run time, and for how long something may begin.
    direction : str
        The way of the data: ``up`` or ``down``.
    congestion_control : str
        Name of a congestion control of the Linux kernel.
    seed : int
        Of the run.
    stream : tuple of int
        Numbers that tell the draws of one application from those of others.
    """

    kind: ClassVar[str]

    user: str
    host: str
    start_s: Start
    duration_s: Annotated[
        float, Parameter(unit="s", meaning="how long it goes on", minimum=0, above=True)
    ]
    direction: Direction = "up"
    congestion_control: CongestionControl = "cubic"
    seed: Seed = 0
    stream: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check(self, "traffic.")
        if self.expected_items > MOST_ITEMS:
            raise ScenarioError(
                "traffic",
                f"must send at most {MOST_ITEMS} items, but {self.kind} of {self.user} are some "
                f"{self.expected_items:.0f}",
            )

    @property
    def transport_protocol(self) -> str:
        """``tcp`` or ``udp``."""
        return "tcp"

    @property
    @abstractmethod
    def expected_items(self) -> float:
        """How many items there are on average."""

    @abstractmethod
    def schedule(self) -> Schedule:
        """Return what is sent when: the same for equal fields, on any machine."""

    @abstractmethod
    def offered_bps(self, direction: str) -> float:
        """Return what it offers on average in a direction, application data only."""

    def packet_bytes(self) -> int | None:
        """Return the application data in a packet, or ``None`` where TCP fills its segments."""
        return None

    def _draws(self) -> Draws:
        return Draws(self.seed, *self.stream, _STREAMS.index(self.kind), 0)

    @property
    def _end_s(self) -> float:
        return self.start_s + self.duration_s


def _check_datagrams(application: "Constant | Messages") -> None:
    if application.transport == "udp" and application.block_bytes > LARGEST_DATAGRAM_BYTES:
        raise ScenarioError(
            "traffic.block_bytes",
            f"must be at most {LARGEST_DATAGRAM_BYTES} with udp, so that a datagram is one packet, "
            f"not {application.block_bytes}",
            application.block_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class Constant(Application):
    """Messages at a constant rate: a sensor, a voice channel.

    Attributes
    ----------
    rate_bps : float
        Application rate while it sends.
    block_bytes : int
        Size of a message, or datagram.
    transport : str
        ``tcp`` or ``udp``.
    """

    kind: ClassVar[str] = "constant"

    rate_bps: Rate
    block_bytes: Block = 1400
    transport: Transport = "tcp"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_datagrams(self)

    @property
    def transport_protocol(self) -> str:
        return self.transport

    @property
    def interval_s(self) -> float:
        """Between two messages while it sends."""
        return 8.0 * self.block_bytes / self.rate_bps

    @property
    def expected_items(self) -> float:
        return self.duration_s / self.interval_s

    def schedule(self) -> Schedule:
        return self._schedule([(self.start_s, self._end_s)])

    def offered_bps(self, direction: str) -> float:
        return self.rate_bps if direction == self.direction else 0.0

    def packet_bytes(self) -> int | None:
        return self.block_bytes

    def _schedule(self, periods: list[tuple[float, float]]) -> Schedule:
        at_s: list[float] = []
        for begin_s, end_s in periods:
            number = 0
            while (moment_s := begin_s + number * self.interval_s) < end_s:
                at_s.append(moment_s)
                number += 1
        return Schedule(tuple(at_s), (self.block_bytes,) * len(at_s))


@dataclass(frozen=True, kw_only=True)
class OnOff(Constant):
    """A source that is on and off in turn, for exponentially distributed times.

    The classic model of speech with silence suppression (P. T. Brady, "A model for generating
    on-off speech patterns in two-way conversation", BSTJ 48(7), 1969).

    Attributes
    ----------
    rate_bps : float
        Application rate while it is on.
    on_s, off_s : float
        Mean lengths of the two; it is on at the start.
    """

    kind: ClassVar[str] = "on-off"

    on_s: Period = 1.0
    off_s: Period = 1.0

    @property
    def share(self) -> float:
        """Share of the time that it is on, in the long run."""
        return self.on_s / (self.on_s + self.off_s)

    @property
    def expected_items(self) -> float:
        turns = self.duration_s / (self.on_s + self.off_s)
        return super().expected_items * self.share + turns

    def schedule(self) -> Schedule:
        draws, periods, now_s = self._draws(), [], self.start_s
        while now_s < self._end_s:
            until_s = now_s + self.on_s * draws.exponential()
            periods.append((now_s, min(until_s, self._end_s)))
            now_s = until_s + self.off_s * draws.exponential()
        return self._schedule(periods)

    def offered_bps(self, direction: str) -> float:
        return super().offered_bps(direction) * self.share


@dataclass(frozen=True, kw_only=True)
class Messages(Application):
    """Messages that come at random, a Poisson process: reports, chat, orders.

    Attributes
    ----------
    rate_bps : float
        Mean application rate, which sets how many messages there are.
    block_bytes : int
        Size of each.
    transport : str
        ``tcp`` or ``udp``.
    """

    kind: ClassVar[str] = "messages"

    rate_bps: Rate
    block_bytes: Block = 1400
    transport: Transport = "tcp"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_datagrams(self)

    @property
    def transport_protocol(self) -> str:
        return self.transport

    @property
    def interval_s(self) -> float:
        """Mean time between two messages."""
        return 8.0 * self.block_bytes / self.rate_bps

    @property
    def expected_items(self) -> float:
        return self.duration_s / self.interval_s

    def schedule(self) -> Schedule:
        return _poisson(self, self.interval_s, self.block_bytes)

    def offered_bps(self, direction: str) -> float:
        return self.rate_bps if direction == self.direction else 0.0

    def packet_bytes(self) -> int | None:
        return self.block_bytes


@dataclass(frozen=True, kw_only=True)
class Files(Application):
    """Files that come at random, a Poisson process, each over a connection of its own.

    Attributes
    ----------
    size_bytes : int
        Size of each.
    interval_s : float
        Mean time from one to the next; a file may begin while others are under way.
    """

    kind: ClassVar[str] = "files"

    size_bytes: Size
    interval_s: Period

    @property
    def expected_items(self) -> float:
        return self.duration_s / self.interval_s

    def schedule(self) -> Schedule:
        return _poisson(self, self.interval_s, self.size_bytes)

    def offered_bps(self, direction: str) -> float:
        return 8.0 * self.size_bytes / self.interval_s if direction == self.direction else 0.0


@dataclass(frozen=True, kw_only=True)
class Requests(Application):
    """A request, its response, a time to think, and the next request, on one connection.

    `direction` is the way of the responses: with ``down`` the station asks and the host answers.

    Attributes
    ----------
    request_bytes, response_bytes : int
        Sizes.
    think_s : float
        Mean time from a response to the next request, exponentially distributed.
    """

    kind: ClassVar[str] = "requests"

    request_bytes: Request = 300
    response_bytes: Size
    think_s: Period

    @property
    def expected_items(self) -> float:
        """How many requests there are if every response comes at once."""
        return self.duration_s / self.think_s

    def schedule(self) -> Schedule:
        draws, think_s, total_s = self._draws(), [], 0.0
        while total_s < self.duration_s:
            think_s.append(self.think_s * draws.exponential())
            total_s += think_s[-1]
        return Schedule(tuple(think_s), (self.response_bytes,) * len(think_s))

    def offered_bps(self, direction: str) -> float:
        """Return the most it can offer: what it would if every response came at once."""
        size = self.response_bytes if direction == self.direction else self.request_bytes
        return 8.0 * size / self.think_s


_STREAMS = tuple(each.kind for each in (Constant, OnOff, Messages, Files, Requests))


def _poisson(application: Application, interval_s: float, size_bytes: int) -> Schedule:
    draws, at_s = application._draws(), []
    now_s = application.start_s + interval_s * draws.exponential()
    while now_s < application._end_s:
        at_s.append(now_s)
        now_s += interval_s * draws.exponential()
    return Schedule(tuple(at_s), (size_bytes,) * len(at_s))
