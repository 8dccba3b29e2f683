"""Links by the relays behind them: a radio leads to several access points."""

from dataclasses import replace

import pytest

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
