"""A run directory that grows while it is watched."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tactical.live.setup import SetupError
from tactical.live.sources import CommandRefused, Following, Replay, Steered, open_run

from .conftest import RUNS, Told


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """The directory of a run that has just begun."""
    for name in ("run.toml", "plan.json"):
        shutil.copy(RUNS / "fdm" / name, tmp_path / name)
    tell(tmp_path, "state", "run", state="defined")
    return tmp_path


def line(kind: str, node: str, t_s: float | None, data: dict[str, Any]) -> str:
    stamp = {"seq": 0, "t_s": t_s, "t_mono_s": 1.0}
    return json.dumps({**stamp, "kind": kind, "node": node, "data": data}) + "\n"


def tell(run_dir: Path, kind: str, node: str, t_s: float | None = None, **data: Any) -> None:
    with (run_dir / "events.jsonl").open("a") as stream:
        stream.write(line(kind, node, t_s, data))


def test_what_is_added_is_shown_and_half_a_line_waits(run_dir: Path) -> None:
    following = Following(run_dir)
    following.advance(0.0)
    tell(run_dir, "position", "ship1", 1.0, east_m=5.0, north_m=6.0, up_m=0.0)
    whole = line("position", "ship1", 2.0, {"east_m": 7.0, "north_m": 8.0, "up_m": 0.0})
    with (run_dir / "events.jsonl").open("a") as stream:
        stream.write(whole[:40])
    following.advance(0.1)
    assert following.state.store.get("positions", "ship1") == [5.0, 6.0, 0.0]
    with (run_dir / "events.jsonl").open("a") as stream:
        stream.write(whole[40:])
    following.advance(0.2)
    assert following.state.store.get("positions", "ship1") == [7.0, 8.0, 0.0]


def test_a_run_that_goes_on_is_watched_only(run_dir: Path) -> None:
    with pytest.raises(CommandRefused, match="watched only"):
        Following(run_dir).command({"do": "play", "playing": True}, 0.0)


def test_a_run_that_is_over_is_a_recording(run_dir: Path) -> None:
    assert isinstance(open_run(run_dir), Following)
    tell(run_dir, "state", "run", 9.0, state="failed", reason="interrupted")
    assert isinstance(open_run(run_dir), Replay)


def test_a_followed_run_becomes_a_recording_when_its_files_are_there(run_dir: Path) -> None:
    tell(run_dir, "position", "ship1", 1.0, east_m=5.0, north_m=6.0, up_m=0.0)
    following = Following(run_dir)
    following.advance(0.0)
    assert following.recording() is None, "it goes on"
    image = run_dir / "guest-memory.img"
    image.touch()
    tell(run_dir, "state", "run", 9.0, state="done")
    following.advance(0.1)
    assert following.recording() is None, "its files are in the guest's memory"
    image.unlink()
    recording = following.recording()
    assert recording is not None and recording.epoch > following.epoch
    recording.advance(0.2)
    store = recording.state.store
    assert (store.get("run", "phase"), store.get("run", "t_s")) == ("done", 9.0)


def test_a_recording_is_over_when_data_have_arrived_and_says_how_the_run_ended(
    run_dir: Path,
) -> None:
    tell(run_dir, "position", "ship1", 1.0, east_m=5.0, north_m=6.0, up_m=0.0)
    tell(run_dir, "state", "run", 20.0, state="collecting")
    tell(run_dir, "link_down", "satcom", 60.0, port="satcom-eth3")
    tell(run_dir, "state", "run", 66.0, state="failed", reason="interrupted")
    replay = Replay(run_dir, at_end=True)
    replay.advance(0.0)
    store, epoch = replay.state.store, replay.epoch
    assert (store.get("run", "phase"), store.get("run", "t_s")) == ("failed", 20.0)
    assert "is down" not in str(store.section("stories"))
    replay.advance(0.1)
    assert replay.epoch == epoch, "it stays at its end without beginning anew"
    replay.command({"do": "seek", "t_s": 19.0}, 0.2)
    replay.advance(0.2)
    assert replay.state.store.get("run", "phase") == "defined"


def test_a_recording_opens_with_every_node_where_it_begins(run_dir: Path) -> None:
    tell(run_dir, "position", "ship1", 0.03, east_m=5.0, north_m=6.0, up_m=0.0)
    tell(run_dir, "position", "uav", 0.04, east_m=0.0, north_m=0.0, up_m=300.0)
    tell(run_dir, "position", "ship1", 1.0, east_m=7.0, north_m=8.0, up_m=0.0)
    tell(run_dir, "position", "late", 5.0, east_m=1.0, north_m=1.0, up_m=0.0)
    replay = Replay(run_dir)
    for now_s in (0.0, 1.0):
        replay.advance(now_s)
        assert replay.state.store.get("positions", "ship1") == [5.0, 6.0, 0.0]
        assert replay.state.store.get("positions", "uav") == [0.0, 0.0, 300.0]
        replay.command({"do": "seek", "t_s": 0.0}, now_s)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("run.toml", None, "run.toml cannot be read"),
        ("plan.json", "[]", "expected a JSON object"),
        ("plan.json", "{", "is no JSON"),
        ("plan.json", "{}", "lack 'access_points'"),
    ],
)
def test_a_directory_that_does_not_say_what_it_is_names_the_file(
    run_dir: Path, name: str, content: str | None, problem: str
) -> None:
    (run_dir / name).unlink()
    if content is not None:
        (run_dir / name).write_text(content)
    with pytest.raises(SetupError, match=problem):
        open_run(run_dir)


def test_a_steered_run_is_told_commands_while_its_traffic_flows(run_dir: Path) -> None:
    worker = Told()
    steered = Steered(run_dir, worker)
    cut = {"do": "link", "relay": "satcom", "up": False}
    steered.advance(0.0)
    with pytest.raises(CommandRefused, match="this one is defined"):
        steered.command(cut, 0.0)
    tell(run_dir, "state", "run", 0.0, state="running")
    steered.advance(0.1)
    steered.command(cut, 0.1)
    with pytest.raises(CommandRefused, match="satcom, uav"):
        steered.command({"do": "link", "relay": "ship1", "up": False}, 0.1)
    with pytest.raises(CommandRefused, match="ship1, ship2, uav"):
        steered.command({"do": "place", "node": "satcom", "east_m": 0, "north_m": 0}, 0.1)
    tell(run_dir, "state", "run", 9.0, state="collecting")
    steered.advance(0.2)
    with pytest.raises(CommandRefused, match="this one is collecting"):
        steered.command(cut, 0.2)
    assert worker.commands == [cut]


def test_a_steered_run_in_virtual_time_waits_for_people(run_dir: Path) -> None:
    run_toml = run_dir / "run.toml"
    run_toml.write_text(re.sub(r'time = "\w+"', 'time = "virtual"', run_toml.read_text()))
    worker = Told()
    steered = Steered(run_dir, worker)
    tell(run_dir, "state", "run", 0.0, state="running")
    seen = []
    # Run time that has been told by a moment of ours, and whether the run waits then.
    for now_s, run_s in ((0.0, 0.0), (0.2, 1.0), (0.9, None), (1.0, None), (5.0, 2.0), (5.1, 2.5)):
        if run_s is not None:
            tell(run_dir, "position", "ship1", run_s, east_m=0.0, north_m=0.0, up_m=0.0)
        steered.advance(now_s)
        seen.append(worker.halted)
    assert seen == [False, True, True, False, False, True], "it does not make up for lost time"
    tell(run_dir, "state", "run", 2.6, state="collecting")
    steered.advance(5.2)
    assert not worker.halted
