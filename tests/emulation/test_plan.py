"""The plan is the network on paper: what it says must be consistent before anything is built."""

import dataclasses
import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mobility
import scenarios
from tactical.applications.description import Description
from tactical.emulation.applications import description
from tactical.emulation.plan import Plan, PlanError, make_plan

PROTOCOLS = st.sampled_from(scenarios.PROTOCOLS)


def direct_move(*overrides: str) -> scenarios.Scenario:
    return scenarios.load("direct-move", overrides).build(seed=1)


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_direct_move_has_the_nodes_and_links_of_its_source(protocol: str) -> None:
    plan = make_plan(direct_move(), protocol)
    assert list(plan.stations) == ["ship1", "ship2"]
    assert [s.name for s in plan.switches] == ["satcom", "uav", "shore"]
    assert [(u.relay, u.rate_bps, u.delay_s) for u in plan.uplinks] == [
        ("satcom", 50_000_000, 0.25),
        ("uav", 1_000_000, 0.01),
    ]
    assert [(m.name, m.delay_s) for m in plan.media] == [("satcom-air", 0.25), ("uav-air", 0.01)]
    assert [(t.user, t.rate_bps, t.duration_s) for t in plan.transfers] == [
        ("ship1", 3_000_000, 100),
        ("ship2", 3_000_000, 100),
    ]
    assert [r.access_point for r in plan.radios] == ["uav"]


def test_single_path_user_has_one_address_that_moves() -> None:
    plan = make_plan(direct_move(), "sptcp")
    for interfaces in plan.stations.values():
        assert len({i.address for i in interfaces}) == 1
    assert not plan.multipath


@pytest.mark.parametrize("protocol", ["mptcp", "fdm"])
def test_multipath_user_has_an_address_on_every_interface(protocol: str) -> None:
    plan = make_plan(direct_move(), protocol)
    for interfaces in plan.stations.values():
        assert [(i.relay, i.wireless) for i in interfaces] == [("satcom", False), ("uav", True)]
        assert len({i.address for i in interfaces}) == 2
    assert plan.multipath


def everything_named(plan: Plan) -> list[str]:
    names = [i.name for i in plan.host_interfaces]
    names += [port.name for switch in plan.switches for port in switch.ports]
    return names + [end for medium in plan.media for end in (medium.a, medium.b)]


@given(st.integers(1, 40), PROTOCOLS)
def test_nothing_is_named_or_numbered_twice(count: int, protocol: str) -> None:
    plan = make_plan(direct_move(f"ships.count={count}", "ships.spacing_m=10.0"), protocol)
    names = everything_named(plan)
    assert len(set(names)) == len(names)
    assert all(len(name) <= 15 for name in names)
    assert sorted(plan.macs) == sorted(names)
    macs = list(plan.macs.values())
    assert len(set(macs)) == len(macs)
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs), "locally administered unicast"
    for switch in plan.switches:
        assert [port.number for port in switch.ports] == list(range(1, len(switch.ports) + 1))
    assert len({s.dpid for s in plan.switches}) == len(plan.switches)
    if protocol != "sptcp":
        addresses = [i.address for i in plan.host_interfaces]
        assert len(set(addresses)) == len(addresses)


@given(st.integers(1, 20), PROTOCOLS)
def test_every_interface_but_a_radio_is_at_the_end_of_one_wire(count: int, protocol: str) -> None:
    plan = make_plan(direct_move(f"ships.count={count}", "ships.spacing_m=10.0"), protocol)
    ends = [end[1] for end in chain.from_iterable((w.a, w.b) for w in plan.wires)]
    radios = {i.name for i in plan.host_interfaces if i.wireless}
    radios |= {r.interface for r in plan.radios}
    assert sorted(ends) == sorted(set(everything_named(plan)) - radios)


def test_only_the_ends_of_an_uplink_are_shaped() -> None:
    plan = make_plan(direct_move(), "fdm")
    shaped = {p.name for s in plan.switches for p in s.ports if p.rate_bps is not None}
    assert shaped == {end for u in plan.uplinks for end in (u.relay_port, u.shore_port)}


