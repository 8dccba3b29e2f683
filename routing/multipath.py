"""Equal-cost and weighted-cost multipath: sets of paths, and the weight of each."""

from collections.abc import Sequence

from routing.graph import Graph, Node, Path


def equal_cost_paths(graph: Graph, origin: Node, destination: Node) -> list[Path]:
    """Return all paths of fewest hops between two nodes, in order of their links.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same.
    """
    at, to = graph.positions(origin, destination)
    hops, wave = {to: 0}, [to]
    while wave and at not in hops:
        towards = [graph.ends[link][0] for node in wave for link in graph.incoming[node]]
        distance = hops[wave[0]] + 1
        wave = [node for node in dict.fromkeys(towards) if node not in hops]
        hops.update(dict.fromkeys(wave, distance))
    if at not in hops:
        return []
    paths: list[tuple[int, Path]] = [(at, ())]
    for left in reversed(range(hops[at])):
        paths = [
            (graph.ends[link][1], (*path, link))
            for node, path in paths
            for link in graph.outgoing[node]
            if hops.get(graph.ends[link][1]) == left
        ]
    return [path for _, path in paths]


def bottleneck_bps(graph: Graph, path: Path) -> float:
    """Return the least capacity on a path."""
    return min(graph.links[link].capacity_bps for link in path)


def weights(graph: Graph, paths: Sequence[Path]) -> list[float]:
    """Return the share of traffic of each path, in proportion to its bottleneck.

    Weights of J. Zhou et al., "WCMP: Weighted cost multipathing for improved fairness in data
    centers", EuroSys 2014.
    """
    rates = [bottleneck_bps(graph, path) for path in paths]
    return [rate / sum(rates) for rate in rates]
