"""Shortest paths for all demands at once."""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from fdm.network import Demand, Network

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


def shortest_paths(
    network: Network, demands: Sequence[Demand], lengths: Sequence[float]
) -> list[Shortest]:
    """Return the shortest path of every demand by Dijkstra's method, once for each origin.

    Of paths equally short the one found first is taken, which depends only on the order of the
    links; links of infinite length are not used.
    """
    wanted: dict[int, list[int]] = {}
    for number, demand in enumerate(demands):
        wanted.setdefault(network.index[demand.origin], []).append(number)
    found = [Shortest(None, math.inf)] * len(demands)
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
