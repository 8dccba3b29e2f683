"""Shortest paths for all demands at once."""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from fdm.network import Demand, Network, Node

Path = tuple[int, ...]
"""Links by their position in the network, from origin to destination."""


class Shortest(NamedTuple):
    """The shortest path of one demand.

    Attributes
    ----------
    path : Path or None
        None if the destination cannot be reached.
    length : float
        Its length, infinite if it cannot be reached.
    """

    path: Path | None
    length: float


_NONE = Shortest(None, math.inf)

_SMALL, _STEPS = 100, 30
"""Links of a network whose paths are looked for, and nodes that may be passed in doing so."""


def shortest_paths(
    network: Network, demands: Sequence[Demand], lengths: Sequence[float]
) -> list[Shortest]:
    """Return the shortest path of every demand.

    Of paths equally short the one found first is taken, which depends only on the order of the
    links; links of infinite length are not used.

    Between nodes with few paths all are compared. Otherwise it is Dijkstra's method, once for each
    origin.
    """
    found = [_NONE] * len(demands)
    wanted: dict[int, list[int]] = {}
    for number, demand in enumerate(demands):
        few = few_paths(network, demand.origin, demand.destination)
        if few is None:
            wanted.setdefault(network.index[demand.origin], []).append(number)
            continue
        for path in few:
            length = 0.0
            for link in path:
                length += lengths[link]
            if length < found[number].length:
                found[number] = Shortest(path, length)
    for origin, numbers in wanted.items():
        targets = {network.index[demands[number].destination] for number in numbers}
        distance, arrived_by = _tree(network, origin, targets, lengths)
        for number in numbers:
            at = network.index[demands[number].destination]
            if at not in distance:
                continue
            length = distance[at]
            backwards = []
            while at != origin:
                backwards.append(arrived_by[at])
                at = network.index[network.links[arrived_by[at]].tail]
            found[number] = Shortest(tuple(reversed(backwards)), length)
    return found


def few_paths(network: Network, origin: Node, destination: Node) -> tuple[Path, ...] | None:
    """Return all paths between two nodes, in order of their links; None if they are many."""
    ends = (origin, destination)
    if ends not in network.known:
        network.known[ends] = _all_paths(network, network.index[origin], network.index[destination])
    few: tuple[Path, ...] | None = network.known[ends]
    return few


def _all_paths(network: Network, origin: int, destination: int) -> tuple[Path, ...] | None:
    if len(network.links) > _SMALL:
        return None
    paths: list[Path] = []
    waiting: list[tuple[int, tuple[int, ...], Path]] = [(origin, (origin,), ())]
    steps = 0
    while waiting:
        at, passed, path = waiting.pop()
        if at == destination:
            paths.append(path)
            continue
        steps += 1
        if steps > _STEPS:
            return None
        for link, head in reversed(network.outgoing[at]):
            if head not in passed:
                waiting.append((head, (*passed, head), (*path, link)))
    return tuple(paths)


def _tree(
    network: Network, origin: int, targets: set[int], lengths: Sequence[float]
) -> tuple[dict[int, float], dict[int, int]]:
    distance = {origin: 0.0}
    arrived_by: dict[int, int] = {}
    settled: set[int] = set()
    missing = set(targets)
    queue = [(0.0, origin)]
    while queue and missing:
        so_far, node = heapq.heappop(queue)
        if node in settled:
            continue
        settled.add(node)
        missing.discard(node)
        for link, head in network.outgoing[node]:
            length = so_far + lengths[link]
            if length < distance.get(head, math.inf):
                distance[head] = length
                arrived_by[head] = link
                heapq.heappush(queue, (length, head))
    return distance, arrived_by
