"""Flow entries and queues that carry out an allocation, and the steps between two. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fdm.queues import QueueRate, changes, queue_ids

from .allocation import Allocation, Path, Subflow
from .network import Attachment, ControlledNetwork

HELD_PRIORITY = 50
SUBFLOW_PRIORITY = 100
CONNECTION_PRIORITY = 120
HANDSHAKE_PRIORITY = 150
HEARD_PRIORITY = 200
ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_LLC = 0x05FF
"""What Open vSwitch calls an 802.3 frame without a SNAP type: ovs-fields(7), ``eth_type``."""
IP_PROTO_TCP = 6
TCP_SYN = 0x002
TCP_ACK = 0x010
WHOLE_PACKET = 0xFFFF
"""OFPCML_NO_BUFFER: a packet-in has all of the packet."""

OWNER = 0x7AC7 << 48
"""Cookie of every entry of this controller: those of others are neither read nor touched."""
OWNER_MASK = 0xFFFF << 48
HELD = OWNER | 1
"""Cookie of the entry by which the first segment of a subflow without entries comes here."""
COUNTED = 1 << 47
"""Set on the entry by which a subflow enters the network: its bytes are what the user sends."""

Value = int | str | tuple[int, int]
Field = tuple[str, Value]


@dataclass(frozen=True)
class FlowEntry:
    """An OpenFlow 1.3 flow entry; `actions` are (name, argument) in the order applied.

    Actions: ``set_queue`` (queue id), ``set_eth_dst`` (MAC), ``output`` (port number),
    ``controller`` (bytes of the packet).  Matches are sorted by name; a value of two numbers is
    a value and its mask.
    """

    dpid: int
    priority: int
    match: tuple[Field, ...]
    actions: tuple[Field, ...]
    cookie: int = OWNER

    @property
    def key(self) -> tuple[int, int, tuple[Field, ...]]:
        """What identifies the entry in its table: adding another with this key replaces it."""
        return (self.dpid, self.priority, self.match)


def subflow_cookie(user: str, via: str) -> int:
    """The cookie of all entries of one subflow, without :data:`COUNTED`.

    It depends on names only, so that a controller that was started again uses the same.
    """
    digest = hashlib.blake2b(f"{user}\0{via}".encode(), digest_size=6).digest()
    return OWNER | (int.from_bytes(digest, "big") & (COUNTED - 1))


@dataclass(frozen=True)
class Queue:
    """A queue of one port, owned by the subflow of `user` that goes via `via`."""

    datapath: str
    port: str
    queue_id: int
    user: str
    via: str


PortNumbers = Mapping[tuple[str, str], Mapping[tuple[str, str], int]]
"""(datapath, port) → (user, via) → queue id: every number that was ever given."""


@dataclass(frozen=True)
class Deployment:
    """What the switches hold, or shall hold."""

    flows: frozenset[FlowEntry] = frozenset()
    queues: Mapping[Queue, QueueRate] = field(default_factory=dict)

    def holding(self, dpid: int, flows: Iterable[FlowEntry]) -> Deployment:
        """The same, except that datapath `dpid` holds `flows`."""
        others = frozenset(flow for flow in self.flows if flow.dpid != dpid)
        return Deployment(others | frozenset(flows), self.queues)

    def queues_used(
        self, flows: Iterable[FlowEntry], network: ControlledNetwork
    ) -> dict[Queue, QueueRate]:
        """Those of its queues that any of `flows` sends to."""
        used = set()
        for flow in flows:
            actions = dict(flow.actions)
            if "set_queue" in actions and isinstance(number := actions.get("output"), int):
                port = network.port_name(flow.dpid, number)
                used.add((network.datapath_name(flow.dpid), port, actions["set_queue"]))
        return {
            q: rate for q, rate in self.queues.items() if (q.datapath, q.port, q.queue_id) in used
        }

    def keeping(self, flows: frozenset[FlowEntry], queues: Mapping[Queue, QueueRate]) -> Deployment:
        """The same with `flows` besides, and `queues`, which lose their guarantee."""
        kept = {queue: QueueRate(0, rate.max_bps) for queue, rate in queues.items()}
        return Deployment(self.flows | flows, {**kept, **self.queues})


@dataclass(frozen=True)
class Change:
    """The ordered steps from one deployment to another.

    The order keeps every intermediate state sound: on a port, guarantees fall before others rise
    (those of queues that will go are lost), queues exist before flow entries use them (an
    undeclared queue forwards at full port rate), new entries are in place before old ones go,
    and queues go last.  `lowered` has what is set first on ports where a guarantee falls,
    `raised` the rest.
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

    @property
    def transactions(self) -> tuple[Mapping[Queue, QueueRate], Mapping[Queue, QueueRate]]:
        """All queues to be set: at once, and when guarantees on their port have fallen."""
        falling = {(q.datapath, q.port) for q in self.lowered}
        waiting = {q: rate for q, rate in self.raised.items() if (q.datapath, q.port) in falling}
        at_once = {q: rate for q, rate in self.raised.items() if q not in waiting}
        return {**self.lowered, **at_once}, waiting

    @property
    def touched(self) -> dict[int, frozenset[int]]:
        """Datapath identifier → cookies of the entries that come or go."""
        found: dict[int, set[int]] = {}
        for flow in (*self.added, *self.removed):
            found.setdefault(flow.dpid, set()).add(flow.cookie & ~COUNTED)
        return {dpid: frozenset(cookies) for dpid, cookies in found.items()}


