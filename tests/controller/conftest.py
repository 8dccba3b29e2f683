"""Switches in pure Python: what deployed entries and queues do to a packet, without root."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tactical.controller.deployment import Change, FlowEntry, Queue
from tactical.controller.events import DatapathConnected, DatapathLost, Event
from tactical.controller.network import ControlledNetwork
from tests.controller import openvswitch


@dataclass(frozen=True)
class Arrival:
    """Where a packet ended, and the queues (port, id) that it passed on the way."""

    datapath: str
    port: str
    eth_dst: str | None
    queues: tuple[tuple[str, int], ...]
    passed: tuple[str, ...]
    """Datapaths on the way."""


@dataclass
class Switches:
    """Flow tables and queues of all datapaths of a network."""

    network: ControlledNetwork
    entries: dict[object, FlowEntry] = field(default_factory=dict)
    queues: dict[Queue, tuple[int, int]] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    """Datapaths whose control connection is lost: they forward, and cannot be changed."""

    def see(self, event: Event) -> Event:
        """Take part in an event: a switch that connects is asked for its entries."""
        match event:
            case DatapathConnected(dpid, _, _):
                self.away.discard(dpid)
                held = {e for e in self.entries.values() if e.dpid == dpid}
                return replace(event, entries=frozenset(held))
            case DatapathLost(dpid):
                self.away.add(dpid)
        return event

    def steps(self, change: Change) -> "list[object]":
        """The single messages of a change, in the order in which the application sends them."""
        sets = [("set", q, r) for part in (change.lowered, change.raised) for q, r in part.items()]
        return [
            *sets,
            *(("add", entry) for entry in change.added),
            *(("remove", entry) for entry in change.removed),
            *(("drop", queue) for queue in change.dropped),
        ]

    def apply(self, step: object) -> None:
        match step:
            case ("set", queue, rate):
                self.queues[queue] = (rate.min_bps, rate.max_bps)
            case ("add", entry):
                assert entry.dpid not in self.away
                self.entries[entry.key] = entry
            case ("remove", entry) if entry.dpid not in self.away:
                self.entries.pop(entry.key, None)
            case ("drop", queue):
                del self.queues[queue]

    def used_queues(self) -> set[tuple[str, int]]:
        """(port, queue id) of every set_queue in force."""
        used = set()
        for entry in self.entries.values():
            actions = dict(entry.actions)
            if "set_queue" in actions:
                datapath = self.network.datapath_name(entry.dpid)
                port = next(
                    p.name
                    for p in self.network.ports
                    if (p.datapath, p.number) == (datapath, actions["output"])
                )
                used.add((port, int(actions["set_queue"])))
        return used

    def send(self, datapath: str, source: str, destination: str, **tcp: int) -> Arrival | None:
        """Follow an IPv4 packet from `datapath` on; None if it is dropped or loops.

        With `tcp_src` or `tcp_dst` it is a TCP segment.
        """
        queues: list[tuple[str, int]] = []
        passed = [datapath]
        eth_dst: str | None = None
        for _ in range(len(self.network.datapaths) + 1):
            entry = self._lookup(datapath, source, destination, tcp)
            if entry is None:
                return None
            actions = dict(entry.actions)
            if "set_eth_dst" in actions:
                eth_dst = str(actions["set_eth_dst"])
            port = next(
                p.name
                for p in self.network.ports
                if (p.datapath, p.number) == (datapath, actions["output"])
            )
            if "set_queue" in actions:
                queues.append((port, int(actions["set_queue"])))
            onwards = self._other_end(datapath, port)
            if onwards is None:
                return Arrival(datapath, port, eth_dst, tuple(queues), tuple(passed))
            datapath = onwards
            passed.append(datapath)
        return None

    def _lookup(
        self, datapath: str, source: str, destination: str, tcp: Mapping[str, int]
    ) -> FlowEntry | None:
        packet = {"eth_type": 0x0800, "ipv4_src": source, "ipv4_dst": destination}
        if tcp:
            packet |= {"ip_proto": 6, **tcp}
        matching = [
            entry
            for entry in self.entries.values()
            if entry.dpid == self.network.dpid(datapath)
            and all(packet.get(key) == value for key, value in entry.match)
        ]
        return max(matching, key=lambda entry: entry.priority, default=None)

    def _other_end(self, datapath: str, port: str) -> str | None:
        for t in self.network.trunks:
            if (t.a_datapath, t.a_port) == (datapath, port):
                return t.b_datapath
            if (t.b_datapath, t.b_port) == (datapath, port):
                return t.a_datapath
        return None


@pytest.fixture
def switches() -> Callable[[ControlledNetwork], Switches]:
    """Makes empty switches for a network."""
    return Switches


@pytest.fixture
def open_vswitch(tmp_path: Path) -> Iterator[openvswitch.OpenVSwitch]:
    """A private Open vSwitch without bridges."""
    if (reason := openvswitch.missing()) is not None:
        pytest.skip(reason)
    running = openvswitch.OpenVSwitch(tmp_path)
    yield running
    running.stop()
