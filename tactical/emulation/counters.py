"""Counters of the kernel before and after the traffic, and the switch queues' backlog between.

Everything is read from files in /proc and over one netlink socket, because starting a process
costs tens of milliseconds in an emulated processor; only the namespaces of the media need one
``tc`` each, before and after the traffic.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..host.process import CommandError
from .commands import Command
from .events import EventLog
from .network import Network
from .plan import Plan

BACKLOG_PERIOD_S = 0.5

# include/uapi/linux/netlink.h and rtnetlink.h
_NLMSG_ERROR, _NLMSG_DONE, _RTM_NEWQDISC, _RTM_GETQDISC = 2, 3, 36, 38
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_TCA_KIND, _TCA_STATS2, _TCA_DUMP_INVISIBLE = 1, 7, 10
# include/uapi/linux/gen_stats.h
_TCA_STATS_BASIC, _TCA_STATS_QUEUE = 1, 3
_HEADER = struct.Struct("=IHHII")
_TRAFFIC_CONTROL = struct.Struct("=BxxxiIII")
_INDEX = struct.Struct("=i")
_ATTRIBUTE = struct.Struct("=HH")
_PROTOCOLS = ("Tcp", "TcpExt", "MPTcpExt")
# In the same lines as the counters, but not counted: settings and a number of now.
_NO_COUNTERS = {"TcpRtoAlgorithm", "TcpRtoMin", "TcpRtoMax", "TcpMaxConn", "TcpCurrEstab"}
_RECEIVE_BYTES = 1 << 18
_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Qdisc:
    """A queueing discipline and its counters since it was made.

    Attributes
    ----------
    interface, kind : str
    parent : int
        Handle of its parent: minor number in the lower 16 bits, 0xFFFFFFFF for a root.
    bytes, packets : int
        Sent.
    drops : int
        Packets dropped by it.
    overlimits : int
        Times that it had to wait for its rate.
    backlog_bytes, backlog_packets : int
        Waiting in it now.
    """

    interface: str
    kind: str
    parent: int
    bytes: int
    packets: int
    drops: int
    overlimits: int
    backlog_bytes: int
    backlog_packets: int


def qdiscs(names: Mapping[int, str] | None = None) -> list[Qdisc]:
    """Queueing disciplines of this network namespace, the implicit leaves of HTB included.

    Parameters
    ----------
    names
        Interfaces that matter, by their index; all of them by default. The kernel lists every
        interface, and decoding what is not wanted costs most of the time.

    Raises
    ------
    OSError
        If the kernel refuses or does not answer.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        flag = _ATTRIBUTE.pack(_ATTRIBUTE.size, _TCA_DUMP_INVISIBLE)
        body = _TRAFFIC_CONTROL.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + flag
        size = _HEADER.size + len(body)
        request = _HEADER.pack(size, _RTM_GETQDISC, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0)
        netlink.sendto(request + body, (0, 0))
        wanted = dict(socket.if_nameindex()) if names is None else names
        return [
            _qdisc(each, wanted[index])
            for each in _answers(netlink)
            if (index := _INDEX.unpack_from(each, 4)[0]) in wanted
        ]


