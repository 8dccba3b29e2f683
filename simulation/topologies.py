"""Data centre networks: which links there are, and which paths lead through them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from simulation.network import Link


@dataclass
class FatTree:
    """Fat tree of switches with k ports (M. Al-Fares et al., SIGCOMM 2008).

    k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts.

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
    links: list[Link] = field(init=False)

    def __post_init__(self) -> None:
        k = self.ports
        if k < 2 or k % 2:
            raise ValueError(f"ports is {k}; expected an even number of 2 or more")
        # Up and down between hosts and edge, edge and aggregation, aggregation and core: each
        # layer has as many links as there are hosts.
        self.links = [self.link] * (6 * self.hosts)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.ports**3 // 4

    @property
    def switches(self) -> int:
        """Number of switches."""
        return 5 * self.ports**2 // 4

    def path_count(self, source: int, destination: int) -> int:
        """Return how many shortest paths there are between two hosts."""
        half = self.ports // 2
        if source // half == destination // half:
            return 1
        return half if self._pod(source) == self._pod(destination) else half * half

    def path(self, source: int, destination: int, which: int) -> list[int]:
        """Return the links of a shortest path; `which` counts from 0."""
        half, hosts = self.ports // 2, self.hosts
        first, last = 2 * source, 2 * destination + 1
        if source // half == destination // half:
            return [first, last]
        up_switch = which % half
        middle = [
            2 * (hosts + source // half * half + up_switch),
            2 * (hosts + destination // half * half + up_switch) + 1,
        ]
        if self._pod(source) != self._pod(destination):
            core = which // half
            middle[1:1] = [
                2 * (2 * hosts + (self._pod(source) * half + up_switch) * half + core),
                2 * (2 * hosts + (self._pod(destination) * half + up_switch) * half + core) + 1,
            ]
        return [first, *middle, last]

    def _pod(self, host: int) -> int:
        return host // (self.ports // 2) ** 2

    def choose(
        self, source: int, destination: int, count: int, draw: random.Random
    ) -> list[list[int]]:
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
    """BCube of servers that forward (C. Guo et al., SIGCOMM 2009).

    n^levels hosts with one interface a level; on each level, hosts whose addresses differ in that
    digit only share a switch of n ports.

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
    links: list[Link] = field(init=False)

    def __post_init__(self) -> None:
        self.links = [self.link] * (2 * self.levels * self.hosts)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return int(self.ports**self.levels)

    @property
    def switches(self) -> int:
        """Number of switches."""
        return self.levels * self.hosts // self.ports

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

    def shortest(self, source: int, destination: int, draw: random.Random) -> list[int]:
        """Return a shortest path that corrects digits in random order."""
        levels = [
            level
            for level in range(self.levels)
            if self.digit(source, level) != self.digit(destination, level)
        ]
        draw.shuffle(levels)
        return self._links(self._correct(source, destination, levels))

    def disjoint(self, source: int, destination: int, draw: random.Random) -> list[list[int]]:
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

    def _links(self, hosts: Sequence[int]) -> list[int]:
        """Return the links up to a switch and down from it, for each two hosts in turn."""
        path = []
        for a, b in pairwise(hosts):
            level = next(i for i in range(self.levels) if self.digit(a, i) != self.digit(b, i))
            path += [2 * (level * self.hosts + a), 2 * (level * self.hosts + b) + 1]
        return path


def permutation(hosts: int, draw: random.Random) -> list[int]:
    """Return a destination for each host: everybody's is another, and nobody's is himself."""
    while True:
        order = list(range(hosts))
        draw.shuffle(order)
        if all(host != other for host, other in enumerate(order)):
            return order
