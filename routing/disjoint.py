"""Paths without common links."""

from collections.abc import Sequence

from routing.flow import cheapest_flow, decompose, delay_then_hops
from routing.graph import Graph, Node, Path


def disjoint_paths(
    graph: Graph,
    origin: Node,
    destination: Node,
    count: int,
    costs: Sequence[int] | None = None,
) -> list[Path]:
    """Return paths that share no link and together cost least, the cheapest first.

    A flow of least cost where every link carries one path: for two paths the method of
    J. W. Suurballe ("Disjoint paths in a network", Networks 4, 1974), for more that of R. Bhandari
    ("Survivable Networks", 1999). The two directions between two nodes are different links; as
    costs are positive, the cheapest paths never use both.

    Parameters
    ----------
    graph, origin, destination
        Where to look.
    count : int
        How many, 0 or more. There may be fewer.
    costs : sequence of int, optional
        Cost of every link, 1 or more. By default `delay_then_hops`.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same, a cost is less than 1, or `count` is negative.
    """
    if count < 0:
        raise ValueError(f"count must be 0 or more, not {count}")
    costs = delay_then_hops(graph) if costs is None else costs
    once = [1 if link.capacity_bps >= 1.0 else 0 for link in graph.links]
    flow = cheapest_flow(graph, origin, destination, costs=costs, capacities=once, most=count)
    paths = [path for path, _ in decompose(graph, flow, origin, destination)]
    return sorted(paths, key=lambda path: sum(costs[link] for link in path))
