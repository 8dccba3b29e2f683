"""A routing: how much of each demand goes over which path."""

from collections.abc import Sequence

from fdm.network import Demand, Network
from fdm.shortest import Path, Shortest

Routing = list[dict[Path, float]]
"""For each demand, its paths and their rates in bit/s. Rates of a demand add up to its rate."""

FITS = 1.0 - 1e-9
"""Utilisation up to which a link counts as not full. Delay grows without bound towards 1, and
rounding must not fill a link."""


def link_flows(network: Network, routing: Routing) -> list[float]:
    """Return the flow of every link in bit/s."""
    flow = [0.0] * len(network.links)
    for paths in routing:
        for path, rate in paths.items():
            for link in path:
                flow[link] += rate
    return flow


def all_or_nothing(shortest: Sequence[Shortest], rates: Sequence[float]) -> Routing:
    """Return the routing that puts every demand on its shortest path."""
    return [
        {found.path: rate} if found.path is not None and rate > 0.0 else {}
        for found, rate in zip(shortest, rates, strict=True)
    ]


def blend(routing: Routing, target: Routing, step: float) -> Routing:
    """Return (1 − step)·routing + step·target."""
    return add(scaled(routing, 1.0 - step), target, step)


def add(routing: Routing, more: Routing, factor: float = 1.0) -> Routing:
    """Return routing + factor·more, without paths that carry nothing."""
    total: Routing = []
    for paths, others in zip(routing, more, strict=True):
        both = dict(paths)
        for path, rate in others.items():
            both[path] = both.get(path, 0.0) + rate * factor
        total.append({path: rate for path, rate in both.items() if rate > 0.0})
    return total


def scaled(routing: Routing, factor: float) -> Routing:
    """Return the routing with every rate multiplied by a factor."""
    return [{path: rate * factor for path, rate in paths.items()} for paths in routing]


def utilisation(network: Network, flow: Sequence[float]) -> float:
    """Return the largest ratio of flow to capacity among links that are up."""
    most = 0.0
    for (_, _, capacity_bps, _), f in zip(network.links, flow, strict=True):
        if capacity_bps > 0.0 and f > most * capacity_bps:
            most = f / capacity_bps
    return most


def restored(routing: Routing, demands: Sequence[Demand]) -> Routing:
    """Return the routing with the rates of each demand adding up to its rate again."""
    restored: Routing = []
    for demand, paths in zip(demands, routing, strict=True):
        carried = sum(paths.values())
        factor = demand.rate_bps / carried if carried > 0.0 else 0.0
        restored.append({path: rate * factor for path, rate in paths.items() if rate * factor > 0})
    return restored
