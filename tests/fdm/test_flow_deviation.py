import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdm
from fdm import Demand, Kleinrock, Link, Network
from fdm.flow_deviation import line_search, phase_1, phase_2
from fdm.routing import link_flows, utilisation

DATA = Path(__file__).parent / "data"
TAC2 = fdm.load(DATA / "tac2.json")
DELAY = Kleinrock()

moves = st.lists(
    st.tuples(st.floats(1e4, 1e8), st.floats(0, 1), st.floats(0, 0.999), st.floats(0, 2.0)),
    min_size=1,
    max_size=8,
)


def test_phase_1_fits_the_two_users_although_their_shortest_paths_do_not():
    start = phase_1(TAC2.network, TAC2.demands, DELAY)
    assert start.share == 1.0
    assert utilisation(TAC2.network, link_flows(TAC2.network, start.routing)) < 1.0
    assert [sum(paths.values()) for paths in start.routing] == pytest.approx([3e6, 3e6])


def test_phase_2_is_exact_on_two_users_in_a_few_deviations():
    start = phase_1(TAC2.network, TAC2.demands, DELAY)
    finish = phase_2(TAC2.network, TAC2.demands, DELAY, start.routing, gap=1e-12)
    assert finish.iterations <= 3
    assert finish.certificate.relative_gap <= 1e-12
    flow = link_flows(TAC2.network, finish.routing)
    assert DELAY.total(TAC2.network, flow) == pytest.approx(113.12236109448199, rel=1e-12)


@pytest.mark.parametrize("name", ["tac10-90", "nsfnet-90", "nsfnet-98", "tac20-90"])
def test_deviations_never_raise_the_delay(name):
    instance = fdm.load(DATA / f"{name}.json")
    routing = phase_1(instance.network, instance.demands, DELAY).routing
    before = math.inf
    for _ in range(20):
        after = DELAY.total(instance.network, link_flows(instance.network, routing))
        assert after <= before * (1 + 1e-12)
        assert after >= instance.optimum_gamma_T * (1 - 1e-9)
        before = after
        finish = phase_2(instance.network, instance.demands, DELAY, routing, iterations=1)
        routing = finish.routing
        carried = [sum(paths.values()) for paths in routing]
        assert carried == pytest.approx([demand.rate_bps for demand in instance.demands])


def test_phase_1_says_how_much_fits_when_not_all_does():
    network = Network("ab", [Link("a", "b", 1e6), Link("a", "b", 1e6, 5.0)])
    start = phase_1(network, [Demand("a", "b", 4e6)], DELAY)
    assert 0.475 <= start.share < 0.5
    assert 0.5 <= start.bound <= 0.51


@given(moves)
def test_the_line_search_finds_the_least_delay(links):
    network = Network("ab", [Link("a", "b", capacity, delay) for capacity, delay, _, _ in links])
    flow = [capacity * used for capacity, _, used, _ in links]
    target = [capacity * wanted for capacity, _, _, wanted in links]

    def total(step: float) -> float:
        mixed = [(1 - step) * f + step * v for f, v in zip(flow, target, strict=True)]
        return DELAY.total(network, mixed)

    step = line_search(network, flow, target, DELAY)
    assert 0.0 <= step <= 1.0
    least = total(step)
    assert math.isfinite(least)
    assert least <= min(total(number / 500) for number in range(501)) * (1 + 1e-9) + 1e-15


def test_the_line_search_stays_where_it_is_best():
    network = Network("ab", [Link("a", "b", 1e6, 1.0), Link("a", "b", 1e6, 0.0)])
    assert line_search(network, [0.0, 1e5], [1e5, 0.0], DELAY) == 0.0
    assert line_search(network, [0.0, 1e5], [0.0, 1e5], DELAY) in (0.0, 1.0)
    assert line_search(network, [1e5, 0.0], [0.0, 1e5], DELAY) == 1.0
