import pickle

import numpy as np
import pytest

from mobility import Between, Fixed, Orbit, Path, Racetrack, Straight


def test_fixed_is_in_the_same_place_at_all_times():
    positions = Fixed((1.0, 2.0, 3.0)).position([0.0, 5.0, 1e9])
    assert positions.tolist() == [[1.0, 2.0, 3.0]] * 3


def test_straight_moves_by_velocity_times_time():
    ship = Straight((10.0, 0.0, 0.0), (-2.0, 0.5, 0.0))
    assert ship.position(np.array([0.0, 4.0])).tolist() == [[10.0, 0.0, 0.0], [2.0, 2.0, 0.0]]


def test_a_single_time_gives_one_row():
    assert Straight((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)).position(3.0).shape == (1, 3)


@pytest.mark.parametrize("bad", [(0.0, 1.0), (0.0, 1.0, float("nan")), (float("inf"), 0.0, 0.0)])
def test_vectors_that_are_no_points_in_space_are_refused(bad):
    with pytest.raises(ValueError, match="position_m must be three finite numbers"):
        Fixed(bad)
    with pytest.raises(ValueError, match="velocity_mps must be three finite numbers"):
        Straight((0.0, 0.0, 0.0), bad)


def test_a_table_of_times_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        Fixed((0.0, 0.0, 0.0)).position([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("bad", [np.nan, [0.0, np.inf]])
def test_times_that_are_no_instants_are_refused(bad):
    with pytest.raises(ValueError, match="finite numbers of seconds"):
        Fixed((0.0, 0.0, 0.0)).position(bad)


def test_no_times_give_no_rows():
    assert Fixed((0.0, 0.0, 0.0)).position([]).shape == (0, 3)


def test_a_path_waits_goes_and_stays():
    path = Path([10.0, 20.0, 25.0], [(0, 0, 5), (100, 0, 5), (100, 50, 10)])
    assert path.position([0.0, 10.0, 15.0, 20.0, 22.0, 25.0, 99.0]).tolist() == [
        [0, 0, 5],
        [0, 0, 5],
        [50, 0, 5],
        [100, 0, 5],
        [100, 20, 7],
        [100, 50, 10],
        [100, 50, 10],
    ]
    assert path.velocity([0.0, 10.0, 20.0, 25.0]).tolist() == [
        [0, 0, 0],
        [10, 0, 0],
        [0, 10, 1],
        [0, 0, 0],
    ]
    assert path.top_speed_mps(15.0) == 10.0
    assert path.top_speed_mps(30.0) == pytest.approx(101**0.5)


def test_a_path_that_began_before_run_time_is_under_way_at_zero():
    assert Path([-10.0, 10.0], [(0, 0, 0), (100, 0, 0)]).position(0.0).tolist() == [[50, 0, 0]]


def test_at_a_jump_the_later_waypoint_holds():
    path = Path([0.0, 10.0, 10.0], [(0, 0, 0), (10, 0, 0), (-10, 0, 0)])
    assert path.position([9.0, 10.0, 11.0])[:, 0].tolist() == [9, -10, -10]


def test_paths_are_equal_if_their_waypoints_are():
    a, b = (Path([0.0, 1.0], [(0, 0, 0), (x, 0, 0)]) for x in (1.0, 2.0))
    assert a == Path([0, 1], [(0, 0, 0), (1, 0, 0)]) and hash(a) == hash(
        pickle.loads(pickle.dumps(a))
    )
    assert a != b
    assert repr(a) == "Path of 2 waypoints from 0 s to 1 s"


@pytest.mark.parametrize(
    ("times", "places", "message"),
    [
        ([], np.zeros((0, 3)), "one row of times"),
        ([0.0], [(0.0, 0.0)], r"shapes \(1,\) and \(1, 2\)"),
        ([0.0, np.nan], np.zeros((2, 3)), "finite"),
        ([0.0], [(0.0, np.inf, 0.0)], "finite"),
        ([0.0, 2.0, 1.5], np.zeros((3, 3)), r"1\.5 s follows 2\.0 s"),
        ([0.0, 5e-324], [(0, 0, 0), (1, 0, 0)], "too far apart"),
    ],
)
def test_paths_that_cannot_be_are_refused(times, places, message):
    with pytest.raises(ValueError, match=message):
        Path(times, places)


def test_sums_are_sums_of_positions_and_velocities():
    a = Path([5.0, 20.0], [(0, 0, 0), (300, 0, 0)])
    b = Orbit((0.0, 0.0, 100.0), 200.0, 20.0)
    c = Racetrack((10.0, 20.0, 0.0), 30.0, 500.0, 100.0, 25.0, clockwise=False)
    times = np.linspace(0.0, 200.0, 501)
    total = a + (b + c)
    assert total.position(times) == pytest.approx(sum(x.position(times) for x in (a, b, c)))
    assert total.velocity(times) == pytest.approx(sum(x.velocity(times) for x in (a, b, c)))
    assert total.top_speed_mps(200.0) >= np.linalg.norm(total.velocity(times), axis=1).max()


def test_only_trajectories_add_up():
    with pytest.raises(TypeError):
        Fixed((0.0, 0.0, 0.0)) + 3


@pytest.mark.parametrize(
    "motion",
    [
        Straight((0.0, 0.0, 0.0), (10.0, 0.0, 0.0)),
        Path([-5.0, 10.0, 30.0], [(0, 0, 0), (150, 0, 0), (150, 100, 0)]),
        Orbit((0.0, 0.0, 100.0), 200.0, 20.0),
        Racetrack((0.0, 0.0, 100.0), 0.0, 100.0, 50.0, 20.0),
    ],
)
@pytest.mark.parametrize(
    ("start", "stop"), [(0.0, np.inf), (7.0, np.inf), (7.0, 19.5), (0.0, 3.0), (4.0, 4.0)]
)
def test_a_motion_in_between_has_a_clock_that_starts_and_stops(motion, start, stop):
    times = np.linspace(0.0, 60.0, 121)
    clock = np.clip(times - start, 0.0, stop - start)
    assert Between(motion, start, stop).position(times) == pytest.approx(motion.position(clock))


@pytest.mark.parametrize(
    ("start", "stop"), [(-1.0, 5.0), (5.0, 4.0), (np.inf, np.inf), (np.nan, 1.0)]
)
def test_a_time_in_between_that_is_none_is_refused(start, stop):
    with pytest.raises(ValueError, match="start at 0 s or later"):
        Between(Fixed((0.0, 0.0, 0.0)), start, stop)
