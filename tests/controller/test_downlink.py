"""What the server sends is allocated like what it gets: at the other end of every trunk."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scenarios
from tactical.controller.events import (
    AssociationChanged,
    CapacitySet,
    DatapathConnected,
    QueuesRead,
)
from tactical.controller.logic import Controller
from tactical.controller.network import ControlledNetwork, Demand, Settings, load, save
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan

MakeSwitches = Callable[[ControlledNetwork], Any]
USERS = ("ship1", "ship2")


def direct_move(*demands: tuple[float, float]) -> ControlledNetwork:
    scenario = scenarios.load("direct-move").build(1)
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    return dataclasses.replace(
        network,
        settings=Settings(queue_mode="work-conserving"),
        demands=tuple(Demand(user, *both) for user, both in zip(USERS, demands, strict=True)),
    )


def deployed(network: ControlledNetwork, make: MakeSwitches) -> tuple[Controller, Any]:
    """Both ships at the satellite and at the UAV, and everything deployed."""
    controller, table = Controller(network), make(network)
    for event in (
        QueuesRead({}),
        *(DatapathConnected(d.dpid) for d in network.datapaths),
        *(AssociationChanged(user, "uav", True) for user in USERS),
    ):
        handle(controller, table, event)
    return controller, table


def handle(controller: Controller, table: Any, event: Any, now_s: float = 0.0) -> Any:
    decision = controller.handle(table.see(event), now_s)
    if decision.change is not None:
        for step in table.steps(decision.change):
            table.apply(step)
    controller.confirm(decision)
    return decision


def rates(table: Any, up: bool) -> dict[tuple[str, str], tuple[int, int]]:
    """(user, via) → rates of its queue at the relay's end, or at the shore's."""
    return {
        (q.user, q.via): rate for q, rate in table.queues.items() if (q.datapath == q.via) == up
    }


def address(network: ControlledNetwork, user: str, via: str) -> str:
    return next(a.address for a in network.attachments if (a.user, a.datapath) == (user, via))


def test_the_same_demand_both_ways_gets_the_same_rates_both_ways(switches: MakeSwitches) -> None:
    network = direct_move((3e6, 3e6), (2e6, 2e6))
    _, table = deployed(network, switches)
    assert rates(table, up=True) == rates(table, up=False)
    for user in USERS:
        for via in ("satcom", "uav"):
            here = address(network, user, via)
            up = table.send(via, here, network.server.address)
            down = table.send(network.server.datapath, network.server.address, here)
            assert [len(up.queues), len(down.queues)] == [1, 1]
            assert (down.datapath, up.datapath) == (via, network.server.datapath)
            assert {up.queues[0][0].split("-")[0], down.queues[0][0].split("-")[0]} == {
                via,
                "shore",
            }


def test_without_anybody_who_gets_data_nothing_is_different_downwards(
    switches: MakeSwitches,
) -> None:
    network = direct_move((3e6, 0.0), (2e6, 0.0))
    _, table = deployed(network, switches)
    assert rates(table, up=False) == {}
    here = address(network, "ship1", "uav")
    down = table.send(network.server.datapath, network.server.address, here)
    assert down.queues == ()


@given(
    st.lists(
        st.tuples(st.floats(0, 30e6), st.floats(1e3, 30e6)),
        min_size=len(USERS),
        max_size=len(USERS),
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_port_is_promised_more_than_it_has(
    switches: MakeSwitches, demands: list[tuple[float, float]]
) -> None:
    network = direct_move(*demands)
    _, table = deployed(network, switches)
    for trunk in network.trunks:
        for port in (trunk.a_port, trunk.b_port):
            promised = sum(low for q, (low, _) in table.queues.items() if q.port == port)
            assert promised <= network.capacity_share * trunk.rate_bps


def test_less_capacity_is_answered_where_only_what_the_server_sends_is_too_much(
    switches: MakeSwitches,
) -> None:
    network = direct_move((1e4, 20e6), (1e4, 20e6))
    controller, table = deployed(network, switches)
    before = rates(table, up=False)["ship1", "satcom"]
    satcom = next(t for t in network.trunks if t.a_datapath == "satcom")
    decision = handle(controller, table, CapacitySet(satcom.name, 10e6), now_s=20.0)
    assert "solve" in [record.kind for record in decision.records]
    after = rates(table, up=False)["ship1", "satcom"]
    assert after[0] < 5.1e6 < before[0]


def test_a_description_without_it_is_read_as_before(tmp_path: Any) -> None:
    network = direct_move((3e6, 0.0), (2e6, 1e6))
    save(network, tmp_path / "network.json")
    text = (tmp_path / "network.json").read_text().replace(',\n   "down_bps": 0.0', "")
    assert text.count("down_bps") == 1
    (tmp_path / "network.json").write_text(text)
    assert load(tmp_path / "network.json") == network


@pytest.mark.parametrize("direction", ["up", "down", "both"])
def test_only_who_gets_data_has_a_demand_downwards(direction: str) -> None:
    scenario = scenarios.load("direct-move", [f"traffic.direction={direction}"]).build(1)
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    for demand in network.demands:
        assert (demand.down_bps > 0) == (direction != "up")
        assert demand.rate_bps > 0
