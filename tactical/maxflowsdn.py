"""The evaluation of MaxFlowSDN, packet by packet: its methods on its networks, and two of ours.

The paper is named in :mod:`routing.maxflowsdn`, which has the networks.  Here `routing` and `fdm`
choose paths, and `simulation` sends TCP over them.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import fdm
from routing import Graph, Path, cheapest_flow, decompose, shortest_path, value
from routing.maxflowsdn import BCUBE, DCELL, FAT_TREE, Network
from simulation import Connection, Link, Simulation
from simulation import Path as Way
from simulation.experiments import Experiment, Progress, Row

RUNS, DURATION_S = 5, 30.0
_SETTLED_S = 2.0
"""From here on the mean is taken; the paper speaks of averages after two seconds."""
FRAME_BYTES, PAYLOAD_BYTES, ACKNOWLEDGMENT_BYTES = 1514, 1448, 66
"""Ethernet, IPv4 and TCP with timestamps; link rates count whole frames."""
_DELAY_S, _BUFFER_PACKETS = 1e-4, 50
"""Of each link; the paper names neither."""
_START_S = 0.1
"""Connections start within this time, which is all that runs differ in."""
_CAPACITY_SHARE, _MOST_PATHS = 0.95, 3
"""What fdm plans with: share of the maximum flow that is demanded, and paths of a user."""


@dataclass(frozen=True)
class Routed:
    """Paths of a transfer.

    Attributes
    ----------
    paths : sequence of Path
        Of its connections or subflows.
    multipath : bool
        Whether they are subflows of one connection.
    queue_rates_bps : sequence of float
        Rate of the queue of each path, if they have queues of their own.
    """

    paths: Sequence[Path]
    multipath: bool = False
    queue_rates_bps: Sequence[float] = ()


def standard_tcp(network: Network) -> Routed:
    """One connection over a path of fewest hops."""
    path = shortest_path(network.topology.graph, network.source, network.destination)
    assert path is not None
    return Routed([path])


def parallel_tcp(network: Network) -> Routed:
    """One connection from each interface of the source, to that of the destination in turn."""
    graph = network.topology.graph
    leaving = graph.outgoing[graph.index[network.source]]
    arriving = graph.incoming[graph.index[network.destination]]
    paths = []
    for first, last in zip(leaving, arriving, strict=True):
        others = {*leaving, *arriving} - {first, last}
        lengths = [1e9 if link in others else 1.0 for link in range(len(graph.links))]
        path = shortest_path(graph, network.source, network.destination, lengths)
        assert path is not None
        paths.append(path)
    return Routed(paths)


def mptcp(network: Network) -> Routed:
    """The same as subflows of one connection."""
    return Routed(parallel_tcp(network).paths, multipath=True)


def max_flow_sdn(network: Network) -> Routed:
    """One connection for each path of the maximum flow."""
    graph = network.topology.graph
    flow = cheapest_flow(graph, network.source, network.destination)
    found = decompose(graph, flow, network.source, network.destination)
    return Routed([path for path, _ in found])


def pinned_mptcp(network: Network) -> Routed:
    """The same as subflows of one connection."""
    return Routed(max_flow_sdn(network).paths, multipath=True)


def flow_deviation(network: Network) -> Routed:
    """Subflows with queues, for a demand of a share of the maximum flow."""
    graph = network.topology.graph
    most_bps = value(
        graph, cheapest_flow(graph, network.source, network.destination), network.source
    )
    described = fdm.Network(graph.nodes, [fdm.Link(*link) for link in graph.links])
    demand = fdm.Demand(network.source, network.destination, _CAPACITY_SHARE * most_bps)
    delay = fdm.Kleinrock(8.0 * FRAME_BYTES)
    solution = fdm.solve(described, [demand], delay=delay)
    solution = fdm.limit_paths(described, [demand], solution, delay, most=_MOST_PATHS)
    (flows,) = solution.path_flows
    return Routed([flow.path for flow in flows], True, [flow.rate_bps for flow in flows])


METHODS: dict[str, Callable[[Network], Routed]] = {
    "MaxFlowSDN": max_flow_sdn,
    "MPTCP": mptcp,
    "ParallelTCP": parallel_tcp,
    "StandardTCP": standard_tcp,
    "MPTCP over the paths of MaxFlowSDN": pinned_mptcp,
    "fdm": flow_deviation,
}
"""The paper's four in its order, and two of ours."""

