"""Links by the relays behind them: a radio leads to several access points."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import analyse
from analysis.run.links import link_to
from analysis.run.story import link_changes, stories
from tests.analysis.run.test_story import JOINING, timeline

LINKS = ("satcom", "uav1+coast", "leo")


@pytest.mark.parametrize(
    ("relay", "link"),
    [("satcom", "satcom"), ("coast", "uav1+coast"), ("uav", None), ("", None)],
)
def test_a_relay_is_behind_one_link(relay: str, link: str | None) -> None:
    assert link_to(relay, LINKS) == link


def test_data_over_a_shared_radio_are_those_of_the_access_point_that_was_joined() -> None:
    seen = timeline((9.0, 11.5))
    shared = replace(seen, links=("satcom", "uav+coast"))
    told = [
        stories(JOINING, link_changes(JOINING), {"ship1": each}, multipath=True)
        for each in (seen, shared)
    ]
    assert told[0] == told[1]
    assert told[0][0].first_on_new_s == pytest.approx(11.5, abs=0.1)


def test_pauses_of_links_are_shown_to_every_user(copy: Path) -> None:
    """A handover of satellites, an outage that ends, and one that does not."""
    told = [
        ("leo", 15.0, 1.0, "handover"),
        ("leo", 15.1, 0.0, "14-15 serves"),
        ("satcom", 20.0, 1.0, "rain fade 15.0 dB"),
        ("satcom", 21.0, 1.0, "rain fade 16.0 dB"),
        ("satcom", 30.0, 0.0, "rain fade 13.0 dB"),
        ("leo", 31.0, 1.0, "no satellite"),
    ]
    with (copy / "events.jsonl").open("a") as events:
        for number, (node, t_s, loss, cause) in enumerate(told, start=10_000):
            data = {"loss": loss, "cause": cause}
            event = {"seq": number, "t_s": t_s, "t_mono_s": t_s, "kind": "link_change"}
            events.write(json.dumps({**event, "node": node, "data": data}) + "\n")
    found = [each for each in analyse(copy).bands if ": " in each.label]
    assert {each.user for each in found} == {"ship1", "ship2"}
    assert [(each.kind, each.start_s, each.label) for each in found if each.user == "ship1"] == [
        ("handover", 15.0, "leo: handover"),
        ("outage", 20.0, "satcom: rain fade 15.0 dB"),
        ("outage", 31.0, "leo: no satellite"),
    ]
    assert [each.end_s for each in found][:2] == [15.1, 30.0]
