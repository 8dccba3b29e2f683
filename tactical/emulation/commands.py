"""The commands that configure a planned network, as data. Pure.

The adapter runs exactly these; ``--dry-run`` prints exactly these.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fdm.active_queue import CoDel
from scenarios import LinkState

from .plan import OPENFLOW_PORT, HostInterface, Medium, Plan, Port, Switch, Transfer

OWNER = "external_ids:owner=tactical"
"""Marks our rows in the Open vSwitch database, which may hold rows of others."""

CONTROLLER = f"tcp:127.0.0.1:{OPENFLOW_PORT}"
"""Where switches expect their controller."""

MPTCP_SUBFLOW_LIMIT = 8
"""The kernel's own maximum (``MPTCP_SUBFLOWS_MAX``)."""

SEND_BUFFER_BYTES = 1 << 20
"""Largest send buffer of a connection: five round trips of 3 Mbit/s over a satellite.

The kernel's own 4 MiB hold half a minute of what two users send over 1 Mbit/s, and a user that
had to hand over to such a link would see its data arrive that much later.
"""

ASSOCIATION_TRIES = 5

_DEPARTING_PACKETS = 10_000
"""No sender has so many on their way in a microsecond: none is lost there."""

DATA_DSCP = 1
"""Marks iperf3's data connection, and so tells it from its control connection.

The value has no effect on priority: it is best effort for Linux and for 802.11 alike.
"""


@dataclass(frozen=True)
class Command:
    """A command, and the node in whose network namespace it runs (None: the machine's own)."""

    argv: tuple[str, ...]
    node: str | None = None

    def __str__(self) -> str:
        line = shlex.join(self.argv)
        return line if self.node is None else f"[{self.node}] {line}"


def node_commands(plan: Plan) -> list[Command]:
    """Settings of every station and of the host, before any address exists."""
    congestion = {t.name: t.congestion_control for t in plan.transfers}
    commands = []
    for node in (*plan.stations, plan.host.node):
        settings = [
            "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv4.tcp_no_metrics_save=1",
            "net.ipv4.tcp_ecn=1",
            f"net.ipv4.tcp_wmem=4096 16384 {SEND_BUFFER_BYTES}",
            "net.mptcp.enabled=1",
        ]
        if node in congestion:
            settings.append(f"net.ipv4.tcp_congestion_control={congestion[node]}")
        commands.append(Command(("sysctl", "-q", "-w", *settings), node))
        # The kernel believes that MPTCP is blocked for an hour after lost SYNs (6.12 and later).
        commands.append(
            Command(("sysctl", "-q", "-e", "-w", "net.mptcp.blackhole_timeout=0"), node)
        )
        if plan.multipath:
            accepted = str(MPTCP_SUBFLOW_LIMIT if node == plan.host.node else 0)
            limits = ("subflows", str(MPTCP_SUBFLOW_LIMIT), "add_addr_accepted", accepted)
            commands.append(Command(("ip", "mptcp", "limits", "set", *limits), node))
    return commands


def offload_commands(plan: Plan) -> list[Command]:
    """Switch segmentation offload off where packets are recorded, so that they are packets."""
    return [
        Command(
            ("ethtool", "-K", i.name, "tso", "off", "gso", "off", "gro", "off", "tx", "off"), i.node
        )
        for i in plan.host_interfaces
        if not i.wireless
    ]


def departure_commands(plan: Plan) -> list[Command]:
    """Let packets leave their sender's account with the sender, as those of a real machine do.

    To Linux a packet is its socket's until a device has sent it, also across namespaces and
    switches, and TCP has about two such packets at a time (TCP small queues,
    ``tcp_limit_output_bytes`` in the kernel's ip-sysctl): queues further on would never fill. A
    netem qdisc with a delay ends that.
    """
    delay = ("netem", "limit", str(_DEPARTING_PACKETS), "delay", "1us")
    return [
        Command(("tc", "qdisc", "add", "dev", i.name, "root", *delay), i.node)
        for i in plan.host_interfaces
        if not i.wireless
    ]


