"""The random walk: dense handovers, the same for the same seed on any machine."""

import hashlib
import statistics

import numpy as np
import pytest

import scenarios
from scenarios import RandomWalk, ScenarioError


def test_handovers_are_dense():
    changes = [
        sum(change.time_s > 0 for change in RandomWalk().build(seed).coverage()) / 2
        for seed in range(20)
    ]
    assert 5 < statistics.mean(changes) < 10, "for each ship"


def test_ships_stay_in_their_area_and_below_their_speed():
    experiment = RandomWalk()
    times_s = np.linspace(0.0, experiment.duration_s, 10_001)
    for station in experiment.build(seed=5).stations:
        position_m = station.trajectory.position(times_s)
        assert np.abs(position_m[:, :2]).max() <= experiment.ships.area_m / 2 + 1e-9
        moved_m = np.hypot(*np.diff(position_m[:, :2], axis=0).T)
        assert moved_m.max() <= experiment.ships.greatest_speed_mps * times_s[1] + 1e-9


def test_a_seed_is_one_schedule_on_every_machine():
    schedule = [
        (f"{change.time_s:.6f}", change.station, change.entering)
        for change in RandomWalk().build(seed=1).coverage()
    ]
    digest = hashlib.sha256(repr(schedule).encode()).hexdigest()[:16]
    assert digest == "029ce7155c93292c", schedule
    assert RandomWalk().build(seed=1) == RandomWalk().build(seed=1)
    assert RandomWalk().build(seed=1).coverage() != RandomWalk().build(seed=2).coverage()


@pytest.mark.parametrize(
    ("override", "names"),
    [
        ("ships.least_speed_mps=30", "must be at most ships.greatest_speed_mps (20), not 30"),
        ("ships.shortest_leg_s=16", "must be at most ships.longest_leg_s (15), not 16"),
        ("uav.range_m=300", "more than uav.altitude_m (300 m)"),
        ("uav.range_m=3000", "less than the way to the corners of the area (412.311 m)"),
    ],
)
def test_a_walk_without_handovers_is_refused(override, names):
    with pytest.raises(ScenarioError) as refused:
        scenarios.load("random-walk", [override])
    assert names in str(refused.value)
