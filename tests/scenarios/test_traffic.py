"""What applications send when: bounds, mean rates, and the same on any machine."""

import hashlib
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scenarios
from scenarios import Application, Constant, Files, Messages, OnOff, Requests, ScenarioError
from scenarios.traffic import MOST_ITEMS

COMMON = {"user": "ship1", "host": "host", "start_s": 3.0, "duration_s": 400.0}


def one_of_each(seed: int, **changes: object) -> list[Application]:
    common = {**COMMON, "seed": seed, **changes}
    return [
        Constant(**common, rate_bps=64e3, block_bytes=160),
        OnOff(**common, rate_bps=256e3, block_bytes=500, on_s=1.0, off_s=3.0),
        Messages(**common, rate_bps=64e3, block_bytes=400),
        Files(**common, size_bytes=50_000, interval_s=2.0),
        Requests(**common, response_bytes=20_000, think_s=1.0),
    ]


KINDS = range(len(one_of_each(0)))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**64), start_s=st.floats(0, 100), duration_s=st.floats(0.1, 60))
@settings(max_examples=30, deadline=None)
def test_nothing_begins_outside_of_its_time_and_all_is_in_order(kind, seed, start_s, duration_s):
    application = one_of_each(seed, start_s=start_s, duration_s=duration_s)[kind]
    at_s, sizes = application.schedule()
    assert len(at_s) == len(sizes)
    if isinstance(application, Requests):
        assert all(think_s > 0 for think_s in at_s)
        # Enough for a network that answers at once, and no more than that takes.
        assert sum(at_s) >= duration_s > sum(at_s[:-1])
        return
    assert all(start_s <= moment_s < start_s + duration_s for moment_s in at_s)
    assert list(at_s) == sorted(at_s)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_scheduled_is_what_is_offered(kind):
    """Over 20 seeds of 400 s; the tolerance is four standard errors or more for every kind."""
    scheduled = offered = 0.0
    for seed in range(20):
        application = one_of_each(seed)[kind]
        schedule = application.schedule()
        scheduled += 8.0 * sum(schedule.size_bytes) / application.duration_s
        offered += application.offered_bps("up")
        assert abs(len(schedule.at_s) - application.expected_items) < 0.5 * len(schedule.at_s)
    assert scheduled == pytest.approx(offered, rel=0.08)


def test_messages_come_as_a_poisson_process():
    """Of exponential times the share above k means is exp(-k)."""
    messages = one_of_each(4, duration_s=2000.0)[2]
    assert isinstance(messages, Messages)
    at_s = messages.schedule().at_s
    gaps = [later - earlier for earlier, later in itertools.pairwise(at_s)]
    for k, share in ((0.5, 0.6065), (1.0, 0.3679), (2.0, 0.1353), (3.0, 0.0498)):
        above = sum(gap > k * messages.interval_s for gap in gaps) / len(gaps)
        assert above == pytest.approx(share, abs=0.01)


def test_an_on_off_source_is_never_faster_than_its_rate():
    source = one_of_each(9)[1]
    assert isinstance(source, OnOff)
    at_s = source.schedule().at_s
    gaps = [later - earlier for earlier, later in itertools.pairwise(at_s)]
    within = [gap for gap in gaps if gap < 1.001 * source.interval_s]
    assert len(within) > 0.9 * len(gaps)
    assert len(gaps) - len(within) > 50, "as many pauses as turns, or so"


def test_schedules_are_the_same_on_every_machine():
    schedules = [each.schedule() for each in one_of_each(1, stream=(2, 0, 1))]
    digest = hashlib.sha256(json.dumps(schedules).encode()).hexdigest()[:16]
    assert digest == "2ac8f5f688c4c983"


@pytest.mark.parametrize("kind", ["on-off", "messages", "files", "requests"])
def test_every_ship_direction_connection_and_seed_draws_numbers_of_its_own(kind):
    experiment = scenarios.load(
        "direct-move",
        [f"traffic.kind={kind}", "traffic.direction=both", "traffic.connections=2"],
    )
    traffic = [each for seed in (1, 2) for each in experiment.build(seed).traffic]
    schedules = [each.schedule().at_s for each in traffic if isinstance(each, Application)]
    assert len(schedules) == 2 * 2 * 2 * 2
    assert len(set(schedules)) == len(schedules)


@pytest.mark.parametrize("kind", ["bulk", "constant", "on-off", "messages", "files"])
@pytest.mark.parametrize("direction", ["up", "down", "both"])
def test_every_kind_offers_the_rate_that_was_asked_for(kind, direction):
    options = [f"traffic.kind={kind}", f"traffic.direction={direction}", "traffic.rate_bps=800000"]
    scenario = scenarios.load("direct-move", [*options, "traffic.connections=3"]).build(1)
    for way in ("up", "down"):
        wanted_bps = 3 * 800e3 if direction in (way, "both") else 0.0
        assert scenario.offered_bps("ship2", way) == pytest.approx(wanted_bps, rel=1e-6)


def test_demand_counts_headers_of_small_packets_and_acknowledgments():
    def demand(*options: str) -> float:
        scenario = scenarios.load("direct-move", options).build(1)
        return scenario.demand_bps("ship1")

    assert demand() == pytest.approx(1.07 * 3e6)
    assert demand("traffic.kind=files") == pytest.approx(1.07 * 3e6)
    assert demand("traffic.direction=down") == pytest.approx(0.035 * 3e6)
    voice = demand(
        "traffic.kind=constant",
        "traffic.transport=udp",
        "traffic.rate_bps=64000",
        "traffic.block_bytes=142",
    )
    assert voice == pytest.approx(64e3 * (1 + 0.07 * 10))
    assert demand("traffic.datagrams_bps=64000", "traffic.datagram_bytes=142") == pytest.approx(
        1.07 * 3e6 + voice
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["traffic.kind=file"], "bulk (iperf3), constant"),
        (["traffic.direction=left"], "up (to the host), down or both"),
        (
            ["traffic.transport=udp"],
            "traffic.transport must be tcp with traffic.kind bulk, which needs every byte",
        ),
        (
            ["traffic.kind=files", "traffic.transport=udp"],
            "traffic.transport must be tcp with traffic.kind files",
        ),
        (
            ["traffic.kind=messages", "traffic.transport=udp", "traffic.block_bytes=1500"],
            "traffic.block_bytes must be at most 1400 with traffic.transport udp",
        ),
        (["traffic.size_bytes=0"], "traffic.size_bytes must be a whole number in bytes, 1 or more"),
    ],
)
def test_traffic_that_makes_no_sense_is_refused_with_its_option(options, message):
    with pytest.raises(ScenarioError) as caught:
        scenarios.load("direct-move", options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("--set traffic.")


def test_more_items_than_a_machine_can_keep_is_refused():
    with pytest.raises(ScenarioError, match=f"must send at most {MOST_ITEMS} items"):
        Constant(**{**COMMON, "duration_s": 86_400.0}, rate_bps=1e9, block_bytes=64)


def test_parameters_that_came_later_leave_the_fingerprint_as_it_was():
    plain = scenarios.load("direct-move")
    assert scenarios.fingerprint(plain) == "a4059e10"
    set_to_default = scenarios.load("direct-move", ["traffic.kind=bulk"])
    assert scenarios.fingerprint(set_to_default) == "a4059e10"
    others = [
        scenarios.fingerprint(scenarios.load("direct-move", [option]))
        for option in ("traffic.kind=files", "traffic.direction=down", "traffic.think_s=1.0")
    ]
    assert len({*others, "a4059e10"}) == 4
