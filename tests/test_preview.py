"""What is told of a scenario before it runs."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import mobility
import scenarios
from scenarios import Handover
from tactical import cli, preview
from tactical.forecast import Reach, forecast

WALK = scenarios.load("random-walk").build(seed=3)
DIRECT = scenarios.load("direct-move").build(seed=0)
ACCESS_POINT = DIRECT.access_points[0]


def crossing(*access_points):
    """Return a scenario of one ship that sails east at 10 m/s for 100 s, past access points."""
    ship = scenarios.Station("ship", mobility.Straight((0.0, 0.0, 0.0), (10.0, 0.0, 0.0)))
    return replace(
        DIRECT,
        stations=(ship,),
        traffic=(),
        access_points=tuple(
            replace(ACCESS_POINT, name=name, trajectory=mobility.Fixed((x, 0.0, 0.0)), range_m=r)
            for name, x, r in access_points
        ),
    )


def test_a_single_path_keeps_its_access_point_until_that_is_lost():
    what = forecast(crossing(("a", 300.0, 200.0), ("b", 500.0, 150.0)))
    assert what.reaches == (Reach("ship", "a", 10.0, 50.0), Reach("ship", "b", 35.0, 65.0))
    assert what.handovers == (
        Handover(10.0, "ship", "satcom", "a"),
        Handover(50.0, "ship", "a", "b"),
        Handover(65.0, "ship", "b", "satcom"),
    )
    assert what.access_at("ship") == [
        Reach("ship", "satcom", 0.0, 10.0),
        Reach("ship", "a", 10.0, 50.0),
        Reach("ship", "b", 50.0, 65.0),
        Reach("ship", "satcom", 65.0, 100.0),
    ]


def test_one_radio_takes_a_share_of_one_access_point_at_a_time():
    scenario = crossing(("a", 300.0, 200.0), ("b", 500.0, 150.0))
    shares = [
        forecast(scenario).share_bps(each).at([40.0, 55.0]) for each in scenario.access_points
    ]
    assert [share.tolist() for share in shares] == [[1e6, 0.0], [0.0, 1e6]]


def test_a_ship_that_starts_and_ends_in_range_makes_no_handover_there():
    what = forecast(crossing(("a", 0.0, 2000.0)))
    assert what.handovers == ()
    assert what.access_at("ship") == [Reach("ship", "a", 0.0, 100.0)]


def test_with_one_access_point_handovers_are_the_changes_of_coverage():
    changes = [change for change in WALK.coverage() if change.time_s > 0.0]
    assert [(each.time_s, each.station) for each in forecast(WALK).handovers] == [
        (change.time_s, change.station) for change in changes
    ]


def test_an_access_is_shared_by_those_in_range():
    what = forecast(WALK)
    share = what.share_bps(WALK.access_points[0])
    times = np.linspace(0.05, 99.95, 1000)
    users = sum(
        mobility.in_range(
            station.trajectory, WALK.access_points[0].trajectory, WALK.access_points[0].range_m,
            times,
        ).astype(int)
        for station in WALK.stations
    )  # fmt: skip
    expected = np.where(users > 0, 1e6 / np.maximum(users, 1), 0.0)
    assert (share.at(times) == expected).all()
    assert what.share_bps(WALK.satellites[0]).at([0.0, 99.0]).tolist() == [25e6, 25e6]


def test_without_an_access_point_there_is_nothing_to_hand_over():
    what = forecast(replace(DIRECT, access_points=()))
    assert what.handovers == () and what.reaches == ()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_a_picture_and_prints_the_schedule(here, capsys):
    assert cli.main(["preview", "direct-move"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "At 60 s ship1: satcom -> uav",
        "At 60 s ship2: satcom -> uav",
        "2 handovers of a single path in 100 s.",
        "Written: direct-move-preview.png",
    ]
    with Image.open(here / "direct-move-preview.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    # Both accesses are there in their colours, on a page of white.
    assert {(0x6F, 0x7F, 0x8F), (0xD5, 0x5E, 0x00), (255, 255, 255)} <= colours


def test_with_json_nothing_is_drawn_unless_asked_for(here, capsys):
    assert cli.main(["preview", "random-walk", "--seed", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(here.iterdir()) == []
    assert document["written"] == []
    assert [tuple(each.values()) for each in document["handovers"]] == list(
        forecast(WALK).handovers
    )
    assert document["rate_for_each_user"][0] == {
        "access": "satcom",
        "time_s": 0.0,
        "rate_bps": 25e6,
    }


def test_the_same_scenario_gives_the_same_file(here):
    for name in ("a.svg", "b.svg"):
        assert cli.main(["preview", "random-walk", "--output", name]) == 0
    assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()


def test_a_film_has_its_frames_and_moves(here, monkeypatch):
    monkeypatch.setattr(preview, "FRAMES", 4)
    assert cli.main(["preview", "random-walk", "--animation", "walk.gif"]) == 0
    with Image.open(here / "walk.gif") as film:
        assert film.n_frames == 4
        frames = []
        for number in range(4):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB")).copy())
    assert all((frames[0] != frame).any() for frame in frames[1:])


def test_moving_access_points_and_many_stations_are_drawn(here):
    orbit = mobility.Orbit((0.0, 0.0, 300.0), 200.0, 25.0)
    ship = WALK.stations[0]
    many = replace(
        WALK,
        stations=tuple(replace(ship, name=f"s{number}") for number in range(20)),
        traffic=(),
        access_points=(replace(WALK.access_points[0], trajectory=orbit),),
    )
    preview.draw(forecast(many), here / "many.pdf")
    assert (here / "many.pdf").read_bytes().startswith(b"%PDF")
    more = replace(many, stations=tuple(replace(ship, name=f"s{number}") for number in range(61)))
    with pytest.raises(ValueError, match="at most 60 stations, and there are 61"):
        preview.draw(forecast(more), here / "more.pdf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "a.jpg"], "--output a.jpg: the name must end in .png, .svg, .pdf"),
        (["--animation", "a.png"], "--animation a.png: the name must end in .gif, .mp4"),
        (["--output", "no/a.png"], "--output no/a.png: there is no directory no"),
        (["--set", "uav.range_m=-1"], "uav.range_m must be a number in m"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(here, capsys, arguments, message):
    assert cli.main(["preview", "direct-move", *arguments, "--json"]) == 2
    assert message in json.loads(capsys.readouterr().out)["error"]
    assert list(here.iterdir()) == []


def test_a_forecast_needs_no_drawing():
    code = "import tactical.forecast, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
