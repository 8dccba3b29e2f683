"""Ship to shore: access gets better in steps, with a handover between access points."""

import pytest

import scenarios
from scenarios import ScenarioError, ShipToShore


def schedule(*overrides: str) -> list[tuple[str, str, str]]:
    scenario = scenarios.load("ship-to-shore", overrides).build(seed=0)
    return [(each.station, each.before, each.after) for each in scenario.handovers()]


def test_every_ship_goes_from_satellite_over_uav_to_coast_without_a_gap():
    assert schedule("ships.count=3") == [
        *((f"ship{n}", "satcom", "uav") for n in (1, 2, 3)),
        *((f"ship{n}", "uav", "coast") for n in (1, 3, 2)),
    ]


def test_all_enter_the_range_of_the_uav_at_the_same_time():
    scenario = scenarios.load("ship-to-shore", ["ships.count=4"]).build(seed=0)
    times_s = [c.time_s for c in scenario.coverage() if c.access_point == "uav" and c.entering]
    assert times_s == pytest.approx([20.0] * 4, abs=1e-9)


def test_the_times_of_the_docstring_are_those_of_the_schedule():
    scenario = ShipToShore().build(seed=0)
    moved_s = {each.time_s for each in scenario.handovers() if each.after == "coast"}
    (moved,) = {round(time_s, 6) for time_s in moved_s}
    entered = {c.time_s for c in scenario.coverage() if c.access_point == "coast"}
    (coast_s,) = {round(time_s - 20.0) for time_s in entered}
    text = " ".join((ShipToShore.__doc__ or "").split())
    assert f"the coast's about {coast_s} s after that" in text
    assert f"at about {moved:.0f} s" in text
    assert f"{moved - 20.0:.0f} s of the UAV and {120.0 - moved:.0f} s of the coast" in text


def test_a_craft_that_never_compares_keeps_the_uav_to_the_limit():
    scenario = scenarios.load(
        "ship-to-shore", ["association.dwell_s=1000", "association.ratio=1"]
    ).build(seed=0)
    lost_s = [c.time_s for c in scenario.coverage() if c.access_point == "uav" and not c.entering]
    moved_s = [each.time_s for each in scenario.handovers() if each.after == "coast"]
    assert moved_s == pytest.approx(lost_s, abs=1e-9)


@pytest.mark.parametrize(
    ("override", "names"),
    [
        ("uav.range_m=300", "uav.range_m must be more than 316.228 m"),
        ("coast.range_m=100", "coast.range_m must be more than 104.403 m"),
        ("duration_s=200", "duration_s must be at most 131 s, when the first ship is ashore"),
        ("entry_time_s=120", "entry_time_s must be less than duration_s (120 s)"),
    ],
)
def test_a_landing_that_cannot_be_is_refused(override, names):
    with pytest.raises(ScenarioError) as refused:
        scenarios.load("ship-to-shore", [override])
    assert names in str(refused.value)


def test_the_fingerprint_is_the_same_on_every_machine():
    assert scenarios.fingerprint(ShipToShore()) == "1afafdc7"
