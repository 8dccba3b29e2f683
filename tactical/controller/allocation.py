"""What policies decide on and what they decide: situations, subflows, allocations. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import fdm
from fdm.queues import QueueRate

from .network import Attachment, ControlledNetwork, Trunk

TRICKLE_BPS = 64_000
"""Rate of a subflow that the optimum does not use: five full packets a second."""


@dataclass(frozen=True)
class Hop:
    """Leaving `datapath` by `port`; `trunk` is None on the hop to the server."""

    datapath: str
    port: str
    trunk: Trunk | None

    @property
    def head(self) -> tuple[str, str]:
        """The datapath that a trunk hop leads to, and the port by which it is entered."""
        t = self.trunk
        assert t is not None
        if (t.a_datapath, t.a_port) == (self.datapath, self.port):
            return (t.b_datapath, t.b_port)
        return (t.a_datapath, t.a_port)


Path = tuple[Hop, ...]
"""Trunk hops, then the hop to the server."""


@dataclass(frozen=True)
class Subflow:
    """The path of one attachment's traffic to the server, and its rate on each trunk hop.

    What comes back takes the same path backwards.
    """

    attachment: Attachment
    path: Path
    rate_bps: float | None = None
    """Rate as solved; None where the policy allocates nothing."""
    queues: Mapping[tuple[str, str], QueueRate] = field(default_factory=dict)
    """(datapath, port) of a trunk hop → rates of the subflow's queue there; of a hop backwards,
    where that has a queue too, the datapath and port that it leaves by."""
    down_bps: float | None = None
    """Rate of what comes back, as solved; None where nothing is allocated to that."""

    @property
    def idle(self) -> bool:
        """Whether it is to carry next to nothing; never where the policy allocates nothing."""
        rates = [rate for rate in (self.rate_bps, self.down_bps) if rate is not None]
        return bool(rates) and max(rates) < TRICKLE_BPS


@dataclass(frozen=True)
class Allocation:
    """A decision for every attached subflow, with the solution behind it if there is one.

    `down` is the solution of what comes from the server, where that was solved.
    """

    subflows: tuple[Subflow, ...]
    solution: fdm.Solution | None = None
    down: fdm.Solution | None = None
    cpu_time_s: float | None = field(default=None, compare=False)
    """Processor time that it took, whatever else the machine did meanwhile."""


@dataclass(frozen=True)
class Situation:
    """What a policy decides on.

    Attributes
    ----------
    network
        The description.
    attached
        Attachments that can carry a subflow.
    fading
        Those of them that are about to go, or not there yet: nothing is planned for them.
    usable
        Trunks that are up at both ends.
    demands
        User to rate in bit/s, for every user with a demand.
    capacities
        Trunk to capacity in bit/s, where it differs from the description.
    delays
        Trunk to propagation delay in seconds, where it differs from the description.
    down_demands
        User to rate in bit/s of what it wants from the server, as far as anybody wants anything.
    before
        The allocation in force, which a policy may go on from.
    """

    network: ControlledNetwork
    attached: tuple[Attachment, ...]
    fading: frozenset[Attachment] = frozenset()
    usable: frozenset[Trunk] = frozenset()
    demands: Mapping[str, float] = field(default_factory=dict)
    capacities: Mapping[Trunk, float] = field(default_factory=dict)
    delays: Mapping[Trunk, float] = field(default_factory=dict)
    down_demands: Mapping[str, float] = field(default_factory=dict)
    before: Allocation | None = field(default=None, compare=False, repr=False)

    def same_structure(self, other: Situation) -> bool:
        """Whether only demands, capacities and delays differ."""
        return (self.attached, self.fading, self.usable) == (
            other.attached,
            other.fading,
            other.usable,
        )

    def capacity_bps(self, trunk: Trunk) -> float:
        """The capacity of a trunk as far as it is known; 0 if it is down."""
        if trunk not in self.usable:
            return 0.0
        return self.capacities.get(trunk, trunk.rate_bps)

    def delay_s(self, trunk: Trunk) -> float:
        """The propagation delay of a trunk as far as it is known."""
        return self.delays.get(trunk, trunk.delay_s)

    @property
    def last_hop(self) -> Hop:
        """The hop to the server."""
        return Hop(self.network.server.datapath, self.network.server.port, None)

    @cached_property
    def hops(self) -> Mapping[str, tuple[Hop, ...]]:
        """The usable trunk hops that leave each datapath."""
        leaving: dict[str, list[Hop]] = {}
        for t in self.network.trunks:
            if t in self.usable:
                leaving.setdefault(t.a_datapath, []).append(Hop(t.a_datapath, t.a_port, t))
                leaving.setdefault(t.b_datapath, []).append(Hop(t.b_datapath, t.b_port, t))
        return {datapath: tuple(hops) for datapath, hops in leaving.items()}

    @cached_property
    def shortest_paths(self) -> Mapping[Attachment, Path]:
        """For every attachment with a way to the server, its path of least propagation delay."""
        origins = dict.fromkeys(a.datapath for a in self.attached)
        paths = {origin: self._shortest(origin) for origin in origins}
        return {a: path for a in self.attached if (path := paths[a.datapath]) is not None}

    def _shortest(self, origin: str) -> Path | None:
        """Dijkstra's algorithm (1959)."""
        best: dict[str, float] = {origin: 0.0}
        queue: list[tuple[float, int, str, Path]] = [(0.0, 0, origin, ())]
        pushed = 0
        while queue:
            delay_s, _, datapath, path = heapq.heappop(queue)
            if datapath == self.network.server.datapath:
                return (*path, self.last_hop)
            for hop in self.hops.get(datapath, ()):
                assert hop.trunk is not None
                through, (head, _) = delay_s + self.delay_s(hop.trunk), hop.head
                if through < best.get(head, float("inf")):
                    best[head] = through
                    pushed += 1
                    heapq.heappush(queue, (through, pushed, head, (*path, hop)))
        return None

    @cached_property
    def fewest_hops(self) -> Mapping[Attachment, tuple[Path, ...]]:
        """For every attachment with a way to the server, all its paths of fewest hops."""
        towards: dict[str, list[Hop]] = {}
        for hops in self.hops.values():
            for hop in hops:
                towards.setdefault(hop.head[0], []).append(hop)
        distance = {self.network.server.datapath: 0}
        wave = [self.network.server.datapath]
        while wave:
            reached = [hop.datapath for head in wave for hop in towards.get(head, ())]
            length = distance[wave[0]] + 1
            wave = [d for d in dict.fromkeys(reached) if d not in distance]
            distance.update(dict.fromkeys(wave, length))

        found: dict[str, tuple[Path, ...]] = {self.network.server.datapath: ((self.last_hop,),)}
        for datapath in sorted(distance, key=lambda name: distance[name])[1:]:
            found[datapath] = tuple(
                (hop, *rest)
                for hop in self.hops[datapath]
                if distance.get(hop.head[0]) == distance[datapath] - 1
                for rest in found[hop.head[0]]
            )
        return {a: found[a.datapath] for a in self.attached if a.datapath in found}

    def one_for_each_address(self) -> tuple[Attachment, ...]:
        """Attached attachments with a path, the latest for an address that is there twice.

        An address that moves between interfaces may be attached twice for a moment; what is
        about to go counts least.
        """
        ordered = sorted(self.shortest_paths, key=lambda a: a not in self.fading)
        latest = {a.address: a for a in ordered}
        return tuple(a for a in self.shortest_paths if latest[a.address] == a)
