"""Handovers from cause to effect: stamps, reactions and what the host saw."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import RunResult, analyse
from analysis.presentation.run_figures import effect, interrupted, moment, reaction
from analysis.presentation.run_text import stories_text
from analysis.run.directory import Event
from analysis.run.story import LinkChange, Timeline, link_changes, stories
from analysis.transfer.interruption import Interruption
from tactical.cli import main

DATA = Path(__file__).parents[1] / "data"


def association(at_s: float, user: str, state: str) -> Event:
    return Event(at_s, "association", user, {"access_point": "uav", "state": state})


def handover(at_s: float, user: str, phase: str, old: str = "satcom", new: str = "uav") -> Event:
    return Event(at_s, "handover", user, {"phase": phase, "from": old, "to": new})


def decided(
    solve_s: float, deployed_s: float, trigger: str, *, took_s: float = 0.01, queues: int = 2
) -> list[Event]:
    """What the controller writes about one decision."""
    solve = {"trigger": trigger, "solve_time_s": took_s, "relative_gap": 1e-12}
    return [
        Event(solve_s, "solve", "controller", solve),
        *[Event(deployed_s, "queue_set", "controller", {"port": "p", "queue_id": 1})] * queues,
        Event(deployed_s, "flow_mod", "controller", {"added": 4, "removed": 1}),
        Event(
            deployed_s,
            "assignment",
            "controller",
            {"trigger": trigger, "deploy_time_s": deployed_s - solve_s},
        ),
    ]


JOINING = [
    handover(8.0, "ship1", "begin"),
    association(8.1, "ship1", "associating"),
    association(10.5, "ship1", "associated"),
    handover(10.6, "ship1", "end"),
]


def test_a_change_lies_between_its_stamps() -> None:
    (change,) = link_changes(JOINING)
    assert change == LinkChange("ship1", "uav", True, "satcom", "uav", 8.1, 10.5)
    assert change.event_s == pytest.approx(9.3)
    assert change.error_s == pytest.approx(1.2)


def test_what_the_controller_knew_draws_the_later_stamp_in() -> None:
    events = [*JOINING, *decided(9.0, 9.4, "ship1 heard at uav", took_s=0.2)]
    (change,) = link_changes(sorted(events, key=lambda event: event.t_s))
    assert (change.after_s, change.before_s) == (8.1, pytest.approx(8.8))


@pytest.mark.parametrize("trigger", ["ship10 heard at uav", "ship1 dissociated from uav", "ship1"])
def test_somebody_elses_decision_is_no_evidence(trigger: str) -> None:
    events = sorted([*JOINING, *decided(9.0, 9.4, trigger)], key=lambda event: event.t_s)
    (change,) = link_changes(events)
    assert change.before_s == 10.5
    (story,) = stories(events, [change], {}, multipath=True)
    assert story.trigger is None
    assert reaction(story) == "did nothing"


def test_a_command_that_did_not_end() -> None:
    (change,) = link_changes(JOINING[:2])
    assert (change.after_s, change.before_s, change.error_s) == (8.1, None, None)
    (story,) = stories(JOINING[:2], [change], {}, multipath=True)
    assert (story.cause_s, story.cause_error_s) == (8.1, None)
    assert moment(story.cause_s, story.cause_error_s) == "after 8.10"


def test_a_handover_without_an_association() -> None:
    (change,) = link_changes([handover(3.0, "ship1", "begin"), handover(3.5, "ship1", "end")])
    assert (change.relay, change.after_s, change.before_s) == ("uav", 3.0, 3.5)
    (open_end,) = link_changes([handover(3.0, "ship1", "begin")])
    assert open_end.before_s is None


def test_each_decision_belongs_to_its_change() -> None:
    events = [
        *JOINING,
        *decided(10.7, 11.0, "ship2 heard at uav", queues=3),
        *decided(11.1, 11.9, "ship1 heard at uav", queues=4),
        association(20.0, "ship1", "dissociating"),
        association(20.4, "ship1", "dissociated"),
        *decided(20.5, 20.6, "ship1 dissociated from uav", queues=1),
    ]
    joins, leaves = stories(events, link_changes(events), {}, multipath=True)
    assert (joins.number, joins.what) == (1, "joins uav")
    assert (joins.solve_s, joins.deployed_s, joins.queues_set) == (11.1, 11.9, 4)
    assert (joins.entries_added, joins.entries_removed) == (4, 1)
    assert joins.deploy_time_s == pytest.approx(0.8)
    assert (leaves.number, leaves.what, leaves.queues_set) == (2, "leaves uav", 1)
    assert reaction(leaves) == (
        "ship1 dissociated from uav: solved in 10.0 ms, gap 1e-12; 1 queues set, "
        "4 entries added, 1 entries removed in 100 ms, deployed at 20.60 s"
    )
    single = stories(events, link_changes(events), {}, multipath=False)
    assert [each.what for each in single] == ["satcom → uav", "leaves uav"]


def test_a_change_that_was_expected() -> None:
    """The controller had deployed before the link went, and it knew no more when it did."""
    leaving = [
        *decided(15.0, 15.2, "ship1 expected to leave uav"),
        association(20.0, "ship1", "dissociating"),
        association(20.4, "ship1", "dissociated"),
    ]
    (story,) = stories(leaving, link_changes(leaving), {}, multipath=True)
    assert (story.trigger, story.deployed_s) == ("ship1 expected to leave uav", 15.2)
    assert (story.cause_after_s, story.cause_before_s) == (20.0, 20.4)
    # What it decides at the change itself is the reaction, and an expectation of joining is none.
    leaving += decided(20.5, 20.6, "ship1 dissociated from uav")
    leaving[:0] = decided(14.0, 14.1, "ship1 expected to join uav")
    (story,) = stories(leaving, link_changes(leaving), {}, multipath=True)
    assert (story.trigger, story.solve_s) == ("ship1 dissociated from uav", 20.5)


def timeline(gap_s: tuple[float, float], rate_bytes: int = 1000) -> Timeline:
    """Ten packets a second over satcom for 30 s but for a gap, afterwards over the UAV."""
    times = np.arange(0.0, 30.0, 0.1)
    times = times[(times < gap_s[0]) | (times >= gap_s[1])]
    steps = zip(times[:-1].tolist(), np.diff(times).tolist(), strict=True)
    gaps = tuple(steps)
    return Timeline(
        arrived_s=times,
        in_order=(rate_bytes * np.arange(1, len(times) + 1)).astype(np.int64),
        via=(times >= gap_s[1]).astype(np.int64),
        links=("satcom", "uav"),
        start_s=0.0,
        end_s=30.0,
        gaps=gaps,
        explain=lambda start_s, length_s: Interruption(start_s, length_s, "handover"),
    )


def test_effect_of_a_single_path_handover() -> None:
    seen = {"ship1": timeline((9.0, 11.5))}
    (story,) = stories(JOINING, link_changes(JOINING), seen, multipath=False)
    assert story.last_on_old_s == pytest.approx(8.9)
    assert story.first_on_new_s == pytest.approx(11.5)
    assert story.interruption is not None
    assert story.interruption.start_s == pytest.approx(8.9)
    assert story.interruption.length_s == pytest.approx(2.6)
    # When the link changed is known to within 1.2 s, and so is what the interruption had to do
    # with it.
    assert story.interruption.event_s == pytest.approx(9.3)
    assert story.interruption.event_error_s == pytest.approx(1.2)
    assert interrupted(story) == (
        "2.60 s from 8.90 s (handover), over 2.20 ± 1.20 s after its cause"
    )
    assert story.goodput_before_bps == pytest.approx(80_000, rel=0.05)
    assert story.goodput_lowest_bps == 0.0
    assert story.goodput_back_s == pytest.approx(11.5, abs=0.2)


def test_effect_of_a_path_that_joins() -> None:
    seen = timeline((11.0, 11.0))
    (story,) = stories(JOINING, link_changes(JOINING), {"ship1": seen}, multipath=True)
    assert story.first_on_new_s == pytest.approx(11.0)
    assert story.last_on_old_s is None
    assert "never under 90 %" in effect(story)


def test_a_user_that_sent_nothing_meanwhile_has_no_effect() -> None:
    seen = timeline((31.0, 32.0))
    late = [association(40.0, "ship1", "associating"), association(40.1, "ship1", "associated")]
    (story,) = stories(late, link_changes(late), {"ship1": seen}, multipath=True)
    assert story.interruption is None
    assert story.goodput_before_bps is None


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100),
            st.sampled_from(["ship1", "ship2"]),
            st.sampled_from(["associating", "associated", "dissociating", "dissociated", "odd"]),
        ),
        max_size=12,
    ),
    st.lists(
        st.tuples(
            st.floats(0, 100),
            st.sampled_from(["ship1", "ship2"]),
            st.sampled_from(["begin", "end"]),
        ),
        max_size=6,
    ),
)
def test_any_order_of_events_gives_stamps_in_order(
    associations: list[tuple[float, str, str]], handovers: list[tuple[float, str, str]]
) -> None:
    events = [association(*each) for each in associations]
    events += [handover(*each) for each in handovers]
    events.sort(key=lambda event: event.t_s)
    changes = link_changes(events)
    assert all(each.before_s is None or each.before_s >= each.after_s for each in changes)
    assert [each.after_s for each in changes] == sorted(each.after_s for each in changes)
    told = stories(events, changes, {}, multipath=True)
    assert [each.number for each in told] == list(range(1, len(changes) + 1))


def test_real_handovers_of_one_path(sptcp: RunResult) -> None:
    told = sptcp.handover_stories
    assert [(each.user, each.what) for each in told] == [
        ("ship1", "satcom → uav"),
        ("ship2", "satcom → uav"),
        ("ship1", "uav → satcom"),
        ("ship2", "uav → satcom"),
    ]
    first = told[0]
    assert first.interruption is not None
    assert first.interruption.cause == "handover"
    assert first.cause_error_s is not None
    # Data stopped and came back within what the stamps allow.
    assert first.cause_after_s - 0.1 < first.interruption.start_s < first.cause_s
    assert first.first_on_new_s == pytest.approx(
        first.interruption.start_s + first.interruption.length_s, abs=0.01
    )
    assert sptcp.users["ship1"].interruptions[0].event_error_s == pytest.approx(first.cause_error_s)


def test_real_handovers_of_two_paths(mptcp: RunResult) -> None:
    told = mptcp.handover_stories
    assert [each.what for each in told] == ["joins uav", "joins uav", "leaves uav", "leaves uav"]
    for joins in told[:2]:
        assert joins.first_on_new_s is not None
        assert 0 < joins.first_on_new_s - joins.cause_s < 0.2
    assert all(each.path_was_in_use for each in told[2:])


def test_the_command_tells_them(capsys: pytest.CaptureFixture[str], copy: Path) -> None:
    assert main(["report", str(copy), "--story"]) == 0
    told = capsys.readouterr().out
    assert stories_text([analyse(copy)]) in told
    assert "handover 4: ship2 leaves uav" in told
    assert "Handovers, from cause to effect" in (copy / "report.html").read_text()
