"""The memory that a virtual machine is given."""

import pytest

import scenarios
from tactical.emulation.memory import guest_memory_mib
from tactical.emulation.plan import Plan, make_plan
from tactical.host.hermetic import HermeticMachine
from tactical.host.machine import HostError
from tactical.host.virtual import VirtualMachine

MACHINE = VirtualMachine("6.1.0", kvm=False)


def plan(name: str, *overrides: str) -> Plan:
    return make_plan(scenarios.load(name, overrides).build(1), "fdm")


def test_a_small_network_gets_what_it_always_had() -> None:
    assert guest_memory_mib([plan("direct-move")]) == MACHINE.memory_mib


@pytest.mark.parametrize(
    ("more", "of"),
    [
        ("ships.count=20", "stations"),
        ("uavs.count=40", "access points"),
        ("leo.count=6", "terminals"),
    ],
)
def test_more_of_anything_needs_more(more: str, of: str) -> None:
    few = guest_memory_mib([plan("convoy", "duration_s=30")])
    assert guest_memory_mib([plan("convoy", "duration_s=30", more)]) > few, of


def test_captures_take_none_of_it() -> None:
    long, short = plan("direct-move", "duration_s=10000"), plan("direct-move")
    assert guest_memory_mib([long]) == guest_memory_mib([short])


@pytest.mark.parametrize("machine", [MACHINE, HermeticMachine("6.1.0")])
def test_a_network_too_large_for_this_machine_is_refused_before_anything_starts(
    machine: VirtualMachine | HermeticMachine,
) -> None:
    assert machine.with_memory(4096).memory_mib == 4096
    assert machine.with_memory(64) == machine
    with pytest.raises(HostError, match="needs 10000000 MiB of memory, and this machine has"):
        machine.with_memory(10_000_000)


def test_what_it_is_given_is_what_its_command_asks_for() -> None:
    assert MACHINE.with_memory(4096).command(["true"]).count("--memory=4096M") == 1
