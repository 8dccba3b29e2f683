"""Answers with few paths: what a network with one queue for each path can carry out."""

import dataclasses
from collections.abc import Sequence

from fdm.certificate import certify
from fdm.delay import Delay
from fdm.network import Demand, Network
from fdm.paths import settled
from fdm.routing import FITS, Routing, link_flows
from fdm.solution import PathFlow, Solution, mean_delays


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
        Its answer. Of each demand the paths with the highest rates are kept.
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
    routing: Routing = []
    for flows, admitted in zip(solution.path_flows, solution.admitted_bps, strict=True):
        kept = sorted(flows, key=lambda flow: -flow.rate_bps)[:most]
        carried = sum(flow.rate_bps for flow in kept)
        routing.append({flow.path: flow.rate_bps * admitted / carried for flow in kept})
    routing = settled(network, delay, routing)
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
    return dataclasses.replace(
        solution,
        feasible=solution.feasible and min(over, default=1.0) == 1.0,
        gamma_T=certificate.gamma_T,
        objective=certificate.objective,
        lower_bound=certificate.lower_bound,
        relative_gap=certificate.relative_gap,
        mean_packet_delay_s=certificate.gamma_T / packets_per_s if packets_per_s > 0.0 else 0.0,
        path_flows=tuple(
            tuple(
                PathFlow(path, rate)
                for path, rate in sorted(paths.items(), key=lambda item: (-item[1], item[0]))
            )
            for paths in routing
        ),
        link_flows_bps=tuple(flow),
        admitted_bps=admitted_bps,
        demand_delay_s=mean_delays(routing, delay.latencies(network, flow)),
    )
