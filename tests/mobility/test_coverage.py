from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mobility import Crossing, Fixed, Leg, Straight, Trajectory, in_range, range_crossings

HOVER = Fixed((0.0, 0.0, 300.0))
coordinates = st.floats(-5000, 5000)
points = st.tuples(coordinates, coordinates, st.floats(0, 1000))
speeds = st.floats(-50, 50)
velocities = st.tuples(speeds, speeds, speeds)


@dataclass(frozen=True)
class Dogleg(Trajectory):
    """Turns at given times: tests the legs of trajectories that are not one straight line."""

    course: tuple[Leg, ...]

    def position(self, t_s):
        rows = []
        for t in np.atleast_1d(np.asarray(t_s, dtype=float)):
            leg = [leg for leg in self.course if leg.start_s <= t][-1]
            rows.append(np.array(leg.position_m) + (t - leg.start_s) * np.array(leg.velocity_mps))
        return np.array(rows)

    def legs(self, until_s: float) -> Sequence[Leg]:
        return [leg for leg in self.course if leg.start_s < until_s]


def test_a_pass_enters_and_leaves():
    ship = Straight((-1300.0, 0.0, 0.0), (10.0, 0.0, 0.0))
    assert range_crossings(ship, HOVER, 500.0, 300.0) == (
        Crossing(90.0, True),
        Crossing(170.0, False),
    )


def test_the_end_of_the_interval_hides_what_comes_later():
    ship = Straight((-1300.0, 0.0, 0.0), (10.0, 0.0, 0.0))
    assert range_crossings(ship, HOVER, 500.0, 170.0) == (Crossing(90.0, True),)
    assert range_crossings(ship, HOVER, 500.0, 90.0) == ()


def test_a_node_in_range_from_the_start_enters_at_zero():
    ship = Straight((0.0, 0.0, 0.0), (10.0, 0.0, 0.0))
    assert range_crossings(ship, HOVER, 500.0, 100.0) == (
        Crossing(0.0, True),
        Crossing(40.0, False),
    )


def test_touching_the_boundary_is_no_crossing():
    ship = Straight((-1300.0, 400.0, 0.0), (10.0, 0.0, 0.0))
    assert range_crossings(ship, HOVER, 500.0, 300.0) == ()
    assert range_crossings(ship, HOVER, 500.0 + 1e-6, 300.0) != ()


def test_two_nodes_that_do_not_move():
    assert range_crossings(Fixed((0.0, 400.0, 0.0)), HOVER, 500.0, 9.0) == (Crossing(0.0, True),)
    assert range_crossings(Fixed((0.0, 401.0, 0.0)), HOVER, 500.0, 9.0) == ()


def test_a_turn_brings_a_node_back():
    out_and_back = Dogleg(
        (
            Leg(0.0, (0.0, 0.0, 0.0), (10.0, 0.0, 0.0)),
            Leg(60.0, (600.0, 0.0, 0.0), (-10.0, 0.0, 0.0)),
        )
    )
    assert range_crossings(out_and_back, HOVER, 500.0, 100.0) == (
        Crossing(0.0, True),
        Crossing(40.0, False),
        Crossing(80.0, True),
    )


def test_a_turn_within_range_is_no_crossing():
    course = Dogleg(
        (
            Leg(0.0, (0.0, 0.0, 0.0), (10.0, 0.0, 0.0)),
            Leg(10.0, (100.0, 0.0, 0.0), (-10.0, 0.0, 0.0)),
        )
    )
    assert range_crossings(course, HOVER, 500.0, 20.0) == (Crossing(0.0, True),)


def test_a_range_that_is_no_distance_is_refused():
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="range_m must be a distance"):
            range_crossings(HOVER, HOVER, bad, 1.0)
        with pytest.raises(ValueError, match="range_m must be a distance"):
            in_range(HOVER, HOVER, bad, 1.0)


@given(points, velocities, points, velocities, st.floats(1.0, 5000.0))
def test_crossings_agree_with_looking_often(start_a, velocity_a, start_b, velocity_b, range_m):
    a, b = Straight(start_a, velocity_a), Straight(start_b, velocity_b)
    crossings = range_crossings(a, b, range_m, until_s=100.0)
    times = np.linspace(0.0, 100.0, 2001)
    # A look within a rounding error of the boundary may go either way.
    distance = np.linalg.norm(a.position(times) - b.position(times), axis=1)
    clear = np.abs(distance - range_m) > 1e-6
    expected = np.zeros(len(times), dtype=bool)
    for crossing in crossings:
        expected[times >= crossing.time_s] = crossing.entering
    assert (in_range(a, b, range_m, times) == expected)[clear].all()


@given(points, velocities, points, velocities, st.floats(1.0, 5000.0))
def test_crossings_lie_on_the_boundary_in_order_and_either_way_round(
    start_a, velocity_a, start_b, velocity_b, range_m
):
    a, b = Straight(start_a, velocity_a), Straight(start_b, velocity_b)
    crossings = range_crossings(a, b, range_m, until_s=100.0)
    assert [crossing.entering for crossing in crossings] == [True, False][: len(crossings)]
    assert [crossing.time_s for crossing in crossings] == sorted(c.time_s for c in crossings)
    for crossing in crossings:
        if crossing.time_s > 0.0:
            distance = np.linalg.norm(a.position(crossing.time_s) - b.position(crossing.time_s))
            assert distance == pytest.approx(range_m, rel=1e-9, abs=1e-6)
    mirrored = range_crossings(b, a, range_m, until_s=100.0)
    assert [c.time_s for c in mirrored] == pytest.approx([c.time_s for c in crossings], abs=1e-6)


@given(st.floats(1.0, 30.0), st.floats(10.0, 90.0), st.floats(320.0, 5000.0))
def test_a_start_derived_from_an_entry_time_enters_then(speed_mps, entry_s, range_m):
    half_chord = float(np.sqrt(range_m**2 - 300.0**2))
    ship = Straight((-half_chord - speed_mps * entry_s, 0.0, 0.0), (speed_mps, 0.0, 0.0))
    assume(range_m > 300.0)
    assert range_crossings(ship, HOVER, range_m, 100.0)[0].time_s == pytest.approx(
        entry_s, abs=1e-6
    )
