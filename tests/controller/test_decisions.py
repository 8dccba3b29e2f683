"""When the controller solves, keeps or prepares; policies; on pure-Python switches."""

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import scenarios
from fdm.queues import QueueRate
from tactical.controller import policy
from tactical.controller.allocation import Allocation, Situation
from tactical.controller.deadline import Deadline
from tactical.controller.events import (
    AssociationChanged,
    AssociationExpected,
    CapacitySet,
    Counted,
    CountersRead,
    DatapathConnected,
    DemandSet,
    DistanceMeasured,
    Event,
    PolicySet,
    QueuesRead,
    RoleChanged,
    SegmentHeld,
    SignalMeasured,
    Tick,
)
from tactical.controller.logic import Controller, Decision, SolveError
from tactical.controller.network import (
    Attachment,
    ControlledNetwork,
    Datapath,
    Demand,
    Port,
    Server,
    Settings,
    Trunk,
)
from tactical.controller.policy import Policy
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan
from tests.controller.campaign import campaign, moves

MakeSwitches = Callable[[ControlledNetwork], Any]
USERS = ("ship1", "ship2")
UAV = 2


def direct_move(protocol: str, *overrides: str, **settings: Any) -> ControlledNetwork:
    scenario = scenarios.load("direct-move", overrides).build(1)
    network = controlled_network(make_plan(scenario, protocol), scenario)
    return dataclasses.replace(network, settings=Settings(**settings))


def connected(network: ControlledNetwork) -> list[Event]:
    return [QueuesRead({}), *(DatapathConnected(d.dpid) for d in network.datapaths)]


def feed(
    controller: Controller, table: Any, events: Sequence[Event], now_s: float = 0.0
) -> list[Decision]:
    decisions = []
    for event in events:
        decision = controller.handle(table.see(event), now_s)
        if decision.change is not None:
            for step in table.steps(decision.change):
                table.apply(step)
        controller.confirm(decision)
        decisions.append(decision)
    return decisions


def kinds(decision: Decision) -> list[str]:
    return [record.kind for record in decision.records]


def rates_of(table: Any, user: str) -> dict[str, tuple[int, int]]:
    return {q.via: rates for q, rates in table.queues.items() if q.user == user}


def test_little_changes_are_kept_and_large_ones_wait_for_the_dwell_time(
    switches: MakeSwitches,
) -> None:
    network = direct_move("fdm", dwell_s=10.0, demand_threshold=0.1)
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    described = network.demands[0].rate_bps
    (little,) = feed(controller, table, [DemandSet("ship1", 1.05 * described)], 100.0)
    assert "solve" not in kinds(little)
    (large,) = feed(controller, table, [DemandSet("ship1", 0.5 * described)], 101.0)
    assert "solve" in kinds(large)
    (early,) = feed(controller, table, [DemandSet("ship1", described)], 105.0)
    assert "solve" not in kinds(early), "it still fits, and is young"
    ticks = [feed(controller, table, [Tick()], 101.0 + s)[0] for s in (5.5, 8.0, 11.0, 17.0)]
    assert ["solve" in kinds(tick) for tick in ticks] == [False, False, True, False]
    assert ticks[2].trigger == "periodic"


def test_capacity_that_no_longer_carries_is_answered_at_once(switches: MakeSwitches) -> None:
    network = direct_move("fdm", dwell_s=1e6)
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    (more,) = feed(controller, table, [CapacitySet("satcom:satcom-eth3", 60e6)], 1.0)
    assert more.change is None
    (less,) = feed(controller, table, [CapacitySet("satcom:satcom-eth3", 2e6)], 1.0)
    assert "solve" in kinds(less)
    assert sum(low for low, _ in table.queues.values()) <= 2e6
    (unknown,) = feed(controller, table, [CapacitySet("nowhere:eth0", 1.0)], 1.0)
    assert unknown.change is None