def host_commands(plan: Plan) -> list[Command]:
    """The host's address, and how it reaches every station address.

    The destination MAC is a placeholder: the last switch before the station writes the MAC of
    the interface that is attached there.
    """
    host = plan.host
    commands = [
        Command(("ip", "address", "add", f"{host.address}/32", "dev", host.name), host.node),
        Command(("ip", "link", "set", host.name, "up"), host.node),
    ]
    reached = {i.address: i for interfaces in plan.stations.values() for i in interfaces}
    for address, interface in reached.items():
        commands.append(_neighbour(host, address, interface.mac))
        route = ("ip", "route", "replace", f"{address}/32", "dev", host.name, "src", host.address)
        commands.append(Command(route, host.node))
    return commands


def interface_up(plan: Plan, interface: HostInterface) -> list[Command]:
    """Give a station's interface its address and its routes to the host.

    Under MPTCP every address has a routing table of its own (``ip rule from ADDRESS``), so that a
    subflow leaves by the interface whose address it uses; the main table prefers the first
    interface.
    """
    number = _number(plan, interface)
    table = str(100 + number)
    node, name, address = interface.node, interface.name, interface.address
    route = ("ip", "route", "replace", f"{plan.host.address}/32", "dev", name, "src", address)
    commands = [Command(("ip", "address", "replace", f"{address}/32", "dev", name), node)]
    if not interface.wireless:  # a radio is up since it was made, or since it associated
        commands.append(Command(("ip", "link", "set", name, "up"), node))
    commands.append(_neighbour(interface, plan.host.address, plan.host.mac))
    commands.append(Command((*route, "metric", table), node))
    if plan.multipath:
        rule = ("from", address, "lookup", table, "priority", table)
        commands.append(Command((*route, "table", table), node))
        commands.append(Command(("ip", "rule", "add", *rule), node))
    return commands


def associate(plan: Plan, interface: HostInterface, access_point: str) -> list[Command]:
    """Join an access point; the second command ends when that has happened or failed (iw(8)).

    ``iw connect -w`` also ends well when authentication was lost on the way, as it may be while
    another station scans; so the link is looked at, and it is tried again.
    """
    radio = plan.radio(access_point)
    name = interface.name
    connect = shlex.join(
        ["iw", "dev", name, "connect", "-w", radio.ssid, str(radio.frequency_mhz), radio.bssid]
    )
    script = (
        f"for try in $(seq {ASSOCIATION_TRIES}); do "
        f"said=$({connect} 2>&1); "
        f"iw dev {name} link | grep -q '^Connected to {radio.bssid}' && exit 0; "
        f"iw dev {name} disconnect; done; "
        f'echo "no association with {access_point} in {ASSOCIATION_TRIES} tries: $said" >&2; exit 1'
    )
    return [radio_up(interface), Command(("sh", "-c", script), interface.node)]


def radio_up(interface: HostInterface) -> Command:
    """Bring up a station's radio, which can then associate."""
    return Command(("ip", "link", "set", interface.name, "up"), interface.node)


def dissociate(interface: HostInterface) -> Command:
    """Leave the access point."""
    return Command(("iw", "dev", interface.name, "disconnect"), interface.node)


def start_access(plan: Plan, station: str) -> list[Command]:
    """Bring up what a station has before anything moves; radios are not associated yet."""
    steps: list[Command] = []
    for interface in plan.stations[station]:
        if plan.multipath or interface is plan.stations[station][0]:
            steps += interface_up(plan, interface)
        if plan.multipath and not interface.wireless:
            steps.append(endpoint_added(plan, interface, interface.relay))
    return steps


