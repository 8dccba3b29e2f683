"""Congestion control against its formulas, written another way."""

import itertools
import math
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulation import ALGORITHMS
from simulation.congestion import (
    BALIA,
    COUPLED,
    CUBIC,
    CUBIC_C,
    EWTCP,
    LIA,
    MPTCP,
    OLIA,
    SEMICOUPLED,
    UNCOUPLED,
    WVEGAS,
    decrease,
    increase,
    wvegas_round,
)
from simulation.state import WINDOW, as_objects, zeros

NEWRENO_ALONE = [UNCOUPLED, EWTCP, COUPLED, SEMICOUPLED, MPTCP, LIA, OLIA, BALIA]
PATHS = st.lists(st.tuples(st.floats(1.0, 1000.0), st.floats(1e-4, 2.0)), min_size=1, max_size=5)


def windows(paths) -> list[SimpleNamespace]:
    found = as_objects(zeros(WINDOW, len(paths)))
    for each, (w, rtt_s) in zip(found, paths, strict=True):
        each.w, each.rtt_s, each.least_rtt_s = w, rtt_s, rtt_s
        each.epoch_s, each.queueing_s, each.target = -1.0, math.inf, 2.0
    return found


@given(PATHS)
def test_mptcp_is_the_least_over_all_sets_of_subflows(paths):
    n = len(paths)
    for r in range(n):
        sets = [
            subset
            for size in range(1, n + 1)
            for subset in itertools.combinations(range(n), size)
            if r in subset
        ]
        expected = min(
            max(paths[s][0] / paths[s][1] ** 2 for s in subset)
            / sum(paths[s][0] / paths[s][1] for s in subset) ** 2
            for subset in sets
        )
        assert increase(MPTCP, r, 0, n, windows(paths), 0.0) == pytest.approx(expected, rel=1e-9)


@given(PATHS)
def test_lia_is_the_same_on_two_paths_and_never_gentler(paths):
    now = windows(paths)
    for r in range(len(paths)):
        ours, theirs = (increase(a, r, 0, len(paths), now, 0.0) for a in (LIA, MPTCP))
        assert ours >= theirs * (1 - 1e-9)
        if len(paths) <= 2:
            assert ours == pytest.approx(theirs, rel=1e-9)


@given(PATHS, st.sampled_from([EWTCP, MPTCP, LIA]))
def test_no_subflow_grows_faster_than_tcp(paths, algorithm):
    now = windows(paths)
    for r, (w, _) in enumerate(paths):
        assert increase(algorithm, r, 0, len(paths), now, 0.0) <= 1.0 / w * (1 + 1e-9)


@given(st.floats(1.0, 1e5), st.floats(1e-5, 3.0), st.sampled_from(NEWRENO_ALONE))
def test_over_one_path_all_are_newreno(w, rtt_s, algorithm):
    assert increase(algorithm, 0, 0, 1, windows([(w, rtt_s)]), 0.0) == pytest.approx(1.0 / w)
    assert decrease(algorithm, 0, 0, 1, windows([(w, rtt_s)])) == pytest.approx(max(w / 2, 1.0))


@given(PATHS, st.sampled_from(sorted(ALGORITHMS.values())))
def test_a_loss_never_widens_and_leaves_one_packet(paths, algorithm):
    for r, (w, _) in enumerate(paths):
        assert 1.0 <= decrease(algorithm, r, 0, len(paths), windows(paths)) <= w


@given(PATHS, st.sampled_from([EWTCP, COUPLED, SEMICOUPLED, MPTCP, LIA, OLIA, BALIA]))
def test_a_subflow_without_a_round_trip_yet_is_left_out(paths, algorithm):
    assume(algorithm not in (EWTCP, OLIA))  # these count paths
    n = len(paths)
    alone, more = windows(paths), windows([*paths, (77.0, 0.0)])
    for r in range(n):
        assert increase(algorithm, r, 0, n, alone, 0.0) == increase(
            algorithm, r, 0, n + 1, more, 0.0
        )


def test_coupled_takes_half_of_all_windows():
    now = windows([(30.0, 0.1), (6.0, 0.1)])
    assert decrease(COUPLED, 0, 0, 2, now) == 30.0 - 18.0
    assert decrease(COUPLED, 1, 0, 2, now) == 1.0
    assert increase(COUPLED, 1, 0, 2, now, 0.0) == pytest.approx(1 / 36)


