"""Delay as a function of the flow on a link."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fdm.network import Network


@dataclass(frozen=True)
class Kleinrock:
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
    kappa : float
        Coefficient κ of the queueing delay: 1 for Poisson arrivals and exponential lengths, less
        for smoother traffic, more for bursts.

    Raises
    ------
    ValueError
        If a parameter is not a finite number above 0.
    """

    packet_bits: float = 12000.0
    kappa: float = 1.0

    def __post_init__(self) -> None:
        for name in ("packet_bits", "kappa"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} must be a finite number above 0, not {getattr(self, name)!r}"
                )

    def total(self, network: Network, flow: Sequence[float]) -> float:
        """Return D = γT, infinite where a link carries its capacity or more."""
        packets = 0.0
        for link, f in zip(network.links, flow, strict=True):
            if f == 0.0:
                continue
            spare = link.capacity_bps - f
            if spare <= 0.0:
                return math.inf
            packets += self.kappa * f / spare + link.delay_s * f / self.packet_bits
        return packets

    def lengths(self, network: Network, flow: Sequence[float]) -> list[float]:
        """Return dD/df = κ·C/(C − f)² + p/b of every link, infinite where it is full or down."""
        lengths = []
        for (_, _, capacity, delay), f in zip(network.links, flow, strict=True):
            spare = capacity - f
            lengths.append(
                self.kappa * capacity / (spare * spare) + delay / self.packet_bits
                if spare > 0.0
                else math.inf
            )
        return lengths
