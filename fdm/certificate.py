"""How good a flow is, worked out from the flow alone."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fdm.delay import Delay
from fdm.network import Demand, Network
from fdm.shortest import Shortest, shortest_paths


class Certificate(NamedTuple):
    """What can be said of a flow without knowing how it was found.

    Attributes
    ----------
    gamma_T : float
        γT at the flow: mean packets in the network.
    objective : float
        D, what is minimised: γT, or Beckmann's sum for a user equilibrium.
    lower_bound : float
        No flow for these demands has a smaller D.
    relative_gap : float
        Σ length·(f − v)/Σ length·f, where v sends every demand over its shortest path.
    """

    gamma_T: float
    objective: float
    lower_bound: float
    relative_gap: float


def certify(
    network: Network, demands: Sequence[Demand], flow: Sequence[float], delay: Delay
) -> Certificate:
    """Return the delay of a flow and how far it can be from the least possible.

    Parameters
    ----------
    network : Network
        The network.
    demands : sequence of Demand
        Demands that the flow carries, each with a path.
    flow : sequence of float
        Flow of every link in bit/s.
    delay : Delay
        The delay function.

    Notes
    -----
    D is convex, so for the optimal flow f*: D(f*) ≥ D(f) + Σ length·(f* − f), and no flow has a
    smaller Σ length·f than the one over shortest paths.
    """
    lengths = delay.lengths(network, flow)
    shortest = shortest_paths(network, demands, lengths)
    return certificate_of(network, flow, delay, weighed(demands, flow, lengths, shortest))


class Weights(NamedTuple):
    """Σ length·f of a flow, and the least that any flow for the same demands has."""

    now: float
    best: float

    @property
    def excess(self) -> float:
        """Σ length·(f − v)."""
        return max(0.0, self.now - self.best)

    @property
    def relative_gap(self) -> float:
        """The excess as a part of Σ length·f."""
        return self.excess / self.now if self.now > 0.0 else 0.0


def weighed(
    demands: Sequence[Demand],
    flow: Sequence[float],
    lengths: Sequence[float],
    shortest: Sequence[Shortest],
) -> Weights:
    """Return what a flow weighs at some lengths, and what it would over the shortest paths."""
    now = best = 0.0
    for length, f in zip(lengths, flow, strict=True):
        if f > 0.0:
            now += length * f
    for demand, found in zip(demands, shortest, strict=True):
        if demand[2] > 0.0:
            best += demand[2] * found[1]
    return Weights(now, best)


def certificate_of(
    network: Network, flow: Sequence[float], delay: Delay, weights: Weights
) -> Certificate:
    """Return the certificate of a flow whose weights at its own lengths are known."""
    objective = delay.objective(network, flow)
    total = delay.total(network, flow) if delay.equilibrium else objective
    return Certificate(total, objective, objective - weights.excess, weights.relative_gap)


def largest_share(
    network: Network,
    demands: Sequence[Demand],
    lengths: Sequence[float],
    shortest: Sequence[Shortest],
) -> float:
    """Return a multiple of all demands that lengths prove cannot be exceeded.

    Parameters
    ----------
    network, demands
        The problem, with at least one demand above 0.
    lengths : sequence of float
        Any lengths of the links; the better they tell bottlenecks, the closer the bound.
    shortest : sequence of Shortest
        Shortest paths of the demands at these lengths.

    Notes
    -----
    Whatever the routing, each bit/s of a demand takes at least its shortest length, and a link
    has no more than length·capacity to give (linear programming duality).
    """
    room = sum(
        length * link.capacity_bps
        for length, link in zip(lengths, network.links, strict=True)
        if link.capacity_bps > 0.0
    )
    need = sum(
        demand.rate_bps * found.length
        for demand, found in zip(demands, shortest, strict=True)
        if demand.rate_bps > 0.0
    )
    return room / need if need > 0.0 else math.inf
