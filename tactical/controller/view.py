"""The controller's knowledge of the network at one moment, and how events change it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .network import Attachment, ControlledNetwork


@dataclass(frozen=True)
class DatapathConnected:
    """A switch finished its OpenFlow handshake; `down_ports` are its ports without carrier."""

    dpid: int
    down_ports: frozenset[str] = frozenset()


@dataclass(frozen=True)
class DatapathLost:
    """A switch's control connection ended.  Its flow entries keep forwarding."""

    dpid: int


@dataclass(frozen=True)
class PortChanged:
    """A port gained or lost its carrier (OFPT_PORT_STATUS)."""

    dpid: int
    port: str
    up: bool


@dataclass(frozen=True)
class AssociationChanged:
    """A station joined or left an access point, as the testbed reports it."""

    user: str
    datapath: str
    associated: bool


@dataclass(frozen=True)
class StationHeard:
    """An access point passed on the LLC XID frame that mac80211 broadcasts on association."""

    dpid: int
    mac: str


@dataclass(frozen=True)
class DeploymentFailed:
    """The last change could not be carried out; what is deployed may differ from what should be."""


Event = (
    DatapathConnected
    | DatapathLost
    | PortChanged
    | AssociationChanged
    | StationHeard
    | DeploymentFailed
)


@dataclass(frozen=True)
class View:
    """Which switches are connected, which ports are down, who is associated where."""

    connected: frozenset[int] = frozenset()
    down_ports: frozenset[tuple[str, str]] = frozenset()
    associated: frozenset[tuple[str, str]] = frozenset()
    """(user, access point) pairs."""

    def apply(self, event: Event, network: ControlledNetwork) -> View:
        """The view after `event`; events about unknown things leave it as it is."""
        match event:
            case DatapathConnected(dpid, down_ports):
                name = network.datapath_name(dpid)
                if name is None:
                    return self
                others = {p for p in self.down_ports if p[0] != name}
                return replace(
                    self,
                    connected=self.connected | {dpid},
                    down_ports=frozenset(others | {(name, port) for port in down_ports}),
                )
            case DeploymentFailed():
                return self
            case DatapathLost(dpid):
                return replace(self, connected=self.connected - {dpid})
            case PortChanged(dpid, port, up):
                name = network.datapath_name(dpid)
                if name is None:
                    return self
                changed = frozenset({(name, port)})
                return replace(
                    self,
                    down_ports=self.down_ports - changed if up else self.down_ports | changed,
                )
            case AssociationChanged(user, datapath, associated):
                if not any(a.user == user and a.datapath == datapath for a in network.attachments):
                    return self
                pair = frozenset({(user, datapath)})
                return replace(
                    self,
                    associated=self.associated | pair if associated else self.associated - pair,
                )
            case StationHeard(dpid, mac):
                name = network.datapath_name(dpid)
                for attachment in network.attachments:
                    where = (attachment.mac, attachment.datapath)
                    if attachment.wireless and where == (mac, name):
                        joined = AssociationChanged(attachment.user, attachment.datapath, True)
                        return self.apply(joined, network)
                return self

    def ready(self, network: ControlledNetwork) -> bool:
        """Whether every described datapath is connected."""
        return all(d.dpid in self.connected for d in network.datapaths)

    def attached(self, network: ControlledNetwork) -> tuple[Attachment, ...]:
        """The attachments that can carry a subflow now."""
        return tuple(
            a
            for a in network.attachments
            if (a.datapath, a.port) not in self.down_ports
            and (not a.wireless or (a.user, a.datapath) in self.associated)
        )