def leave_access(plan: Plan, station: str, before: str, after: str) -> list[Command]:
    """Leave the relay `before`, in order to join `after`; nothing where both are used at once.

    Under MPTCP the satellites stay, and the endpoint of a lost access point is removed at once, so
    that the kernel sends elsewhere what its subflow had not delivered. A station of one path takes
    its address along, unless it stays on the radio.
    """
    interface = plan.station_interface(station, before)
    radio = [dissociate(interface)] if interface.wireless else []
    return [*radio, *stop_using(plan, station, before, after)]


def stop_using(plan: Plan, station: str, before: str, after: str) -> list[Command]:
    """Leave the relay `before` but for the radio; see :func:`leave_access`."""
    interface = plan.station_interface(station, before)
    if plan.multipath:
        return [endpoint_removed(plan, interface, before)] if interface.wireless else []
    if interface is plan.station_interface(station, after):
        return []
    return interface_down(interface)


def join_access(plan: Plan, station: str, before: str, after: str) -> list[Command]:
    """Join the relay `after`, once `before` has been left; see :func:`leave_access`.

    Under MPTCP an endpoint is added for an access point, so that the kernel opens a subflow.
    """
    interface = plan.station_interface(station, after)
    radio = associate(plan, interface, after) if interface.wireless else []
    return [*radio, *start_using(plan, station, before, after)]


def start_using(plan: Plan, station: str, before: str, after: str) -> list[Command]:
    """Join the relay `after` but for the radio; see :func:`join_access`."""
    interface = plan.station_interface(station, after)
    if plan.multipath:
        return [endpoint_added(plan, interface, after)] if interface.wireless else []
    if interface is plan.station_interface(station, before):
        return []
    return interface_up(plan, interface)


def endpoint_added(plan: Plan, interface: HostInterface, relay: str) -> Command:
    """Let the kernel's path manager open subflows from this interface."""
    endpoint = (interface.address, "dev", interface.name, "id", _endpoint(plan, relay), "subflow")
    return Command(("ip", "mptcp", "endpoint", "add", *endpoint), interface.node)


def endpoint_priority(plan: Plan, interface: HostInterface, relay: str, *, backup: bool) -> Command:
    """Send nothing new over the interface's subflows while another one works, or do (MP_PRIO)."""
    flag = "backup" if backup else "nobackup"
    argv = ("ip", "mptcp", "endpoint", "change", "id", _endpoint(plan, relay), flag)
    return Command(argv, interface.node)


def endpoint_removed(plan: Plan, interface: HostInterface, relay: str) -> Command:
    """Close the interface's subflows at once; the kernel sends what they carried elsewhere."""
    argv = ("ip", "mptcp", "endpoint", "delete", "id", _endpoint(plan, relay))
    return Command(argv, interface.node)


def interface_down(interface: HostInterface) -> list[Command]:
    """Take a station's interface out of use, together with its address and routes."""
    return [
        Command(("ip", "address", "flush", "dev", interface.name), interface.node),
        Command(("ip", "link", "set", interface.name, "down"), interface.node),
    ]


def medium_commands(medium: Medium) -> list[Command]:
    """Propagation: what enters one interface leaves by the other, `delay_s` later."""
    node = medium.name
    netem = _netem(medium, medium.delay_s, medium.loss)
    commands = []
    for inside, outside in ((medium.a, medium.b), (medium.b, medium.a)):
        no_ipv6 = f"net.ipv6.conf.{inside}.disable_ipv6=1"
        redirect = ("action", "mirred", "egress", "redirect", "dev", outside)
        commands += [
            Command(("sysctl", "-q", "-e", "-w", no_ipv6), node),
            Command(("ip", "link", "set", inside, "up"), node),
            Command(("tc", "qdisc", "add", "dev", inside, "root", *netem), node),
            Command(("tc", "qdisc", "add", "dev", inside, "ingress"), node),
            Command(("tc", "filter", "add", "dev", inside, "ingress", "matchall", *redirect), node),
        ]
    return commands


