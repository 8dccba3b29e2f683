"""Disciplines of the switches' queues, from the controller's records."""

import pytest

import scenarios
from fdm.active_queue import CoDel
from tactical.emulation import commands
from tactical.emulation.leaf_queues import Disciplines, failed_lines
from tactical.emulation.plan import make_plan


def test_a_queue_is_the_class_that_open_vswitch_gives_it():
    batch = commands.leaf_batch({("uav-eth2", 9): CoDel(0.0537, 0.1, 8)})
    assert batch == (
        "qdisc replace dev uav-eth2 parent 1:a codel limit 8 target 53700us interval 100000us ecn\n"
    )


def test_the_target_follows_the_flows_of_the_last_solve():
    scenario = scenarios.load("direct-move").build(seed=0)
    rate = 388_268
    flows = [{"user": user, "via": "uav", "rate_bps": rate} for user in ("ship1", "ship2")]
    queue = {"port": "uav-eth2", "queue_id": 2, "min_bps": rate, "max_bps": rate}
    queues = Disciplines(make_plan(scenario, "fdm"), scenario)
    assert queues.take({"kind": "solve", "data": {"path_flows": flows}}) == {}
    assert queues.take({"kind": "queue_set", "data": queue}) == {}
    leaves = queues.take({"kind": "assignment", "data": {}})
    assert queues.take({"kind": "assignment", "data": {}}) == {}, "set once"
    assert list(leaves) == [("uav-eth2", 2)]
    leaf = leaves["uav-eth2", 2]
    assert round(leaf.target_s, 4) == 0.0537
    assert leaf.limit_packets == scenario.access_points[0].backhaul.buffer_packets


def test_each_end_of_a_link_has_the_target_of_its_own_direction():
    scenario = scenarios.load("direct-move").build(seed=0)
    plan = make_plan(scenario, "fdm")
    uplink = next(each for each in plan.uplinks if each.relay == "uav")
    up, down = (
        [{"user": "ship1", "via": "uav", "rate_bps": rate_bps}] for rate_bps in (100e3, 700e3)
    )
    queue = {"queue_id": 2, "min_bps": 100_000, "max_bps": 1_000_000}
    queues = Disciplines(plan, scenario)
    queues.take({"kind": "solve", "data": {"path_flows": up, "down_flows": down}})
    for port in (uplink.relay_port, uplink.shore_port):
        queues.take({"kind": "queue_set", "data": {**queue, "port": port}})
    leaves = queues.take({"kind": "assignment", "data": {}})
    # 12000 bit / (1 Mbit/s - flow); at 100 kbit/s one packet at the queue's own rate is longer.
    assert leaves[uplink.relay_port, 2].target_s == pytest.approx(12000 / 900e3, rel=0.02)
    assert leaves[uplink.shore_port, 2].target_s == pytest.approx(12000 / 300e3, rel=0.02)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", ((), ())),
        ("Error: Specified class not found.\nCommand failed -:2\n", ((2,), ())),
        (
            "Error: Specified class not found.\nCommand failed -:1\n"
            "Error: Invalid limit.\nCommand failed -:3\nCommand failed -:4\n",
            ((1,), (3, 4)),
        ),
    ],
)
def test_a_queue_that_is_gone_is_no_fault(said: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert failed_lines(said) == tuple(frozenset(lines) for lines in expected)
