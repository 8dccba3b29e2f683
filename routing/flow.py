"""Maximum flow of least cost between two nodes, and the paths that it consists of.

Successive shortest paths: while there is one, what the cheapest path in the residual graph can
carry is added. Lengths are kept from becoming negative by node potentials (J. Edmonds, R. M. Karp,
"Theoretical improvements in algorithmic efficiency for network flow problems", Journal of the ACM
19 (2), 1972).
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from routing.graph import Graph, Node, Path


class PathFlow(NamedTuple):
    """A path and what it carries.

    Attributes
    ----------
    path : Path
        Its links.
    rate_bps : int
        Its rate in bit/s.
    """

    path: Path
    rate_bps: int


def delay_then_hops(graph: Graph) -> list[int]:
    """Return costs by which least propagation delay counts first, and then fewest hops.

    Delays count in whole nanoseconds. All costs are more than 0.
    """
    hops = len(graph.links) + 1
    return [round(link.delay_s * 1e9) * hops + 1 for link in graph.links]


def cheapest_flow(
    graph: Graph,
    origin: Node,
    destination: Node,
    *,
    costs: Sequence[int] | None = None,
    capacities: Sequence[int] | None = None,
    most: int | None = None,
) -> list[int]:
    """Return the maximum flow between two nodes that costs least.

    Parameters
    ----------
    graph, origin, destination
        Where to look.
    costs : sequence of int, optional
        Cost of one bit/s on every link, 1 or more. By default `delay_then_hops`.
    capacities : sequence of int, optional
        What every link can take, if not its capacity in whole bit/s.
    most : int, optional
        No more than this is wanted; of all flows of this value it is the cheapest.

    Returns
    -------
    list of int
        Flow of every link. As costs are positive, nothing flows in circles, or both ways between
        two nodes.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same, or a cost is less than 1.
    """
    source, sink = graph.positions(origin, destination)
    costs = delay_then_hops(graph) if costs is None else costs
    if min(costs, default=1) < 1:
        raise ValueError(f"costs must be 1 or more, not {min(costs)}")
    if capacities is None:
        capacities = [int(link.capacity_bps) for link in graph.links]
    free, flow = list(capacities), [0] * len(graph.links)
    potential = [0] * len(graph.nodes)
    wanted = sum(free[link] for link in graph.outgoing[source])
    wanted = wanted if most is None else min(most, wanted)
    while wanted > 0:
        path = _augmenting(graph, source, sink, costs, free, flow, potential)
        if path is None:
            break
        step = min(wanted, *(flow[~arc] if arc < 0 else free[arc] for arc in path))
        for arc in path:
            link, change = (~arc, -step) if arc < 0 else (arc, step)
            flow[link] += change
            free[link] -= change
        wanted -= step
    return flow


def _augmenting(
    graph: Graph,
    source: int,
    sink: int,
    costs: Sequence[int],
    free: Sequence[int],
    flow: Sequence[int],
    potential: list[int],
) -> list[int] | None:
    """Return the cheapest path in the residual graph; ~link is a link backwards.

    Potentials are brought up to date for the next.
    """
    ends, outgoing, incoming = graph.ends, graph.outgoing, graph.incoming
    distance, arrived_by = {source: 0}, dict[int, int]()
    settled: set[int] = set()
    queue = [(0, source)]
    while queue:
        so_far, node = heapq.heappop(queue)
        if node in settled:
            continue
        if node == sink:
            break
        settled.add(node)
        base = so_far + potential[node]
        for link in outgoing[node]:
            head = ends[link][1]
            if free[link] > 0 and head not in settled:
                length = base + costs[link] - potential[head]
                if head not in distance or length < distance[head]:
                    distance[head], arrived_by[head] = length, link
                    heapq.heappush(queue, (length, head))
        for link in incoming[node]:
            tail = ends[link][0]
            if flow[link] > 0 and tail not in settled:
                length = base - costs[link] - potential[tail]
                if tail not in distance or length < distance[tail]:
                    distance[tail], arrived_by[tail] = length, ~link
                    heapq.heappush(queue, (length, tail))
    else:
        return None
    # Relative to the sink's, so that nodes that were not reached keep theirs.
    for node in settled:
        potential[node] += distance[node] - distance[sink]
    path, at = [], sink
    while at != source:
        arc = arrived_by[at]
        path.append(arc)
        at = ends[~arc][1] if arc < 0 else ends[arc][0]
    return path


def value(graph: Graph, flow: Sequence[int], origin: Node) -> int:
    """Return what a flow carries away from its origin."""
    at = graph.index[origin]
    away = sum(flow[link] for link in graph.outgoing[at])
    return away - sum(flow[link] for link in graph.incoming[at])


def decompose(graph: Graph, flow: Sequence[int], origin: Node, destination: Node) -> list[PathFlow]:
    """Return paths that add up to a flow, widest first.

    To find the fewest is NP-hard; the widest path of what is left, one after the other, leads to
    few (B. Vatinlen et al., "Simple bounds and greedy algorithms for decomposing a flow into a
    minimal set of paths", European Journal of Operational Research 185 (3), 2008). What flows in
    circles is left out.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same.
    """
    source, sink = graph.positions(origin, destination)
    left, paths = list(flow), []
    while (path := _widest(graph, source, sink, left)) is not None:
        rate_bps = min(left[link] for link in path)
        for link in path:
            left[link] -= rate_bps
        paths.append(PathFlow(path, rate_bps))
    return paths


def _widest(graph: Graph, source: int, sink: int, flow: Sequence[int]) -> Path | None:
    best = {source: (0, 0)}
    arrived_by: dict[int, int] = {}
    queue = [(0, 0, source)]
    settled: set[int] = set()
    while queue:
        narrowness, hops, node = heapq.heappop(queue)
        if node == sink:
            backwards = []
            while node != source:
                backwards.append(arrived_by[node])
                node = graph.ends[arrived_by[node]][0]
            return tuple(reversed(backwards))
        if node in settled:
            continue
        settled.add(node)
        for link in graph.outgoing[node]:
            head = graph.ends[link][1]
            if flow[link] == 0 or head in settled:
                continue
            # At the source nothing has narrowed the path yet.
            width = flow[link] if node == source else min(flow[link], -narrowness)
            if head not in best or (-width, hops + 1) < best[head]:
                best[head], arrived_by[head] = (-width, hops + 1), link
                heapq.heappush(queue, (-width, hops + 1, head))
    return None
