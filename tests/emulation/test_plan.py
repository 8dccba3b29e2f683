"""The plan is the network on paper: what it says must be consistent before anything is built."""

import dataclasses
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mobility
import scenarios
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
