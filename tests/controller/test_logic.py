"""Decisions of the controller, judged by what they do to packets on pure-Python switches."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scenarios
from tactical.controller.events import (
    AssociationChanged,
    DatapathConnected,
    DatapathLost,
    DeploymentFailed,
    Event,
    PortChanged,
    QueuesRead,
    StationHeard,
)
from tactical.controller.logic import Controller, Decision
from tactical.controller.network import ControlledNetwork
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan

MakeSwitches = Callable[[ControlledNetwork], Any]
ALL_CONNECTED = (
    QueuesRead({}),
    DatapathConnected(1),
    DatapathConnected(2),
    DatapathConnected(3),
)
SATCOM, UAV, SHORE = 1, 2, 3


def network_of(protocol: str, *overrides: str) -> ControlledNetwork:
    scenario = scenarios.load("direct-move", overrides).build(1)
    network = controlled_network(make_plan(scenario, protocol), scenario)
    settings = dataclasses.replace(network.settings, queue_mode="overflow")
    return dataclasses.replace(network, settings=settings)


def feed(controller: Controller, switches: Any, events: Sequence[Event]) -> list[Decision]:
    """Let the controller handle events, and carry out what it decides."""
    decisions = []
    for event in events:
        decision = controller.handle(switches.see(event), 0.0)
        if decision.change is not None:
            for step in switches.steps(decision.change):
                switches.apply(step)
        controller.confirm(decision)
        decisions.append(decision)
    return decisions


def test_nothing_is_deployed_before_every_switch_is_there(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    decisions = feed(Controller(network), table, ALL_CONNECTED)
    assert [d.change is None for d in decisions] == [True, True, True, False]


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_users_reach_the_host_by_satellite_and_back(protocol: str, switches: MakeSwitches) -> None:
    network = network_of(protocol)
    table = switches(network)
    feed(Controller(network), table, ALL_CONNECTED)
    for a in network.attachments:
        if a.datapath != "satcom":
            continue
        there = table.send("satcom", a.address, network.server.address)
        assert (there.datapath, there.port) == ("shore", "shore-eth1")
        back = table.send("shore", network.server.address, a.address)
        assert (back.datapath, back.port, back.eth_dst) == ("satcom", a.port, a.mac)


def test_single_path_address_is_found_where_it_moved_to(switches: MakeSwitches) -> None:
    network = network_of("sptcp")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, ALL_CONNECTED)
    wired, wireless = (a for a in network.attachments if a.user == "ship1")
    assert wired.address == wireless.address
    moves = [PortChanged(SATCOM, wired.port, up=False), AssociationChanged("ship1", "uav", True)]
    feed(controller, table, moves)
    back = table.send("shore", network.server.address, wired.address)
    assert (back.datapath, back.eth_dst) == ("uav", wireless.mac)
    moves = [AssociationChanged("ship1", "uav", False), PortChanged(SATCOM, wired.port, up=True)]
    feed(controller, table, moves)
    back = table.send("shore", network.server.address, wired.address)
    assert (back.datapath, back.eth_dst) == ("satcom", wired.mac)


def test_flow_deviation_gives_each_subflow_its_own_queue_at_the_solved_rate(
    switches: MakeSwitches,
) -> None:
    network = network_of("fdm", "controller.header_overhead=1.0")
    table = switches(network)
    controller = Controller(network)
    joins = [AssociationChanged(user, "uav", True) for user in ("ship1", "ship2")]
    feed(controller, table, [*ALL_CONNECTED, *joins])
    seen = set()
    for a in network.attachments:
        there = table.send(a.datapath, a.address, network.server.address)
        (queue,) = there.queues
        assert queue not in seen
        seen.add(queue)
        rates = next(r for q, r in table.queues.items() if (q.port, q.queue_id) == queue)
        # The optimum of the two-user network: 776,537 bit/s over the UAV, shared equally.
        expected = 388_268 if a.datapath == "uav" else 2_611_731
        assert rates[0] == pytest.approx(expected, abs=1)
        if a.datapath == "uav":
            assert rates[1] == rates[0], "the scarce path is strict"
        else:
            assert rates[1] > 2 * rates[0], "the wide path takes what the estimate missed"


def test_without_allocation_there_are_no_queues(switches: MakeSwitches) -> None:
    network = network_of("mptcp")
    table = switches(network)
    joins = [AssociationChanged(user, "uav", True) for user in ("ship1", "ship2")]
    decisions = feed(Controller(network), table, [*ALL_CONNECTED, *joins])
    assert not table.queues
    assert not table.used_queues()
    assert not any(r.kind == "solve" for d in decisions for r in d.records)


def test_station_heard_counts_as_associated_and_only_once(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, ALL_CONNECTED)
    mac = next(a.mac for a in network.attachments if a.user == "ship2" and a.wireless)
    heard, reported = feed(
        controller, table, [StationHeard(UAV, mac), AssociationChanged("ship2", "uav", True)]
    )
    assert heard.change is not None
    assert heard.trigger == "ship2 heard at uav"
    assert reported.change is None
    assert not reported.records, "no second solve for the same association"


@pytest.mark.parametrize(
    "event",
    [
        DatapathConnected(99),
        DatapathLost(99),
        PortChanged(99, "eth0", up=False),
        StationHeard(UAV, "02:00:00:00:00:99"),
        StationHeard(99, "02:00:00:00:00:99"),
        AssociationChanged("ship9", "uav", True),
        AssociationChanged("ship1", "elsewhere", True),
    ],
    ids=repr,
)
def test_unknown_things_change_nothing(event: Event, switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, ALL_CONNECTED)
    before = (dict(table.entries), dict(table.queues))
    (decision,) = feed(controller, table, [event])
    assert decision.change is None
    assert (table.entries, table.queues) == before


def test_switch_that_comes_back_gets_all_its_entries(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, ALL_CONNECTED)
    expected = dict(table.entries)
    feed(controller, table, [DatapathLost(SHORE)])
    assert table.entries == expected, "a lost switch keeps forwarding"
    table.entries = {k: e for k, e in table.entries.items() if e.dpid != SHORE}
    feed(controller, table, [DatapathConnected(SHORE)])
    assert table.entries == expected


def test_others_are_served_while_a_switch_is_away(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, [*ALL_CONNECTED, DatapathLost(SATCOM)])
    (decision,) = feed(controller, table, [AssociationChanged("ship1", "uav", True)])
    assert decision.change is not None
    wireless = next(a for a in network.attachments if a.user == "ship1" and a.wireless)
    assert table.send("uav", wireless.address, network.server.address) is not None


def test_failed_deployment_is_tried_again_in_full(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    feed(controller, table, ALL_CONNECTED)
    controller.handle(AssociationChanged("ship1", "uav", True), 0.0)  # never confirmed
    (again,) = feed(controller, table, [DeploymentFailed()])
    assert again.trigger == "deployment failed"
    wireless = next(a for a in network.attachments if a.user == "ship1" and a.wireless)
    assert table.send("uav", wireless.address, network.server.address) is not None
    (idle,) = feed(controller, table, [DeploymentFailed()])
    assert idle.change is None, "nothing is left to do"


def test_lost_uplink_leaves_the_other_path(switches: MakeSwitches) -> None:
    network = network_of("fdm")
    table = switches(network)
    controller = Controller(network)
    joined = AssociationChanged("ship1", "uav", True)
    feed(controller, table, [*ALL_CONNECTED, joined, PortChanged(SATCOM, "satcom-eth3", up=False)])
    wired, wireless = (a for a in network.attachments if a.user == "ship1")
    assert table.send("satcom", wired.address, network.server.address) is None
    assert table.send("uav", wireless.address, network.server.address) is not None


def test_solve_record_says_what_was_solved_and_why(switches: MakeSwitches) -> None:
    ticks = iter((10.0, 10.5))
    network = network_of("fdm")
    controller = Controller(network, clock=lambda: next(ticks))
    decisions = feed(controller, switches(network), ALL_CONNECTED)
    (record,) = decisions[-1].records
    assert record.kind == "solve"
    assert record.data["trigger"] == "datapath shore connected"
    assert record.data["solve_time_s"] == 0.5
    assert record.data["relative_gap"] <= 1e-9
    rates = {(f["user"], f["via"]): f["rate_bps"] for f in record.data["path_flows"]}
    assert rates == {(u, "satcom"): pytest.approx(3e6 * 1.07) for u in ("ship1", "ship2")}


NETWORK = network_of("fdm", "ships.count=3")
EVENTS = st.one_of(
    st.builds(DatapathLost, st.sampled_from([1, 2, 3])),
    st.builds(DatapathConnected, st.sampled_from([1, 2, 3])),
    st.builds(
        PortChanged,
        st.just(SATCOM),
        st.sampled_from(["satcom-eth1", "satcom-eth4"]),
        st.booleans(),
    ),
    st.builds(
        AssociationChanged,
        st.sampled_from(["ship1", "ship2", "ship3"]),
        st.just("uav"),
        st.booleans(),
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, max_size=12))
def test_every_single_step_of_every_change_is_sound(
    switches: MakeSwitches, events: list[Event]
) -> None:
    """No flow entry ever uses a queue that is not declared; no guarantee exceeds its port."""
    table = switches(NETWORK)
    controller = Controller(NETWORK)
    capacity = {t.a_port: t.rate_bps for t in NETWORK.trunks}
    for event in [*ALL_CONNECTED, *events]:
        decision = controller.handle(table.see(event), 0.0)
        for step in table.steps(decision.change) if decision.change is not None else ():
            table.apply(step)
            declared = {(queue.port, queue.queue_id) for queue in table.queues}
            assert table.used_queues() <= declared
            for port, rate_bps in capacity.items():
                assert sum(r[0] for q, r in table.queues.items() if q.port == port) <= rate_bps
        controller.confirm(decision)
    fresh_table = switches(NETWORK)
    fresh = Controller(NETWORK)
    fresh.view = controller.view
    if controller.view.ready(NETWORK, 0.0):
        connected = DatapathConnected(1, _down_ports(controller))
        feed(fresh, fresh_table, [QueuesRead({}), connected])
        assert plain_entries(table) == plain_entries(fresh_table), "history is no matter"
        tolerance = NETWORK.settings.queue_tolerance
        for queue, rates in plain_rates(fresh_table).items():
            assert plain_rates(table)[queue] == pytest.approx(rates, rel=tolerance)
        assert plain_rates(table).keys() == plain_rates(fresh_table).keys()


def plain_entries(table: Any) -> set[object]:
    """The entries in force; numbers of queues depend on who came first."""
    return {
        (e.key, tuple(a if a[0] != "set_queue" else "set_queue" for a in e.actions))
        for e in table.entries.values()
    }


def plain_rates(table: Any) -> dict[object, tuple[int, int]]:
    return {(q.port, q.user, q.via): rates for q, rates in table.queues.items()}


def _down_ports(controller: Controller) -> frozenset[str]:
    return frozenset(port for datapath, port in controller.view.down_ports if datapath == "satcom")
