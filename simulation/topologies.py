"""Data centre networks of links of one kind, and paths through them drawn at random."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from routing import Path
from routing.topologies import Topology, bcube, fat_tree
from simulation.network import Link


@dataclass
class FatTree:
    """Fat tree of switches with k ports, see `routing.topologies.fat_tree`.

    Parameters
    ----------
    ports : int
        k, even.
    link : Link
        Every link in each direction.

    Raises
    ------
    ValueError
        If k is not an even number of 2 or more.
    """

    ports: int
    link: Link
    topology: Topology = field(init=False)
    links: list[Link] = field(init=False)

    def __post_init__(self) -> None:
        self.topology = fat_tree(self.ports)
        self.links = [self.link] * len(self.topology.graph.links)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.topology.hosts)

    @property
    def switches(self) -> int:
        """Number of switches."""
        return len(self.topology.switches)

    def path_count(self, source: int, destination: int) -> int:
        """Return how many shortest paths there are between two hosts."""
        half = self.ports // 2
        if source // half == destination // half:
            return 1
        return half if self._pod(source) == self._pod(destination) else half * half

    def path(self, source: int, destination: int, which: int) -> Path:
        """Return the links of a shortest path; `which` counts from 0."""
        half = self.ports // 2
        low, other = source // half, destination // half
        between = []
        if low != other:
            up = which % half
            pods = self._pod(source), self._pod(destination)
            between = [f"a{pod * half + up}" for pod in pods]
            if pods[0] == pods[1]:
                between.pop()
            else:
                between.insert(1, f"c{up * half + which // half}")
            between = [*between, f"e{other}"]
        nodes = [f"h{source}", f"e{low}", *between, f"h{destination}"]
        return self.topology.graph.through(nodes)

    def _pod(self, host: int) -> int:
        return host // (self.ports // 2) ** 2

    def choose(self, source: int, destination: int, count: int, draw: random.Random) -> list[Path]:
        """Return different paths, chosen at random; fewer if there are fewer.

        Up to k/2 paths between pods pass different aggregation switches, as in the simulator of the
        paper's authors.
        """
        half, there = self.ports // 2, self.path_count(source, destination)
        if there == half * half and count <= half:
            switches = draw.sample(range(half), count)
            chosen = [switch + half * draw.randrange(half) for switch in switches]
        else:
            chosen = draw.sample(range(there), min(count, there))
        return [self.path(source, destination, which) for which in chosen]


@dataclass
class BCube:
    """BCube of servers that forward, see `routing.topologies.bcube`.

    Parameters
    ----------
    ports : int
        n.
    levels : int
        Digits of a host's address, and interfaces of a host.
    link : Link
        Between an interface and its switch, in each direction.
    """

    ports: int
    levels: int
    link: Link
    topology: Topology = field(init=False)
    links: list[Link] = field(init=False)

    def __post_init__(self) -> None:
        self.topology = bcube(self.ports, self.levels - 1)
        self.links = [self.link] * len(self.topology.graph.links)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.topology.hosts)

    @property
    def switches(self) -> int:
        """Number of switches."""
        return len(self.topology.switches)

    def digit(self, host: int, level: int) -> int:
        """Return a digit of a host's address."""
        return int(host // self.ports**level % self.ports)

    def with_digit(self, host: int, level: int, digit: int) -> int:
        """Return the host whose address differs in a digit."""
        return host + (digit - self.digit(host, level)) * int(self.ports**level)

    def neighbours(self, host: int) -> list[int]:
        """Return the hosts that share a switch with a host."""
        return [
            self.with_digit(host, level, digit)
            for level in range(self.levels)
            for digit in range(self.ports)
            if digit != self.digit(host, level)
        ]

    def shortest(self, source: int, destination: int, draw: random.Random) -> Path:
        """Return a shortest path that corrects digits in random order."""
        levels = [
            level
            for level in range(self.levels)
            if self.digit(source, level) != self.digit(destination, level)
        ]
        draw.shuffle(levels)
        return self._links(self._correct(source, destination, levels))

    def disjoint(self, source: int, destination: int, draw: random.Random) -> list[Path]:
        """Return paths without common links, one from each interface (BuildPathSet).

        Where the first digit to correct is right already, the path goes by a random neighbour on
        that level.
        """
        paths = []
        for level in reversed(range(self.levels)):
            # This level first, then the lower ones, then the higher ones from the top.
            order = [(level - i) % self.levels for i in range(self.levels)]
            own = self.digit(source, level)
            if own != self.digit(destination, level):
                hosts = self._correct(source, destination, order)
            else:
                other = draw.choice([digit for digit in range(self.ports) if digit != own])
                by = self.with_digit(source, level, other)
                end = self.with_digit(destination, level, other)
                hosts = [source, *self._correct(by, end, order[1:]), destination]
            paths.append(self._links(hosts))
        return paths

    def _correct(self, source: int, destination: int, levels: Sequence[int]) -> list[int]:
        hosts = [source]
        for level in levels:
            following = self.with_digit(hosts[-1], level, self.digit(destination, level))
            if following != hosts[-1]:
                hosts.append(following)
        return hosts

    def _links(self, hosts: Sequence[int]) -> Path:
        """Return the links up to a switch and down from it, for each two hosts in turn."""
        graph = self.topology.graph
        nodes = [f"h{hosts[0]}"]
        for a, b in pairwise(hosts):
            level = next(i for i in range(self.levels) if self.digit(a, i) != self.digit(b, i))
            up = graph.outgoing[graph.index[f"h{a}"]][level]
            nodes += [str(graph.links[up].head), f"h{b}"]
        return graph.through(nodes)


def permutation(hosts: int, draw: random.Random) -> list[int]:
    """Return a destination for each host: everybody's is another, and nobody's is himself."""
    while True:
        order = list(range(hosts))
        draw.shuffle(order)
        if all(host != other for host, other in enumerate(order)):
            return order
