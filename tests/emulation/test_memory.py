"""The memory that a virtual machine is given."""

import pytest

import scenarios
from tactical.emulation.memory import guest_memory_mib
from tactical.emulation.plan import Plan, make_plan
from tactical.host.choice import MEMORY_MIB, choose
from tactical.host.machine import HostError


def plan(name: str, *overrides: str) -> Plan:
    return make_plan(scenarios.load(name, overrides).build(1), "fdm")


def test_a_small_network_gets_what_it_always_had() -> None:
    assert guest_memory_mib([plan("direct-move")]) == MEMORY_MIB


@pytest.mark.parametrize(
    ("more", "of"),
    [
        ("ships.count=20", "stations"),
        ("uavs.count=40", "access points"),
        ("leo.count=6", "terminals"),
        ("duration_s=10000", "captures"),
    ],
)
def test_more_of_anything_needs_more(more: str, of: str) -> None:
    few = guest_memory_mib([plan("convoy", "duration_s=30")])
    assert guest_memory_mib([plan("convoy", "duration_s=30", more)]) > few, of


def test_captures_of_all_runs_fit_the_half_that_files_may_take() -> None:
    long = plan("direct-move", "duration_s=10000")
    assert guest_memory_mib([long] * 3) >= 2 * 3 * 7000


def test_a_network_too_large_for_this_machine_is_refused_before_anything_starts() -> None:
    try:
        choose("vm")
    except HostError as error:
        pytest.skip(str(error))
    with pytest.raises(HostError, match="10000000 MiB of memory for a network of this size"):
        choose("vm", memory_mib=10_000_000)
