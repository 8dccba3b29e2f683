"""Places for the nodes of a network in a picture. Pure, and the same for the same network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import fdm

Places = NDArray[np.float64]
"""One row (x, y) for each node, in the order of the network's nodes."""

_ROUNDS = 150

_MOST_PAIRS = 200_000
"""Nodes times links above which nodes are not pushed off links: it would take too long."""


def layout(network: fdm.Network) -> Places:
    """Return places at which distance on the page stands for hops between nodes.

    Stress majorisation from a classical scaling (E. Gansner, Y. Koren, S. North, "Graph drawing by
    stress majorization", 2004), turned so that the longest extent lies across.

    Parameters
    ----------
    network : fdm.Network
        Time and memory grow with the square of its nodes; a thousand take seconds.
    """
    count = len(network.nodes)
    if count < 3:
        return np.array([[float(number), 0.0] for number in range(count)]).reshape(count, 2)
    apart = _hops(network)
    places = _scaled_classically(apart)
    weights = apart + np.eye(count)
    weights = 1.0 / weights**2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        now = _distances(places)
        ratio = np.divide(weights * apart, now, out=np.zeros_like(now), where=now > 1e-9)
        pull = np.diag(ratio.sum(axis=1)) - ratio
        places = inverse @ (pull @ places)
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: Places = centred @ axes.T
    return turned


def layered(network: fdm.Network, demands: Sequence[fdm.Demand]) -> Places | None:
    """Return places in columns by hops to the one destination of all demands, users on the left.

    None where that is not what the network looks like: several destinations, links within a
    column or across one, or nodes that do not reach the destination.
    """
    destinations = {demand.destination for demand in demands}
    if len(destinations) != 1:
        return None
    hops = _hops(network)[network.index[destinations.pop()]]
    ends = [(network.index[link.tail], network.index[link.head]) for link in network.links]
    if not ends or any(abs(hops[tail] - hops[head]) != 1 for tail, head in ends):
        return None
    places = np.zeros((len(network.nodes), 2))
    for column in range(int(hops.max()) + 1):
        rows = np.flatnonzero(hops == column)
        places[rows, 0] = -float(column)
        # From top to bottom in the order of the network.
        places[rows, 1] = -(np.arange(len(rows)) + 0.5) / len(rows)
    return places


def spread(network: fdm.Network, places: Places, apart: float, clear: float) -> Places:
    """Return the places with nodes pushed off each other and off links that are not theirs.

    Parameters
    ----------
    network, places
        The network and where its nodes are.
    apart : float
        Distance that nodes keep from each other where they can.
    clear : float
        Distance that nodes keep from links where they can.
    """
    places = places.copy()
    count = len(places)
    angle = np.arange(count) * 2.399963  # the golden angle: no two directions are alike
    places += 1e-3 * apart * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ends = sorted(
        {
            (min(pair), max(pair))
            for link in network.links
            if (pair := (network.index[link.tail], network.index[link.head]))[0] != pair[1]
        }
    )
    joined = np.array(ends, dtype=np.int64).reshape(len(ends), 2)
    if count * len(ends) > _MOST_PAIRS:
        joined = joined[:0]
    for _ in range(_ROUNDS):
        way = places[:, None, :] - places[None, :, :]
        now = _distances(places) + np.eye(count)
        short = np.clip(apart - now, 0.0, None)
        np.fill_diagonal(short, 0.0)
        move = 0.5 * (way * (short / now)[:, :, None]).sum(axis=1)
        move += _off_links(places, joined, clear)
        size = np.sqrt((move**2).sum(axis=1, keepdims=True))
        if not size.max(initial=0.0) > 1e-2 * apart:
            break
        places += move * np.minimum(1.0, 0.3 * apart / np.maximum(size, 1e-9))
    return places


def _off_links(places: Places, joined: NDArray[np.int64], clear: float) -> Places:
    """How far to move every node away from links that pass too close."""
    begin, end = places[joined[:, 0]], places[joined[:, 1]]
    along = end - begin
    squared = np.maximum((along**2).sum(axis=1), 1e-9)
    from_begin = places[:, None, :] - begin[None, :, :]
    share = (from_begin * along).sum(axis=2) / squared
    off = from_begin - np.clip(share, 0.0, 1.0)[:, :, None] * along
    distance = np.maximum(np.sqrt((off**2).sum(axis=2)), 1e-6)
    short = np.where((share > 0.0) & (share < 1.0), np.clip(clear - distance, 0.0, None), 0.0)
    number = np.arange(len(joined))
    short[joined[:, 0], number] = short[joined[:, 1], number] = 0.0
    moves: Places = 0.5 * (off * (short / distance)[:, :, None]).sum(axis=1)
    return moves


def completed(network: fdm.Network, known: Mapping[fdm.Node, tuple[float, float]]) -> Places:
    """Return places of all nodes, given those of some; the others go amid their neighbours."""
    places = np.array([known.get(node, (np.nan, np.nan)) for node in network.nodes])
    neighbours: list[set[int]] = [set() for _ in network.nodes]
    for link in network.links:
        tail, head = network.index[link.tail], network.index[link.head]
        neighbours[tail].add(head)
        neighbours[head].add(tail)
    middle = np.nanmean(places, axis=0) if known else np.zeros(2)
    missing = [number for number, node in enumerate(network.nodes) if node not in known]
    places[missing] = middle
    for _ in range(_ROUNDS):
        for number in missing:
            near: Sequence[int] = sorted(neighbours[number] - {number})
            if near:
                places[number] = places[near].mean(axis=0)
    return places


def _hops(network: fdm.Network) -> NDArray[np.float64]:
    """Hops between all nodes, whatever the direction; one more than the most where there is no way.

    One round of matrix multiplication for each hop.
    """
    count = len(network.nodes)
    joined = np.zeros((count, count), dtype=np.float32)
    for link in network.links:
        tail, head = network.index[link.tail], network.index[link.head]
        joined[tail, head] = joined[head, tail] = 1.0
    hops = np.full((count, count), np.inf)
    reached = np.eye(count, dtype=np.float32)
    np.fill_diagonal(hops, 0.0)
    step = 0
    while True:
        step += 1
        further = (reached @ joined > 0.0) & np.isinf(hops)
        if not further.any():
            break
        hops[further] = step
        reached = further.astype(np.float32)
    hops[np.isinf(hops)] = step
    return hops


def _scaled_classically(apart: NDArray[np.float64]) -> Places:
    """Places whose distances are near `apart` (W. Torgerson, "Multidimensional scaling", 1952)."""
    squared = apart**2
    means = squared.mean(axis=0)
    inner = -0.5 * (squared - means[None, :] - means[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(inner)
    scaled: Places = vectors[:, -2:] * np.sqrt(np.clip(values[-2:], 1e-6, None))
    # An eigenvector may come with either sign.
    turn = np.where(scaled[np.abs(scaled).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0)
    return scaled * turn


def _distances(places: Places) -> NDArray[np.float64]:
    way = places[:, None, :] - places[None, :, :]
    distances: NDArray[np.float64] = np.sqrt((way**2).sum(axis=2))
    return distances
