import dataclasses
import pickle

import numpy as np
import pytest

import mobility
import scenarios
from scenarios import CoverageChange, DirectMove, ScenarioError


def test_defaults_are_those_of_the_paper():
    scenario = DirectMove().build(seed=0)
    assert scenario.duration_s == 100.0
    (satcom,) = scenario.satellites
    (uav,) = scenario.access_points
    assert (satcom.backhaul.rate_bps, satcom.backhaul.delay_s) == (50e6, 0.25)
    assert (uav.backhaul.rate_bps, uav.backhaul.delay_s) == (1e6, 0.01)
    assert [(flow.user, flow.host, flow.rate_bps) for flow in scenario.traffic] == [
        ("ship1", "host", 3e6),
        ("ship2", "host", 3e6),
    ]
    assert scenario.reference_goodput_bps == {"sptcp": 487500.0, "mptcp": 372800.0, "fdm": 418800.0}
    assert set(scenario.reference_goodput_bps) == set(scenarios.PROTOCOLS)


def test_both_ships_enter_at_60_s_and_stay():
    assert DirectMove().build(seed=0).coverage() == (
        CoverageChange(60.0, "ship1", "uav", True),
        CoverageChange(60.0, "ship2", "uav", True),
    )


def test_a_smaller_range_makes_them_leave_again():
    scenario = scenarios.load("direct-move", {"uav.range_m": 350.0}).build(seed=0)
    changes = [(change.time_s, change.station, change.entering) for change in scenario.coverage()]
    assert changes == [
        (60.0, "ship1", True),
        (60.0, "ship2", True),
        (80.0, "ship1", False),
        (80.0, "ship2", False),
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_every_ship_enters_exactly_then(count):
    experiment = scenarios.load(
        "direct-move",
        {"ships.count": count, "ships.spacing_m": 37.0, "entry_time_s": 12.5, "duration_s": 20},
    )
    scenario = experiment.build(seed=0)
    assert len(scenario.stations) == count == len(scenario.traffic)
    times = [change.time_s for change in scenario.coverage()]
    assert times == pytest.approx([12.5] * count, abs=1e-9)
    (uav,) = scenario.access_points
    for station in scenario.stations:
        before = mobility.in_range(station.trajectory, uav.trajectory, uav.range_m, [12.49, 12.51])
        assert before.tolist() == [False, True]


def test_tracks_are_parallel_and_apart():
    scenario = scenarios.load("direct-move", {"ships.count": 3}).build(seed=0)
    at_50 = np.vstack([station.trajectory.position(50.0) for station in scenario.stations])
    assert at_50[:, 1].tolist() == [-200.0, 0.0, 200.0]


def test_the_same_seed_gives_the_same_scenario():
    assert DirectMove().build(seed=3) == DirectMove().build(seed=3)


def test_a_scenario_survives_pickling():
    scenario = DirectMove().build(seed=0)
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_values_that_do_not_fit_together_are_refused():
    with pytest.raises(ScenarioError, match=r"entry_time_s must be less than duration_s \(100 s\)"):
        DirectMove(entry_time_s=100.0)
    with pytest.raises(ScenarioError, match=r"uav.range_m must be more than 316.228 m"):
        scenarios.load("direct-move", {"uav.range_m": 316.0})
    with pytest.raises(ScenarioError, match="the outermost ship"):
        scenarios.load("direct-move", {"ships.spacing_m": 6000.0})


def test_the_averages_of_the_source_are_those_of_its_parameters():
    def averages(**changes: object) -> dict[str, float]:
        return dict(scenarios.load("direct-move", changes).build(seed=0).reference_goodput_bps)

    assert averages() == DirectMove.REFERENCE_GOODPUT_BPS
    assert averages(**{"controller.kappa": 2.0, "captures.snap_length_bytes": 256}) == averages()
    assert averages(duration_s=200.0) == {}


def test_an_experiment_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DirectMove().duration_s = 3.0  # type: ignore[misc]
