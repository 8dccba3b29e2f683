"""Policies: which path every subflow takes, and at what rate. Pure.

``shortest`` sends each subflow along the path of least delay and allocates nothing.
``fdm`` solves the routing-assignment problem with the flow deviation method and gives every
subflow a guaranteed and a greatest rate on each trunk that it crosses.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import fdm
from fdm.queues import QueueRate, queue_rates

from .network import Attachment, ControlledNetwork, Trunk
from .view import View

TRICKLE_BPS = 64_000
"""Rate of a subflow that the optimum does not use: five full packets a second."""


@dataclass(frozen=True)
class Hop:
    """Leaving `datapath` by `port`; `trunk` is None on the hop to the server."""

    datapath: str
    port: str
    trunk: Trunk | None


@dataclass(frozen=True)
class Subflow:
    """The path of one attachment's traffic to the server, and its rate on each trunk hop."""

    attachment: Attachment
    path: tuple[Hop, ...]
    rate_bps: float | None = None
    """Rate as solved; None where the policy allocates nothing."""
    queues: Mapping[tuple[str, str], QueueRate] = field(default_factory=dict)
    """(datapath, port) of a trunk hop → rates of the subflow's queue there."""


@dataclass(frozen=True)
class Allocation:
    """A decision for every attached subflow, with the solution behind it if there is one."""

    subflows: tuple[Subflow, ...]
    solution: fdm.Solution | None = None


def allocate(network: ControlledNetwork, view: View) -> Allocation:
    """Decide by the network's policy for what is attached in `view`."""
    attached = view.attached(network)
    graph = _directed_trunks(network, view)
    paths = {a: _shortest_path(network, graph, a.datapath) for a in attached}
    reachable = tuple(a for a in attached if paths[a] is not None)
    if network.policy == "fdm":
        optimal = _flow_deviation(network, graph, reachable)
        used = {subflow.attachment for subflow in optimal.subflows}
        unused = [_trickle(a, paths[a] or ()) for a in reachable if a not in used]
        return Allocation((*optimal.subflows, *unused), optimal.solution)
    # An address that moves between interfaces may be attached twice for a moment.
    latest = {a.address: a for a in reachable}
    return Allocation(tuple(Subflow(a, paths[a] or ()) for a in latest.values()))


def _trickle(attachment: Attachment, path: tuple[Hop, ...]) -> Subflow:
    """A subflow that the optimum does not use: kept alive, at a rate that does no harm.

    Without a flow entry, what its sender has under way would be lost and stall the connection.
    """
    rate = QueueRate(0, TRICKLE_BPS)
    queues = {(hop.datapath, hop.port): rate for hop in path if hop.trunk is not None}
    return Subflow(attachment, path, 0.0, queues)


def _directed_trunks(network: ControlledNetwork, view: View) -> tuple[tuple[Hop, str], ...]:
    """Every usable direction of every trunk, as (hop, datapath it leads to)."""
    directed = []
    for t in network.trunks:
        if {(t.a_datapath, t.a_port), (t.b_datapath, t.b_port)} & view.down_ports:
            continue
        directed.append((Hop(t.a_datapath, t.a_port, t), t.b_datapath))
        directed.append((Hop(t.b_datapath, t.b_port, t), t.a_datapath))
    return tuple(directed)


def _shortest_path(
    network: ControlledNetwork, graph: Sequence[tuple[Hop, str]], origin: str
) -> tuple[Hop, ...] | None:
    """The path of least propagation delay from `origin` to the server (Dijkstra)."""
    last = Hop(network.server.datapath, network.server.port, None)
    best: dict[str, float] = {origin: 0.0}
    queue: list[tuple[float, int, str, tuple[Hop, ...]]] = [(0.0, 0, origin, ())]
    pushed = 0
    while queue:
        delay_s, _, node, path = heapq.heappop(queue)
        if node == network.server.datapath:
            return (*path, last)
        for hop, head in graph:
            if hop.datapath != node or hop.trunk is None:
                continue
            through = delay_s + hop.trunk.delay_s
            if through < best.get(head, float("inf")):
                best[head] = through
                pushed += 1
                heapq.heappush(queue, (through, pushed, head, (*path, hop)))
    return None


