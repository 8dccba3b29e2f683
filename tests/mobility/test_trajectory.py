import numpy as np
import pytest

from mobility import Fixed, Straight


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
