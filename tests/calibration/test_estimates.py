"""Estimates from stamps: against worked examples, theory and properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tactical.calibration.estimates import (
    fifo_waits_s,
    jitter_s,
    longest_gap_s,
    poisson_times,
    rate_bps,
)

GAPS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60)
nan = float("nan")


def test_rate_counts_intervals_and_not_packets():
    # Five frames of 1000 bit, 1 ms apart; the lost one and those outside do not count.
    received = np.array([0.5, 1.000, 1.001, nan, 1.002, 1.003, 1.004, 9.0])
    assert rate_bps(received, 1000, 1.0, 2.0) == pytest.approx(1e6)


def test_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="1 packets arrived"):
        rate_bps(np.array([nan, 1.0]), 1000, 0.0, 2.0)


def test_jitter_is_the_mean_step_between_packets_that_arrived():
    assert jitter_s(np.array([0.010, 0.012, nan, 0.011])) == pytest.approx(0.0015)


def test_longest_gap_is_of_arrivals_in_any_order():
    received = np.array([0.0, 1.0, nan, 1.5, 1.1, 9.0])
    assert longest_gap_s(received, 0.5, 2.0) == pytest.approx(0.4)


def test_gap_of_one_arrival_is_refused():
    with pytest.raises(ValueError, match="1 packets arrived"):
        longest_gap_s(np.array([nan, 1.0]), 0.0, 2.0)


@pytest.mark.parametrize(
    ("burst_s", "waits"),
    [(0.0, [0.0, 2.0, 4.0, 0.0, 1.0]), (1.5, [0.0, 0.5, 2.5, 0.0, 0.0])],
    ids=["no bucket", "bucket"],
)
def test_waits_by_hand(burst_s, waits):
    sent = np.array([0.0, 0.0, 0.0, 10.0, 11.0])
    assert fifo_waits_s(sent, 2.0, burst_s) == pytest.approx(waits)


@given(GAPS, st.floats(0.01, 1.0), st.floats(0.0, 2.0))
def test_a_bucket_only_shortens_waits_and_by_no_more_than_its_depth(gaps, service_s, burst_s):
    sent = np.cumsum(gaps)
    ideal, bucket = fifo_waits_s(sent, service_s, 0.0), fifo_waits_s(sent, service_s, burst_s)
    assert (bucket <= ideal).all()
    assert (ideal - bucket <= burst_s + 1e-9).all()


@given(GAPS, st.floats(0.01, 1.0))
def test_without_a_bucket_departures_keep_their_distance(gaps, service_s):
    sent = np.cumsum(gaps)
    starts = sent + fifo_waits_s(sent, service_s, 0.0)
    assert (np.diff(starts) >= service_s - 1e-9).all()


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_poisson_arrivals_wait_as_pollaczek_and_khinchine_say(load):
    service_s = 0.001
    sent = poisson_times(load / service_s, 400.0, seed=1)
    expected_s = load * service_s / (2.0 * (1.0 - load))
    assert fifo_waits_s(sent, service_s, 0.0).mean() == pytest.approx(expected_s, rel=0.05)


def test_poisson_times_are_of_the_seed_and_within_the_duration():
    first, again, other = (poisson_times(500.0, 4.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:10], other[:10])
    assert (first >= 0.0).all() and (first < 4.0).all() and (np.diff(first) >= 0.0).all()
    assert first.size == pytest.approx(2000, abs=5 * 2000**0.5)
