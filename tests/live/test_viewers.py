import json

import pytest

from tactical.live.sources import Replay
from tactical.live.viewers import MOST_VIEWERS, Full, Viewers

from .conftest import RUNS


@pytest.fixture
def viewers() -> Viewers:
    source = Replay(RUNS / "fdm")
    source.command({"do": "play", "playing": True}, 0.0)
    made = Viewers(source, "secret")
    made.advance(0.0)
    return made


def positions(message: str) -> dict[str, list[float]]:
    return json.loads(message)["sections"].get("positions", {})


def test_a_late_joiner_is_told_everything_and_others_what_is_new(viewers: Viewers) -> None:
    early = viewers.join("")
    first = json.loads(viewers.message(early))
    viewers.advance(6.0)
    late = viewers.join("")
    increment, full = json.loads(viewers.message(early)), json.loads(viewers.message(late))
    assert (first["full"], increment["full"], full["full"]) == (True, False, True)
    assert "setup" in full
    assert len(json.dumps(increment)) < len(json.dumps(full))
    before, now = first["sections"]["positions"], full["sections"]["positions"]
    moved = {node: place for node, place in now.items() if before.get(node) != place}
    assert moved
    assert increment["sections"]["positions"] == moved


def test_a_slow_viewer_is_told_at_once_what_it_missed_and_that_is_counted(viewers: Viewers) -> None:
    slow, quick = viewers.join(""), viewers.join("")
    for tick in range(8):
        viewers.message(quick)
        if tick in (0, 7):
            text = viewers.message(slow)
        viewers.advance(tick + 1.0)
    assert (slow.coalesced, quick.coalesced, viewers.coalesced) == (6, 0, 6)
    assert "ship1" in positions(text)


def test_one_viewer_steers_the_last_who_came_with_the_token(viewers: Viewers) -> None:
    watcher, first, second = viewers.join("wrong"), viewers.join("secret"), viewers.join("secret")
    assert [viewers.steers(v) for v in (watcher, first, second)] == [False, False, True]
    viewers.leave(second)
    assert viewers.steers(first)
    viewers.leave(first)
    assert not viewers.steers(watcher)


def test_no_more_than_so_many_watch(viewers: Viewers) -> None:
    present = [viewers.join("") for _ in range(MOST_VIEWERS)]
    with pytest.raises(Full):
        viewers.join("secret")
    viewers.leave(present[0])
    viewers.join("secret")


def test_going_back_makes_everybody_begin_anew(viewers: Viewers) -> None:
    viewer = viewers.join("")
    viewers.advance(9.0)
    viewers.message(viewer)
    viewers.source.command({"do": "seek", "t_s": 2.0}, 9.0)
    viewers.advance(9.1)
    assert json.loads(viewers.message(viewer))["full"]
