"""What paths are looked for in: nodes, and links one way with a capacity and a delay."""

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

Node = Hashable
"""A node's name: a string, a number, anything that can be a dictionary key."""

Path = tuple[int, ...]
"""Links by their position in the graph, from origin to destination."""


class Link(NamedTuple):
    """A link one way.

    Attributes
    ----------
    tail, head : Node
        Where it begins and ends. Several links may join the same two nodes.
    capacity_bps : float
        Capacity in bit/s. A link of less than 1 bit/s is down: it is there and nothing uses it.
    delay_s : float
        Propagation delay in seconds.
    """

    tail: Node
    head: Node
    capacity_bps: float
    delay_s: float = 0.0


class Graph:
    """Links, and the nodes that they join.

    Parameters
    ----------
    links : iterable of Link
        Referred to by their position here.

    Attributes
    ----------
    links : tuple of Link
        The same.
    nodes : tuple of Node
        In order of their first link.
    index : dict
        Position of every node.
    ends : list of (int, int)
        Tail and head of every link, by position.
    outgoing, incoming : list of list of int
        For each node by position, the links that leave or enter it and are up.

    Raises
    ------
    ValueError
        If a capacity or delay is negative or not finite.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = tuple(links)
        for number, link in enumerate(self.links):
            for name in ("capacity_bps", "delay_s"):
                given = getattr(link, name)
                if not 0.0 <= given < math.inf:
                    raise ValueError(
                        f"{name} of link {number} ({link.tail!r} to {link.head!r}) must be "
                        f"a finite number, 0 or more, not {given!r}"
                    )
        ends = (end for link in self.links for end in (link.tail, link.head))
        self.nodes: tuple[Node, ...] = tuple(dict.fromkeys(ends))
        self.index = {node: position for position, node in enumerate(self.nodes)}
        self.ends = [(self.index[link.tail], self.index[link.head]) for link in self.links]
        self.outgoing: list[list[int]] = [[] for _ in self.nodes]
        self.incoming: list[list[int]] = [[] for _ in self.nodes]
        for number, (tail, head) in enumerate(self.ends):
            if self.links[number].capacity_bps >= 1.0:
                self.outgoing[tail].append(number)
                self.incoming[head].append(number)

    def position(self, node: Node) -> int:
        """Return the position of a node.

        Raises
        ------
        ValueError
            If it is not there.
        """
        if node not in self.index:
            raise ValueError(f"there is no node {node!r}")
        return self.index[node]

    def positions(self, origin: Node, destination: Node) -> tuple[int, int]:
        """Return the positions of two nodes.

        Raises
        ------
        ValueError
            If one is not there, or they are the same.
        """
        if origin == destination:
            raise ValueError(f"origin and destination are both {origin!r}")
        return self.position(origin), self.position(destination)

    def passed(self, path: Sequence[int]) -> tuple[Node, ...]:
        """Return the nodes of a path, ends included."""
        return (self.links[path[0]].tail, *(self.links[link].head for link in path))

    def through(self, nodes: Sequence[Node]) -> Path:
        """Return the path through nodes in turn; of several links the first.

        Raises
        ------
        KeyError
            If no link joins two of them.
        """
        return tuple(self._joining[ends] for ends in pairwise(nodes))

    @cached_property
    def _joining(self) -> dict[tuple[Node, Node], int]:
        backwards = reversed(list(enumerate(self.links)))
        return {(link.tail, link.head): number for number, link in backwards}
