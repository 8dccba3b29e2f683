"""The maximum flow policy on pure-Python switches: where each connection of a transfer goes."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from routing.maxflowsdn import BCUBE, DCELL, FAT_TREE, NETWORKS, Network
from routing.topologies import leaf_spine
from tactical.controller.deployment import CONNECTION_PRIORITY, FlowEntry
from tactical.controller.events import (
    CapacitySet,
    Counted,
    CountersRead,
    DatapathConnected,
    DemandSet,
    Event,
    PortChanged,
    QueuesRead,
    Tick,
)
from tactical.controller.logic import Controller
from tactical.controller.network import ControlledNetwork
from tests.controller.data_centres import described

MakeSwitches = Callable[[ControlledNetwork], Any]
ALL = 1e9
"""A demand of more than any network here can carry."""


class Site:
    """A controller and its switches."""

    def __init__(self, network: ControlledNetwork, switches: MakeSwitches) -> None:
        self.network, self.table = network, switches(network)
        self.controller = Controller(network)
        self.now_s = 0.0
        self.tell(QueuesRead({}), *(DatapathConnected(d.dpid) for d in network.datapaths))

    def tell(self, *events: Event) -> None:
        for event in events:
            decision = self.controller.handle(self.table.see(event), self.now_s)
            for step in self.table.steps(decision.change) if decision.change else ():
                self.table.apply(step)
            self.controller.confirm(decision)

    def later(self, seconds: float, *events: Event) -> None:
        self.now_s += seconds
        self.tell(*events)

    def rules(self) -> list[FlowEntry]:
        return [e for e in self.table.entries.values() if e.priority == CONNECTION_PRIORITY]

    def ports(self, user: str) -> dict[int, float]:
        """The server's ports of a user's connections, and the rate of each."""
        assert self.controller.allocation is not None
        return {
            s.server_port: s.rate_bps
            for s in self.controller.allocation.subflows
            if s.attachment.user == user and s.server_port is not None and s.rate_bps is not None
        }

    def passed(self, user: str, port: int) -> tuple[str, ...]:
        """What a connection passes; both ways the same, to the server and the right interface."""
        assert self.controller.allocation is not None
        a = next(
            s.attachment
            for s in self.controller.allocation.subflows
            if (s.attachment.user, s.server_port) == (user, port)
        )
        server = self.network.server
        there = self.table.send(a.datapath, a.address, server.address, tcp_dst=port)
        back = self.table.send(server.datapath, server.address, a.address, tcp_src=port)
        assert (there.datapath, there.port) == (server.datapath, server.port)
        assert (back.datapath, back.port, back.eth_dst) == (a.datapath, a.port, a.mac)
        assert there.passed == back.passed[::-1]
        return there.passed


def site_of(network: Network, switches: MakeSwitches) -> Site:
    return Site(described(network.topology, (network.source,), network.destination), switches)


@pytest.mark.parametrize(
    ("network", "connections"),
    [
        (FAT_TREE, {"s9 s1 s91 s7 s15": 7e6, "s9 s2 s93 s8 s15": 6e6}),
        (
            DCELL,
            {
                "DCs0 h0.3 h3.1 DCs3 h3.4-bridge": 10e6,
                "h1.1 DCs1 h1.3 h3.2 DCs3 h3.4-bridge": 10e6,
                "h1.1 DCs1 h1.4 h4.2 DCs4 h4.4 h3.4-bridge": 10e6,
            },
        ),
        (
            BCUBE,
            {
                "s90 s12 s83 h2-bridge": 10e6,
                "s81 s6 s92 h2-bridge": 10e6,
                "s90 s1 s80 s3 s92 h2-bridge": 10e6,
            },
        ),
    ],
    ids=[network.name for network in NETWORKS],
)
def test_every_connection_takes_its_path_of_the_maximum_flow(
    network: Network, connections: dict[str, float], switches: MakeSwitches
) -> None:
    site = site_of(network, switches)
    assert site.rules() == []
    site.tell(DemandSet(network.source, ALL))
    ports = site.ports(network.source)
    assert sorted(ports) == [5001 + n for n in range(len(connections))]
    found = {" ".join(site.passed(network.source, port)): rate for port, rate in ports.items()}
    assert found == connections
    # Two entries on each switch of each path, and no more.
    assert len(site.rules()) == 2 * sum(len(path.split()) for path in connections)
    for entry in site.rules():
        names = [name for name, _ in entry.match]
        assert names in (
            ["eth_type", "ip_proto", "ipv4_dst", "ipv4_src", "tcp_dst"],
            ["eth_type", "ip_proto", "ipv4_dst", "ipv4_src", "tcp_src"],
        )
    site.tell(DemandSet(network.source, 0.0))
    assert site.rules() == [], "the transfer has ended"


def test_everything_else_goes_the_way_it_went_before(switches: MakeSwitches) -> None:
    site = site_of(FAT_TREE, switches)
    (a,), server = site.network.attachments, site.network.server
    before = site.table.send(a.datapath, a.address, server.address)
    site.tell(DemandSet("h1", ALL))
    assert site.table.send(a.datapath, a.address, server.address) == before
    assert site.table.send(a.datapath, a.address, server.address, tcp_dst=22) == before


def test_of_a_small_demand_only_what_is_wanted_is_planned(switches: MakeSwitches) -> None:
    site = site_of(DCELL, switches)
    site.tell(DemandSet("h0.1", 4e6))
    assert site.ports("h0.1") == {5001: 4e6}
    assert site.passed("h0.1", 5001) == ("DCs0", "h0.3", "h3.1", "DCs3", "h3.4-bridge")


def port_to(network: ControlledNetwork, a: str, b: str) -> tuple[int, str, int]:
    """Datapath identifier, port and its number by which a leads to b."""
    for t in network.trunks:
        if (t.a_datapath, t.b_datapath) == (a, b):
            return network.dpid(a), t.a_port, network.port(a, t.a_port).number
        if (t.b_datapath, t.a_datapath) == (a, b):
            return network.dpid(a), t.b_port, network.port(a, t.b_port).number
    raise AssertionError(f"no trunk between {a} and {b}")


def test_a_link_that_is_lost_moves_only_its_own_connection(switches: MakeSwitches) -> None:
    site = site_of(FAT_TREE, switches)
    site.tell(DemandSet("h1", ALL))
    kept = site.passed("h1", 5001)
    dpid, port, _ = port_to(site.network, "s2", "s93")
    site.later(1.0, PortChanged(dpid, port, False))
    assert site.passed("h1", 5001) == kept
    assert site.passed("h1", 5002) == ("s9", "s2", "s94", "s8", "s15")
    assert sum(site.ports("h1").values()) == 13e6
    dpid, port, _ = port_to(site.network, "s9", "s2")
    site.later(1.0, PortChanged(dpid, port, False))
    assert site.ports("h1") == {5001: 7e6}
    assert site.passed("h1", 5001) == kept
    dpid, port, _ = port_to(site.network, "s9", "s1")
    site.later(1.0, PortChanged(dpid, port, False))
    assert site.ports("h1") == {}
    assert site.rules() == [], "there is no way any more"


def sends(network: ControlledNetwork, a: str, b: str, rate_bps: float) -> Callable[[float], Event]:
    """What is read from the port from a to b at some time."""
    _, port, _ = port_to(network, a, b)
    return lambda now_s: CountersRead((Counted(("port", a, port), int(rate_bps * now_s / 8)),))


def measured(site: Site, what: Callable[[float], Event], seconds: int = 30) -> None:
    for _ in range(seconds):
        site.later(1.0, what(site.now_s + 1.0))


def test_what_others_send_is_not_free(switches: MakeSwitches) -> None:
    site = site_of(DCELL, switches)
    measured(site, sends(site.network, "DCs0", "h0.3", 4e6))
    site.tell(DemandSet("h0.1", ALL))
    rates = site.ports("h0.1")
    through = [rate for port, rate in rates.items() if "h0.3" in site.passed("h0.1", port)]
    assert sum(through) == pytest.approx(6e6, rel=0.01)
    assert sum(rates.values()) == pytest.approx(30e6, rel=0.01), "the rest goes by the fourth host"


def test_its_own_traffic_does_not_drive_a_transfer_off_its_paths(switches: MakeSwitches) -> None:
    site = site_of(FAT_TREE, switches)
    site.tell(DemandSet("h1", ALL))
    before = site.table.entries.copy()
    measured(site, sends(site.network, "s9", "s1", 7e6))
    site.later(5.0, Tick())
    assert site.table.entries == before
    assert sum(site.ports("h1").values()) == 13e6


def test_a_load_that_comes_moves_connections_when_that_gains_a_good_deal(
    switches: MakeSwitches,
) -> None:
    site = site_of(FAT_TREE, switches)
    site.tell(DemandSet("h1", ALL))
    # 7 of ours and 1 of others on 10: 8 fit. Then others send 6.
    measured(site, sends(site.network, "s1", "s91", 8e6))
    site.later(5.0, Tick())
    assert site.passed("h1", 5001)[2] == "s91"
    measured(site, sends(site.network, "s1", "s91", 13e6), 60)
    site.later(5.0, Tick())
    through = {site.passed("h1", port)[2] for port in site.ports("h1")}
    assert "s92" in through
    assert sum(site.ports("h1").values()) == pytest.approx(13e6, rel=0.01)


def test_a_capacity_that_is_set_counts_from_then_on(switches: MakeSwitches) -> None:
    site = site_of(DCELL, switches)
    site.tell(DemandSet("h0.1", ALL))
    trunk = next(t for t in site.network.trunks if {t.a_datapath, t.b_datapath} == {"h0.3", "h3.1"})
    site.later(1.0, CapacitySet(trunk.name, 2e6))
    assert sum(site.ports("h0.1").values()) == 30e6, "the fourth host takes over"
    others = {port: site.passed("h0.1", port) for port in site.ports("h0.1")}
    assert sum("h0.3" in path for path in others.values()) == 1


def test_two_transfers_share_no_more_than_there_is(switches: MakeSwitches) -> None:
    topology = leaf_spine(3, 2, 2, host_bps=20e6, spine_bps=10e6)
    network = described(topology, ("h0", "h1", "h2", "h3", "h4"), "h5")
    network = dataclasses.replace(
        network, server=dataclasses.replace(network.server, rate_bps=100e6)
    )
    site = Site(network, switches)
    site.tell(DemandSet("h0", 12e6), DemandSet("h2", ALL))
    assert sum(site.ports("h0").values()) == 12e6
    assert sum(site.ports("h2").values()) == 8e6, "what two links of 10 Mbit/s from spines leave"
    assert all(site.passed(user, 5001) for user in ("h0", "h2")), "the same port, other addresses"
    site.later(1.0, DemandSet("h0", 0.0))
    site.later(10.0, Tick())
    assert sum(site.ports("h2").values()) == 20e6


def test_a_user_who_wants_next_to_nothing_gets_no_connection(switches: MakeSwitches) -> None:
    site = site_of(FAT_TREE, switches)
    site.tell(DemandSet("h1", 1000.0))
    assert site.ports("h1") == {}
    assert site.rules() == []


def test_ports_begin_where_the_description_says(switches: MakeSwitches) -> None:
    network = described(FAT_TREE.topology, ("h1",), "h2")
    settings = dataclasses.replace(network.settings, transfer_port=7000)
    site = Site(dataclasses.replace(network, settings=settings), switches)
    site.tell(DemandSet("h1", ALL))
    assert sorted(site.ports("h1")) == [7000, 7001]