Memory = dict[tuple[Attachment, Path, int | None, tuple[int | None, ...]], frozenset[FlowEntry]]
"""Entries of subflows as they were last made: by attachment, path, server's port, and queue ids on
the path."""


def deployment(
    network: ControlledNetwork,
    connected: frozenset[int],
    allocation: Allocation,
    numbers: PortNumbers,
    memory: Memory | None = None,
) -> Deployment:
    """The flow entries and queues for `allocation`.

    Only `connected` datapaths get entries.  What is in `memory` is not made again; it is kept
    for the same network only.  A subflow's entries match its own address against the server's, in
    either direction; those of a single connection also the server's port, before all others.
    Towards the station the last datapath writes the MAC of the interface that is attached there,
    so that an address may move between interfaces.
    """
    flows: set[FlowEntry] = set()
    queues: dict[Queue, QueueRate] = {}
    for name in {a.datapath for a in network.attachments if a.wireless}:
        match: tuple[Field, ...] = (("eth_type", ETH_TYPE_LLC),)
        flows.add(FlowEntry(network.dpid(name), HEARD_PRIORITY, match, (("controller", 64),)))
        flows.add(_held(network, name))
    for subflow in allocation.subflows:
        a = subflow.attachment
        for (datapath, port), rate in subflow.queues.items():
            queue_id = numbers[datapath, port][a.user, a.datapath]
            queues[Queue(datapath, port, queue_id, a.user, a.datapath)] = rate
        flows |= _remembered(network, subflow, numbers, {} if memory is None else memory)
    here = {f for f in flows if f.dpid in connected} if _away(network, connected) else flows
    return Deployment(frozenset(here), queues)


def _away(network: ControlledNetwork, connected: frozenset[int]) -> bool:
    return any(d.dpid not in connected for d in network.datapaths)


def _remembered(
    network: ControlledNetwork, subflow: Subflow, numbers: PortNumbers, memory: Memory
) -> frozenset[FlowEntry]:
    a = subflow.attachment
    owner = (a.user, a.datapath)
    ends = [(hop.datapath, hop.port) for hop in subflow.path]
    ends += [hop.head for hop in subflow.path if hop.trunk is not None]
    ids = tuple(numbers[end][owner] if end in subflow.queues else None for end in ends)
    key = (a, subflow.path, subflow.server_port, ids)
    if (known := memory.get(key)) is None:
        if len(memory) > 4 * len(network.attachments):
            memory.clear()
        known = memory[key] = frozenset(_entries(network, subflow, numbers))
    return known


def _entries(
    network: ControlledNetwork, subflow: Subflow, numbers: PortNumbers
) -> Iterable[FlowEntry]:
    """The entries of a subflow; they depend on its path and the numbers of its queues only."""
    a = subflow.attachment
    cookie = subflow_cookie(a.user, a.datapath)
    upwards = _between(a.address, network.server.address)
    downwards = _between(network.server.address, a.address)
    priority = SUBFLOW_PRIORITY
    if subflow.server_port is not None:
        priority = CONNECTION_PRIORITY
        upwards = _with_port(upwards, "tcp_dst", subflow.server_port)
        downwards = _with_port(downwards, "tcp_src", subflow.server_port)
    into = (a.datapath, a.port)
    for position, hop in enumerate(subflow.path):
        dpid = network.dpid(hop.datapath)
        forwards: tuple[Field, ...] = (("output", network.port(hop.datapath, hop.port).number),)
        backwards: tuple[Field, ...] = (("output", network.port(*into).number),)
        if (hop.datapath, hop.port) in subflow.queues:
            queue_id = numbers[hop.datapath, hop.port][a.user, a.datapath]
            forwards = (("set_queue", queue_id), *forwards)
        if into in subflow.queues:
            backwards = (("set_queue", numbers[into][a.user, a.datapath]), *backwards)
        if position == 0:
            backwards = (("set_eth_dst", a.mac), *backwards)
        counted = cookie | COUNTED if position == 0 else cookie
        yield FlowEntry(dpid, priority, upwards, forwards, counted)
        yield FlowEntry(dpid, priority, downwards, backwards, cookie)
        if hop.trunk is None:
            if network.settings.discover_subflows and subflow.server_port is None:
                yield _copied(dpid, upwards, forwards, cookie)
                yield _copied(dpid, downwards, backwards, cookie)
        else:
            into = hop.head