@pytest.mark.parametrize(
    ("mode", "most_bps"), [("work-conserving", 50e6), ("overflow", 64e3), ("strict", 64e3)]
)
def test_a_path_that_the_optimum_does_not_use_holds_up_nobody_who_does(
    switches: MakeSwitches, mode: str, most_bps: float
) -> None:
    scenario = scenarios.load("ship-to-shore").build(1)
    described = controlled_network(make_plan(scenario, "fdm"), scenario)
    network = dataclasses.replace(described, settings=Settings(queue_mode=mode))
    table, controller = switches(network), Controller(network)
    joined = [AssociationChanged(user, "coast", True) for user in ("ship1", "ship2")]
    feed(controller, table, [*connected(network), *joined])
    for user in ("ship1", "ship2"):
        rates = rates_of(table, user)
        assert rates["coast"][0] == pytest.approx(3.21e6)
        assert rates["satcom"] == (0, most_bps)


def test_measured_demand_follows_the_counters(switches: MakeSwitches) -> None:
    network = direct_move("fdm", measured_demand=True, dwell_s=0.0, smoothing_s=1.0)
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    assert rates_of(table, "ship1")["satcom"][0] == pytest.approx(3.21e6, rel=0.01)
    for second in range(1, 20):
        counted = Counted(("subflow", "ship1", "satcom"), second * 100_000)
        feed(controller, table, [CountersRead((counted,)), Tick()], float(second))
    # 0.8 Mbit/s are sent; a quarter more is allowed for.
    assert rates_of(table, "ship1")["satcom"][0] == pytest.approx(1e6, rel=0.02)
    assert rates_of(table, "ship2")["satcom"][0] == pytest.approx(3.21e6, rel=0.01)
    # Reset counters are no traffic, and an idle user can begin again.
    for second in range(20, 60):
        counted = Counted(("subflow", "ship1", "satcom"), 0)
        feed(controller, table, [CountersRead((counted,)), Tick()], float(second))
    assert rates_of(table, "ship1")["satcom"][0] == pytest.approx(0.321e6, rel=0.02)


def test_failed_solve_leaves_the_last_allocation_and_is_tried_again(
    switches: MakeSwitches,
) -> None:
    network = direct_move("fdm", period_s=5.0)
    broken = False

    def allocate(policy: Policy, situation: Situation) -> Allocation:
        if broken:
            raise SolveError("it took longer than 10 s")
        return policy.allocate(situation)

    table, controller = switches(network), Controller(network, allocate=allocate)
    feed(controller, table, connected(network))
    before, broken = (dict(table.entries), dict(table.queues)), True
    (failed,) = feed(controller, table, [AssociationChanged("ship1", "uav", True)], 50.0)
    (error,) = failed.records
    assert "longer than 10 s; the allocation in force stays" in error.data["message"]
    assert (table.entries, table.queues) == before
    decisions = [feed(controller, table, [Tick()], 50.0 + s)[0] for s in (1.0, 2.0)]
    broken = False
    decisions += [feed(controller, table, [Tick()], 50.0 + s)[0] for s in (6.0, 8.0)]
    assert [kinds(d) for d in decisions] == [[], [], ["solve"], []]
    assert set(rates_of(table, "ship1")) == {"satcom", "uav"}


def test_late_solve_is_not_waited_for_and_its_answer_is_used_later() -> None:
    network = direct_move("fdm")
    go = threading.Event()

    class Slow(Policy):
        def allocate(self, situation: Situation) -> Allocation:
            go.wait(30.0)
            return Allocation(())

    slow, situation = Slow(), Situation(network, ())
    deadline = Deadline(0.01)
    with pytest.raises(SolveError, match=r"longer than 0\.01 s"):
        deadline(slow, situation)
    with pytest.raises(SolveError, match="still runs"):
        deadline(slow, situation)
    assert deadline._late is not None
    go.set()
    deadline._late.done.wait(30.0)
    assert deadline(slow, situation) == Allocation(())


