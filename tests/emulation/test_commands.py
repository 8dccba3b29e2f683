"""Rules that the commands must obey whatever the scenario; each was a fault once somewhere."""

import dataclasses

import pytest

import scenarios
from tactical.emulation import commands
from tactical.emulation.commands import Command
from tactical.emulation.plan import Plan, make_plan


def plan_of(protocol: str, *overrides: str) -> Plan:
    return make_plan(scenarios.load("direct-move", overrides).build(1), protocol)


def switch_ports(plan: Plan) -> list[str]:
    return [port.name for switch in plan.switches for port in switch.ports]


def every_command(plan: Plan) -> list[Command]:
    ports = [port for switch in plan.switches for port in switch.ports]
    found = commands.port_commands(ports) + commands.node_commands(plan)
    found += commands.offload_commands(plan) + commands.host_commands(plan)
    for medium in plan.media:
        found += commands.medium_commands(medium)
    for interfaces in plan.stations.values():
        for interface in interfaces:
            found += commands.interface_up(plan, interface)
    shaping = commands.shaping_command(ports)
    assert shaping is not None
    return [*found, shaping]


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_open_vswitch_alone_owns_the_root_qdisc_of_its_ports(protocol: str) -> None:
    plan = plan_of(protocol)
    ports = set(switch_ports(plan))
    for command in every_command(plan):
        if command.argv[0] == "tc":
            assert not ports & set(command.argv), str(command)


def test_delay_and_loss_act_once_in_each_direction() -> None:
    plan = plan_of("fdm", "satcom.loss=0.005")
    lines = [str(c) for c in commands.medium_commands(plan.media[0])]
    netem = [line for line in lines if "netem" in line]
    assert len(netem) == 2
    assert all("delay 250000us" in line and "loss 0.500000%" in line for line in netem)
    assert any(
        "air0 ingress matchall action mirred egress redirect dev satcom-air1" in x for x in lines
    )
    assert any(
        "air1 ingress matchall action mirred egress redirect dev satcom-air0" in x for x in lines
    )


def test_leaf_buffers_are_sized_before_queues_exist() -> None:
    plan = plan_of("fdm", "uav.buffer_packets=7")
    lines = [str(c) for c in commands.port_commands(plan.switch("uav").ports)]
    assert "ip link set uav-eth2 txqueuelen 7" in lines


def test_every_port_of_a_switch_gets_the_number_that_the_controller_is_told() -> None:
    plan = plan_of("fdm", "ships.count=50", "ships.spacing_m=10")
    for switch in plan.switches:
        line = str(commands.switch_command(switch))
        assert f"datapath-id={switch.dpid:016x}" in line
        for port in switch.ports:
            added = f"add-port {switch.name} {port.name} -- set Interface {port.name} "
            assert f"{added}ofport_request={port.number}" in line


def test_rates_reach_open_vswitch_as_whole_bits_per_second() -> None:
    plan = plan_of("fdm", "uav.rate_bps=1500000.0")
    command = commands.shaping_command(plan.switch("uav").ports)
    assert command is not None
    assert "other-config:max-rate=1500000" in command.argv


@pytest.mark.parametrize("protocol", ["mptcp", "fdm"])
def test_every_multipath_address_has_a_routing_table_of_its_own(protocol: str) -> None:
    plan = plan_of(protocol)
    for interfaces in plan.stations.values():
        tables = set()
        for interface in interfaces:
            lines = [str(c) for c in commands.interface_up(plan, interface)]
            (rule,) = [line for line in lines if "ip rule add" in line]
            assert f"from {interface.address} lookup" in rule
            table = rule.split("lookup ")[1].split()[0]
            assert any(f"dev {interface.name}" in x and f"table {table}" in x for x in lines)
            tables.add(table)
        assert len(tables) == len(interfaces)


def test_single_path_has_no_endpoints_rules_or_limits() -> None:
    plan = plan_of("sptcp")
    assert not any("mptcp limits" in str(c) for c in commands.node_commands(plan))
    interface = plan.stations["ship1"][0]
    assert not any("ip rule" in str(c) for c in commands.interface_up(plan, interface))
    assert "mptcpize" not in commands.transfer_command(plan, plan.transfers[0], server=False).argv


