import hashlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mobility import (
    Area,
    Between,
    Contact,
    Crossing,
    Fixed,
    Orbit,
    Path,
    Racetrack,
    Straight,
    contact_schedule,
    distance_m,
    gauss_markov,
    in_range,
    random_walk,
    range_crossings,
)

HOVER = Fixed((0.0, 0.0, 300.0))
coordinates = st.floats(-5000, 5000)
points = st.tuples(coordinates, coordinates, st.floats(0, 1000))
speeds = st.floats(-50, 50)
velocities = st.tuples(speeds, speeds, speeds)


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
    out_and_back = Path([0.0, 60.0, 120.0], [(0, 0, 0), (600, 0, 0), (0, 0, 0)])
    assert range_crossings(out_and_back, HOVER, 500.0, 100.0) == (
        Crossing(0.0, True),
        Crossing(40.0, False),
        Crossing(80.0, True),
    )


def test_a_turn_within_range_is_no_crossing():
    course = Path([0.0, 10.0, 20.0], [(0, 0, 0), (100, 0, 0), (0, 0, 0)])
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


def test_a_jump_out_of_range_and_back_is_seen_to_the_instant():
    jumps = Path(
        [0.0, 10.0, 10.0, 30.0, 30.0], [(0, 0, 0), (9, 0, 0), (900, 0, 0)] + [(0, 0, 0)] * 2
    )
    # From 900 m it comes back at 45 m/s, and is within 400 m over the ground after 500/45 s.
    assert range_crossings(jumps, HOVER, 500.0, 60.0) == (
        Crossing(0.0, True),
        Crossing(10.0, False),
        Crossing(pytest.approx(10.0 + 500.0 / 45.0), True),
    )


def test_an_orbit_that_passes_through_the_range_does_so_once_a_turn():
    # A circle of 1000 m about a point 1000 m away: a chord of the circle of that radius.
    orbit = Orbit((1000.0, 0.0, 0.0), 1000.0, speed_mps=np.pi * 10.0, bearing_deg=90.0)
    half_angle = 2.0 * np.arcsin(300.0 / 2000.0)
    crossings = range_crossings(orbit, Fixed((0.0, 0.0, 0.0)), 300.0, until_s=1000.0)
    turn_s = 200.0
    expected = [
        turn_s * (number + 0.5 + side * half_angle / (2.0 * np.pi))
        for number in range(5)
        for side in (-1, 1)
    ]
    assert [crossing.time_s for crossing in crossings] == pytest.approx(expected, abs=1e-9)
    assert [crossing.entering for crossing in crossings] == [True, False] * 5


def test_two_aircraft_on_the_same_circle_are_always_as_far_apart():
    a = Orbit((0.0, 0.0, 100.0), 1000.0, 25.0, bearing_deg=0.0)
    b = Orbit((0.0, 0.0, 100.0), 1000.0, 25.0, bearing_deg=60.0)
    assert range_crossings(a, b, 1000.1, 500.0) == (Crossing(0.0, True),)
    assert range_crossings(a, b, 999.9, 500.0) == ()


def test_a_ship_that_carries_its_uav_along_never_leaves_it():
    ship = Straight((0.0, 0.0, 0.0), (8.0, 3.0, 0.0))
    uav = ship + Orbit((0.0, 0.0, 300.0), 400.0, 25.0)
    assert range_crossings(ship, uav, 500.1, 3600.0) == (Crossing(0.0, True),)
    assert range_crossings(ship, uav, 499.9, 3600.0) == ()


def test_a_graze_shorter_than_any_sample_is_found():
    # 1 mm inside the range for some milliseconds, in one of 36 turns.
    orbit = Orbit((0.0, 0.0, 0.0), 1000.0, 2000.0 * np.pi / 100.0)
    passer = Straight((-1.0e5, 1500.0 - 1e-5, 0.0), (1.0e5 / 1800.0, 0.0, 0.0))
    assert len(range_crossings(orbit, passer, 500.0, 3600.0)) == 2
    higher = Straight((-1.0e5, 1500.0 + 1e-5, 0.0), (1.0e5 / 1800.0, 0.0, 0.0))
    assert range_crossings(orbit, higher, 500.0, 3600.0) == ()


