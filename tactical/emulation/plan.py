"""From a scenario to the network that will be built: names, addresses, ports, shaping.

Pure: nothing here runs a command. The picture for the direct-move experiment::

    ship1 ──ship1-eth0────────── satcom ══ satcom-air (250 ms) ══ shore ── host
      └─────ship1-wlan0 ))  (( uav ═══════ uav-air (10 ms) ═══════╯

* a **station** has one wired interface per satellite (``ship1-eth0``) and, if the scenario
  has access points, one radio (``ship1-wlan0``);
* a **relay** (satellite or access point) is an OVS switch with an uplink to the shore switch;
* the uplink's **rate** is an HTB qdisc that OVS owns on both switch ports, so that the
  controller can add queues to it; its **propagation delay and loss** are netem qdiscs in a
  network namespace of their own between the two ports (``satcom-air``).  OVS and netem
  therefore never compete for one root qdisc, and every packet is recorded at stations and
  host outside of the delay;
* the **host** has one interface behind the shore switch.

Names follow Mininet: ``ship1``, ``satcom``, ``satcom-eth1``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scenarios import (
    PROTOCOLS,
    AccessPoint,
    Application,
    Link,
    LinkState,
    Satellite,
    Scenario,
    Traffic,
)

IFNAMSIZ = 15
"""Longest name of a Linux network interface (``IFNAMSIZ`` less the final NUL)."""

MOST_RADIOS = 100
"""What mac80211_hwsim takes as its parameter ``radios``."""

HOST_ADDRESS = "10.0.0.1"
SHORE = "shore"
IPERF3_PORT = 5201
"""Of the first transfer; what else there is has the ports after it, see :attr:`Plan.held_ports`."""
OPENFLOW_PORT = 6653


class PlanError(ValueError):
    """The scenario cannot be built as a network; the message names what and why."""


@dataclass(frozen=True)
class HostInterface:
    """An interface of a station or of the host, with its one IPv4 address."""

    node: str
    name: str
    mac: str
    address: str
    relay: str
    """The switch that the interface attaches to (``shore`` for the host)."""
    wireless: bool = False

    @property
    def capture(self) -> str:
        """Path of the interface's capture inside the run directory."""
        return f"captures/{self.name}.pcapng"


@dataclass(frozen=True)
class CapturePoint:
    """An interface that is recorded.

    Attributes
    ----------
    node : str
        Whose interface it is.
    side : str
        "station", "access point" or "host".
    """

    node: str
    interface: str
    side: str

    @property
    def namespace(self) -> str | None:
        """The node whose network namespace it is in; None is the machine's own."""
        return None if self.side == "access point" else self.node

    @property
    def file(self) -> str:
        """Path of the capture inside the run directory."""
        return f"captures/{self.interface}.pcapng"

    @property
    def position(self) -> str:
        """Where packets are seen, in words."""
        return {
            "station": "station side: on the station's own interface; what it sends is seen after "
            "its queueing discipline",
            "access point": "access point side: between its radio and its switch, before the "
            "queues of its uplink",
            "host": "host side: on the host's own interface, behind all links",
        }[self.side]


@dataclass(frozen=True)
class Port:
    """A port of an OVS switch; ``rate_bps`` is set where OVS shapes it."""

    switch: str
    number: int
    name: str
    mac: str
    rate_bps: int | None = None
    buffer_packets: int | None = None
    peak_bps: int | None = None
    """The highest rate that the port has in a run, where that is not `rate_bps`."""


@dataclass(frozen=True)
class Switch:
    """An OVS bridge with the kernel datapath."""

    name: str
    dpid: int
    ports: tuple[Port, ...]

    def port(self, name: str) -> Port:
        """The port called `name`."""
        return next(port for port in self.ports if port.name == name)


@dataclass(frozen=True)
class Wire:
    """A veth pair; an end is (node, interface name)."""

    a: tuple[str, str]
    b: tuple[str, str]


@dataclass(frozen=True)
class Medium:
    """The propagation of an uplink: a namespace that passes frames on, later or never.

    What enters at ``a`` leaves at ``b`` after `delay_s`, and the other way round.
    """

    name: str
    a: str
    b: str
    mac_a: str
    mac_b: str
    delay_s: float
    loss: float
    limit_packets: int


@dataclass(frozen=True)
class Radio:
    """The radio of an access point, run by hostapd; its interface is a switch port."""

    access_point: str
    interface: str
    ssid: str
    channel: int
    bssid: str

    @property
    def frequency_mhz(self) -> int:
        """Centre frequency of a 2.4 GHz channel (IEEE 802.11-2020, 15.4.4.3)."""
        return 2407 + 5 * self.channel