def _netem(medium: Medium, delay_s: float, loss: float) -> tuple[str, ...]:
    netem = ("netem", "limit", str(medium.limit_packets), "delay", f"{round(delay_s * 1e6)}us")
    return (*netem, "loss", f"{loss * 100:.6f}%") if loss else netem


def link_commands(plan: Plan, relay: str, before: LinkState, after: LinkState) -> list[Command]:
    """Let the uplink of `relay`, which is as `before`, become as `after`.

    What is under way keeps the delay that it set out with, so that packets overtake others where
    the delay falls by more than the time between them (tc-netem(8)).
    """
    medium, steps = plan.medium(relay), []
    if (before.delay_s, before.loss) != (after.delay_s, after.loss):
        netem = _netem(medium, after.delay_s, after.loss)
        steps += [
            Command(("tc", "qdisc", "change", "dev", end, "root", *netem), medium.name)
            for end in (medium.a, medium.b)
        ]
    if before.rate_bps != after.rate_bps:
        uplink = plan.uplink(relay)
        argv = ["ovs-vsctl"]
        for port in (uplink.relay_port, uplink.shore_port):
            # Open vSwitch finds a QoS row by the port that has it.
            argv += ["--", "set", "QoS", port, f"other-config:max-rate={int(after.rate_bps)}"]
        steps.append(Command(tuple(argv)))
    return steps


def port_commands(ports: Iterable[Port]) -> list[Command]:
    """Switch ports: no IPv6 chatter of their own; leaf buffers sized before OVS makes leaves.

    HTB gives a class without its own leaf a FIFO of the device's transmit queue length, so
    this length is the buffer of every queue that the controller will create.
    """
    ports = list(ports)
    no_ipv6 = [f"net.ipv6.conf.{port.name}.disable_ipv6=1" for port in ports]
    commands = [Command(("sysctl", "-q", "-e", "-w", *no_ipv6))]
    for port in ports:
        if port.buffer_packets is not None:
            length = ("txqueuelen", str(port.buffer_packets))
            commands.append(Command(("ip", "link", "set", port.name, *length)))
    return commands


def switch_command(switch: Switch) -> Command:
    """One transaction that makes a bridge with its ports, which waits for its controller.

    Not through Mininet, whose shells take lines of 4095 characters (``N_TTY_BUF_SIZE``): those of a
    bridge with 50 ports are longer, and what fails there is told to nobody.
    """
    argv = ["ovs-vsctl", "--id=@c", "create", "Controller", f'target="{CONTROLLER}"']
    argv += ["max_backoff=1000", "--", "add-br", switch.name]
    argv += ["--", "set", "Bridge", switch.name, "controller=[@c]", "fail_mode=secure"]
    argv += ["protocols=OpenFlow13", f"other_config:datapath-id={switch.dpid:016x}"]
    argv += ["other_config:disable-in-band=true", f"other_config:dp-desc={switch.name}"]
    for port in switch.ports:
        argv += ["--", "add-port", switch.name, port.name]
        argv += ["--", "set", "Interface", port.name, f"ofport_request={port.number}"]
    return Command(tuple(argv))


def shaping_command(ports: Iterable[Port]) -> Command | None:
    """One transaction that gives every shaped port its root HTB and default queue 0."""
    argv = ["ovs-vsctl"]
    shaped = [port for port in ports if port.rate_bps is not None]
    for number, port in enumerate(shaped):
        rate = str(port.rate_bps)
        argv += ["--", "set", "Port", port.name, f"qos=@s{number}"]
        argv += ["--", f"--id=@s{number}", "create", "QoS", "type=linux-htb"]
        argv += [f"other-config:max-rate={rate}", f"queues:0=@q{number}", OWNER]
        argv += [
            "--",
            f"--id=@q{number}",
            "create",
            "Queue",
            f"other-config:max-rate={port.peak_bps or rate}",
            OWNER,
        ]
    return Command(tuple(argv)) if shaped else None