def test_a_uav_that_circles_at_exactly_the_range_is_in_range():
    base = Fixed((0.0, 0.0, 0.0))
    assert range_crossings(Orbit((0.0, 0.0, 0.0), 500.0, 30.0), base, 500.0, 3600.0) == (
        Crossing(0.0, True),
    )
    # It also begins there when it only passes, at the start of each of its turns.
    passing = range_crossings(Orbit((400.0, 300.0, 0.0), 500.0, 5.0, 180.0), base, 400.0, 3000.0)
    assert len(passing) > 4


@pytest.mark.parametrize("range_m", [300.0, 1700.0])
def test_an_orbit_that_touches_the_range_makes_no_contact_worth_the_name(range_m):
    # A circle of 700 m about a point 1000 m away touches both ranges, from without and within.
    orbit = Orbit((1000.0, 0.0, 0.0), 700.0, 25.0)
    crossings = range_crossings(orbit, Fixed((0.0, 0.0, 0.0)), range_m, 3600.0)
    times = [crossing.time_s for crossing in crossings]
    if range_m == 300.0:
        assert sum(b - a for a, b in zip(times[::2], times[1::2], strict=True)) < 1e-5
    else:
        assert times[0] == 0.0
        assert sum(b - a for a, b in zip(times[1::2], times[2::2], strict=True)) < 1e-5


@given(
    st.lists(st.integers(-4, 4), min_size=6, max_size=6),
    st.lists(st.integers(1, 5), min_size=4, max_size=4),
    st.integers(1, 12),
)
def test_round_numbers_in_which_things_coincide_are_solved_as_well(places, sizes, range_m):
    a = Orbit(places[:3], sizes[0], sizes[1])
    b = Orbit(places[3:], sizes[2], sizes[3], bearing_deg=90.0)
    crossings = range_crossings(a, b, range_m, 50.0)
    times = np.linspace(0.0, 50.0, 997)
    expected = np.zeros(times.size, dtype=bool)
    clear = np.abs(distance_m(a, b, times) - range_m) > 1e-5
    for crossing in crossings:
        expected[times >= crossing.time_s] = crossing.entering
        clear &= np.abs(times - crossing.time_s) > 1e-6
    assert (in_range(a, b, range_m, times) == expected)[clear].all()


motions = st.one_of(
    st.builds(Fixed, points),
    st.builds(Straight, points, velocities),
    st.builds(Orbit, points, st.floats(50, 3000), st.floats(1, 60), st.floats(0, 360)),
    st.builds(
        Racetrack,
        points,
        st.floats(0, 360),
        st.floats(100, 4000),
        st.floats(50, 1000),
        st.floats(1, 60),
        st.booleans(),
    ),
    st.builds(
        lambda seed: random_walk(
            Area.square(6000.0), speed_mps=(1.0, 60.0), leg_s=(5.0, 30.0), duration_s=100.0,
            seed=seed,
        ),
        st.integers(0, 2**32),
    ),
    st.builds(
        lambda seed, start: Between(
            random_walk(
                Area.square(6000.0), speed_mps=(1.0, 60.0), leg_s=(5.0, 30.0), duration_s=100.0,
                seed=seed, boundary="wrap",
            ),
            start, start + 40.0,
        ),
        st.integers(0, 2**32),
        st.floats(0, 50),
    ),
)  # fmt: skip


@given(motions, motions, motions, st.floats(1.0, 8000.0))
def test_crossings_of_any_two_motions_agree_with_looking_often(a, b, c, range_m):
    moving = a + c
    crossings = range_crossings(moving, b, range_m, until_s=100.0)
    assert [crossing.entering for crossing in crossings] == [
        number % 2 == 0 for number in range(len(crossings))
    ]
    times = np.linspace(0.0, 100.0, 1001)
    expected = np.zeros(times.size, dtype=bool)
    # Where the range is the distance, any answer is right; that includes looks at a crossing.
    clear = np.abs(distance_m(moving, b, times) - range_m) > 1e-5
    for crossing in crossings:
        expected[times >= crossing.time_s] = crossing.entering
        clear &= np.abs(times - crossing.time_s) > 1e-7
    assert (in_range(moving, b, range_m, times) == expected)[clear].all()


