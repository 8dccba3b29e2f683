"""LEO pass: who serves when, and what that does to the link."""

import json
import math

import numpy as np
import pytest
from PIL import Image

import mobility.satellites as orbits
import scenarios
from mobility.satcom import slant_range_m
from scenarios import LeoPass, ScenarioError
from scenarios.leo_pass import DELAY_STEP_S, EPOCH
from tactical import cli

LIGHT_MPS = 299_792_458.0


@pytest.mark.parametrize("seed", range(5))
def test_a_handover_of_satellites_pauses_the_link_and_the_delay_is_that_of_geometry(seed):
    experiment = LeoPass()
    scenario = experiment.build(seed)
    link, services = scenario.satellites[0].backhaul, scenario.satellites[0].services
    turns = scenario.satellite_handovers()
    assert [turn.after for turn in turns] == [service.spacecraft for service in services[1:]]
    assert len(turns) >= 3
    for turn in turns:
        assert turn.time_s % experiment.leo.slot_s == 0.0
        assert link.at(turn.time_s + 0.05).capacity_bps == 0.0
        assert link.at(turn.time_s + 0.15).capacity_bps == link.at(turn.time_s - 0.1).capacity_bps
    lowest = 2 * experiment.leo.altitude_m / LIGHT_MPS + experiment.leo.ground_delay_s
    farthest_m = slant_range_m(experiment.leo.mask_deg, 6_378_137.0 + 1.02 * 550e3)
    highest = 2 * farthest_m / LIGHT_MPS + experiment.leo.ground_delay_s
    delays = [link.delay_s, *(state.delay_s for state in link.profile)]
    assert lowest - 2e-4 < min(delays) < max(delays) < highest


def test_between_two_settings_the_delay_never_strays_farther_than_a_step():
    experiment = LeoPass()
    scenario = experiment.build(seed=3)
    link = scenario.satellites[0].backhaul
    leo = experiment.leo
    moment = float(int(orbits.Draws(3).between(0.0, 86_400.0)))
    shell = orbits.walker(
        leo.satellites, leo.planes, leo.phasing, inclination_deg=leo.inclination_deg,
        altitude_m=leo.altitude_m, epoch=EPOCH, after_s=moment,
    )  # fmt: skip
    by_name = {spacecraft.name: spacecraft for spacecraft in shell}
    for service in scenario.satellites[0].services:
        times = np.arange(service.start_s + 0.2, service.end_s, 0.25)
        way = by_name[service.spacecraft].delay_s(
            experiment.place.site, experiment.gateway.site, times
        )
        told = np.array([link.at(float(t)).delay_s for t in times])
        # A second passes between looks, in which it moves by at most half a step.
        assert np.abs(told - way - leo.ground_delay_s).max() < 1.5 * DELAY_STEP_S


def test_make_before_break_has_no_pause():
    scenario = scenarios.load("leo-pass", ["leo.interruption_s=0"]).build(0)
    assert scenario.satellite_handovers()
    assert all(state.loss == 0.0 for state in scenario.satellites[0].backhaul.profile)


def test_the_highest_stays_longer_than_one_drawn():
    drawn, highest = (
        sum(
            len(scenarios.load("leo-pass", [f"leo.choice={way}"]).build(n).satellite_handovers())
            for n in range(5)
        )
        for way in ("drawn", "highest")
    )
    assert highest < drawn / 2


def test_a_sparse_shell_leaves_gaps_in_which_the_link_is_down():
    changes = {"leo.satellites": 160, "leo.planes": 16, "leo.phasing": 1, "duration_s": 300}

    def capacities(seed, times):
        link = scenarios.load("leo-pass", changes).build(seed).satellites[0].backhaul
        return [link.at(time_s).capacity_bps for time_s in times]

    middle = scenarios.load("leo-pass", changes).build(1).satellite_handovers()
    assert [(turn.before, turn.after) for turn in middle] == [("7-5", ""), ("", "2-7")]
    lost_s, found_s = (turn.time_s for turn in middle)
    times = (lost_s - 0.1, lost_s, found_s - 0.1, found_s, 299.0)
    assert capacities(1, times) == [4e6, 0.0, 0.0, 4e6, 4e6]
    assert capacities(2, (0.0, 149.9, 150.0)) == [0.0, 0.0, 4e6], "none at the start"
    assert capacities(5, (269.9, 270.0, 300.0)) == [4e6, 0.0, 0.0], "none at the end"


