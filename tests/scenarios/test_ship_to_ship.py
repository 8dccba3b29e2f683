"""Ship to ship: the other end of all traffic sails too, below its own UAV."""

import pytest

import scenarios
from scenarios import ScenarioError, ShipToShip


@pytest.mark.parametrize("flagship_mps", [0.0, 8.0, 30.0])
def test_all_meet_the_moving_uav_at_the_moment_asked_for_and_stay(flagship_mps):
    scenario = scenarios.load(
        "ship-to-ship", [f"flagship_mps={flagship_mps}", "ships.count=3", "entry_time_s=25"]
    ).build(seed=1)
    coverage = scenario.coverage()
    assert sorted(each.station for each in coverage) == ["ship1", "ship2", "ship3"]
    assert all(each.entering for each in coverage)
    times_s = [each.time_s for each in scenario.handovers()]
    assert times_s == pytest.approx([25.0] * 3, abs=1e-6)
    assert {each.after for each in scenario.handovers()} == {"uav"}


def test_every_ship_sends_and_gets_files_and_voice():
    scenario = ShipToShip().build(seed=1)
    offered = {
        (user, way): scenario.offered_bps(user, way)
        for user in ("ship1", "ship2")
        for way in ("up", "down")
    }
    assert set(offered.values()) == {816e3}
    assert {each.host for each in scenario.traffic} == {"flagship"} == {scenario.host}


@pytest.mark.parametrize(
    ("override", "names"),
    [
        ("uav.range_m=300", "uav.range_m must be more than 316.228 m"),
        ("entry_time_s=100", "entry_time_s must be less than duration_s (100 s)"),
    ],
)
def test_a_meeting_that_cannot_be_is_refused(override, names):
    with pytest.raises(ScenarioError) as refused:
        scenarios.load("ship-to-ship", [override])
    assert names in str(refused.value)


def test_the_fingerprint_is_the_same_on_every_machine():
    assert scenarios.fingerprint(ShipToShip()) == "244b2f9b"
