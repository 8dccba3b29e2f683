"""Links that change in a run: what is set when, and what the controller makes of it."""

import dataclasses
from pathlib import Path

import pytest

import scenarios
from scenarios import LinkState, Scenario, ScenarioError
from tactical.controller.events import CapacitySet
from tactical.controller.reports import read_report
from tactical.emulation import commands
from tactical.emulation.control import controlled_network
from tactical.emulation.leaf_queues import Disciplines
from tactical.emulation.plan import make_plan
from tactical.moment import moment

CLEAR = LinkState(0.0, 4e6, 0.25)


def changing(*profile: LinkState) -> Scenario:
    """Contended, whose satellite has a profile."""
    scenario = scenarios.load("contended").build(1)
    (satellite,) = scenario.satellites
    link = dataclasses.replace(satellite.backhaul, profile=profile)
    return dataclasses.replace(
        scenario, satellites=(dataclasses.replace(satellite, backhaul=link),)
    )


def lines(before: LinkState, after: LinkState) -> list[str]:
    plan = make_plan(changing(before, after), "fdm")
    return [str(command) for command in commands.link_commands(plan, "satcom", before, after)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (LinkState(5.0, 4e6, 0.25), []),
        (
            LinkState(5.0, 4e6, 0.2501),
            [
                "[satcom-air] tc qdisc change dev satcom-air0 root netem limit 2953 delay 250100us",
                "[satcom-air] tc qdisc change dev satcom-air1 root netem limit 2953 delay 250100us",
            ],
        ),
        (
            LinkState(5.0, 2.5e6, 0.25),
            [
                "ovs-vsctl -- set QoS satcom-eth3 other-config:max-rate=2500000 "
                "-- set QoS shore-eth2 other-config:max-rate=2500000"
            ],
        ),
    ],
)
def test_only_what_differs_is_set(after: LinkState, expected: list[str]) -> None:
    assert lines(CLEAR, after) == expected


def test_a_link_that_is_down_loses_everything_and_keeps_its_rate() -> None:
    down = lines(CLEAR, LinkState(5.0, 4e6, 0.25, 1.0))
    assert len(down) == 2
    assert all(line.endswith("loss 100.000000%") for line in down)
    up = lines(LinkState(5.0, 4e6, 0.25, 1.0), LinkState(6.0, 4e6, 0.25))
    assert len(up) == 2
    assert not any("loss" in line for line in up), "tc-netem(8) takes what is not named for none"


def test_the_delay_line_has_room_for_the_fastest_and_the_longest_of_a_profile() -> None:
    plan = make_plan(changing(LinkState(5.0, 8e6, 0.1), LinkState(6.0, 4e6, 0.5)), "fdm")
    assert plan.medium("satcom").limit_packets >= 4e6 * 0.5 / 512
    shaping = commands.shaping_command(plan.switch("satcom").ports)
    assert shaping is not None
    assert "other-config:max-rate=4000000" in shaping.argv, "the rate at the start"
    assert "other-config:max-rate=8000000" in shaping.argv, "what the default queue may take"


def test_times_of_a_profile_increase() -> None:
    with pytest.raises(ScenarioError, match="must be later than 5 s"):
        changing(LinkState(5.0, 4e6, 0.25), LinkState(5.0, 3e6, 0.25))
    link = changing(LinkState(5.0, 3e6, 0.25)).satellites[0].backhaul
    assert [link.at(t).rate_bps for t in (0.0, 4.9, 5.0, 1e9)] == [4e6, 4e6, 3e6, 3e6]


def test_the_controller_solves_for_what_the_link_is_then() -> None:
    scenario = changing(LinkState(30.0, 2e6, 0.26), LinkState(40.0, 2e6, 0.26, 1.0))
    seen = {
        time_s: next(
            ((link.capacity_bps, link.delay_s)
             for link in moment(scenario, time_s).instance.network.links if link.tail == "satcom"),
            None,
        )
        for time_s in (0.0, 35.0, 45.0)
    }  # fmt: skip
    assert seen == {0.0: (4e6, 0.25), 35.0: (2e6, 0.26), 45.0: None}


def test_the_report_of_a_link_is_its_capacity_and_delay() -> None:
    scenario = scenarios.load("direct-move").build(1)
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    line = '{"trunk": "satcom:satcom-eth3", "rate_bps": 2e6, "delay_s": 0.26}'
    assert read_report(line, 0.0, network) == CapacitySet("satcom:satcom-eth3", 2e6, 0.26)
    with pytest.raises(ValueError, match="expected trunk, rate_bps and delay_s"):
        read_report('{"trunk": "satcom:satcom-eth3", "rate_bps": 2e6}', 0.0, network)
    with pytest.raises(ValueError, match="delay_s: -1"):
        read_report('{"trunk": "satcom:satcom-eth3", "rate_bps": 2e6, "delay_s": -1}', 0.0, network)


def test_disciplines_of_queues_follow_the_link(tmp_path: Path) -> None:
    scenario = changing(LinkState(5.0, 2e6, 0.4))
    queue = {"port": "satcom-eth3", "queue_id": 2, "min_bps": 1_000_000, "max_bps": 2_000_000}
    state = {"rate_bps": 2e6, "delay_s": 0.4, "time_s": 5.0, "loss": 0.0}

    def interval_s(queues: Disciplines) -> float:
        queues.take({"kind": "queue_set", "data": queue})
        (leaf,) = queues.take({"kind": "assignment", "data": {}}).values()
        return leaf.interval_s

    queues = Disciplines(make_plan(scenario, "fdm"), scenario)
    assert interval_s(queues) == pytest.approx(0.5, abs=0.02)
    queues.take({"kind": "link_change", "node": "satcom", "data": state})
    assert interval_s(queues) == pytest.approx(0.8, abs=0.02)
