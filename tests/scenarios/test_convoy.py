"""The convoy: a fleet that hands over in waves, the same for the same seed on any machine."""

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest

import scenarios
from scenarios import Convoy, ScenarioError


def test_a_seed_is_one_schedule_on_every_machine():
    # UAVs that circle take sines, which agree between machines to some 1e-9 m.
    schedule = [
        (f"{change.time_s:.3f}", *change[1:]) for change in Convoy().build(seed=1).handovers()
    ]
    digest = hashlib.sha256(repr(schedule).encode()).hexdigest()[:16]
    assert digest == "ed89c152c18a0f92", schedule
    assert Convoy().build(seed=1) == Convoy().build(seed=1)
    assert Convoy().build(seed=1).handovers() != Convoy().build(seed=2).handovers()
    assert scenarios.fingerprint(Convoy()) == "4f92c4b5"


def test_ships_keep_their_stations():
    experiment = Convoy()
    ships = experiment.ships
    times_s = np.linspace(0.0, experiment.duration_s, 2001)
    stations = experiment.build(seed=3).stations
    assert len(stations) == 10
    for station, (east_m, north_m, _) in zip(stations, ships.stations_m, strict=True):
        place_m = station.trajectory.position(times_s)
        off_m = np.hypot(
            place_m[:, 0] - east_m - ships.speed_mps * times_s, place_m[:, 1] - north_m
        )
        assert off_m.max() <= ships.within_m + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_every_uav_is_used_and_handovers_come_in_waves(seed):
    changes = Convoy().build(seed).handovers()
    # Not all at once, so that the controller has to solve again and again.
    moments = Counter(change.time_s for change in changes if change.time_s > 0.0)
    assert set(moments.values()) == {1}
    kinds = Counter((change.before[:3], change.after[:3]) for change in changes)
    assert kinds["uav", "uav"] >= 15, "mostly between UAVs"
    assert {change.after for change in changes} >= {"uav1", "uav2", "uav3", "uav4"}


def test_the_demand_needs_the_far_satellite_and_fits_without_the_uavs():
    scenario = Convoy().build(seed=0)
    wanted_bps = sum(t.rate_bps for t in scenario.traffic) * scenario.header_overhead
    satcom, leo = (satellite.backhaul.rate_bps for satellite in scenario.satellites)
    near_bps = leo + sum(each.backhaul.rate_bps for each in scenario.access_points)
    assert near_bps < wanted_bps < scenario.capacity_share * satcom


def test_a_larger_fleet_has_what_it_was_asked_for():
    asked = "ships.count=50 uavs.count=10 leo.count=3 ships.spacing_m=125 ships.head_m=3000"
    fleet = scenarios.load("convoy", [*asked.split(), "duration_s=10"]).build(seed=1)
    assert len(fleet.stations) == len(fleet.traffic) == 50
    assert [satellite.name for satellite in fleet.satellites] == ["satcom", "leo1", "leo2", "leo3"]
    begun = {change.after for change in fleet.handovers() if change.time_s <= 0.0}
    assert begun >= {f"uav{number}" for number in range(1, 9)}, "spread over the UAVs"


def test_neighbouring_uavs_overlap_and_do_not_share_a_channel():
    uavs = Convoy().uavs
    assert 2.0 * math.sqrt(uavs.range_m**2 - uavs.altitude_m**2) > uavs.spacing_m
    channels = [access_point.channel for access_point in Convoy().build(seed=0).access_points]
    assert len(channels) == 4
    assert all(one != other for one, other in itertools.pairwise(channels))


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ("ships.least_correction_mps=4", "must be at most ships.greatest_correction_mps (3)"),
        ("ships.within_m=1 duration_s=86400", "ships.within_m must be at least 25.92 m"),
        ("uavs.range_m=300", "uavs.range_m must be more than uavs.altitude_m (300 m)"),
        ("ships.within_m=0.5", "ships.within_m must be a number in m, 1 or more"),
    ],
)
def test_a_convoy_that_cannot_be_is_refused(overrides, names):
    with pytest.raises(ScenarioError) as refused:
        scenarios.load("convoy", overrides.split())
    assert names in str(refused.value)
