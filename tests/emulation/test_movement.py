"""What the commands of all handovers of a run add up to: radios, addresses, endpoints."""

import re

import pytest

import scenarios
from scenarios import Scenario
from tactical.emulation import commands
from tactical.emulation.plan import Plan, make_plan
from tactical.moment import moment

NAMES = ["random-walk", "ship-to-shore", "convoy"]


class Kernel:
    """What is configured on a station, as told by the commands it was given."""

    def __init__(self) -> None:
        self.joined: str | None = None
        self.addresses: set[tuple[str, str]] = set()
        self.endpoints: dict[str, str] = {}

    def run(self, line: str) -> None:
        """Follow one command, and refuse what the kernel would refuse."""
        if found := re.search(r"\biw dev \S+ connect(?: -w)? (\S+)", line):
            assert self.joined is None, "a radio has one association"
            self.joined = found[1]
        elif re.search(r"^iw dev \S+ disconnect", line):
            assert self.joined is not None, "nothing to leave"
            self.joined = None
        elif found := re.search(r"^ip address replace (\S+) dev (\S+)", line):
            self.addresses.add((found[2], found[1]))
        elif found := re.search(r"^ip address flush dev (\S+)", line):
            self.addresses = {each for each in self.addresses if each[0] != found[1]}
        elif found := re.search(r"^ip mptcp endpoint add (\S+) dev \S+ id (\S+)", line):
            assert found[1] not in self.endpoints.values(), "the kernel takes an address once"
            assert found[2] not in self.endpoints
            self.endpoints[found[2]] = found[1]
        elif found := re.search(r"^ip mptcp endpoint delete id (\S+)", line):
            del self.endpoints[found[1]]


def followed(scenario: Scenario, plan: Plan) -> dict[str, Kernel]:
    """What is configured at the end, checked after every handover."""
    kernels = {station: Kernel() for station in plan.stations}
    for station, kernel in kernels.items():
        for command in commands.start_access(plan, station):
            kernel.run(" ".join(command.argv))
    access_points = {each.name for each in scenario.access_points}
    for _, station, before, after in scenario.handovers():
        kernel = kernels[station]
        for command in (
            *commands.leave_access(plan, station, before, after),
            *commands.join_access(plan, station, before, after),
        ):
            assert command.node == station
            kernel.run(" ".join(command.argv))
        assert kernel.joined == (after if after in access_points else None)
        if plan.multipath:
            assert len(kernel.endpoints) == len(scenario.satellites) + (after in access_points)
        else:
            assert [name for name, _ in kernel.addresses] == [
                plan.station_interface(station, after).name
            ]
    return kernels


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_every_handover_leaves_a_station_with_what_its_access_needs(name, protocol):
    scenario = scenarios.load(name).build(seed=1)
    kernels = followed(scenario, make_plan(scenario, protocol))
    last = {change.station: change.after for change in scenario.handovers()}
    radios = {each.name for each in scenario.access_points}
    assert {s: k.joined for s, k in kernels.items() if k.joined} == {
        s: relay for s, relay in last.items() if relay in radios
    }


def test_subflows_stay_below_the_limit_of_the_kernel():
    scenario = scenarios.load("convoy").build(seed=1)
    for interfaces in make_plan(scenario, "fdm").stations.values():
        assert len(interfaces) <= commands.MPTCP_SUBFLOW_LIMIT


def test_the_controller_solves_for_the_one_access_point_that_a_radio_uses():
    scenario = scenarios.load("ship-to-shore").build(seed=1)
    for time_s, relay in ((10.0, None), (70.0, "uav"), (100.0, "coast")):
        links = moment(scenario, time_s).instance.network.links
        used = {link.head for link in links if link.tail == "ship1"}
        assert used == ({"satcom"} if relay is None else {"satcom", relay})
