"""Maximum flow: TCP connections of one transfer over as many paths as carry the most together.

The method of MaxFlowSDN (see :mod:`routing.maxflowsdn`): ordinary connections, told apart by the
server's port, each over one path of the maximum flow through what is free.  Everything else that
a user sends goes by the path of least delay.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import routing

from ..allocation import TRICKLE_BPS, Allocation, Hop, Path, Situation, Subflow
from ..network import MOST_CONNECTIONS, Attachment
from ..policy import Policy


class Planned(NamedTuple):
    """A path of a user's maximum flow, and its rate in bit/s."""

    attachment: Attachment
    path: Path
    rate_bps: int


class MaximumFlow(Policy):
    """Connections on ports from `transfer_port` on; see docs/routing.md."""

    def allocate(self, situation: Situation) -> Allocation:
        """Users one after the other, each for its demand, through what those before left free."""
        paths = situation.shortest_paths
        subflows = [Subflow(a, paths[a]) for a in situation.one_for_each_address()]
        before = situation.before or Allocation(())
        first, there = situation.network.settings.transfer_port, connections(before)
        for user, planned in plan(situation, before).items():
            ports = _ports(planned, there.get(user, ()), first)
            for port, (attachment, path, rate_bps) in sorted(ports.items()):
                subflows.append(Subflow(attachment, path, rate_bps, server_port=port))
        return Allocation(tuple(subflows))

    def keeps(self, situation: Situation, allocation: Allocation, since_s: float) -> bool:
        """Whether those who want to send have connections, and nobody could get a good deal more.

        Who wants to and has none, as there is no way, is looked for again each time.
        """
        there = connections(allocation)
        if {user for user, rate in situation.demands.items() if rate >= TRICKLE_BPS} != set(there):
            return False
        if not there:
            return True
        free_bps, planned = free(situation, allocation), plan(situation, allocation)
        enough = 1.0 - situation.network.settings.demand_threshold
        return all(
            _carried_bps(there[user], free_bps) >= enough * sum(each.rate_bps for each in paths)
            for user, paths in planned.items()
        )


def plan(situation: Situation, before: Allocation) -> dict[str, list[Planned]]:
    """The paths of every user that is attached and wants to send; `before` is in force."""
    graph = situation.graph
    free_bps = free(situation, before)
    trunks = len(situation.hops) - 1
    left = [int(free_bps[hop.datapath, hop.port]) for hop in situation.hops[:trunks]]
    left += [int(link.capacity_bps) for link in graph.links[trunks:]]
    usable = set(situation.one_for_each_address()) - situation.fading
    for number, attachment in enumerate(situation.attached, start=trunks + 1):
        if attachment not in usable:
            left[number] = 0
    costs = routing.delay_then_hops(graph)
    planned: dict[str, list[Planned]] = {}
    for user, wanted_bps in situation.demands.items():
        origin = situation.user(user)
        if wanted_bps < TRICKLE_BPS or origin not in graph.index:
            continue
        flow = routing.cheapest_flow(
            graph, origin, situation.server, costs=costs, capacities=left, most=int(wanted_bps)
        )
        paths = routing.decompose(graph, flow, origin, situation.server)
        for path, rate_bps in paths[:MOST_CONNECTIONS]:
            if rate_bps >= TRICKLE_BPS:
                attachment = situation.attached[path[0] - trunks - 1]
                hops = situation.along(path)
                planned.setdefault(user, []).append(Planned(attachment, hops, rate_bps))
                for link in path:
                    left[link] -= rate_bps
    return planned


def free(situation: Situation, allocation: Allocation) -> dict[tuple[str, str], float]:
    """(datapath, port) of every usable trunk hop → what it can carry beside the load of others.

    What others send is what the port sends beyond that which the connections of `allocation` are
    planned to: their own share of it is not measured.
    """
    ours: dict[tuple[str, str], float] = {}
    for hop, rate_bps in _rates(allocation.subflows):
        place = (hop.datapath, hop.port)
        ours[place] = ours.get(place, 0.0) + rate_bps
    found = {}
    for hop, link in zip(situation.hops[:-1], situation.graph.links, strict=False):
        place = (hop.datapath, hop.port)
        others = max(0.0, situation.loads.get(place, 0.0) - ours.get(place, 0.0))
        found[place] = max(0.0, link.capacity_bps - others)
    return found


def connections(allocation: Allocation) -> dict[str, list[Subflow]]:
    """User → those of its subflows that are single connections, if there are any."""
    found: dict[str, list[Subflow]] = {}
    for subflow in allocation.subflows:
        if subflow.server_port is not None:
            found.setdefault(subflow.attachment.user, []).append(subflow)
    return found


def _rates(subflows: Iterable[Subflow]) -> Iterable[tuple[Hop, float]]:
    """Every hop of connections, with their rate."""
    for s in subflows:
        if s.server_port is not None and s.rate_bps is not None:
            yield from ((hop, s.rate_bps) for hop in s.path)


def _carried_bps(
    connections: Iterable[Subflow], free_bps: Mapping[tuple[str, str], float]
) -> float:
    """What connections can carry of what was planned, where several share what is free."""
    connections = list(connections)
    planned: dict[tuple[str, str], float] = {}
    for hop, rate_bps in _rates(connections):
        if hop.trunk is not None:
            place = (hop.datapath, hop.port)
            planned[place] = planned.get(place, 0.0) + rate_bps
    part = {place: min(1.0, free_bps.get(place, 0.0) / bps) for place, bps in planned.items()}
    return sum(
        (s.rate_bps or 0.0)
        * min((part[hop.datapath, hop.port] for hop in s.path if hop.trunk), default=1.0)
        for s in connections
    )


def _ports(planned: Iterable[Planned], before: Iterable[Subflow], first: int) -> dict[int, Planned]:
    """A port for every path: that of the connection which has the path already, else a free one.

    So a connection keeps its path as long as that is part of the maximum flow.
    """
    had = {(s.attachment, s.path): s.server_port for s in before}
    ports: dict[int, Planned] = {}
    fresh = []
    for each in planned:
        port = had.get((each.attachment, each.path))
        if port is None:
            fresh.append(each)
        else:
            ports[port] = each
    unused = (port for port in itertools.count(first) if port not in ports)
    return {**ports, **{next(unused): each for each in fresh}}


POLICY = MaximumFlow()
