"""What is simulated: links, connections over paths of links, and unresponsive sources."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.congestion import ALGORITHMS
from simulation.scheduling import SCHEDULERS


@dataclass(frozen=True)
class Link:
    """One direction of a link, with the queue in front of it.

    Parameters
    ----------
    rate_bps : float
        Infinite: packets do not wait.
    delay_s : float
        Propagation delay.
    buffer_packets : int, optional
        Packets that fit, with the one that is being sent; more are dropped. None: any number.
    loss : float
        Probability that a packet is lost at random.
    early_drop_packets : int
        In so many last places of the buffer packets are dropped at random, which keeps flows from
        marching in step. With the whole buffer this is RED (S. Floyd, V. Jacobson, IEEE/ACM ToN
        1 (4), 1993) on the length of the queue at that moment.
    early_drop_probability : float
        In the last place; in the others less, in proportion.

    Raises
    ------
    ValueError
        If a value is out of its range.
    """

    rate_bps: float = math.inf
    delay_s: float = 0.0
    buffer_packets: int | None = None
    loss: float = 0.0
    early_drop_packets: int = 0
    early_drop_probability: float = 0.1

    def __post_init__(self) -> None:
        _check("rate_bps", self.rate_bps, self.rate_bps > 0.0, "more than 0 bit/s")
        finite = 0.0 <= self.delay_s < math.inf
        _check("delay_s", self.delay_s, finite, "0 s or more, and finite")
        buffer = self.buffer_packets
        if buffer is not None:
            _check("buffer_packets", buffer, 1 <= buffer <= 1 << 24, "from 1 to 16777216")
        _check("loss", self.loss, 0.0 <= self.loss <= 1.0, "a probability")
        early = self.early_drop_packets
        _check("early_drop_packets", early, 0 <= early <= (buffer or 0), "part of the buffer")
        drop = self.early_drop_probability
        _check("early_drop_probability", drop, 0.0 <= drop <= 1.0, "a probability")


@dataclass(frozen=True)
class Path:
    """A way through the network.

    Parameters
    ----------
    links : sequence of int
        Indices of the links that data pass, in order.
    back : sequence of int
        Those that acknowledgments pass. None at all: they arrive at once.
    """

    links: Sequence[int]
    back: Sequence[int] = ()

    def __post_init__(self) -> None:
        _check("links", tuple(self.links), len(self.links) > 0, "one link or more")


@dataclass(frozen=True)
class Connection:
    """A transfer by TCP over one path, or by multipath TCP over several.

    Parameters
    ----------
    paths : sequence of Path
        One for each subflow.
    algorithm : str
        Congestion control, see `simulation.ALGORITHMS`. Over one path, all but ``cubic`` and
        ``wvegas`` are NewReno.
    packets : int, optional
        Length of the transfer. None: it does not end.
    rate_bps : float
        At which the application writes, in packets with their headers. Infinite: all is there from
        the start.
    scheduler : str
        Which subflow takes what the application writes, see `simulation.SCHEDULERS`.
    start_s : float
        When the subflows start, and the application.
    packet_bytes : int
        Size of data packets with their headers.
    acknowledgment_bytes : int
        Size of acknowledgments, which matters where they pass links.
    receive_window_packets : int
        Packets that a subflow may have under way at most; a power of two.
    initial_window_packets : int
        Default: RFC 5681, 3.1, for packets of more than 1095 bytes.
    rto_min_s : float
        Least retransmission timeout. Default: Linux's; RFC 6298 has 1 s.

    Raises
    ------
    ValueError
        If a value is out of its range.
    """

    paths: Sequence[Path]
    algorithm: str = "lia"
    packets: int | None = None
    rate_bps: float = math.inf
    scheduler: str = "lowest-rtt"
    start_s: float = 0.0
    packet_bytes: int = 1500
    acknowledgment_bytes: int = 40
    receive_window_packets: int = 4096
    initial_window_packets: int = 3
    rto_min_s: float = 0.2

    def __post_init__(self) -> None:
        _check("paths", tuple(self.paths), len(self.paths) > 0, "one path or more")
        known = self.algorithm in ALGORITHMS
        _check("algorithm", self.algorithm, known, f"one of {', '.join(ALGORITHMS)}")
        if self.packets is not None:
            _check("packets", self.packets, self.packets >= 1, "1 or more")
        _check("rate_bps", self.rate_bps, self.rate_bps > 0.0, "more than 0 bit/s")
        choices = f"one of {', '.join(SCHEDULERS)}"
        _check("scheduler", self.scheduler, self.scheduler in SCHEDULERS, choices)
        _check("start_s", self.start_s, 0.0 <= self.start_s < math.inf, "0 s or more")
        _check("packet_bytes", self.packet_bytes, self.packet_bytes >= 1, "1 or more")
        size = self.acknowledgment_bytes
        _check("acknowledgment_bytes", size, size >= 1, "1 or more")
        window = self.receive_window_packets
        power = 1 <= window <= 1 << 24 and window & (window - 1) == 0
        _check("receive_window_packets", window, power, "a power of two up to 16777216")
        first = self.initial_window_packets
        _check("initial_window_packets", first, 1 <= first <= window, "within the receive window")
        _check("rto_min_s", self.rto_min_s, 0.0 < self.rto_min_s <= 60.0, "more than 0, up to 60 s")


@dataclass(frozen=True)
class Source:
    """Packets at a rate that nothing slows down.

    Parameters
    ----------
    links : sequence of int
        Indices of the links that they pass.
    rate_bps : float
        While it sends.
    on_s, off_s : float
        Mean lengths of bursts and of pauses, exponentially distributed. Default: no pauses.
    poisson : bool
        Exponentially distributed times between packets, instead of equal ones.
    packet_bytes : int
        Size of packets with their headers.
    start_s : float
        When the first packet is sent.

    Raises
    ------
    ValueError
        If a value is out of its range.
    """

    links: Sequence[int]
    rate_bps: float
    on_s: float = math.inf
    off_s: float = 0.0
    poisson: bool = False
    packet_bytes: int = 1500
    start_s: float = 0.0

    def __post_init__(self) -> None:
        _check("links", tuple(self.links), len(self.links) > 0, "one link or more")
        _check("rate_bps", self.rate_bps, 0.0 < self.rate_bps < math.inf, "more than 0, finite")
        _check("on_s", self.on_s, self.on_s > 0.0, "more than 0 s")
        _check("off_s", self.off_s, 0.0 <= self.off_s < math.inf, "0 s or more, and finite")
        _check("packet_bytes", self.packet_bytes, self.packet_bytes >= 1, "1 or more")
        _check("start_s", self.start_s, 0.0 <= self.start_s < math.inf, "0 s or more")


def _check(name: str, value: object, right: bool, expected: str) -> None:
    if not right:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