def _between(source: str, destination: str) -> tuple[Field, ...]:
    return (("eth_type", ETH_TYPE_IPV4), ("ipv4_dst", destination), ("ipv4_src", source))


def _with_port(match: tuple[Field, ...], name: str, port: int) -> tuple[Field, ...]:
    return tuple(sorted((*match, ("ip_proto", IP_PROTO_TCP), (name, port))))


def _held(network: ControlledNetwork, datapath: str) -> FlowEntry:
    """The entry for a SYN that comes before the entries of its subflow.

    Dropped, it would be sent again a second later only (RFC 6298, section 2.1).
    """
    match: tuple[Field, ...] = (
        ("eth_type", ETH_TYPE_IPV4),
        ("ip_proto", IP_PROTO_TCP),
        ("ipv4_dst", network.server.address),
        ("tcp_flags", (TCP_SYN, TCP_SYN | TCP_ACK)),
    )
    actions: tuple[Field, ...] = (("controller", WHOLE_PACKET),)
    return FlowEntry(network.dpid(datapath), HELD_PRIORITY, match, actions, HELD)


def _copied(
    dpid: int, match: tuple[Field, ...], actions: tuple[Field, ...], cookie: int
) -> FlowEntry:
    """The same for TCP segments with SYN, of which the controller gets a copy."""
    syn: tuple[Field, ...] = (
        ("ip_proto", IP_PROTO_TCP),
        ("tcp_flags", (TCP_SYN, TCP_SYN)),
    )
    copy = (("controller", 160), *actions)
    return FlowEntry(dpid, HANDSHAKE_PRIORITY, tuple(sorted((*match, *syn))), copy, cookie)


def numbered(allocation: Allocation, numbers: PortNumbers) -> PortNumbers:
    """`numbers` with one for every queue of `allocation`; none is ever given to another."""
    wanted: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for subflow in allocation.subflows:
        for place in subflow.queues:
            a = subflow.attachment
            wanted.setdefault(place, []).append((a.user, a.datapath))
    found = dict(numbers)
    for place, owners in wanted.items():
        given = numbers.get(place, {})
        if any(owner not in given for owner in owners):
            found[place] = {**given, **queue_ids(given, sorted(owners))}
    return found


def change(before: Deployment, after: Deployment, *, tolerance: float = 0.0) -> Change:
    """The steps from `before` to `after`.

    Ports on which no queue comes, goes or changes by more than `tolerance` are left alone.
    """
    dropped = tuple(sorted(before.queues.keys() - after.queues.keys(), key=repr))
    lasting = {queue: QueueRate(0, before.queues[queue].max_bps) for queue in dropped}
    rates: dict[Queue, QueueRate] = {}
    for queue, rate in changes(
        before.queues,
        {**after.queues, **lasting},
        tolerance=tolerance,
        link=lambda queue: (queue.datapath, queue.port),
    ):
        assert rate is not None  # nothing goes here: what goes is in `lasting`
        rates[queue] = rate
    rise = {
        queue: rate.min_bps - before.queues[queue].min_bps if queue in before.queues else math.inf
        for queue, rate in rates.items()
    }
    falling = {(queue.datapath, queue.port) for queue in rates if rise[queue] < 0}
    lowered = {
        queue: rate
        for queue, rate in rates.items()
        if rise[queue] <= 0 and (queue.datapath, queue.port) in falling
    }
    raised = {queue: rate for queue, rate in rates.items() if queue not in lowered}
    kept_keys = {flow.key for flow in after.flows}
    return Change(
        lowered=lowered,
        raised=raised,
        added=tuple(sorted(after.flows - before.flows, key=repr)),
        removed=tuple(
            sorted((f for f in before.flows - after.flows if f.key not in kept_keys), key=repr)
        ),
        dropped=dropped,
    )


def reached(before: Deployment, after: Deployment, steps: Change) -> Deployment:
    """What the switches hold after `steps` towards `after`: rates left alone stay as they were."""
    changed = {**steps.lowered, **steps.raised}
    queues = {
        queue: changed.get(queue, before.queues.get(queue, rate))
        for queue, rate in after.queues.items()
    }
    return Deployment(after.flows, queues)