def test_every_seed_is_another_pass_and_always_the_same():
    first = LeoPass().build(0)
    assert first == LeoPass().build(0)
    assert first.satellites[0].services != LeoPass().build(1).satellites[0].services


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leo.satellites": 100}, "leo.satellites must be a multiple of leo.planes (72), not 100"),
        ({"leo.phasing": 72}, "leo.phasing must be less than leo.planes (72), not 72"),
        ({"leo.choice": "lowest"}, "leo.choice must be drawn (by lot"),
    ],
)
def test_shells_that_cannot_be_are_refused(change, message):
    with pytest.raises(ScenarioError) as refused:
        scenarios.load("leo-pass", change)
    assert message in str(refused.value)


def test_without_a_satellite_in_sight_there_is_no_run():
    changes = {"place.latitude_deg": 80.0, "gateway.latitude_deg": 80.0}
    with pytest.raises(ScenarioError, match="must let ships and gateway see a satellite"):
        scenarios.load("leo-pass", changes).build(0)


def test_the_orbit_is_as_high_as_asked():
    shell = orbits.walker(
        12, 4, 1, inclination_deg=53.0, altitude_m=550e3, epoch=EPOCH, after_s=3600.0
    )
    for spacecraft in shell:
        radius = np.linalg.norm(spacecraft.earth_fixed_m(np.arange(0.0, 6000.0, 60.0)), axis=1)
        # The flattening of the earth, which circles of two bodies do not know, moves it a little.
        assert np.abs(radius - 6_378_135.0 - 550e3).max() < 12e3


def test_a_pattern_is_spread_as_walker_says():
    epoch = EPOCH
    shell = orbits.walker(12, 4, 1, inclination_deg=0.0, altitude_m=550e3, epoch=epoch)
    angles = sorted(
        math.degrees(math.atan2(place[1], place[0])) % 360.0
        for place in (spacecraft.earth_fixed_m(0.0)[0] for spacecraft in shell)
    )
    # In one plane all nodes coincide: 4 x 90 and 3 x 120 degrees, each plane 30 degrees ahead.
    expected = sorted((90 * p + 120 * s + 30 * p) % 360 for p in range(4) for s in range(3))
    turned = (np.array(angles) - angles[0]) % 360.0
    assert np.sort(turned) == pytest.approx(
        np.sort((np.array(expected) - expected[0]) % 360), abs=0.1
    )


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ((10, 3, 0), "as many satellites in each plane"),
        ((12, 4, 4), "phasing below the number of planes"),
    ],
)
def test_patterns_that_cannot_be_are_refused(pattern, message):
    with pytest.raises(ValueError, match=message):
        orbits.walker(*pattern, inclination_deg=53.0, altitude_m=550e3, epoch=EPOCH)


def test_the_commands_tell_who_serves_when(capsys):
    turns = [turn._asdict() for turn in LeoPass().build(1).satellite_handovers()]
    assert cli.main(["check", "leo-pass", "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["satellite_handovers"] == turns
    assert cli.main(["preview", "leo-pass", "--seed", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["satellite_handovers"] == turns
    delays = [each for each in told["delay"] if each["access"] == "leo"]
    assert len(delays) > 8 and all(0.0136 < each["delay_s"] < 0.02 for each in delays)
    first = turns[0]
    assert cli.main(["check", "leo-pass", "--seed", "1"]) == 0
    said = f"At {first['time_s']:g} s leo changes from satellite {first['before']} to "
    assert said in capsys.readouterr().out


def test_a_picture_of_links_that_change(tmp_path):
    output = tmp_path / "leo.png"
    arguments = ["preview", "leo-pass", "--set", "satcom.rain.peak_db=16", "--output", str(output)]
    assert cli.main(arguments) == 0
    with Image.open(output) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert {(0x6F, 0x7F, 0x8F), (0x00, 0x72, 0xB2)} <= colours, "both satellites in their colours"