def _answers(netlink: socket.socket) -> Iterator[bytes]:
    while True:
        answer = netlink.recv(_RECEIVE_BYTES)
        at = 0
        while at + _HEADER.size <= len(answer):
            length, kind, _, _, _ = _HEADER.unpack_from(answer, at)
            body = answer[at + _HEADER.size : at + length]
            if kind == _NLMSG_DONE:
                return
            if kind == _NLMSG_ERROR:
                raise OSError(-struct.unpack_from("=i", body)[0], "the kernel lists no qdiscs")
            if kind == _RTM_NEWQDISC:
                yield body
            at += length + 3 & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        # The top two bits are flags of the attribute.
        found[kind & 0x3FFF] = data[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3
    return found


def _qdisc(body: bytes, interface: str) -> Qdisc:
    _, _, _, parent, _ = _TRAFFIC_CONTROL.unpack_from(body)
    found = _attributes(body[_TRAFFIC_CONTROL.size :])
    statistics = _attributes(found.get(_TCA_STATS2, b""))
    sent_bytes, packets = struct.unpack_from("=QI", statistics.get(_TCA_STATS_BASIC, bytes(12)))
    waiting, backlog, drops, _, overlimits = struct.unpack_from(
        "=5I", statistics.get(_TCA_STATS_QUEUE, bytes(20))
    )
    return Qdisc(
        interface=interface,
        kind=found.get(_TCA_KIND, b"").rstrip(b"\0").decode(errors="replace"),
        parent=parent,
        bytes=sent_bytes,
        packets=packets,
        drops=drops,
        overlimits=overlimits,
        backlog_bytes=backlog,
        backlog_packets=waiting,
    )


def protocol_counters(text: str) -> dict[str, int]:
    """Read what /proc/net/netstat or /proc/net/snmp holds, under the names that nstat(8) uses.

    Parameters
    ----------
    text : str
        Pairs of lines: names, then values, both behind the protocol's name.

    Returns
    -------
    dict
        Counters of TCP and multipath TCP, those that are zero included.
    """
    found: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, columns = names.partition(":")
        if protocol in _PROTOCOLS:
            numbers = map(int, values.partition(":")[2].split())
            found |= {f"{protocol}{n}": v for n, v in zip(columns.split(), numbers, strict=False)}
    return {name: value for name, value in found.items() if name not in _NO_COUNTERS}


def interface_counters(text: str) -> dict[str, dict[str, int]]:
    """Read /proc/net/dev: packets and bytes of each interface, and what it dropped."""
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        value = [int(each) for each in rest.split()]
        # Columns: received bytes, packets, errs, drop, …, sent bytes (8), packets, errs, drop.
        found[name.strip()] = {
            "rx_bytes": value[0],
            "rx_packets": value[1],
            "rx_dropped": value[3],
            "tx_bytes": value[8],
            "tx_packets": value[9],
            "tx_dropped": value[11],
        }
    return found


class Counters:
    """The counters of a run: `before` and `after` its traffic, as ``counters.json``."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._before = self._read()

    def write(self, run_dir: Path) -> None:
        """Read everything again and write both."""
        document = {"before": self._before, "after": self._read()}
        (run_dir / "counters.json").write_text(json.dumps(document, indent=1) + "\n")

    def _read(self) -> dict[str, Any]:
        plan = self._network.plan
        found: dict[str, Any] = {"t_mono_s": round(time.monotonic(), 6)}
        found["nodes"] = {
            node: _of_namespace(Path(f"/proc/{self._network.pid(node)}/net"))
            for node in (*plan.stations, plan.host.node)
        }
        found["qdiscs"] = [asdict(each) for each in _switch_qdiscs(plan)]
        found["media"] = {medium.name: self._of_medium(medium.name) for medium in plan.media}
        return found

    def _of_medium(self, name: str) -> list[dict[str, Any]] | str:
        try:
            said = self._network.run(Command(("tc", "-s", "-j", "qdisc", "show"), name))
            rows: list[dict[str, Any]] = json.loads(said)
        except (CommandError, ValueError) as error:
            return f"not available: {error}"
        keys = ("dev", "kind", "bytes", "packets", "drops")
        return [{key: row.get(key) for key in keys} for row in rows if row.get("kind") == "netem"]


def _of_namespace(proc: Path) -> dict[str, Any]:
    return {
        "protocols": protocol_counters((proc / "netstat").read_text())
        | protocol_counters((proc / "snmp").read_text()),
        "interfaces": interface_counters((proc / "dev").read_text()),
    }


def _switch_qdiscs(plan: Plan) -> list[Qdisc]:
    ports = [port.name for switch in plan.switches for port in switch.ports]
    return qdiscs({socket.if_nametoindex(port): port for port in ports})


class BacklogSampler:
    """Writes what waits in the switch queues as samples of kind ``backlog``.

    A queue's sample is written when something about it has changed since the last one, so that
    idle queues cost nothing; a queue without a new sample is as it was.
    """

    def __init__(self, plan: Plan, events: EventLog) -> None:
        self._datapaths = {
            port.name: switch.name
            for switch in plan.switches
            for port in switch.ports
            if port.rate_bps is not None
        }
        self._events = events
        self._written: dict[tuple[str, int], Qdisc] = {}

    def sample(self, over: threading.Event) -> None:
        """Look at the queues until `over` is set."""
        names: dict[int, str] = {}
        while not over.wait(BACKLOG_PERIOD_S):
            moment = time.monotonic()
            try:
                names = names or {socket.if_nametoindex(port): port for port in self._datapaths}
                found = qdiscs(names)
            except OSError as error:
                message = f"the backlog of the queues is not recorded: {error.strerror or error}"
                self._events.write("error", "run", message=message)
                return
            for each in [*found, *self._gone(found)]:
                self._write(each, moment)

    def _gone(self, found: Sequence[Qdisc]) -> list[Qdisc]:
        """Queues that were taken away with packets in them: nothing waits there any more."""
        present = {(each.interface, each.parent) for each in found}
        return [
            replace(leaf, backlog_bytes=0, backlog_packets=0)
            for key, leaf in self._written.items()
            if key not in present and leaf.backlog_packets
        ]

    def _write(self, leaf: Qdisc, moment: float) -> None:
        datapath = self._datapaths.get(leaf.interface)
        # Open vSwitch gives queue N the class N + 1; its root class is 0xfffe.
        queue_id = (leaf.parent & 0xFFFF) - 1
        if datapath is None or leaf.parent == 0xFFFFFFFF:
            return
        key = (leaf.interface, leaf.parent)
        if self._written.get(key) == leaf:
            return
        self._written[key] = leaf
        self._events.write(
            "sample",
            datapath,
            moment,
            kind="backlog",
            port=leaf.interface,
            queue_id=queue_id,
            tx_bytes=leaf.bytes,
            tx_packets=leaf.packets,
            backlog_bytes=leaf.backlog_bytes,
            backlog_packets=leaf.backlog_packets,
            tx_dropped=leaf.drops,
        )