def two_access_points(protocol: str) -> Plan:
    """Direct move with two satellites, and a second access point behind the first."""
    scenario = scenarios.load("direct-move").build(1)
    (satellite,), (uav,) = scenario.satellites, scenario.access_points
    both = (uav, dataclasses.replace(uav, name="coast", channel=6))
    satellites = (satellite, dataclasses.replace(satellite, name="leo"))
    return make_plan(
        dataclasses.replace(scenario, satellites=satellites, access_points=both), protocol
    )


CHANGES = [("satcom", "uav"), ("uav", "coast"), ("coast", "satcom")]


def change(plan: Plan, before: str, after: str) -> list[str]:
    found = commands.leave_access(plan, "ship2", before, after)
    found += commands.join_access(plan, "ship2", before, after)
    assert all(command.node == "ship2" for command in found)
    return [" ".join(command.argv) for command in found]


@pytest.mark.parametrize("protocol", ["mptcp", "fdm"])
def test_endpoint_is_removed_under_the_number_it_was_added_with(protocol: str) -> None:
    plan = two_access_points(protocol)
    wireless = plan.stations["ship2"][2]
    open_endpoints: set[str] = set()
    for before, after in CHANGES:
        for line in change(plan, before, after):
            if "endpoint add" in line:
                assert f"add {wireless.address} dev ship2-wlan0 id " in line
                open_endpoints.add(line.split(" id ")[1].split()[0])
                assert len(open_endpoints) == 1, "the radio has one at a time"
            elif "endpoint delete" in line:
                open_endpoints.remove(line.split(" id ")[1])
    assert not open_endpoints


def test_what_is_told_of_an_access_point_that_was_left_does_not_close_the_next_one() -> None:
    plan = two_access_points("mptcp")
    lines = [line for line in change(plan, "uav", "coast") if "endpoint" in line]
    removed, added = (line.split(" id ")[1].split()[0] for line in lines)
    wired = {
        str(command.argv[command.argv.index("id") + 1])
        for command in commands.start_access(plan, "ship2")
        if "endpoint" in command.argv
    }
    assert len(wired) == 2
    assert len({removed, added, *wired}) == 4


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_an_access_point_is_left_before_the_next_one_is_joined(protocol: str) -> None:
    lines = change(two_access_points(protocol), "uav", "coast")
    left = lines.index("iw dev ship2-wlan0 disconnect")
    (joined,) = [n for n, line in enumerate(lines) if "connect -w coast 2437" in line]
    assert left < joined


def test_a_single_path_keeps_address_and_routes_on_its_radio() -> None:
    plan = two_access_points("sptcp")
    configured = [line for line in change(plan, "uav", "coast") if "address" in line]
    assert configured == []
    for before, after in (CHANGES[0], CHANGES[2]):
        lines = change(plan, before, after)
        old, new = (plan.station_interface("ship2", relay).name for relay in (before, after))
        down = lines.index(f"ip link set {old} down")
        up = lines.index(f"ip address replace {plan.stations['ship2'][0].address}/32 dev {new}")
        assert down < up, "never on two interfaces at once"


def test_offloads_are_off_wherever_packets_are_counted() -> None:
    plan = plan_of("fdm")
    off = {c.argv[2] for c in commands.offload_commands(plan) if "tso" in c.argv}
    assert off == {i.name for i in plan.host_interfaces if not i.wireless}


def test_held_control_messages_are_told_from_data_by_their_mark() -> None:
    plan = plan_of("fdm")
    assert ("--dscp", str(commands.DATA_DSCP)) == tuple(
        commands.transfer_command(plan, plan.transfers[0], server=False).argv[-2:]
    )
    assert commands.DATA_DSCP != 0
    assert any(
        "dst_port 5201-5202 ip_tos 0/0xfc tcp_flags 0x08/0x08 action drop" in str(c)
        for c in commands.hold_commands(plan)
    )


@pytest.mark.parametrize(("direction", "held"), [("up", "5201-5202"), ("both", "5201-5202")])
def test_control_messages_of_transfers_to_the_host_are_held(direction: str, held: str) -> None:
    plan = plan_of("mptcp", f"traffic.direction={direction}")
    assert f"dst_port {held} " in str(commands.hold_commands(plan)[1])


def test_nothing_is_held_where_the_host_sends() -> None:
    """Its iperf3 goes on until it hears of the end, so what it waits for must get through."""
    plan = plan_of("mptcp", "traffic.direction=down", "traffic.connections=3")
    assert commands.hold_commands(plan) == commands.release_commands(plan) == []
    line = " ".join(commands.transfer_command(plan, plan.transfers[0], server=False).argv)
    assert "--parallel 3 --reverse --congestion cubic" in line
