import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import Orbit, Racetrack


def test_an_orbit_begins_at_its_bearing_and_turns_its_way():
    # 200 m at 10π m/s: once around in 40 s.
    clockwise = Orbit((1000.0, 0.0, 300.0), 200.0, np.pi * 10.0, bearing_deg=0.0)
    assert clockwise.position([0.0, 10.0, 20.0, 40.0]) == pytest.approx(
        np.array([[1000, 200, 300], [1200, 0, 300], [1000, -200, 300], [1000, 200, 300]])
    )
    other = Orbit((1000.0, 0.0, 300.0), 200.0, np.pi * 10.0, bearing_deg=90.0, clockwise=False)
    assert other.position([0.0, 10.0]) == pytest.approx(
        np.array([[1200, 0, 300], [1000, 200, 300]])
    )


def test_a_racetrack_goes_out_turns_and_comes_back():
    # Eastwards, turning right, so the way back is to the south.
    track = Racetrack((0.0, 0.0, 500.0), 90.0, 1000.0, 100.0, speed_mps=np.pi * 10.0)
    line, turn = 1000.0 / (np.pi * 10.0), 10.0
    times = [0.0, line, line + turn / 2, line + turn, 2 * line + turn, 2 * line + 1.5 * turn]
    assert track.position(times) == pytest.approx(
        np.array(
            [[0, 0], [1000, 0], [1100, -100], [1000, -200], [0, -200], [-100, -100]],
        )
        @ np.eye(2, 3)
        + [0, 0, 500]
    )
    assert track.lap_s == pytest.approx(2 * line + 2 * turn)
    assert track.position(track.lap_s * 3) == pytest.approx(track.position(0.0), abs=1e-6)


@given(st.floats(0, 360), st.floats(1, 5000), st.floats(10, 2000), st.floats(1, 100), st.booleans())
def test_a_racetrack_has_no_gap_and_one_speed(heading, length, radius, speed, clockwise):
    track = Racetrack((0.0, 0.0, 0.0), heading, length, radius, speed, clockwise)
    times = np.linspace(0.0, 2.5 * track.lap_s, 400)
    assert np.linalg.norm(track.velocity(times), axis=1) == pytest.approx(speed)
    moved = np.linalg.norm(np.diff(track.position(times), axis=0), axis=1)
    assert (moved <= speed * np.diff(times) * (1 + 1e-9) + 1e-6).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Orbit((0.0, 0.0, 0.0), 0.0, 10.0), "radius_m must be a finite number above 0"),
        (lambda: Orbit((0.0, 0.0, 0.0), 10.0, -1.0), "speed_mps must be a finite number above 0"),
        (lambda: Orbit((0.0, 0.0, 0.0), 10.0, 1.0, np.nan), "bearing_deg must be a finite number"),
        (lambda: Orbit((0.0, 0.0), 10.0, 1.0), "centre_m must be three finite numbers"),
        (lambda: Racetrack((0.0, 0.0, 0.0), 0.0, 0.0, 1.0, 1.0), "length_m must be a finite"),
        (lambda: Racetrack((0.0, 0.0, 0.0), np.inf, 1.0, 1.0, 1.0), "heading_deg must be"),
    ],
)
def test_flights_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
