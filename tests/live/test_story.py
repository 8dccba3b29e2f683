from typing import Any

import pytest

from tactical.live.records import Record
from tactical.live.sources import Replay
from tactical.live.story import STORIES_KEPT, Teller, duration

from .conftest import RUNS
from .test_state import assignment, solve


class Told:
    """A teller, and what it has told."""

    def __init__(self) -> None:
        self.stories: dict[str, Any] = {}
        self.teller = Teller(self._put, {"satcom-eth3": "satcom", "shore-eth2": "satcom"})

    def _put(self, number: str, story: Any) -> None:
        if story is None:
            del self.stories[number]
        else:
            self.stories[number] = story

    def hear(self, *records: Record) -> None:
        for record in records:
            self.teller.hear(record)

    def parts(self, number: int = 1) -> list[str]:
        return [part["text"] for part in self.stories[str(number)]["parts"]]


def association(t_s: float, state: str) -> Record:
    return Record(t_s, "association", "ship1", {"access_point": "uav", "state": state})


def test_a_handover_is_one_story_from_cause_to_effect() -> None:
    told = Told()
    told.hear(
        association(10.0, "associating"),
        solve(10.1, "ship1 heard at uav", uav=1e6),
        association(10.2, "associated"),
        assignment(10.4, "ship1 heard at uav"),
    )
    told.teller.carries("ship1", "uav", 1000.0, 10.8)  # a handshake is no data
    told.teller.carries("ship1", "uav", 388e3, 11.5)
    told.teller.carries("ship1", "uav", 390e3, 12.5)
    assert [story["text"] for story in told.stories.values()] == ["ship1 comes into range of uav"]
    assert told.parts() == [
        "solved",
        "associated in 200 ms",
        "deployed in 100 ms, 400 ms after the cause",
        "388 kbit/s over uav, seen 1.30 s after",
    ]


def test_a_cut_link_is_one_story_though_both_ends_notice() -> None:
    told = Told()
    told.hear(
        Record(5.1, "link_down", "satcom", {"port": "satcom-eth3"}),
        solve(5.2, "port satcom-eth3 down", uav=1e6),
        Record(5.2, "link_down", "shore", {"port": "shore-eth2"}),
        assignment(5.3, "port satcom-eth3 down"),
    )
    assert [story["text"] for story in told.stories.values()] == ["satcom is down"]
    assert told.parts() == ["solved", "deployed in 100 ms, 200 ms after the cause"]


def test_the_same_trigger_later_is_another_story() -> None:
    told = Told()
    for t_s in (1.0, 30.0):
        told.hear(solve(t_s, "demand of ship1"), assignment(t_s + 0.1, "demand of ship1"))
    assert [story["t_s"] for story in told.stories.values()] == [1.0, 30.0]
    assert told.parts(2) == ["solved", "deployed in 100 ms, 100 ms after the cause"]


def test_a_link_that_changes_is_told_with_its_cause_and_not_for_its_delay() -> None:
    told = Told()
    for cause, delay_s, loss in (
        ("4-7 serves", 0.016, 0.0),
        ("4-7 serves", 0.0161, 0.0),
        ("handover", 0.0172, 1.0),
        ("5-6 serves", 0.0172, 0.0),
    ):
        data = {"rate_bps": 4e6, "delay_s": delay_s, "loss": loss, "cause": cause}
        told.hear(Record(5.0, "link_change", "leo", data))
    assert [story["text"] for story in told.stories.values()] == [
        "leo carries 4.00 Mbit/s: 4-7 serves",
        "leo is down: handover",
        "leo carries 4.00 Mbit/s: 5-6 serves",
    ]


def test_what_the_controller_makes_of_rain_is_part_of_its_story() -> None:
    told = Told()
    rain = {"rate_bps": 2e6, "delay_s": 0.25, "loss": 0.0, "cause": "rain"}
    trigger = "capacity of satcom:satcom-eth3"
    told.hear(
        Record(5.0, "link_change", "satcom", rain),
        solve(5.1, trigger, satcom=2e6),
        assignment(5.3, trigger),
    )
    assert told.parts() == ["solved", "deployed in 100 ms, 300 ms after the cause"]
    assert len(told.stories) == 1


def test_a_path_that_will_go_is_told_and_an_unused_one_is_not() -> None:
    told, path = Told(), {"user": "ship1", "via": "uav", "backup": True}
    for more in ({}, {"expected_in_s": 1.98}):
        told.hear(Record(4.0, "subflow_priority", "controller", {**path, **more}))
    assert [story["text"] for story in told.stories.values()] == [
        "ship1 will leave uav in 1.98 s: a backup now"
    ]


def test_a_fault_on_purpose_is_told_as_one() -> None:
    told = Told()
    told.hear(Record(10.0, "killed", "run", {"process": "hostapd", "pid": 99}))
    assert told.stories["1"]["text"] == "hostapd is killed on purpose"


def test_old_stories_are_forgotten() -> None:
    told = Told()
    for number in range(STORIES_KEPT + 20):
        told.hear(Record(float(number), "error", "host", {"message": "again"}))
    assert len(told.stories) == STORIES_KEPT


def test_a_recorded_run_is_told_in_order() -> None:
    replay = Replay(RUNS / "fdm")
    replay.command({"do": "seek", "t_s": 1e9}, 0.0)
    replay.advance(0.0)
    stories = replay.state.store.section("stories").values()
    handovers = [s["text"] for s in stories if s["kind"] == "handover"]
    assert sorted(handovers) == [
        "ship1 comes into range of uav",
        "ship1 leaves uav",
        "ship2 comes into range of uav",
        "ship2 leaves uav",
    ]
    for story in stories:
        if story["kind"] == "handover":
            kinds = [part["kind"] for part in story["parts"]]
            assert {"solved", "deployed"} <= set(kinds), story


@pytest.mark.parametrize(
    ("seconds", "text"), [(350e-6, "350 µs"), (0.0124, "12 ms"), (1.2, "1.20 s")]
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
