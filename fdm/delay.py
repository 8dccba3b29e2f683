"""Delay as a function of the flow on a link.

Three families, each as system optimum (least mean delay) or as user equilibrium (nobody gains by
another path). A user equilibrium is the minimum of Σ ∫ latency (M. Beckmann, C. B. McGuire,
C. B. Winsten, "Studies in the economics of transportation", 1956), so that the same methods find
both; only the function that they minimise differs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fdm.network import LARGEST, SMALLEST, Network

QUEUE, QUEUE_EQUILIBRIUM, POWER = 0, 1, 2


class Terms(NamedTuple):
    """A delay function on a network, as numbers.

    Attributes
    ----------
    family : int
        Form of the minimised function of a link with flow f and capacity C: 0 is
        a·f/(C − f) + l·f, 1 is −a·ln(1 − f/C) + l·f, 2 is l·f + a·f·(f/C)^β/(β + 1).
    scale, linear : tuple of float
        a and l of every link.
    beta : float
        The exponent of family 2.
    """

    family: int
    scale: tuple[float, ...]
    linear: tuple[float, ...]
    beta: float = 0.0


class Delay:
    """A delay function; `Kleinrock`, `Deterministic` and `Bpr` are the ones there are."""

    packet_bits: float = 1.0
    equilibrium: bool = False

    def terms(self, network: Network) -> Terms:
        """Return the function that is minimised, as numbers."""
        terms: Terms | None = network.known.get(self)
        if terms is None:
            terms = network.known[self] = self._terms(network)
        return terms

    def _terms(self, network: Network) -> Terms:
        raise NotImplementedError

    @property
    def bounded(self) -> bool:
        """Whether a link can carry its capacity and more, at a finite delay."""
        return False

    def latencies(self, network: Network, flow: Sequence[float]) -> list[float]:
        """Return the mean delay on every link in seconds, infinite where it is full."""
        raise NotImplementedError

    def total(self, network: Network, flow: Sequence[float]) -> float:
        """Return γT, the mean number of packets in the network; infinite if a link is full."""
        return (
            sum(
                f * latency
                for f, latency in zip(flow, self.latencies(network, flow), strict=True)
                if f > 0.0
            )
            / self.packet_bits
        )

    def objective(self, network: Network, flow: Sequence[float]) -> float:
        """Return what is minimised: γT, or for a user equilibrium Σ ∫ latency / packet_bits."""
        family, scale, linear, beta = self.terms(network)
        total = 0.0
        for link, a, lin, f in zip(network.links, scale, linear, flow, strict=True):
            if f <= 0.0:
                continue
            c = link.capacity_bps
            if family == POWER:
                total += lin * f + a * f * (f / c) ** beta / (beta + 1.0)
                continue
            if f >= c:
                return math.inf
            total += lin * f + (a * f / (c - f) if family == QUEUE else -a * math.log1p(-f / c))
        return total

    def lengths(self, network: Network, flow: Sequence[float]) -> list[float]:
        """Return the derivative of the objective by every link's flow, infinite where it is full.

        It is infinite on a link that is down, too.
        """
        family, scale, linear, beta = self.terms(network)
        lengths = []
        for (_, _, c, _), a, lin, f in zip(network.links, scale, linear, flow, strict=True):
            spare = c - f
            if c <= 0.0 or (spare <= 0.0 and family != POWER):
                lengths.append(math.inf)
            elif family == QUEUE:
                lengths.append(a * c / (spare * spare) + lin)
            elif family == QUEUE_EQUILIBRIUM:
                lengths.append(a / spare + lin)
            else:
                lengths.append(lin + a * (f / c) ** beta)
        return lengths


@dataclass(frozen=True)
class Kleinrock(Delay):
    """M/M/1 queues in independence, with propagation (Kleinrock 1964).

    With f the flow and C the capacity of a link in bit/s, p its propagation delay in seconds and
    b the mean packet in bits, the quantity that is minimised is

        D(f) = Σ κ·f/(C − f) + p·f/b,

    the mean number of packets in the network. Divided by the packets that enter per second,
    γ = Σ demand/b, it is the mean packet delay T (Little); hence D = γT.

    Parameters
    ----------
    packet_bits : float
        Mean packet b.
    kappa : float or tuple of float
        Coefficient κ of the queueing delay, for all links or one for each: 1 for Poisson arrivals
        and exponential lengths, less for smoother traffic, more for bursts.
    equilibrium : bool
        Whether to look for the user equilibrium instead of the least mean delay.

    Raises
    ------
    ValueError
        If a parameter is not a finite number above 0.
    """

    packet_bits: float = 12000.0
    kappa: float | tuple[float, ...] = 1.0
    equilibrium: bool = False

    def __post_init__(self) -> None:
        _positive("packet_bits", self.packet_bits)
        for kappa in self.kappa if isinstance(self.kappa, tuple) else (self.kappa,):
            _positive("kappa", kappa)

    def kappas(self, network: Network) -> tuple[float, ...]:
        """Return κ of every link; ValueError if there are not as many as links."""
        if not isinstance(self.kappa, tuple):
            return (self.kappa,) * len(network.links)
        if len(self.kappa) != len(network.links):
            raise ValueError(
                f"kappa must be one number or one for each of the {len(network.links)} links, "
                f"not {len(self.kappa)} numbers"
            )
        return self.kappa

    def _terms(self, network: Network) -> Terms:
        bits = self.packet_bits
        return Terms(
            QUEUE_EQUILIBRIUM if self.equilibrium else QUEUE,
            self.kappas(network),
            tuple([link[3] / bits for link in network.links]),
        )

    def latencies(self, network: Network, flow: Sequence[float]) -> list[float]:
        """Return κ·b/(C − f) + p of every link in seconds."""
        _, scale, linear, _ = self.terms(network)
        bits = self.packet_bits
        return [
            bits * (a / (link[2] - f) + lin) if link[2] > f else math.inf
            for link, a, lin, f in zip(network.links, scale, linear, flow, strict=True)
        ]


@dataclass(frozen=True)
class Deterministic(Kleinrock):
    """M/D/1 queues: packets of one length (Pollaczek 1930, Khinchin 1932), with propagation.

    With ρ = f/C the mean number on a link is κ·(ρ + ρ²/(2(1 − ρ))) + p·f/b, half of what M/M/1
    says plus κ·ρ/2. Parameters are those of `Kleinrock`.
    """

    def _terms(self, network: Network) -> Terms:
        halves = tuple([0.5 * kappa for kappa in self.kappas(network)])
        return Terms(
            QUEUE_EQUILIBRIUM if self.equilibrium else QUEUE,
            halves,
            tuple(
                [
                    link.delay_s / self.packet_bits
                    + (half / link.capacity_bps if link.capacity_bps > 0.0 else 0.0)
                    for link, half in zip(network.links, halves, strict=True)
                ]
            ),
        )


@dataclass(frozen=True)
class Bpr(Delay):
    """Roads: t·(1 + α·(f/C)^β) (Bureau of Public Roads, Traffic Assignment Manual, 1964).

    t is the link's `delay_s`, the time of an empty road; C its `capacity_bps`, which may be
    exceeded. Units are the user's: with vehicles per hour and minutes, `Solution.gamma_T` is
    vehicle-minutes per hour.

    Parameters
    ----------
    alpha, beta : float
        α, 0 or more, and β, 1 or more.
    equilibrium : bool
        User equilibrium (Wardrop's first principle), the default, or least mean travel time.

    Raises
    ------
    ValueError
        If a parameter is out of bounds.
    """

    alpha: float = 0.15
    beta: float = 4.0
    equilibrium: bool = True

    def __post_init__(self) -> None:
        for name, value, least in (("alpha", self.alpha, 0.0), ("beta", self.beta, 1.0)):
            if not least <= value < math.inf:
                raise ValueError(f"{name} must be a finite number, {least:g} or more, not {value}")

    @property
    def bounded(self) -> bool:
        """Roads take any flow."""
        return True

    def _terms(self, network: Network) -> Terms:
        factor = self.alpha * (1.0 if self.equilibrium else self.beta + 1.0)
        return Terms(
            POWER,
            tuple([factor * link.delay_s for link in network.links]),
            tuple([link.delay_s for link in network.links]),
            self.beta,
        )

    def latencies(self, network: Network, flow: Sequence[float]) -> list[float]:
        """Return the travel time of every link."""
        return [
            link.delay_s * (1.0 + self.alpha * (f / link.capacity_bps) ** self.beta)
            if link.capacity_bps > 0.0
            else math.inf
            for link, f in zip(network.links, flow, strict=True)
        ]


def _positive(name: str, value: float) -> None:
    if not SMALLEST <= value <= LARGEST:
        wanted = (
            f"between {SMALLEST:g} and {LARGEST:g}"
            if 0.0 < value < math.inf
            else "a finite number above 0"
        )
        raise ValueError(f"{name} must be {wanted}, not {value!r}")