def test_olia_moves_windows_to_the_better_path():
    # Path 0 has the widest window, path 1 has come further between losses.
    now = windows([(20.0, 0.1), (10.0, 0.1)])
    now[0].since, now[1].since = 50.0, 400.0
    base = [w / 0.01 / (30.0 / 0.1) ** 2 for w in (20.0, 10.0)]
    assert increase(OLIA, 0, 0, 2, now, 0.0) == pytest.approx(base[0] - 1 / 2 / 20.0)
    assert increase(OLIA, 1, 0, 2, now, 0.0) == pytest.approx(base[1] + 1 / 2 / 10.0)
    now[0].between = 500.0  # now the widest is the best as well
    assert increase(OLIA, 0, 0, 2, now, 0.0) == pytest.approx(base[0])
    decrease(OLIA, 1, 0, 2, now)
    assert (now[1].between, now[1].since) == (400.0, 0.0)


def test_balia_by_hand():
    # x = 100 and 50 packets/s: α is 1 and 2.
    now = windows([(10.0, 0.1), (10.0, 0.2)])
    assert increase(BALIA, 0, 0, 2, now, 0.0) == pytest.approx(100 / 0.1 / 150**2)
    assert increase(BALIA, 1, 0, 2, now, 0.0) == pytest.approx(50 / 0.2 / 150**2 * 1.5 * 1.2)
    assert decrease(BALIA, 0, 0, 2, now) == pytest.approx(5.0)
    assert decrease(BALIA, 1, 0, 2, now) == pytest.approx(10.0 - 5.0 * 1.5)


def test_cubic_comes_back_to_the_plateau_after_k():
    now = windows([(1000.0, 0.1)])
    now[0].w = decrease(CUBIC, 0, 0, 1, now)
    assert now[0].w == pytest.approx(700.0)
    plateau_s = (300.0 / CUBIC_C) ** (1 / 3)
    t, rate = 0.0, []
    while t < plateau_s:
        before = now[0].w
        for _ in range(int(before)):
            now[0].w += increase(CUBIC, 0, 0, 1, now, t)
        rate.append(now[0].w - before)
        t += 0.1
    assert now[0].w == pytest.approx(1000.0, rel=0.01)
    assert rate[0] > 10 * rate[-2]  # concave
    decrease(CUBIC, 0, 0, 1, now)
    now[0].w = 500.0
    decrease(CUBIC, 0, 0, 1, now)
    assert now[0].peak == pytest.approx(500.0 * 1.7 / 2)  # gives way


def test_cubic_is_no_slower_than_reno_at_small_windows():
    now = windows([(10.0, 0.01)])
    now[0].w = decrease(CUBIC, 0, 0, 1, now)
    t = 0.0
    for _ in range(20):
        for _ in range(int(now[0].w)):
            now[0].w += increase(CUBIC, 0, 0, 1, now, t)
        t += 0.01
    assert now[0].w == pytest.approx(7.0 + 20 * 3 * 0.3 / 1.7, rel=0.1)


def round_of(now, rtt_s: float) -> None:
    now.round_rtt_s, now.round_count = rtt_s * 5, 5.0


def test_wvegas_keeps_a_backlog_and_drains_a_queue_that_doubled():
    now = windows([(100.0, 0.1), (100.0, 0.1)])
    assert increase(WVEGAS, 0, 0, 2, now, 0.0) == 0.0
    round_of(now[0], 0.101)  # backlog of one packet, less than α = 2
    wvegas_round(0, 0, 2, now, False)
    assert now[0].w == 101.0
    round_of(now[0], 0.103)  # queueing of 3 ms after 1 ms: cut to drain it
    now[0].target = 2.0
    wvegas_round(0, 0, 2, now, False)
    assert now[0].target == pytest.approx(5.0, rel=0.02)  # half of ten, by rate
    assert now[0].w == pytest.approx((101.0 + 1.0) * 0.1 / 0.206)
    now[0].w, now[0].queueing_s = 300.0, math.inf
    round_of(now[0], 0.11)
    wvegas_round(0, 0, 2, now, False)
    assert now[0].w == 299.0


def test_wvegas_leaves_slow_start_when_a_packet_waits():
    now = windows([(8.0, 0.1)])
    round_of(now[0], 0.105)
    assert not wvegas_round(0, 0, 1, now, True)
    now[0].w = 64.0
    round_of(now[0], 0.105)
    assert wvegas_round(0, 0, 1, now, True)
    assert now[0].w == pytest.approx(64.0 * 0.1 / 0.105 + 1.0)
