"""Flow entries and queues that carry out an allocation, and the steps between two. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fdm.queues import QueueRate

from .allocation import Allocation
from .network import ControlledNetwork
from .view import View

SUBFLOW_PRIORITY = 100
HEARD_PRIORITY = 200
ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_LLC = 0x05FF
"""What Open vSwitch calls an 802.3 frame without a SNAP type: ovs-fields(7), ``eth_type``."""

Field = tuple[str, int | str]


@dataclass(frozen=True)
class FlowEntry:
    """An OpenFlow 1.3 flow entry; `actions` are (name, argument) in the order applied.

    Actions: ``set_queue`` (queue id), ``set_eth_dst`` (MAC), ``output`` (port number),
    ``controller`` (bytes of the packet).
    """

    dpid: int
    priority: int
    match: tuple[Field, ...]
    actions: tuple[Field, ...]

    @property
    def key(self) -> tuple[int, int, tuple[Field, ...]]:
        """What identifies the entry in its table: adding another with this key replaces it."""
        return (self.dpid, self.priority, self.match)


@dataclass(frozen=True)
class Queue:
    """A queue of one port, owned by the subflow of `user` that goes via `via`."""

    port: str
    queue_id: int
    user: str
    via: str


@dataclass(frozen=True)
class Deployment:
    """What the switches hold, or shall hold.

    `uncertain` are entries that a switch held before it reconnected: it may have kept them, so
    they are neither counted on nor forgotten.
    """

    flows: frozenset[FlowEntry] = frozenset()
    queues: Mapping[Queue, QueueRate] = field(default_factory=dict)
    uncertain: frozenset[FlowEntry] = frozenset()

    def reconnected(self, dpid: int) -> Deployment:
        """The same after datapath `dpid` came back with unknown contents."""
        flows = frozenset(flow for flow in self.flows if flow.dpid == dpid)
        return Deployment(self.flows - flows, self.queues, self.uncertain | flows)

    def queues_used(
        self, flows: Iterable[FlowEntry], network: ControlledNetwork
    ) -> dict[Queue, QueueRate]:
        """Those of its queues that any of `flows` sends to."""
        used = set()
        for flow in flows:
            actions = dict(flow.actions)
            if "set_queue" in actions:
                used.add((flow.dpid, actions["output"], actions["set_queue"]))
        places = {p.name: (network.dpid(p.datapath), p.number) for p in network.ports}
        return {
            queue: rate
            for queue, rate in self.queues.items()
            if (*places[queue.port], queue.queue_id) in used
        }

    def keeping(self, queues: Mapping[Queue, QueueRate]) -> Deployment:
        """The same with `queues` besides, which lose their guarantee but stay declared."""
        kept = {queue: QueueRate(0, rate.max_bps) for queue, rate in queues.items()}
        return Deployment(self.flows, {**kept, **self.queues}, self.uncertain)


@dataclass(frozen=True)
class Change:
    """The ordered steps from one deployment to another.

    The order keeps every intermediate state sound: rates fall before others rise (those of
    queues that will go lose their guarantee), queues exist before flow entries use them (an
    undeclared queue forwards at full port rate), new entries are in place before old ones go,
    and queues go last.
    """

    lowered: Mapping[Queue, QueueRate]
    raised: Mapping[Queue, QueueRate]
    added: tuple[FlowEntry, ...]
    removed: tuple[FlowEntry, ...]
    dropped: tuple[Queue, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.lowered or self.raised or self.added or self.removed or self.dropped)


def deployment(network: ControlledNetwork, view: View, allocation: Allocation) -> Deployment:
    """The flow entries and queues for `allocation`.

    Only connected datapaths get entries.  A subflow's entries match its own address against
    the server's, in either direction; towards the station the last datapath writes the MAC of
    the interface that is attached there, so that an address may move between interfaces.
    """
    flows: set[FlowEntry] = set()
    queues: dict[Queue, QueueRate] = {}
    wireless = {a.datapath for a in network.attachments if a.wireless}
    for name in wireless:
        flows.add(
            FlowEntry(
                network.dpid(name),
                HEARD_PRIORITY,
                (("eth_type", ETH_TYPE_LLC),),
                (("controller", 64),),
            )
        )
    for subflow in allocation.subflows:
        a = subflow.attachment
        queue_id = _queue_id(network, a.user, a.interface)
        upwards = (
            ("eth_type", ETH_TYPE_IPV4),
            ("ipv4_src", a.address),
            ("ipv4_dst", network.server.address),
        )
        downwards = (
            ("eth_type", ETH_TYPE_IPV4),
            ("ipv4_src", network.server.address),
            ("ipv4_dst", a.address),
        )
        into: tuple[str, str] = (a.datapath, a.port)
        for hop in subflow.path:
            number = network.port(hop.datapath, hop.port).number
            actions: list[Field] = []
            if (rate := subflow.queues.get((hop.datapath, hop.port))) is not None:
                queues[Queue(hop.port, queue_id, a.user, a.datapath)] = rate
                actions.append(("set_queue", queue_id))
            flows.add(
                FlowEntry(
                    network.dpid(hop.datapath),
                    SUBFLOW_PRIORITY,
                    upwards,
                    (*actions, ("output", number)),
                )
            )
            back: list[Field] = []
            if into == (a.datapath, a.port):
                back.append(("set_eth_dst", a.mac))
            back.append(("output", network.port(*into).number))
            flows.add(
                FlowEntry(network.dpid(hop.datapath), SUBFLOW_PRIORITY, downwards, tuple(back))
            )
            if hop.trunk is not None:
                t = hop.trunk
                into = (
                    (t.b_datapath, t.b_port)
                    if (t.a_datapath, t.a_port) == (hop.datapath, hop.port)
                    else (t.a_datapath, t.a_port)
                )
    connected = frozenset(f for f in flows if f.dpid in view.connected)
    return Deployment(connected, queues)


def _queue_id(network: ControlledNetwork, user: str, interface: str) -> int:
    """A subflow's queue id: the same on every port and for the whole run; 0 is the default."""
    return 1 + next(
        index
        for index, a in enumerate(network.attachments)
        if (a.user, a.interface) == (user, interface)
    )


def change(before: Deployment, after: Deployment) -> Change:
    """The steps from `before` to `after`."""
    lowered: dict[Queue, QueueRate] = {}
    raised: dict[Queue, QueueRate] = {}
    for queue, rate in after.queues.items():
        old = before.queues.get(queue)
        if old == rate:
            continue
        falls = old is not None and rate.max_bps <= old.max_bps and rate.min_bps <= old.min_bps
        (lowered if falls else raised)[queue] = rate
    dropped = sorted(set(before.queues) - set(after.queues), key=repr)
    for queue in dropped:
        if before.queues[queue].min_bps > 0:
            lowered[queue] = QueueRate(0, before.queues[queue].max_bps)
    added = after.flows - before.flows
    outdated = (before.flows | before.uncertain) - after.flows
    kept_keys = {flow.key for flow in after.flows}
    return Change(
        lowered=lowered,
        raised=raised,
        added=tuple(sorted(added, key=repr)),
        removed=tuple(sorted((f for f in outdated if f.key not in kept_keys), key=repr)),
        dropped=tuple(dropped),
    )