def test_expected_end_of_an_association_empties_the_path_first(switches: MakeSwitches) -> None:
    network = direct_move("fdm", lead_time_s=2.0)
    table, controller = switches(network), Controller(network)
    joins = [AssociationChanged(user, "uav", True) for user in ("ship1", "ship2")]
    feed(controller, table, [*connected(network), *joins])
    feed(controller, table, [AssociationExpected("ship1", "uav", False, 20.0)], 10.0)
    assert controller.next_moment_s(10.0) == 18.0
    assert rates_of(table, "ship1")["uav"][0] > 0
    (due,) = feed(controller, table, [Tick()], 18.0)
    assert kinds(due) == ["solve"]
    (told,) = due.outcome
    assert told.kind == "subflow_priority"
    assert told.data == {
        "user": "ship1",
        "via": "uav",
        "backup": True,
        "expected_in_s": 2.0,
    }
    assert rates_of(table, "ship1")["uav"] == (0, 1_000_000), "what is under way need not wait"
    assert rates_of(table, "ship2")["uav"][0] == pytest.approx(776_537, rel=0.01)
    a = next(a for a in network.attachments if a.user == "ship1" and a.wireless)
    assert table.send("uav", a.address, network.server.address) is not None
    (gone,) = feed(controller, table, [AssociationChanged("ship1", "uav", False)], 20.5)
    assert table.send("uav", a.address, network.server.address) is None
    assert not gone.change.raised, "everything else was right already"


def told(decisions: Sequence[Decision]) -> list[tuple[str, str, bool]]:
    return [
        (record.data["user"], record.data["via"], record.data["backup"])
        for decision in decisions
        for record in decision.outcome
    ]


def test_a_subflow_that_the_optimum_does_not_use_is_a_backup_while_that_is_so(
    switches: MakeSwitches,
) -> None:
    """A UAV that carries all of it in little time leaves nothing for the satellite."""
    network = direct_move("fdm", "uav.rate_bps=20000000", dwell_s=0.0)
    table, controller = switches(network), Controller(network)
    assert told(feed(controller, table, connected(network))) == []
    joined = feed(controller, table, [AssociationChanged("ship1", "uav", True)])
    assert told(joined) == [("ship1", "satcom", True)]
    narrow = feed(controller, table, [CapacitySet("uav:uav-eth2", 1e6)])
    assert told(narrow) == [("ship1", "satcom", False)]
    wide = feed(controller, table, [CapacitySet("uav:uav-eth2", 2e7)])
    assert told(wide) == [("ship1", "satcom", True)]
    after = Controller(network)
    assert ("ship2", "satcom", False) in told(feed(after, table, connected(network))), (
        "what an earlier controller said is not known"
    )
    left = feed(controller, table, [AssociationChanged("ship1", "uav", False)])
    assert told(left) == [("ship1", "satcom", False)], "the only path is no backup"


def test_a_segment_that_comes_before_its_entries_is_sent_on_once_they_are_there(
    switches: MakeSwitches,
) -> None:
    network = direct_move("fdm")
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    a, b = (next(a for a in network.attachments if a.user == user and a.wireless) for user in USERS)
    early = [SegmentHeld(UAV, 1, each.address, bytes([n])) for n, each in enumerate((a, b, b))]
    feed(controller, table, early[:2], 10.0)
    assert controller.released(10.0) == ()
    feed(controller, table, [AssociationChanged("ship1", "uav", True)], 10.1)
    assert controller.released(10.1) == (early[0],)
    assert controller.released(10.2) == (), "once"
    feed(controller, table, [AssociationChanged("ship2", "uav", True)], 12.0)
    assert controller.released(12.0) == (), "its sender has sent it again by now"
    feed(controller, table, [early[2]], 12.1)
    assert controller.released(12.1) == (early[2],), "entries are there"


def test_expectation_that_does_not_come_true_is_given_up(switches: MakeSwitches) -> None:
    network = direct_move("fdm")
    table, controller = switches(network), Controller(network)
    feed(controller, table, [*connected(network), AssociationChanged("ship1", "uav", True)])
    before = rates_of(table, "ship1")["uav"]
    feed(controller, table, [AssociationExpected("ship1", "uav", False, 1.0)], 0.0)
    assert rates_of(table, "ship1")["uav"][0] == 0
    feed(controller, table, [Tick()], 7.0)
    assert rates_of(table, "ship1")["uav"] == before


