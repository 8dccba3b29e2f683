"""Which access a station with one radio uses when."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mobility
import scenarios
from scenarios import Handover, Scenario

DIRECT = scenarios.load("direct-move").build(seed=0)


def passing(
    *access_points: tuple[str, float, float], reluctance: mobility.Reluctance | None = None
) -> Scenario:
    """A ship that sails east at 10 m/s for 100 s, past access points (name, place, range)."""
    ship = scenarios.Station("ship", mobility.Straight((0.0, 0.0, 0.0), (10.0, 0.0, 0.0)))
    return replace(
        DIRECT,
        stations=(ship,),
        traffic=(),
        reluctance=reluctance,
        access_points=tuple(
            replace(
                DIRECT.access_points[0], name=name, trajectory=mobility.Fixed((x, 0, 0)), range_m=r
            )
            for name, x, r in access_points
        ),
    )


def schedule(scenario: Scenario) -> list[tuple[float, str, str]]:
    return [(round(each.time_s, 6), each.before, each.after) for each in scenario.handovers()]


@pytest.mark.parametrize("name", ["direct-move", "random-walk", "lossy-satcom", "contended"])
def test_with_one_access_point_it_is_used_wherever_it_is_in_range(name):
    scenario = scenarios.load(name).build(seed=1)
    assert scenario.handovers() == tuple(
        Handover(
            change.time_s,
            change.station,
            *(("satcom", "uav") if change.entering else ("uav", "satcom")),
        )
        for change in scenario.coverage()
    )


def test_a_gap_between_ranges_is_spent_on_the_satellite():
    assert schedule(passing(("a", 200.0, 100.0), ("b", 500.0, 100.0))) == [
        (10.0, "satcom", "a"),
        (30.0, "a", "satcom"),
        (40.0, "satcom", "b"),
        (60.0, "b", "satcom"),
    ]


def test_where_ranges_overlap_the_access_point_changes_when_the_first_is_lost():
    assert schedule(passing(("a", 300.0, 200.0), ("b", 500.0, 150.0))) == [
        (10.0, "satcom", "a"),
        (50.0, "a", "b"),
        (65.0, "b", "satcom"),
    ]


def test_with_a_reluctance_it_changes_when_the_other_is_so_much_nearer_for_so_long():
    # Halfway at 400 m; 1.5 times nearer to b where (x - 300) = 1.5 (500 - x), at 420 m, and a is
    # kept for the 3 s of dwell after that. b is lost at 1.5 times its range.
    reluctance = mobility.Reluctance(ratio=1.5, dwell_s=3.0)
    scenario = passing(("a", 300.0, 200.0), ("b", 500.0, 200.0), reluctance=reluctance)
    assert schedule(scenario) == [(10.0, "satcom", "a"), (45.0, "a", "b"), (80.0, "b", "satcom")]


def test_a_station_in_range_from_the_start_joins_at_once_and_keeps_it_to_the_end():
    assert passing(("a", 0.0, 5000.0)).handovers() == (Handover(0.0, "ship", "satcom", "a"),)


places = st.tuples(st.floats(-200.0, 1200.0), st.floats(1.0, 600.0))
reluctances = st.none() | st.builds(mobility.Reluctance, st.floats(1.0, 2.0), st.floats(0.0, 10.0))


@settings(max_examples=50, deadline=None)
@given(st.lists(places, min_size=1, max_size=4), reluctances)
def test_changes_join_up_and_never_lead_out_of_range(access_points, reluctance):
    named = [(f"ap{n}", x, r) for n, (x, r) in enumerate(access_points)]
    changes = passing(*named, reluctance=reluctance).handovers()
    ratio = reluctance.ratio if reluctance else 1.0
    assert all(change.before != change.after for change in changes)
    assert [change.before for change in changes[:1]] in ([], ["satcom"])
    for earlier, later in pairwise(changes):
        assert earlier.after == later.before
        assert earlier.time_s < later.time_s
    reach_m = {name: (x, ratio * r) for name, x, r in named}
    for change in changes:
        for access in {change.before, change.after} - {"satcom"}:
            x, limit_m = reach_m[access]
            assert abs(10.0 * change.time_s - x) <= limit_m + 1e-6
