"""CoDel's parameters for the queue of a subflow."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdm.active_queue import LEAST_INTERVAL_S, codel


def test_the_target_is_the_wait_that_the_solution_assumed():
    # Two users on a drone of 1 Mbit/s, 388,268 bit/s each: 12000/(1e6 - 776536) s.
    found = codel(1e6, 776_536, 388_268, 0.02)
    assert found.target_s == pytest.approx(0.0537, abs=1e-4)
    assert found.interval_s == LEAST_INTERVAL_S


def test_a_long_path_gets_an_interval_of_its_round_trip_and_stays_busy():
    found = codel(50e6, 5.6e6, 25e6, 0.5, buffer_packets=500)
    assert 0.5 < found.interval_s < 0.51
    # A window of round trip and wait, cut to 0.7, still fills the round trip.
    assert 0.7 * (0.5 + found.target_s) == pytest.approx(0.5)
    assert found.limit_packets == 500


@given(
    capacity_bps=st.floats(1e3, 1e11),
    load=st.floats(0, 1.2),
    share=st.floats(1e-6, 1),
    round_trip_s=st.floats(0, 10),
    kappa=st.floats(0.01, 100),
)
def test_a_queue_never_waits_for_less_than_its_own_packet(
    capacity_bps, load, share, round_trip_s, kappa
):
    rate_bps = capacity_bps * share
    found = codel(capacity_bps, load * capacity_bps, rate_bps, round_trip_s, kappa=kappa)
    assert math.isfinite(found.target_s)
    assert 0.999999 * 12000 / rate_bps <= found.target_s <= found.interval_s


@pytest.mark.parametrize("name", ["capacity_bps", "rate_bps"])
def test_what_carries_nothing_has_no_queue(name):
    figures = {"capacity_bps": 1e6, "flow_bps": 0.0, "rate_bps": 1e6, "round_trip_s": 0.1}
    with pytest.raises(ValueError, match=name):
        codel(**{**figures, name: 0.0})