def test_expected_association_finds_its_entries_waiting(switches: MakeSwitches) -> None:
    network = direct_move("fdm")
    table, controller = switches(network), Controller(network)
    feed(controller, table, [*connected(network), AssociationExpected("ship1", "uav", True, 1.0)])
    a = next(a for a in network.attachments if a.user == "ship1" and a.wireless)
    there = table.send("uav", a.address, network.server.address)
    assert (there.datapath, rates_of(table, "ship1")["uav"]) == ("shore", (0, 1_000_000))
    (joined,) = feed(controller, table, [AssociationChanged("ship1", "uav", True)], 1.0)
    assert not joined.change.added
    assert rates_of(table, "ship1")["uav"][0] == pytest.approx(776_537, rel=0.01)


def test_whoever_has_no_other_path_keeps_the_one_that_will_go(switches: MakeSwitches) -> None:
    network = direct_move("fdm")
    only = tuple(a for a in network.attachments if a.wireless or a.user != "ship1")
    network = dataclasses.replace(network, attachments=only)
    table, controller = switches(network), Controller(network)
    feed(controller, table, [*connected(network), AssociationChanged("ship1", "uav", True)])
    before = rates_of(table, "ship1")
    feed(controller, table, [AssociationExpected("ship1", "uav", False, 1.0)])
    assert rates_of(table, "ship1") == before


@pytest.mark.parametrize(
    "measured",
    [
        lambda s: SignalMeasured("ship1", "uav", -72.0 - s),
        lambda s: DistanceMeasured("ship1", "uav", 900.0 + 10.0 * s, 1000.0),
    ],
    ids=["signal", "distance"],
)
def test_trend_leads_to_an_expectation(
    measured: Callable[[int], Event], switches: MakeSwitches
) -> None:
    """Both lose 1 of 10 units a second: the association is over at 10 s."""
    network = direct_move("fdm", lead_time_s=2.0)
    table, controller = switches(network), Controller(network)
    feed(controller, table, [*connected(network), AssociationChanged("ship1", "uav", True)])
    backup_since = []
    for second in range(10):
        (decision,) = feed(controller, table, [measured(second)], float(second))
        backup_since += [second for told in decision.outcome if told.data["backup"]]
    assert backup_since == [8]


def test_slave_watches_and_changes_nothing_until_it_is_master(switches: MakeSwitches) -> None:
    network = direct_move("fdm")
    table, controller = switches(network), Controller(network, elected=True)
    joined = AssociationChanged("ship1", "uav", True)
    decisions = feed(controller, table, [*connected(network), joined, Tick()])
    assert all(d.change is None and not d.records for d in decisions)
    (now_master,) = feed(controller, table, [RoleChanged(True)])
    assert kinds(now_master) == ["role", "solve"]
    assert set(rates_of(table, "ship1")) == {"satcom", "uav"}


def test_new_master_learns_from_the_entries_who_is_associated(switches: MakeSwitches) -> None:
    network = direct_move("fdm")
    table = switches(network)
    master, standby = Controller(network), Controller(network, elected=True)
    feed(master, table, connected(network))
    for event in connected(network):
        standby.handle(table.see(event), 0.0)
    joins = [AssociationChanged(user, "uav", True) for user in ("ship1", "ship2")]
    feed(master, table, joins)
    standby.handle(AssociationChanged("ship2", "uav", False), 0.0)  # it knows better
    for event in [*connected(network)[1:], QueuesRead(dict(_queues_of(table)))]:
        standby.handle(table.see(event), 1.0)
    (decision,) = feed(standby, table, [RoleChanged(True)], 1.0)
    assert standby.view.associated == {("ship1", "uav")}
    assert {dict(entry.match)["ipv4_src"] for entry in decision.change.removed} >= {"10.0.2.2"}


def _queues_of(table: Any) -> Any:
    return ((queue, QueueRate(*rates)) for queue, rates in table.queues.items())


