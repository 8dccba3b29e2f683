"""A run directory that grows while it is watched."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tactical.live.setup import SetupError
from tactical.live.sources import CommandRefused, Following, Replay, open_run

from .conftest import RUNS


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
