"""The controller's knowledge of the network at one moment, and how events change it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from .allocation import Situation
from .deployment import SUBFLOW_PRIORITY, FlowEntry
from .events import (
    AssociationChanged,
    AssociationExpected,
    CapacitySet,
    CountersRead,
    DatapathConnected,
    DatapathLost,
    DemandSet,
    DistanceMeasured,
    Event,
    HandshakeSeen,
    PolicySet,
    PortChanged,
    QueuesRead,
    RoleChanged,
    SignalMeasured,
    StationHeard,
)
from .measurements import Measurements
from .network import Attachment, ControlledNetwork
from .prediction import TREND_SAMPLES, time_of_crossing
from .subflows import Subflows

EXPECTATION_GRACE_S = 5.0
"""An association that was expected and did not change is given up after this."""

MEASURED_HEADROOM = 1.25
"""Measured demand is multiplied by this: a sender cannot show that it wants more than it gets."""
MEASURED_FLOOR = 0.1
"""Share of the described demand that a user counts with when it is idle, so that it can begin."""

_Value = TypeVar("_Value")

Place = tuple[str, str]
"""(user, access point), or (datapath, port)."""


@dataclass(frozen=True)
class View:
    """Which switches are connected, which ports are down, who is associated where, and so on."""

    connected: frozenset[int] = frozenset()
    seen: frozenset[int] = frozenset()
    """Datapaths that have been connected: they forward also when they are away."""
    first_seen_s: float | None = None
    """When the first datapath connected."""
    queues_read: bool = False
    master: bool = False
    down_ports: frozenset[Place] = frozenset()
    associated: frozenset[Place] = frozenset()
    """(user, access point) pairs."""
    told: frozenset[Place] = frozenset()
    """(user, access point) pairs of which something was heard."""
    policy: str = ""
    demands: Mapping[str, float] = field(default_factory=dict)
    """User → rate, where somebody has set another than the described."""
    capacities: Mapping[str, float] = field(default_factory=dict)
    """Trunk by name → rate, where somebody has set another than the described."""
    delays: Mapping[str, float] = field(default_factory=dict)
    """Trunk by name → propagation delay, where somebody has set another than the described."""
    expected: Mapping[Place, tuple[bool, float]] = field(default_factory=dict)
    """(user, access point) → whether associated, and from when on."""
    trends: Mapping[Place, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """(user, access point) → (time, how far above its limit) of the last samples."""
    measurements: Measurements = field(default_factory=Measurements)
    subflows: Subflows = field(default_factory=Subflows)

    def apply(self, event: Event, network: ControlledNetwork, now_s: float) -> View:
        """The view after `event`; events about unknown things leave it as it is."""
        match event:
            case DatapathConnected(dpid, down_ports, entries):
                name = network.datapath_name(dpid)
                if name is None:
                    return self
                others = {p for p in self.down_ports if p[0] != name}
                return replace(
                    self,
                    connected=self.connected | {dpid},
                    seen=self.seen | {dpid},
                    first_seen_s=now_s if self.first_seen_s is None else self.first_seen_s,
                    down_ports=frozenset(others | {(name, port) for port in down_ports}),
                    associated=self.associated | self._remembered(name, entries, network),
                )
            case DatapathLost(dpid):
                return replace(self, connected=self.connected - {dpid})
            case QueuesRead():
                return replace(self, queues_read=True)
            case RoleChanged(master):
                return replace(self, master=master)
            case PortChanged(dpid, port, up):
                name = network.datapath_name(dpid)
                if name is None:
                    return self
                changed = frozenset({(name, port)})
                return replace(
                    self,
                    down_ports=self.down_ports - changed if up else self.down_ports | changed,
                )
            case AssociationChanged(user, datapath, associated, _):
                if not network.has_attachment(user, datapath):
                    return self
                pair = frozenset({(user, datapath)})
                return replace(
                    self,
                    associated=self.associated | pair if associated else self.associated - pair,
                    told=self.told | pair,
                    expected={
                        place: what
                        for place, what in self.expected.items()
                        if place != (user, datapath) or what[0] != associated
                    },
                    trends=_without(self.trends, (user, datapath)),
                )
            case StationHeard(dpid, mac):
                name = network.datapath_name(dpid)
                for attachment in network.attachments:
                    where = (attachment.mac, attachment.datapath)
                    if attachment.wireless and where == (mac, name):
                        joined = AssociationChanged(attachment.user, attachment.datapath, True)
                        return self.apply(joined, network, now_s)
                return self
            case HandshakeSeen(handshake):
                return replace(self, subflows=self.subflows.after(handshake))
            case CountersRead(counted):
                smoothing_s = network.settings.smoothing_s
                return replace(
                    self, measurements=self.measurements.after(counted, now_s, smoothing_s)
                )
            case DemandSet(user, rate_bps):
                if not any(d.user == user for d in network.demands):
                    return self
                return replace(self, demands={**self.demands, user: rate_bps})
            case CapacitySet(trunk, rate_bps, delay_s):
                if not any(t.name == trunk for t in network.trunks):
                    return self
                delays = self.delays if delay_s is None else {**self.delays, trunk: delay_s}
                return replace(self, capacities={**self.capacities, trunk: rate_bps}, delays=delays)
            case PolicySet(policy):
                return replace(self, policy=policy)
            case AssociationExpected(user, datapath, associated, at_s):
                if not network.has_attachment(user, datapath):
                    return self
                place = (user, datapath)
                return replace(self, expected={**self.expected, place: (associated, at_s)})
            case SignalMeasured(user, datapath, signal_dbm):
                margin = signal_dbm - network.settings.signal_threshold_dbm
                return self._trend((user, datapath), margin, network, now_s)
            case DistanceMeasured(user, datapath, distance_m, range_m):
                return self._trend((user, datapath), range_m - distance_m, network, now_s)
            case _:
                return self._without_stale(now_s)

    def _trend(self, place: Place, margin: float, network: ControlledNetwork, now_s: float) -> View:
        """A sample of how far `place` is above the limit at which the association is lost."""
        if not network.has_attachment(*place) or place not in self.associated:
            return self
        samples = (*self.trends.get(place, ()), (now_s, margin))[-TREND_SAMPLES:]
        expected = _without(self.expected, place)
        if (at_s := time_of_crossing(samples, 0.0)) is not None:
            expected[place] = (False, at_s)
        return replace(self, trends={**self.trends, place: samples}, expected=expected)

    def _without_stale(self, now_s: float) -> View:
        current = {
            place: what
            for place, what in self.expected.items()
            if now_s < what[1] + EXPECTATION_GRACE_S
        }
        return self if len(current) == len(self.expected) else replace(self, expected=current)

    def _remembered(
        self, datapath: str, entries: frozenset[FlowEntry], network: ControlledNetwork
    ) -> frozenset[Place]:
        """Who is associated with `datapath` by the entries that it holds, if nothing was heard.

        They are another controller's, or from an earlier life of this one.
        """
        if self.master and network.dpid(datapath) in self.seen:
            return frozenset()
        sources = {dict(e.match).get("ipv4_src") for e in entries if e.priority == SUBFLOW_PRIORITY}
        return (
            frozenset(
                (a.user, a.datapath)
                for a in network.attachments
                if a.wireless and a.datapath == datapath and a.address in sources
            )
            - self.told
        )

    def ready(self, network: ControlledNetwork, now_s: float) -> bool:
        """Whether every described datapath is connected, or was waited for long enough."""
        if all(d.dpid in self.connected for d in network.datapaths):
            return True
        waited_s = 0.0 if self.first_seen_s is None else now_s - self.first_seen_s
        return self.first_seen_s is not None and waited_s >= network.settings.start_grace_s

    def attached(self, network: ControlledNetwork) -> tuple[Attachment, ...]:
        """The attachments that can carry a subflow now."""
        return tuple(
            a
            for a in network.attachments
            if self._usable(a.datapath, a.port, network)
            and (not a.wireless or (a.user, a.datapath) in self.associated)
        )

    def situation(self, network: ControlledNetwork, now_s: float) -> Situation:
        """What a policy decides on at `now_s`."""
        attached = self.attached(network)
        horizon_s = now_s + network.settings.lead_time_s
        due = {
            place: associated
            for place, (associated, at_s) in self.expected.items()
            if at_s <= horizon_s
        }
        leaving = {a for a in attached if due.get((a.user, a.datapath)) is False and a.wireless}
        staying = {a.user for a in attached if a not in leaving}
        # Whoever has no other way goes on as long as there is this one.
        leaving = {a for a in leaving if a.user in staying}
        addresses = {a.address for a in attached}
        coming = tuple(
            a
            for a in network.attachments
            if due.get((a.user, a.datapath)) is True
            and a not in attached
            and a.address not in addresses
            and self._usable(a.datapath, a.port, network)
        )
        usable = frozenset(
            t
            for t in network.trunks
            if self._usable(t.a_datapath, t.a_port, network)
            and self._usable(t.b_datapath, t.b_port, network)
        )
        return Situation(
            network,
            (*attached, *coming),
            frozenset(leaving) | frozenset(coming),
            usable,
            self._wanted_bps(network),
            {t: self.capacities[t.name] for t in network.trunks if t.name in self.capacities},
            {t: self.delays[t.name] for t in network.trunks if t.name in self.delays},
            {d.user: d.down_bps for d in network.demands if d.down_bps > 0},
            self.measurements.ports_bps(),
        )

    def _usable(self, datapath: str, port: str, network: ControlledNetwork) -> bool:
        return (datapath, port) not in self.down_ports and network.dpid(datapath) in self.seen

    def _wanted_bps(self, network: ControlledNetwork) -> dict[str, float]:
        wanted = {}
        for d in network.demands:
            wanted[d.user] = d.rate_bps
            sent_bps = self.measurements.sent_bps(d.user)
            if network.settings.measured_demand and sent_bps is not None:
                wanted[d.user] = max(MEASURED_HEADROOM * sent_bps, MEASURED_FLOOR * d.rate_bps)
        return {user: self.demands.get(user, rate_bps) for user, rate_bps in wanted.items()}


def _without(mapping: Mapping[Place, _Value], place: Place) -> dict[Place, _Value]:
    return {key: value for key, value in mapping.items() if key != place}