def mesh() -> ControlledNetwork:
    """One user's address at s; the server at t; two ways of two hops, one of them 3 times as wide,
    and a way of one hop that is slow: s - a - t, s - b - t, s - t."""
    trunks = (
        Trunk("s", "s2", "a", "a1", 10e6, 0.01),
        Trunk("a", "a2", "t", "t2", 10e6, 0.01),
        Trunk("s", "s3", "b", "b1", 30e6, 0.02),
        Trunk("b", "b2", "t", "t3", 30e6, 0.02),
    )
    names = {"s": 3, "a": 2, "b": 2, "t": 3}
    users = [f"u{n}" for n in range(40)]
    return ControlledNetwork(
        policy="ecmp",
        datapaths=tuple(Datapath(name, n) for n, name in enumerate(names, start=1)),
        ports=tuple(Port(d, f"{d}{n}", n) for d, most in names.items() for n in range(1, most + 1)),
        attachments=tuple(
            Attachment(
                u, f"{u}-eth0", f"10.0.0.{n}", f"02:00:00:00:00:{n:02x}", "s", "s1", 1e8, False
            )
            for n, u in enumerate(users, start=1)
        ),
        trunks=trunks,
        server=Server("host", "10.9.0.1", "02:00:00:09:00:01", "t", "t1", 1e9),
        demands=tuple(Demand(u, 0.5e6) for u in users),
        mean_packet_bits=12000.0,
        delay_coefficient=1.0,
        capacity_share=0.95,
    )


@pytest.mark.parametrize(
    ("name", "through_b", "queues"),
    [("shortest", 0, 0), ("ecmp", 20, 0), ("wcmp", 30, 0), ("static", 0, 80), ("fdm", 28, 80)],
)
def test_policies_spread_subflows_as_they_promise(
    name: str, through_b: int, queues: int, switches: MakeSwitches
) -> None:
    network = dataclasses.replace(mesh(), policy=name)
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    used = 0
    for a in network.attachments:
        there = table.send("s", a.address, network.server.address)
        assert (there.datapath, there.port) == ("t", "t1")
        back = table.send("t", network.server.address, a.address)
        assert (back.datapath, back.port, back.eth_dst) == ("s", "s1", a.mac)
        assert controller.allocation is not None
        subflow = next(s for s in controller.allocation.subflows if s.attachment == a)
        used += subflow.path[1].datapath == "b"
    # Hashes of forty addresses are not quite even.
    assert used == pytest.approx(through_b, abs=0 if through_b == 0 else 6)
    assert len(table.queues) == queues
    for port in ("s2", "s3", "a2", "b2"):
        capacity = next(t.rate_bps for t in network.trunks if t.a_port == port)
        assert sum(low for q, (low, _) in table.queues.items() if q.port == port) <= capacity


def test_policy_may_change_while_it_runs(switches: MakeSwitches) -> None:
    network = mesh()
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    for name in (*policy.NAMES, "ecmp"):
        feed(controller, table, [PolicySet(name)])
        fresh_table, fresh = (
            switches(network),
            Controller(dataclasses.replace(network, policy=name)),
        )
        feed(fresh, fresh_table, connected(network))
        assert table.entries.keys() == fresh_table.entries.keys()
        assert {(q.port, q.user) for q in table.queues} == {
            (q.port, q.user) for q in fresh_table.queues
        }
    assert not table.queues


def test_after_two_hundred_handovers_everything_is_as_a_fresh_solve_would_have_it(
    switches: MakeSwitches,
) -> None:
    network = campaign()
    table, controller = switches(network), Controller(network)
    feed(controller, table, connected(network))
    start = (set(table.entries.values()), dict(table.queues))
    for number, event in enumerate(moves(network, 200)):
        feed(controller, table, [event], float(number))
        fresh_table, fresh = switches(network), Controller(network)
        fresh.view = dataclasses.replace(controller.view)
        feed(fresh, fresh_table, [Tick()], float(number))
        assert table.entries.keys() == fresh_table.entries.keys()
        mine, wanted = (
            {(q.port, q.user, q.via): rate for q, rate in each.queues.items()}
            for each in (table, fresh_table)
        )
        assert mine.keys() == wanted.keys()
        for queue, rates in wanted.items():
            assert mine[queue] == pytest.approx(rates, rel=0.06, abs=2)
    assert (set(table.entries.values()), dict(table.queues)) == start, "nothing is left behind"
