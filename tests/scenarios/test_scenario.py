import dataclasses
import re

import pytest

from mobility import Fixed
from scenarios import DirectMove, Link, Satellite, ScenarioError, Station, Traffic

SCENARIO = DirectMove().build(seed=0)
ANCHORED = Fixed((0.0, 0.0, 0.0))
LINK = Link(rate_bps=1e6, delay_s=0.1, buffer_packets=10)
FLOW = SCENARIO.traffic[0]


@pytest.mark.parametrize(
    "name", ["destroyer1", "Ship1", "ship-1", "1ship", "", "ship 1", "schiff\n"]
)
def test_names_that_do_not_make_interface_names_are_refused(name):
    with pytest.raises(ScenarioError, match=re.escape(f"not {name!r}")):
        dataclasses.replace(SCENARIO, stations=(Station(name, ANCHORED),), traffic=())


def test_the_longest_name_makes_a_name_that_linux_takes():
    scenario = dataclasses.replace(SCENARIO, stations=(Station("frigate12", ANCHORED),), traffic=())
    assert len(scenario.stations[0].name + "-wlan0") == 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"satellites": (Satellite("uav", LINK),)}, "two nodes are 'uav'"),
        ({"host": "ship1"}, "two nodes are 'ship1'"),
        ({"stations": ()}, "must hold at least one station"),
        ({"satellites": (), "access_points": ()}, "no other access"),
        ({"traffic": (dataclasses.replace(FLOW, user="ship9"),)}, "'ship9' is none"),
        ({"traffic": (dataclasses.replace(FLOW, host="shore"),)}, "must be the host 'host'"),
        ({"traffic": (dataclasses.replace(FLOW, start_s=1.0),)}, "sends until 101 s"),
        ({"duration_s": 99.0}, "within the run of 99 s"),
    ],
)
def test_references_that_lead_nowhere_are_refused(change, message):
    with pytest.raises(ScenarioError, match=re.escape(message)):
        dataclasses.replace(SCENARIO, **change)


def test_impossible_links_and_traffic_are_refused():
    with pytest.raises(ScenarioError, match=r"link\.rate_bps must be a whole number in bit/s"):
        Link(rate_bps=0.5, delay_s=0.1, buffer_packets=10)
    with pytest.raises(ScenarioError, match=r"link\.buffer_packets must be a whole number"):
        Link(rate_bps=1e6, delay_s=0.1, buffer_packets=0)
    with pytest.raises(ScenarioError, match=r"traffic\.duration_s must be a whole number in s"):
        Traffic("ship1", "host", 1e6, 0.0, 1.5, "cubic", 1400)
    with pytest.raises(ScenarioError, match=r"access_point\.range_m must be a number in m"):
        dataclasses.replace(SCENARIO.access_points[0], range_m=-1.0)
