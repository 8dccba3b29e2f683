"""Answers with few paths: what a network with one queue for each path can carry out."""

import dataclasses
from collections.abc import Sequence

from fdm.certificate import certify
from fdm.delay import Delay
from fdm.network import Demand, Network
from fdm.paths import settled
from fdm.routing import FITS, Routing, link_flows
from fdm.shortest import Path, shortest_paths
from fdm.solution import Solution, as_path_flows, mean_delays


def limit_paths(
    network: Network,
    demands: Sequence[Demand],
    solution: Solution,
    delay: Delay,
    *,
    most: int = 2,
    capacity_share: float = 0.95,
) -> Solution:
    """Keep at most so many paths of each demand and find the best rates on them.

    Parameters
    ----------
    network, demands, delay
        The problem that was solved.
    solution : Solution
        Its answer. Its demands lose the path with the lowest rate, one after the
        other, with the best rates on the others in between.
    most : int
        Paths of a demand, 1 or more.
    capacity_share : float
        Where the paths that are kept cannot carry all, the share of a capacity to which what
        crosses the link is cut.

    Returns
    -------
    Solution
        The same object if no demand has more paths. Otherwise its `relative_gap` still compares
        with all paths: it says what the limit costs at most.

    Raises
    ------
    ValueError
        If `most` is less than 1 or the solution is for other demands.
    """
    if most < 1:
        raise ValueError(f"most must be 1 or more, not {most!r}")
    if len(solution.path_flows) != len(demands):
        raise ValueError(
            f"the solution has {len(solution.path_flows)} demands, the problem {len(demands)}"
        )
    if all(len(flows) <= most for flows in solution.path_flows):
        return solution
    routing: Routing = [
        {flow.path: flow.rate_bps for flow in flows} for flows in solution.path_flows
    ]
    while any(len(paths) > most for paths in routing):
        # One path of a demand at a time: the others must take its place before the next is judged.
        for number, paths in enumerate(routing):
            if len(paths) > most:
                least = min(paths, key=lambda path: (paths[path], path))
                carried = solution.admitted_bps[number] - paths[least]
                routing[number] = {
                    path: rate * solution.admitted_bps[number] / carried
                    for path, rate in paths.items()
                    if path != least
                }
        routing = settled(network, delay, routing)
    routing = _exchanged(network, demands, delay, routing, most)
    flow = link_flows(network, routing)
    over = [
        1.0
        if delay.bounded or f < FITS * link.capacity_bps or f == 0.0
        else capacity_share * link.capacity_bps / f
        for link, f in zip(network.links, flow, strict=True)
    ]
    if min(over, default=1.0) < 1.0:
        routing = [
            {path: rate * min(over[link] for link in path) for path, rate in paths.items()}
            for paths in routing
        ]
        flow = link_flows(network, routing)
    admitted_bps = tuple(sum(paths.values()) for paths in routing)
    taken = [
        demand._replace(rate_bps=rate) for demand, rate in zip(demands, admitted_bps, strict=True)
    ]
    certificate = certify(network, taken, flow, delay)
    packets_per_s = sum(admitted_bps) / delay.packet_bits
    path_flows = as_path_flows(routing)
    return dataclasses.replace(
        solution,
        feasible=solution.feasible and min(over, default=1.0) == 1.0,
        gamma_T=certificate.gamma_T,
        objective=certificate.objective,
        lower_bound=certificate.lower_bound,
        relative_gap=certificate.relative_gap,
        mean_packet_delay_s=certificate.gamma_T / packets_per_s if packets_per_s > 0.0 else 0.0,
        path_flows=path_flows,
        link_flows_bps=tuple(flow),
        admitted_bps=admitted_bps,
        demand_delay_s=mean_delays(path_flows, delay.latencies(network, flow)),
        columns=None,
    )


_TRIALS = 100
"""Exchanges of a path that are tried at most."""


def _exchanged(
    network: Network, demands: Sequence[Demand], delay: Delay, routing: Routing, most: int
) -> Routing:
    """Give demands the path that is shortest now for one they have, where that lowers the delay."""
    best = delay.objective(network, link_flows(network, routing))
    tried: set[tuple[int, Path]] = set()
    while len(tried) < _TRIALS:
        lengths = delay.lengths(network, link_flows(network, routing))
        gains = []
        for number, found in enumerate(shortest_paths(network, demands, lengths)):
            paths = routing[number]
            if not paths or found.path is None or found.path in paths:
                continue
            if (number, found.path) not in tried:
                mean = sum(rate * sum(lengths[e] for e in path) for path, rate in paths.items())
                gains.append((mean - found.length * sum(paths.values()), number, found.path))
        if not gains:
            break
        _, number, path = max(gains)
        tried.add((number, path))
        paths = dict(routing[number])
        rate = 0.0
        if len(paths) >= most:
            rate = paths.pop(min(paths, key=lambda one: (paths[one], one)))
        paths[path] = rate
        trial = settled(network, delay, [*routing[:number], paths, *routing[number + 1 :]])
        reached = delay.objective(network, link_flows(network, trial))
        if reached < best:
            routing, best = trial, reached
    return routing
