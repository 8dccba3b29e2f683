"""What policies decide on and what they decide: situations, subflows, allocations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import fdm
import routing
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
    server_port: int | None = None
    """The server's TCP port, if this is only one connection of the attachment's traffic."""

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
    loads
        (datapath, port) to the rate in bit/s that the port was measured to send.
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
    loads: Mapping[tuple[str, str], float] = field(default_factory=dict)
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
    def hops(self) -> tuple[Hop, ...]:
        """The usable trunk hops in either direction, then the hop to the server."""
        hops = []
        for t in self.network.trunks:
            if t in self.usable:
                hops += [Hop(t.a_datapath, t.a_port, t), Hop(t.b_datapath, t.b_port, t)]
        return (*hops, self.last_hop)

    @cached_property
    def graph(self) -> routing.Graph:
        """What paths are looked for in: the links of :attr:`hops`, then from users by attachments.

        A trunk of no rate at all is still up and forwards, so it is there.
        """
        links = []
        for hop in self.hops[:-1:2]:
            t = hop.trunk
            assert t is not None
            attributes = max(1.0, self.capacity_bps(t)), self.delay_s(t)
            links.append(routing.Link(t.a_datapath, t.b_datapath, *attributes))
            links.append(routing.Link(t.b_datapath, t.a_datapath, *attributes))
        server = self.network.server
        links.append(routing.Link(server.datapath, self.server, server.rate_bps))
        links += [routing.Link(self.user(a.user), a.datapath, a.rate_bps) for a in self.attached]
        return routing.Graph(links)

    @property
    def server(self) -> routing.Node:
        """The server's node in :attr:`graph`."""
        return ("server", self.network.server.name)

    def user(self, name: str) -> routing.Node:
        """A user's node in :attr:`graph`, if it is attached."""
        return ("user", name)

    def along(self, path: routing.Path) -> Path:
        """The hops of a path in :attr:`graph`."""
        return tuple(self.hops[link] for link in path if link < len(self.hops))

    @cached_property
    def shortest_paths(self) -> Mapping[Attachment, Path]:
        """For every attachment with a way to the server, its path of least propagation delay."""
        delays_s = [link.delay_s for link in self.graph.links]
        paths = routing.shortest_paths_to(self.graph, self.server, delays_s)
        return {a: self.along(paths[a.datapath]) for a in self.attached if a.datapath in paths}

    @cached_property
    def fewest_hops(self) -> Mapping[Attachment, list[routing.Path]]:
        """For every attachment with a way to the server, all its paths of fewest hops."""
        origins = dict.fromkeys(a.datapath for a in self.attached)
        paths = {
            origin: routing.equal_cost_paths(self.graph, origin, self.server) for origin in origins
        }
        return {a: paths[a.datapath] for a in self.attached if paths[a.datapath]}

    def one_for_each_address(self) -> tuple[Attachment, ...]:
        """Attached attachments with a path, the latest for an address that is there twice.

        An address that moves between interfaces may be attached twice for a moment; what is
        about to go counts least.
        """
        ordered = sorted(self.shortest_paths, key=lambda a: a not in self.fading)
        latest = {a.address: a for a in ordered}
        return tuple(a for a in self.shortest_paths if latest[a.address] == a)
