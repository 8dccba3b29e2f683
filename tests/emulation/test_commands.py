"""Rules that the commands must obey whatever the scenario; each was a fault once somewhere."""

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
    assert "mptcpize" not in commands.transfer_command(plan, "ship1", server=False).argv


def test_endpoint_is_removed_under_the_number_it_was_added_with() -> None:
    plan = plan_of("mptcp")
    wireless = plan.stations["ship2"][1]
    added = commands.endpoint_added(plan, wireless).argv
    removed = commands.endpoint_removed(plan, wireless).argv
    assert added[added.index("id") + 1] == removed[removed.index("id") + 1]
    assert wireless.address in added


def test_offloads_are_off_wherever_packets_are_counted() -> None:
    plan = plan_of("fdm")
    off = {c.argv[2] for c in commands.offload_commands(plan) if "tso" in c.argv}
    assert off == {i.name for i in plan.host_interfaces if not i.wireless}


def test_held_control_messages_are_told_from_data_by_their_mark() -> None:
    plan = plan_of("fdm")
    assert ("--dscp", str(commands.DATA_DSCP)) == tuple(
        commands.transfer_command(plan, "ship1", server=False).argv[-2:]
    )
    assert commands.DATA_DSCP != 0
    assert any(
        "ip_tos 0/0xfc tcp_flags 0x08/0x08 action drop" in str(c)
        for c in commands.hold_commands(plan)
    )
