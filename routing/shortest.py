"""Shortest paths: between two nodes, several in order of their length, and from all to one."""

import heapq
from collections.abc import Collection, Sequence

from routing.graph import Graph, Node, Path


def shortest_path(
    graph: Graph, origin: Node, destination: Node, lengths: Sequence[float] | None = None
) -> Path | None:
    """Return the shortest path between two nodes (E. W. Dijkstra, 1959).

    Of paths equally short the one found first is taken, which depends only on the order of links.

    Parameters
    ----------
    graph, origin, destination
        Where to look.
    lengths : sequence of float, optional
        Length of every link, 0 or more. By default all are 1.

    Returns
    -------
    Path or None
        None if there is none.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same.
    """
    at, to = graph.positions(origin, destination)
    return _shortest(graph, at, to, lengths or [1.0] * len(graph.links))


def shortest_paths_to(
    graph: Graph, destination: Node, lengths: Sequence[float] | None = None
) -> dict[Node, Path]:
    """Return the shortest path to a node from every other that has one.

    Parameters
    ----------
    graph, destination
        Where to look.
    lengths : sequence of float, optional
        Length of every link, 0 or more. By default all are 1.

    Raises
    ------
    ValueError
        If the node is not there.
    """
    to = graph.position(destination)
    lengths = lengths or [1.0] * len(graph.links)
    distance, leaves_by = {to: 0.0}, dict[int, int]()
    paths: dict[int, Path] = {}
    queue, pushed = [(0.0, 0, to)], 0
    while queue:
        so_far, _, node = heapq.heappop(queue)
        if node in paths:
            continue
        link = leaves_by.get(node)
        paths[node] = () if link is None else (link, *paths[graph.ends[link][1]])
        for link in graph.incoming[node]:
            tail = graph.ends[link][0]
            length = so_far + lengths[link]
            if tail not in paths and (tail not in distance or length < distance[tail]):
                distance[tail], leaves_by[tail] = length, link
                pushed += 1
                heapq.heappush(queue, (length, pushed, tail))
    del paths[to]
    return {graph.nodes[node]: path for node, path in paths.items()}


def k_shortest_paths(
    graph: Graph,
    origin: Node,
    destination: Node,
    count: int,
    lengths: Sequence[float] | None = None,
) -> list[Path]:
    """Return the shortest paths that pass no node twice, shortest first.

    The method of J. Y. Yen, "Finding the k shortest loopless paths in a network", Management
    Science 17 (11), 1971.

    Parameters
    ----------
    graph, origin, destination, lengths
        As for `shortest_path`.
    count : int
        How many, 0 or more. There may be fewer.

    Raises
    ------
    ValueError
        If a node is not there, or both are the same, or `count` is negative.
    """
    at, to = graph.positions(origin, destination)
    if count < 0:
        raise ValueError(f"count must be 0 or more, not {count}")
    lengths = lengths or [1.0] * len(graph.links)
    found: list[Path] = []
    candidates: list[tuple[float, Path]] = []
    known: set[Path] = set()

    def consider(path: Path | None) -> None:
        if path is not None and path not in known:
            known.add(path)
            heapq.heappush(candidates, (sum(lengths[link] for link in path), path))

    if count > 0:
        consider(_shortest(graph, at, to, lengths))
    while candidates:
        _, path = heapq.heappop(candidates)
        found.append(path)
        if len(found) == count:
            break
        spur, passed = at, set[int]()
        for position, link in enumerate(path):
            root = path[:position]
            taken = {other[position] for other in found if other[:position] == root}
            rest = _shortest(graph, spur, to, lengths, taken, passed)
            consider(None if rest is None else (*root, *rest))
            passed.add(spur)
            spur = graph.ends[link][1]
    return found


def _shortest(
    graph: Graph,
    origin: int,
    destination: int,
    lengths: Sequence[float],
    without_links: Collection[int] = (),
    without_nodes: Collection[int] = (),
) -> Path | None:
    distance, arrived_by = {origin: 0.0}, dict[int, int]()
    queue, pushed = [(0.0, 0, origin)], 0
    settled = set(without_nodes)
    while queue:
        so_far, _, node = heapq.heappop(queue)
        if node == destination:
            backwards = []
            while node != origin:
                backwards.append(arrived_by[node])
                node = graph.ends[arrived_by[node]][0]
            return tuple(reversed(backwards))
        if node in settled:
            continue
        settled.add(node)
        for link in graph.outgoing[node]:
            head = graph.ends[link][1]
            length = so_far + lengths[link]
            if head in settled or link in without_links:
                continue
            if head not in distance or length < distance[head]:
                distance[head], arrived_by[head] = length, link
                pushed += 1
                heapq.heappush(queue, (length, pushed, head))
    return None