def leaf_batch(leaves: Mapping[tuple[str, int], CoDel]) -> str:
    """Lines for ``tc -batch -`` that give queues of ports a CoDel discipline (tc-codel(8)).

    It marks packets of connections that agreed to it (RFC 3168) and drops others.

    Open vSwitch's linux-htb keeps queue N in class 1:(N + 1), in hexadecimal.
    """
    return "".join(
        f"qdisc replace dev {port} parent 1:{queue_id + 1:x} codel limit {leaf.limit_packets} "
        f"target {round(leaf.target_s * 1e6)}us interval {round(leaf.interval_s * 1e6)}us ecn\n"
        for (port, queue_id), leaf in leaves.items()
    )


def owned_rows(table: str) -> Command:
    """Print the UUIDs of our rows in an OVSDB table; QoS and Queue rows outlive their ports."""
    argv = ("ovs-vsctl", "--timeout=10", "--bare", "--columns=_uuid", "find", table, OWNER)
    return Command(argv)


def transfer_command(plan: Plan, transfer: Transfer, *, server: bool) -> Command:
    """iperf3 on either side of a transfer; under MPTCP through mptcpize(8)."""
    argv = ["mptcpize", "run"] if plan.multipath else []
    argv += ["iperf3", "--json", "--version4", "--port", str(transfer.port)]
    if server:
        return Command((*argv, "--server", "--one-off"), plan.host.node)
    argv += ["--client", plan.host.address, "--time", f"{transfer.duration_s:g}"]
    argv += ["--bitrate", str(transfer.rate_bps), "--length", str(transfer.block_bytes)]
    if transfer.connections > 1:
        argv += ["--parallel", str(transfer.connections)]
    if transfer.reverse:
        argv.append("--reverse")
    if transfer.name != transfer.user:
        argv += ["--congestion", transfer.congestion_control]
    argv += ["--dscp", str(DATA_DSCP)]
    if transfer.start_s > 0:
        argv = ["sh", "-c", f"sleep {transfer.start_s:g} && exec {shlex.join(argv)}"]
    return Command(tuple(argv), transfer.user)


def hold_commands(plan: Plan) -> list[Command]:
    """Keep control messages of iperf3's transfers to the host from it, until released."""
    if plan.held_ports is None:
        return []
    first, last = plan.held_ports
    ports = f"{first}-{last}" if last > first else str(first)
    # Only messages (PSH), not the handshakes of new subflows, which carry no mark either.
    which = ("flower", "ip_proto", "tcp", "dst_port", ports)
    what = (*which, "ip_tos", "0/0xfc", "tcp_flags", "0x08/0x08")
    drop = ("action", "drop")
    name, node = plan.host.name, plan.host.node
    return [
        Command(("tc", "qdisc", "add", "dev", name, "ingress"), node),
        Command(
            ("tc", "filter", "add", "dev", name, "ingress", "protocol", "ip", *what, *drop), node
        ),
    ]


def release_commands(plan: Plan) -> list[Command]:
    """Let what :func:`hold_commands` holds pass again."""
    if plan.held_ports is None:
        return []
    name = plan.host.name
    return [Command(("tc", "qdisc", "delete", "dev", name, "ingress"), plan.host.node)]


def _neighbour(interface: HostInterface, address: str, mac: str) -> Command:
    where = (address, "lladdr", mac, "dev", interface.name, "nud", "permanent")
    return Command(("ip", "neighbour", "replace", *where), interface.node)


def _number(plan: Plan, interface: HostInterface) -> int:
    return 1 + [i.name for i in plan.stations[interface.node]].index(interface.name)


def _endpoint(plan: Plan, relay: str) -> str:
    """Address identifier of the endpoint by which any station reaches a relay.

    The radio has one for each access point: the REMOVE_ADDR of the access point that was left goes
    the slow way over a satellite, and closes every subflow of its identifier when it comes
    (RFC 8684, 3.4.2), long after the next access point has been joined.
    """
    return str(1 + [uplink.relay for uplink in plan.uplinks].index(relay))
