import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tactical import steering
from tactical.playback import FASTEST, SLOWEST
from tactical.steering import CommandError, Names, document, read

NAMES = Names(nodes=["ship1", "uav"], relays=["satcom", "uav"], users=["ship1"])

metres = st.floats(-steering.FARTHEST_M, steering.FARTHEST_M)
commands = st.one_of(
    st.builds(steering.Place, st.sampled_from(["ship1", "uav"]), metres, metres),
    st.builds(steering.Link, st.sampled_from(["satcom", "uav"]), st.booleans()),
    st.builds(steering.Demand, st.just("ship1"), st.floats(0, steering.LARGEST_RATE_BPS)),
    st.builds(steering.Policy, st.sampled_from(steering.POLICIES)),
    st.builds(steering.Play, st.booleans()),
    st.builds(steering.Speed, st.floats(SLOWEST, FASTEST)),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(commands)
def test_a_command_survives_the_way_to_the_worker(command: steering.Command) -> None:
    assert read(json.loads(json.dumps(document(command))), NAMES) == command


@given(commands, st.data())
def test_a_command_with_a_damaged_field_is_refused_or_still_a_command(
    command: steering.Command, data: st.DataObject
) -> None:
    damaged = document(command)
    key = data.draw(st.sampled_from(sorted(asdict(command))))
    damaged[key] = data.draw(json_values)
    try:
        assert document(read(damaged, NAMES)).keys() == damaged.keys()
    except CommandError as error:
        assert key in str(error)


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        (None, "expected a command"),
        ([], "expected a command"),
        ({}, "expected a command"),
        ({"do": "sink", "node": "ship1"}, "place, link"),
        ({"do": ["place"]}, "expected a command"),
        ({"do": "place", "node": "ship1"}, "node, east_m, north_m"),
        ({"do": "play", "playing": True, "now": 1}, "playing"),
        ({"do": "place", "node": "satcom", "east_m": 0, "north_m": 0}, "ship1, uav"),
        ({"do": "place", "node": "uav", "east_m": float("nan"), "north_m": 0}, "east_m"),
        ({"do": "link", "relay": "uav", "up": 1}, "true or false"),
        ({"do": "demand", "user": "ship1", "rate_bps": True}, "rate_bps"),
        ({"do": "speed", "speed": 0}, "0.1 to 50"),
    ],
)
def test_what_is_no_command_is_refused_with_what_was_expected(given_: object, named: str) -> None:
    with pytest.raises(CommandError, match=named):
        read(given_, NAMES)
