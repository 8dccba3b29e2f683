"""What the controller hears, from switches, from Open vSwitch, and from people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fdm.queues import QueueRate

from .deployment import Deployment, FlowEntry, Queue
from .subflows import Handshake


@dataclass(frozen=True)
class DatapathConnected:
    """A switch finished its OpenFlow handshake.

    `down_ports` are its ports without carrier, `entries` what it holds of this controller's,
    perhaps from an earlier life of either.
    """

    dpid: int
    down_ports: frozenset[str] = frozenset()
    entries: frozenset[FlowEntry] = frozenset()


@dataclass(frozen=True)
class DatapathLost:
    """A switch's control connection ended.  Its flow entries keep forwarding."""

    dpid: int


@dataclass(frozen=True)
class QueuesRead:
    """All queues of this controller that the Open vSwitch databases hold."""

    queues: Mapping[Queue, QueueRate]


@dataclass(frozen=True)
class PortChanged:
    """A port gained or lost its carrier (OFPT_PORT_STATUS)."""

    dpid: int
    port: str
    up: bool


@dataclass(frozen=True)
class AssociationChanged:
    """A station joined or left an access point, as `source` reports it."""

    user: str
    datapath: str
    associated: bool
    source: str = "testbed"


@dataclass(frozen=True)
class StationHeard:
    """An access point passed on the LLC XID frame that mac80211 broadcasts on association."""

    dpid: int
    mac: str


@dataclass(frozen=True)
class HandshakeSeen:
    """A switch passed on a copy of a TCP segment with SYN."""

    handshake: Handshake


@dataclass(frozen=True)
class SegmentHeld:
    """A switch passed on a whole frame with a SYN, for which it has no entry of a subflow yet."""

    dpid: int
    in_port: int
    source: str
    frame: bytes


@dataclass(frozen=True)
class Counted:
    """Bytes that a port, queue or subflow has passed since it was made.

    `key` begins with ``"port"``, ``"queue"`` or ``"subflow"``; for a subflow it is
    ``("subflow", user, via)``.
    """

    key: tuple[str, ...]
    transmitted_bytes: int


@dataclass(frozen=True)
class CountersRead:
    """One reply of a switch about its counters."""

    counted: tuple[Counted, ...]


@dataclass(frozen=True)
class DemandSet:
    """Somebody says what a user wants to send."""

    user: str
    rate_bps: float


@dataclass(frozen=True)
class CapacitySet:
    """Somebody says what a trunk carries now, by its name, and perhaps how long it takes."""

    trunk: str
    rate_bps: float
    delay_s: float | None = None


@dataclass(frozen=True)
class PolicySet:
    """Somebody chooses a policy."""

    policy: str


@dataclass(frozen=True)
class AssociationExpected:
    """A station is expected to join or leave an access point; `at_s` is on our clock."""

    user: str
    datapath: str
    associated: bool
    at_s: float


@dataclass(frozen=True)
class SignalMeasured:
    """How well a station hears its access point."""

    user: str
    datapath: str
    signal_dbm: float


@dataclass(frozen=True)
class DistanceMeasured:
    """How far a station is from its access point, and how far that reaches."""

    user: str
    datapath: str
    distance_m: float
    range_m: float


@dataclass(frozen=True)
class RoleChanged:
    """This controller may change the network, or another one does."""

    master: bool


@dataclass(frozen=True)
class DeploymentFailed:
    """The last change could not be carried out; `held` is what is deployed now, if known."""

    held: Deployment | None = None


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = (
    DatapathConnected
    | DatapathLost
    | QueuesRead
    | PortChanged
    | AssociationChanged
    | StationHeard
    | HandshakeSeen
    | SegmentHeld
    | CountersRead
    | DemandSet
    | CapacitySet
    | PolicySet
    | AssociationExpected
    | SignalMeasured
    | DistanceMeasured
    | RoleChanged
    | DeploymentFailed
    | Tick
)