def test_medium_holds_all_that_can_be_under_way() -> None:
    plan = make_plan(direct_move(), "fdm")
    smallest_frame_bits = 64 * 8
    for medium, uplink in zip(plan.media, plan.uplinks, strict=True):
        assert medium.limit_packets > uplink.rate_bps * uplink.delay_s / smallest_frame_bits


def test_unknown_protocol_is_named() -> None:
    with pytest.raises(PlanError, match="'udp' is unknown; expected one of sptcp, mptcp, fdm"):
        make_plan(direct_move(), "udp")


def test_reserved_node_name_is_refused() -> None:
    scenario = direct_move()
    taken = dataclasses.replace(
        scenario,
        stations=(scenarios.Station("shore", mobility.Fixed((0.0, 0.0, 0.0))),),
        traffic=(),
    )
    with pytest.raises(PlanError, match="'shore' is used twice"):
        make_plan(taken, "fdm")


def test_scenario_without_a_satellite_is_refused() -> None:
    without = dataclasses.replace(direct_move(), satellites=())
    with pytest.raises(PlanError, match="satellites"):
        make_plan(without, "fdm")


@given(
    st.sampled_from(["bulk", "constant", "on-off", "messages", "files", "requests"]),
    st.sampled_from(["up", "down", "both"]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([0, 64000]),
)
def test_traffic_has_names_and_ports_of_its_own_and_only_what_is_meant_is_held(
    kind: str, direction: str, connections: int, ships: int, datagrams_bps: int
) -> None:
    plan = make_plan(
        direct_move(
            f"traffic.kind={kind}",
            f"traffic.direction={direction}",
            f"traffic.connections={connections}",
            f"traffic.datagrams_bps={datagrams_bps}",
            f"ships.count={ships}",
        ),
        "mptcp",
    )
    everything = [*plan.transfers, *plan.applications]
    assert len({each.name for each in everything}) == len(everything) > 0
    assert len({each.port for each in everything}) == len(everything)
    first, last = plan.held_ports or (0, 0)
    held = {each.name for each in everything if first <= each.port <= last}
    assert held == {each.name for each in plan.transfers if not each.reverse}
    followed = [plan.transfer_of(user) for user in plan.stations]
    single = kind == "bulk" and direction != "down" and connections == 1
    assert [each is not None for each in followed] == [single] * ships
    assert plan.downwards == (direction != "up" or kind == "requests")


def test_two_transfers_of_a_user_are_told_apart() -> None:
    scenario = direct_move("ships.count=1")
    plan = make_plan(dataclasses.replace(scenario, traffic=scenario.traffic * 3), "sptcp")
    assert [each.name for each in plan.transfers] == ["ship1", "ship1-bulk-up", "ship1-bulk-up.2"]
    assert plan.transfer_of("ship1") == plan.transfers[0]


def test_both_ends_of_an_application_are_told_the_same_schedule() -> None:
    plan = make_plan(direct_move("traffic.kind=files", "traffic.direction=both"), "fdm")
    for planned in plan.applications:
        told = description(plan, planned)
        assert Description(**json.loads(json.dumps(told.to_json()))) == told
        assert (tuple(told.at_s), tuple(told.size_bytes)) == planned.application.schedule()
        assert told.transport == "mptcp"
        assert told.station in {each.address for each in plan.stations[planned.application.user]}
    assert list(plan.applications_at) == ["ship1", "ship2", "host"]
    assert len(plan.applications_at["host"]) == 4


def test_more_radios_than_the_kernel_simulates_are_refused() -> None:
    fits = ["ships.count=50", "uavs.count=50"]
    assert make_plan(scenarios.load("convoy", fits).build(1), "fdm").radio_count == 100
    scenario = direct_move()
    (uav,) = scenario.access_points
    many = tuple(dataclasses.replace(uav, name=f"uav{n}") for n in range(99))
    with pytest.raises(PlanError, match="101 radios"):
        make_plan(dataclasses.replace(scenario, access_points=many), "fdm")