def _flow_deviation(
    network: ControlledNetwork,
    graph: Sequence[tuple[Hop, str]],
    attached: Sequence[Attachment],
) -> Allocation:
    """Solve, then read each subflow's path and rate from the path flows."""
    problem = _routing_problem(network, graph, attached)
    if not problem.demands:
        return Allocation(())
    first, hops = problem.attachments, problem.hops
    solution = fdm.solve(
        problem.network,
        problem.demands,
        packet_bits=network.mean_packet_bits,
        kappa=network.delay_coefficient,
    )
    rates = queue_rates(problem.network, solution, capacity_share=network.capacity_share)

    subflows = []
    for number, flows in enumerate(solution.path_flows):
        by_attachment: dict[Attachment, list[fdm.PathFlow]] = {}
        for flow in flows:
            by_attachment.setdefault(first[flow.path[0]], []).append(flow)
        for attachment, parts in by_attachment.items():
            # A subflow is one path: of several behind one attachment the largest is taken.
            main = max(parts, key=lambda flow: flow.rate_bps).path
            subflows.append(
                Subflow(
                    attachment,
                    tuple(hops[link] for link in main[1:]),
                    sum(flow.rate_bps for flow in parts),
                    {
                        (hops[link].datapath, hops[link].port): rates[number, main, link]
                        for link in main[1:]
                        if hops[link].trunk is not None
                    },
                )
            )
    return Allocation(tuple(subflows), solution)


@dataclass(frozen=True)
class RoutingProblem:
    """What flow deviation is given: a network, the demands on it, and what its links stand for."""

    network: fdm.Network
    demands: tuple[fdm.Demand, ...]
    attachments: Mapping[int, Attachment]
    """Link by position → the attachment that it is, for links that leave a user."""
    hops: Mapping[int, Hop]
    """Link by position → the hop that it is, for all others."""


def routing_problem(network: ControlledNetwork, view: View) -> RoutingProblem:
    """What `allocate` solves under the policy ``fdm``."""
    graph = _directed_trunks(network, view)
    reachable = [
        a for a in view.attached(network) if _shortest_path(network, graph, a.datapath) is not None
    ]
    return _routing_problem(network, graph, reachable)


def _routing_problem(
    network: ControlledNetwork,
    graph: Sequence[tuple[Hop, str]],
    attached: Sequence[Attachment],
) -> RoutingProblem:
    links: list[fdm.Link] = []
    attachments: dict[int, Attachment] = {}
    hops: dict[int, Hop] = {}
    for a in attached:
        attachments[len(links)] = a
        links.append(fdm.Link(_user_node(a.user), a.datapath, a.rate_bps, 0.0))
    for hop, head in graph:
        assert hop.trunk is not None
        hops[len(links)] = hop
        links.append(fdm.Link(hop.datapath, head, hop.trunk.rate_bps, hop.trunk.delay_s))
    last = Hop(network.server.datapath, network.server.port, None)
    hops[len(links)] = last
    links.append(fdm.Link(last.datapath, _server_node(network), network.server.rate_bps, 0.0))
    nodes = dict.fromkeys(end for link in links for end in (link.tail, link.head))
    users = {a.user for a in attached}
    demands = tuple(
        fdm.Demand(_user_node(d.user), _server_node(network), d.rate_bps)
        for d in network.demands
        if d.user in users
    )
    return RoutingProblem(fdm.Network(nodes, links), demands, attachments, hops)


def _user_node(user: str) -> str:
    return f"user {user}"


def _server_node(network: ControlledNetwork) -> str:
    return f"server {network.server.name}"