@dataclass(frozen=True)
class Transfer:
    """One iperf3 test between a station and the host; `rate_bps` is that of each connection."""

    name: str
    user: str
    port: int
    rate_bps: int
    start_s: float
    duration_s: float
    block_bytes: int
    congestion_control: str
    reverse: bool = False
    """Whether the host sends."""
    connections: int = 1


@dataclass(frozen=True)
class PlannedApplication:
    """An application between a station and the host, and the port that it uses there."""

    name: str
    port: int
    application: Application


@dataclass(frozen=True)
class Uplink:
    """What the controller may use between a relay and the shore, in either direction.

    `profile` is what becomes of it in a run; see :class:`scenarios.Link`.
    """

    relay: str
    relay_port: str
    shore_port: str
    rate_bps: int
    delay_s: float
    profile: tuple[LinkState, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything that the emulation builds for one run of one protocol."""

    protocol: str
    stations: Mapping[str, tuple[HostInterface, ...]]
    host: HostInterface
    switches: tuple[Switch, ...]
    wires: tuple[Wire, ...]
    media: tuple[Medium, ...]
    radios: tuple[Radio, ...]
    uplinks: tuple[Uplink, ...]
    transfers: tuple[Transfer, ...]
    applications: tuple[PlannedApplication, ...]
    duration_s: float
    snap_length_bytes: int

    @property
    def multipath(self) -> bool:
        """Whether stations use all their interfaces at once (MPTCP)."""
        return self.protocol != "sptcp"

    @property
    def radio_count(self) -> int:
        """Radios of access points and stations together."""
        return len(self.radios) + sum(i.wireless for i in self.host_interfaces)

    def transfer_of(self, user: str) -> Transfer | None:
        """The transfer of `user` that is measured from captures, if there is one: the first
        that is a single connection towards the host."""
        return next((t for t in self.transfers if t.name == user), None)

    @property
    def held_ports(self) -> tuple[int, int] | None:
        """First and last port of transfers towards the host, whose control messages are held."""
        ports = [t.port for t in self.transfers if not t.reverse]
        return (ports[0], ports[-1]) if ports else None

    @property
    def applications_at(self) -> dict[str, list[PlannedApplication]]:
        """Applications by the node that runs their programs: the user's and the host."""
        found: dict[str, list[PlannedApplication]] = {}
        for each in self.applications:
            found.setdefault(each.application.user, []).append(each)
        return {**found, self.host.node: list(self.applications)} if found else {}

    @property
    def congestion_controls(self) -> frozenset[str]:
        """Names of all that are used."""
        names = [t.congestion_control for t in self.transfers]
        return frozenset(
            names + [each.application.congestion_control for each in self.applications]
        )

    @property
    def downwards(self) -> bool:
        """Whether the host sends data to anybody."""
        return any(t.reverse for t in self.transfers) or any(
            each.application.offered_bps("down") > 0 for each in self.applications
        )

    def switch(self, name: str) -> Switch:
        """The switch called `name`."""
        return next(switch for switch in self.switches if switch.name == name)

    def medium(self, relay: str) -> Medium:
        """The medium between `relay` and the shore."""
        return next(medium for medium in self.media if medium.name == _medium_name(relay))

    def uplink(self, relay: str) -> Uplink:
        """The uplink of `relay`."""
        return next(uplink for uplink in self.uplinks if uplink.relay == relay)

    def radio(self, access_point: str) -> Radio:
        """The radio of `access_point`."""
        return next(radio for radio in self.radios if radio.access_point == access_point)

    def station_interface(self, station: str, relay: str) -> HostInterface:
        """The interface by which `station` reaches `relay`.

        A station's single radio serves every access point.
        """
        interfaces = self.stations[station]
        for interface in interfaces:
            if interface.relay == relay:
                return interface
        return next(interface for interface in interfaces if interface.wireless)

    @property
    def macs(self) -> dict[str, str]:
        """MAC address of every interface by its name."""
        found = {i.name: i.mac for i in self.host_interfaces}
        found |= {port.name: port.mac for switch in self.switches for port in switch.ports}
        for medium in self.media:
            found |= {medium.a: medium.mac_a, medium.b: medium.mac_b}
        return found

    @property
    def capture_points(self) -> tuple[CapturePoint, ...]:
        """All that is recorded: interfaces of stations, the host's, radios of access points."""
        stations = (i for interfaces in self.stations.values() for i in interfaces)
        return (
            *(CapturePoint(i.node, i.name, "station") for i in stations),
            CapturePoint(self.host.node, self.host.name, "host"),
            *(
                CapturePoint(radio.access_point, radio.interface, "access point")
                for radio in self.radios
            ),
        )

    @property
    def host_interfaces(self) -> tuple[HostInterface, ...]:
        """All interfaces with an address: stations in order, then the host."""
        stations = tuple(i for interfaces in self.stations.values() for i in interfaces)
        return (*stations, self.host)


def make_plan(scenario: Scenario, protocol: str) -> Plan:
    """Lay out the network for `scenario` under `protocol`.

    Parameters
    ----------
    scenario
        What to build.
    protocol
        ``sptcp``: a station has one address, which moves between its interfaces.
        ``mptcp`` and ``fdm``: every interface has an address of its own.

    Raises
    ------
    PlanError
        If the protocol is unknown, a name is too long or used twice, or the address plan
        is exhausted (254 stations, 254 relays), or there are more radios than can be simulated.
    """
    if protocol not in PROTOCOLS:
        raise PlanError(
            f"protocol: {protocol!r} is unknown; expected one of {', '.join(PROTOCOLS)}"
        )
    relays: list[Satellite | AccessPoint] = [*scenario.satellites, *scenario.access_points]
    names = [*(s.name for s in scenario.stations), *(r.name for r in relays), scenario.host, SHORE]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise PlanError(f"node name {repeated[0]!r} is used twice; every node needs its own")
    if len(scenario.stations) > 254 or len(relays) > 254:
        raise PlanError("at most 254 stations and 254 relays fit the address plan 10.0.R.S")
    if not scenario.satellites:
        raise PlanError("satellites: a scenario needs one that users can start on")

    stations = {
        station.name: _station_interfaces(scenario, protocol, index)
        for index, station in enumerate(scenario.stations, start=1)
    }
    host = HostInterface(scenario.host, f"{scenario.host}-eth0", _mac(0, 0, 1), HOST_ADDRESS, SHORE)

    switches: list[Switch] = []
    wires: list[Wire] = []
    media: list[Medium] = []
    uplinks: list[Uplink] = []
    shore_ports = [Port(SHORE, 1, f"{SHORE}-eth1", _mac(255, 0, 1))]
    wires.append(Wire((host.node, host.name), (SHORE, shore_ports[0].name)))
    for number, relay in enumerate(relays, start=1):
        ports: list[Port] = []
        if isinstance(relay, Satellite):
            for station in stations.values():
                for interface in station:
                    if interface.relay == relay.name and not interface.wireless:
                        port = _port(relay.name, number, len(ports) + 1, "eth")
                        ports.append(port)
                        wires.append(
                            Wire((interface.node, interface.name), (relay.name, port.name))
                        )
        else:
            ports.append(_port(relay.name, number, 1, "wlan"))
        link = relay.backhaul
        up = _uplink_port(relay.name, number, len(ports) + 1, link)
        down = _uplink_port(SHORE, 255, len(shore_ports) + 1, link)
        ports.append(up)
        shore_ports.append(down)
        medium = _medium(relay.name, number, link)
        media.append(medium)
        wires.append(Wire((relay.name, up.name), (medium.name, medium.a)))
        wires.append(Wire((medium.name, medium.b), (SHORE, down.name)))
        uplinks.append(
            Uplink(relay.name, up.name, down.name, int(link.rate_bps), link.delay_s, link.profile)
        )
        switches.append(Switch(relay.name, number, tuple(ports)))
    switches.append(Switch(SHORE, len(relays) + 1, tuple(shore_ports)))

    transfers = _transfers(scenario)
    plan = Plan(
        protocol=protocol,
        stations=stations,
        host=host,
        switches=tuple(switches),
        wires=tuple(wires),
        media=tuple(media),
        radios=tuple(
            Radio(ap.name, port.name, ap.name, ap.channel, port.mac)
            for ap in scenario.access_points
            for port in next(s for s in switches if s.name == ap.name).ports[:1]
        ),
        uplinks=tuple(uplinks),
        transfers=transfers,
        applications=_applications(scenario, IPERF3_PORT + len(transfers)),
        duration_s=scenario.duration_s,
        snap_length_bytes=scenario.snap_length_bytes,
    )
    _check_names(plan)
    if plan.radio_count > MOST_RADIOS:
        raise PlanError(
            f"stations and access points need {plan.radio_count} radios, one each; the kernel's "
            f"simulator makes {MOST_RADIOS} at most"
        )
    return plan


def _transfers(scenario: Scenario) -> tuple[Transfer, ...]:
    """Transfers in order of their ports: those towards the host first.

    The one of a user that is measured from captures has the user's name.
    """
    bulk = [traffic for traffic in scenario.traffic if isinstance(traffic, Traffic)]
    bulk.sort(key=lambda traffic: traffic.direction == "down")
    names: list[str] = []
    for traffic in bulk:
        name = traffic.user
        if traffic.direction == "down" or traffic.connections > 1 or name in names:
            name = f"{traffic.user}-bulk-{traffic.direction}"
        number = sum(each.partition(".")[0] == name for each in names) + 1
        names.append(f"{name}.{number}" if number > 1 else name)
    return tuple(
        Transfer(
            name=name,
            user=traffic.user,
            port=IPERF3_PORT + index,
            rate_bps=int(traffic.rate_bps),
            start_s=traffic.start_s,
            duration_s=traffic.duration_s,
            block_bytes=traffic.block_bytes,
            congestion_control=traffic.congestion_control,
            reverse=traffic.direction == "down",
            connections=traffic.connections,
        )
        for index, (name, traffic) in enumerate(zip(names, bulk, strict=True))
    )


def _applications(scenario: Scenario, first_port: int) -> tuple[PlannedApplication, ...]:
    """Applications, named by user, kind and direction; from the second on with a number."""
    applications = [each for each in scenario.traffic if isinstance(each, Application)]
    names = [f"{each.user}-{each.kind}-{each.direction}" for each in applications]
    return tuple(
        PlannedApplication(
            f"{name}.{number}" if (number := names[: index + 1].count(name)) > 1 else name,
            first_port + index,
            application,
        )
        for index, (name, application) in enumerate(zip(names, applications, strict=True))
    )


def _station_interfaces(scenario: Scenario, protocol: str, index: int) -> tuple[HostInterface, ...]:
    name = scenario.stations[index - 1].name
    interfaces = [
        HostInterface(
            name, f"{name}-eth{k}", _mac(1, k, index), f"10.0.{k + 1}.{index}", satellite.name
        )
        for k, satellite in enumerate(scenario.satellites)
    ]
    if scenario.access_points:
        relay = len(scenario.satellites) + 1
        interfaces.append(
            HostInterface(
                name,
                f"{name}-wlan0",
                _mac(2, 0, index),
                f"10.0.{relay}.{index}",
                scenario.access_points[0].name,
                wireless=True,
            )
        )
    if protocol == "sptcp":
        address = interfaces[0].address
        return tuple(
            HostInterface(i.node, i.name, i.mac, address, i.relay, i.wireless) for i in interfaces
        )
    return tuple(interfaces)


def _port(switch: str, number: int, port: int, kind: str) -> Port:
    return Port(switch, port, f"{switch}-{kind}{port}", _mac(255, number, port))


def _uplink_port(switch: str, number: int, port: int, link: Link) -> Port:
    peak_bps = max([link.rate_bps, *(state.rate_bps for state in link.profile)])
    return replace(
        _port(switch, number, port, "eth"),
        rate_bps=int(link.rate_bps),
        buffer_packets=link.buffer_packets,
        peak_bps=int(peak_bps) if peak_bps > link.rate_bps else None,
    )


def _medium_name(relay: str) -> str:
    return f"{relay}-air"


def _medium(relay: str, number: int, link: Link) -> Medium:
    smallest_frame_bits = 64 * 8
    in_flight = max(
        rate_bps * delay_s / smallest_frame_bits
        for rate_bps, delay_s in [
            (link.rate_bps, link.delay_s),
            *((state.rate_bps, state.delay_s) for state in link.profile),
        ]
    )
    return Medium(
        _medium_name(relay),
        f"{relay}-air0",
        f"{relay}-air1",
        _mac(254, number, 0),
        _mac(254, number, 1),
        link.delay_s,
        link.loss,
        limit_packets=int(in_flight) + 1000,
    )


def _mac(kind: int, group: int, index: int) -> str:
    """A locally administered unicast MAC address (IEEE 802c, bit 1 of the first octet)."""
    return f"02:ac:00:{kind:02x}:{group:02x}:{index:02x}"


def _check_names(plan: Plan) -> None:
    names = [i.name for i in plan.host_interfaces]
    names += [port.name for switch in plan.switches for port in switch.ports]
    names += [end for medium in plan.media for end in (medium.a, medium.b)]
    for name in names:
        if len(name) > IFNAMSIZ:
            raise PlanError(
                f"interface name {name!r} has {len(name)} characters; Linux allows {IFNAMSIZ}, "
                "so the node needs a shorter name"
            )
