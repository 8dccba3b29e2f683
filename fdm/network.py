"""The problem: links with a capacity and a propagation delay, and the demands on them."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALLEST, LARGEST = 1e-60, 1e60
"""Capacities and rates other than 0 lie between these, and delays below the latter, so that cubes
and products of what is worked out from them are still numbers."""

Node = Hashable
"""A node's name: a string, a number, anything that can be a dictionary key."""


class Link(NamedTuple):
    """A link one way.

    Attributes
    ----------
    tail, head : Node
        Where it begins and ends. Several links may join the same two nodes.
    capacity_bps : float
        Capacity in bit/s. A link of capacity 0 is down: it is there and nothing uses it.
    delay_s : float
        Propagation delay in seconds.
    """

    tail: Node
    head: Node
    capacity_bps: float
    delay_s: float = 0.0


class Demand(NamedTuple):
    """A commodity: traffic from one node to another.

    Two users with the same ends are two demands; each gets its own path flows.

    Attributes
    ----------
    origin, destination : Node
        Where it begins and ends.
    rate_bps : float
        Offered rate in bit/s, 0 or more.
    """

    origin: Node
    destination: Node
    rate_bps: float


class Arrays(NamedTuple):
    """A network as NumPy arrays, nodes and links by position.

    Attributes
    ----------
    tail, head : array of int
        Ends of every link.
    capacity : array of float
        Capacity of every link in bit/s.
    out, out_link : array of int
        ``out_link[out[n]:out[n + 1]]`` are the links that leave node n and are up.
    """

    tail: "NDArray[np.int64]"
    head: "NDArray[np.int64]"
    capacity: "NDArray[np.float64]"
    out: "NDArray[np.int64]"
    out_link: "NDArray[np.int64]"


@dataclass(frozen=True, init=False)
class Network:
    """Nodes and links.

    Parameters
    ----------
    nodes : iterable of Node
        Names, each once. Nodes without links are allowed.
    links : iterable of Link
        Links refer to nodes by name and are referred to by their position here.

    Raises
    ------
    ValueError
        If a node is named twice, a link ends at an unknown node, or a capacity or delay is
        negative, not finite, or out of bounds.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    index: dict[Node, int] = field(repr=False, compare=False)
    ends: tuple[tuple[int, int], ...] = field(repr=False, compare=False)
    """Tail and head of every link, by position."""
    outgoing: tuple[tuple[tuple[int, int], ...], ...] = field(repr=False, compare=False)
    """For each node by position: (link, head) of every link that leaves it and is up."""
    known: dict[Any, Any] = field(repr=False, compare=False)
    """What was worked out about it so far, by whom or for what: say a delay function's terms."""

    def __init__(self, nodes: Iterable[Node], links: Iterable[Link]) -> None:
        object.__setattr__(self, "nodes", tuple(nodes))
        object.__setattr__(self, "links", tuple(links))
        index = {node: position for position, node in enumerate(self.nodes)}
        if len(index) < len(self.nodes):
            twice, _ = Counter(self.nodes).most_common(1)[0]
            raise ValueError(f"node {twice!r} is there twice")
        outgoing: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        ends: list[tuple[int, int]] = []
        for number, (tail, head, capacity_bps, delay_s) in enumerate(self.links):
            if tail not in index or head not in index:
                end = head if tail in index else tail
                raise ValueError(f"link {number} ends at {end!r}, which is no node")
            if not (capacity_bps == 0.0 or SMALLEST <= capacity_bps <= LARGEST):
                raise ValueError(_refusal("capacity_bps", "link", number, tail, head, capacity_bps))
            if not 0.0 <= delay_s <= LARGEST:
                raise ValueError(_refusal("delay_s", "link", number, tail, head, delay_s))
            ends.append((index[tail], index[head]))
            if capacity_bps > 0.0:
                outgoing[index[tail]].append((number, index[head]))
        object.__setattr__(self, "known", {})
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "ends", tuple(ends))
        object.__setattr__(self, "outgoing", tuple(map(tuple, outgoing)))

    @cached_property
    def arrays(self) -> Arrays:
        """The same as arrays, made when first asked for."""
        import numpy as np

        ends = np.array(self.ends, dtype=np.int64).reshape(-1, 2)
        capacity = np.array([link[2] for link in self.links], dtype=np.float64)
        tail, head = ends[:, 0].copy(), ends[:, 1].copy()
        order = np.argsort(tail, kind="stable")
        out_link = order[capacity[order] > 0.0]
        leaving = np.bincount(tail[out_link], minlength=len(self.nodes))
        out = np.zeros(len(self.nodes) + 1, dtype=np.int64)
        np.cumsum(leaving, out=out[1:])
        return Arrays(tail, head, capacity, out, out_link)

    def reachable(self, origin: Node) -> set[Node]:
        """Return the nodes that a node has a path to, itself included."""
        at = self.index[origin]
        seen, waiting = {at}, [at]
        while waiting:
            for _, head in self.outgoing[waiting.pop()]:
                if head not in seen:
                    seen.add(head)
                    waiting.append(head)
        return {self.nodes[position] for position in seen}

    def check(self, demands: Sequence[Demand]) -> None:
        """Raise ValueError unless every demand has two different known ends and a finite rate."""
        for number, demand in enumerate(demands):
            for end in (demand.origin, demand.destination):
                if end not in self.index:
                    raise ValueError(f"demand {number} ends at {end!r}, which is no node")
            if demand.origin == demand.destination:
                raise ValueError(f"demand {number} begins where it ends, at {demand.origin!r}")
            rate_bps = demand.rate_bps
            if not (rate_bps == 0.0 or SMALLEST <= rate_bps <= LARGEST):
                raise ValueError(
                    _refusal(
                        "rate_bps", "demand", number, demand.origin, demand.destination, rate_bps
                    )
                )


def counted(value: float) -> float:
    """Return a capacity or rate, 0 if it is too small to count."""
    return value if value >= SMALLEST else 0.0


def _refusal(name: str, kind: str, number: int, tail: Node, head: Node, value: float) -> str:
    """Return what is wrong with a number of a link or demand."""
    wanted = (
        f"0 or between {SMALLEST:g} and {LARGEST:g}"
        if 0.0 <= value < math.inf
        else "a finite number, 0 or more"
    )
    return f"{name} of {kind} {number} ({tail!r} to {head!r}) must be {wanted}, not {value!r}"