def fleet(count: int, seed: int, until_s: float) -> list[Path]:
    return [
        random_walk(
            Area.square(4000.0),
            speed_mps=(5.0, 15.0),
            leg_s=(20.0, 60.0),
            duration_s=until_s,
            seed=seed,
            stream=number,
        )
        for number in range(count)
    ]


def test_a_schedule_equals_brute_force_at_ten_milliseconds():
    until_s = 120.0
    nodes = fleet(6, 3, until_s)
    access_points = [
        Fixed((0.0, 0.0, 300.0)),
        Orbit((500.0, 0.0, 400.0), 600.0, 30.0),
        Racetrack((-1000.0, -500.0, 200.0), 45.0, 1500.0, 300.0, 35.0),
        *fleet(2, 4, until_s),
    ]
    ranges = [1500.0, 1300.0, 1600.0, 1400.0, 1200.0]
    contacts = contact_schedule(nodes, access_points, ranges, until_s)
    assert len(contacts) > 15
    times = np.arange(0.0, until_s, 0.01)
    for i, node in enumerate(nodes):
        for j, (access_point, range_m) in enumerate(zip(access_points, ranges, strict=True)):
            looked = in_range(node, access_point, range_m, times)
            edges = np.flatnonzero(np.diff(np.concatenate([[False], looked, [False]])))
            rows = (contacts.node == i) & (contacts.access_point == j)
            exact = np.column_stack([contacts.start_s[rows], contacts.end_s[rows]]).ravel()
            # An event is seen at the first look at or after it.
            assert edges.tolist() == np.minimum(np.ceil(exact / 0.01), times.size).tolist()


def test_a_schedule_in_order_names_both_nodes():
    nodes = [Straight((-1300.0, 0.0, 0.0), (10.0, 0.0, 0.0)), Fixed((0.0, 0.0, 0.0))]
    contacts = contact_schedule(nodes, [HOVER, Fixed((300.0, 0.0, 300.0))], 500.0, 300.0)
    assert contacts.in_order() == [
        Contact(0.0, 300.0, 1, 0),
        Contact(0.0, 300.0, 1, 1),
        Contact(90.0, 170.0, 0, 0),
        Contact(120.0, 200.0, 0, 1),
    ]


def test_a_schedule_of_nobody_is_empty():
    assert len(contact_schedule([], [HOVER], 500.0, 10.0)) == 0
    assert len(contact_schedule([HOVER], [], 500.0, 10.0)) == 0
    assert len(contact_schedule([HOVER], [HOVER], 500.0, 0.0)) == 0


def test_ranges_are_one_or_as_many_as_access_points():
    with pytest.raises(ValueError, match="one for each of 1 access points, not shape"):
        contact_schedule([HOVER], [HOVER], [1.0, 2.0], 10.0)


def test_a_schedule_is_the_same_to_the_last_bit_on_every_machine():
    # Stored: arithmetic that IEEE 754 defines to the last bit gives these on any processor.
    nodes = fleet(20, 7, 600.0)
    drifting = [
        gauss_markov(
            Area.square(4000.0),
            mean_velocity_mps=(3.0, 0.0),
            deviation_mps=4.0,
            memory=0.8,
            step_s=10.0,
            top_speed_mps=15.0,
            duration_s=600.0,
            seed=8,
            stream=number,
        )
        for number in range(3)
    ]
    contacts = contact_schedule(nodes, [HOVER, *drifting], 900.0, 600.0)
    digest = hashlib.sha256()
    for column in (contacts.node, contacts.access_point, contacts.start_s, contacts.end_s):
        digest.update(column.astype("<f8").tobytes())
    assert digest.hexdigest()[:16] == "9881718cf4947cb3"