_PAPER = (
    (FAT_TREE, (11.76, 6.38, 6.49, 6.49), (0.17, 0.04, 0.02, 0.02)),
    (DCELL, (26.58, 17.94, 18.36, 9.33), (0.16, 0.35, 0.05, 0.03)),
    (BCUBE, (27.32, 18.21, 18.54, 9.35), (0.25, 0.30, 0.03, 0.03)),
)
"""Tables 7 to 9: mean and standard deviation in Mbit/s, in the order of methods."""


def carried_bps(graph: Graph, routed: Routed, network: Network) -> float:
    """Return what the links of the paths can carry, and the queues in front of them."""
    used = {link for path in routed.paths for link in path}
    capacities = [
        int(link.capacity_bps) if number in used else 0 for number, link in enumerate(graph.links)
    ]
    flow = cheapest_flow(graph, network.source, network.destination, capacities=capacities)
    most_bps = float(value(graph, flow, network.source))
    return min(most_bps, sum(routed.queue_rates_bps)) if routed.queue_rates_bps else most_bps


def goodput_mbps(network: Network, routed: Routed, seed: int) -> float:
    """Return the mean rate at which data arrive, without headers."""
    graph, draw = network.topology.graph, random.Random(seed)
    links = [Link(link.capacity_bps, _DELAY_S, _BUFFER_PACKETS) for link in graph.links]
    ways = []
    for number, path in enumerate(routed.paths):
        back = [link ^ 1 for link in reversed(path)]  # the other direction of each cable
        forth = list(path)
        if routed.queue_rates_bps:
            links.append(Link(routed.queue_rates_bps[number], buffer_packets=_BUFFER_PACKETS))
            forth.insert(0, len(links) - 1)
        ways.append(Way(forth, back))
    connections = [
        Connection(
            own,
            "cubic",
            start_s=draw.uniform(0.0, _START_S),
            packet_bytes=FRAME_BYTES,
            acknowledgment_bytes=ACKNOWLEDGMENT_BYTES,
        )
        for own in ([ways] if routed.multipath else [[way] for way in ways])
    ]
    run = Simulation(links, connections, seed=seed)
    run.run(_SETTLED_S)
    before = run.counters().delivered_packets.sum()
    run.run(DURATION_S)
    packets = int(run.counters().delivered_packets.sum() - before)
    return packets * 8.0 * PAYLOAD_BYTES / (DURATION_S - _SETTLED_S) / 1e6


def _simulate(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for network, means, deviations in _PAPER:
        for number, (name, method) in enumerate(METHODS.items()):
            what = f"{network.name}, {name}"
            routed, rates = method(network), []
            for run in range(RUNS):
                progress(what, run / RUNS)
                rates.append(goodput_mbps(network, routed, RUNS * seed + run))
            of_paper = number < len(means)
            rows += [
                Row(
                    what,
                    "Mbit/s",
                    statistics.mean(rates),
                    means[number] if of_paper else None,
                    carried_bps(network.topology.graph, routed, network) / 1e6,
                ),
                Row(
                    f"{what}: standard deviation",
                    "Mbit/s",
                    statistics.stdev(rates),
                    deviations[number] if of_paper else None,
                ),
            ]
    return rows


EXPERIMENT = Experiment(
    "maxflowsdn",
    "one transfer through a small fat tree, DCell and BCube: over how many paths, and how fast?",
    "6 of the paper on MaxFlowSDN",
    _simulate,
)
