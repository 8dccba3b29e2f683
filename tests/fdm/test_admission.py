"""Max-min fair admission against linear programs on link flows that share nothing with it."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fdm
from fdm import Demand, Link, Network
from fdm.admission import largest_fitting, max_min

np = pytest.importorskip("numpy")
linprog = pytest.importorskip("scipy.optimize", reason="scipy is not installed").linprog

SHARE = 0.95


@pytest.fixture(scope="module", autouse=True)
def compiled():
    pytest.importorskip("numba", reason="Numba is not installed")
    fdm.prepare()


def highest(network, demands, rising, fixed):
    """Return how high the rates of some can rise together while the others have what is fixed."""
    links = [link for link in network.links if link.capacity_bps > 0.0]
    nodes, count = network.index, len(demands)
    columns = count * len(links) + 1
    balance = np.zeros((count * len(nodes), columns))
    wanted = np.zeros(count * len(nodes))
    room = np.zeros((len(links), columns))
    for k, demand in enumerate(demands):
        base = k * len(nodes)
        for e, link in enumerate(links):
            balance[base + nodes[link.tail], k * len(links) + e] += 1.0
            balance[base + nodes[link.head], k * len(links) + e] -= 1.0
            room[e, k * len(links) + e] = 1.0
        for node, sign in ((demand.origin, 1.0), (demand.destination, -1.0)):
            balance[base + nodes[node], -1] = -sign * rising[k]
            wanted[base + nodes[node]] = sign * fixed[k]
    cost = np.zeros(columns)
    cost[-1] = -1.0
    found = linprog(
        cost,
        A_ub=room,
        b_ub=[SHARE * link.capacity_bps for link in links],
        A_eq=balance,
        b_eq=wanted,
    )
    return found.x[-1] if found.status == 0 else 0.0


def progressively_filled(network, demands):
    rates, rising = [0.0] * len(demands), set(range(len(demands)))
    while rising:
        weights = [1.0 if k in rising else 0.0 for k in range(len(demands))]
        level = highest(network, demands, weights, rates)
        least = min(demands[k].rate_bps for k in rising)
        if level >= least:
            held, level = {k for k in rising if demands[k].rate_bps <= least}, least
        else:
            held = set()
            for k in rising:
                alone = [1.0 if i == k else 0.0 for i in range(len(demands))]
                others = [
                    0.0 if i == k else level * (1 - 1e-7) if i in rising else rates[i]
                    for i in range(len(demands))
                ]
                if highest(network, demands, alone, others) <= level * (
                    1 + 1e-5
                ):  # levels closer than that are one to it
                    held.add(k)
        assert held, "the reference is stuck"
        for k in held:
            rates[k] = level
        rising -= held
    return rates


sizes = st.sampled_from([0.5, 1.0, 2.0, 3.0]) | st.floats(0.1, 5.0)


@st.composite
def overloads(draw):
    count = draw(st.integers(2, 6))
    node = st.integers(0, count - 1)
    ring = [Link(n, (n + 1) % count, draw(sizes)) for n in range(count)]
    more = draw(
        st.lists(st.builds(Link, node, node, st.just(0.0) | sizes, st.just(0.0)), max_size=8)
    )
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demand = st.builds(lambda pair, rate: Demand(*pair, rate), pairs, sizes | st.just(100.0))
    return Network(range(count), ring + more), draw(st.lists(demand, min_size=1, max_size=5))


@given(overloads(), st.sampled_from([1.0, 1e6, 1e-3]))
@settings(max_examples=40, deadline=None)
def test_rates_are_those_of_progressive_filling(problem, unit):
    network, demands = problem
    expected = progressively_filled(network, demands)
    network = Network(
        network.nodes, [one._replace(capacity_bps=one.capacity_bps * unit) for one in network.links]
    )
    demands = [demand._replace(rate_bps=demand.rate_bps * unit) for demand in demands]
    rates = max_min(network, demands, SHARE)
    assert [rate / unit for rate in rates] == pytest.approx(expected, rel=3e-5)


@given(overloads())
@settings(max_examples=30, deadline=None)
def test_what_is_let_in_fits_its_share_and_is_told_apart_from_what_is_cut(problem):
    network, demands = problem
    demands = [demand._replace(rate_bps=demand.rate_bps * 10.0) for demand in demands]
    solution = fdm.solve(network, demands, capacity_share=SHARE)
    if solution.feasible:
        return
    assert [a + c for a, c in zip(solution.admitted_bps, solution.cut_bps, strict=True)] == (
        pytest.approx([demand.rate_bps for demand in demands])
    )
    weights = [rate / max(solution.admitted_bps) for rate in solution.admitted_bps]
    fits = highest(network, demands, weights, [0.0] * len(demands))
    assert fits >= max(solution.admitted_bps) * (1 - 1e-9)


@given(overloads())
@settings(max_examples=30, deadline=None)
def test_the_largest_share_that_fits_is_exact_and_proved(problem):
    network, demands = problem
    demands = [demand._replace(rate_bps=demand.rate_bps * 10.0) for demand in demands]
    expected = highest(network, demands, [d.rate_bps for d in demands], [0.0] * len(demands))
    share, bound, proof = largest_fitting(network, demands, 1e9, ())
    assert share * SHARE == pytest.approx(expected, rel=1e-7)
    assert bound == pytest.approx(share, rel=1e-9)
    assert len(proof) == len(network.links)
    assert min(proof) >= 0.0


magnitudes = st.sampled_from([0.0, 1e-60, 1e-12, 1.0, 1e6, 1e60]) | st.floats(
    min_value=-60, max_value=60
).map(lambda exponent: 10.0**exponent)


@st.composite
def extremes(draw):
    count = draw(st.integers(2, 5))
    node = st.integers(0, count - 1)
    links = draw(st.lists(st.builds(Link, node, node, magnitudes, magnitudes), max_size=10))
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demand = st.builds(lambda pair, rate: Demand(*pair, rate), pairs, magnitudes)
    return Network(range(count), links), draw(st.lists(demand, max_size=4))


@given(extremes(), st.sampled_from(fdm.METHODS), st.sampled_from(fdm.ADMISSIONS))
@settings(max_examples=150, deadline=None)
def test_numbers_of_any_size_have_a_defined_answer(problem, method, admission):
    network, demands = problem
    solution = fdm.solve(network, demands, method=method, admission=admission, iterations=100)
    json.dumps(solution.as_dict(), allow_nan=False)
    for link, flow in zip(network.links, solution.link_flows_bps, strict=True):
        assert math.isfinite(flow)
        assert flow == 0.0 or flow <= link.capacity_bps
    again = fdm.solve(network, demands, start=solution)
    assert again.feasible == solution.feasible or solution.relative_gap > 1e-9


@pytest.mark.parametrize(
    ("links", "rate", "name"),
    [
        ([Link(0, 1, 1e300)], 1.0, "capacity_bps of link 0"),
        ([Link(0, 1, 5e-324)], 1.0, "capacity_bps of link 0"),
        ([Link(0, 1, 1.0, 1e300)], 1.0, "delay_s of link 0"),
        ([Link(0, 1, 1.0)], 1e-300, "rate_bps of demand 0"),
        ([Link(0, 1, 1.0)], 10**400, "rate_bps of demand 0"),
    ],
)
def test_numbers_beyond_all_measure_are_refused(links, rate, name):
    with pytest.raises(ValueError, match=f"{name}.*between 1e-60 and 1e\\+60"):
        fdm.solve(Network(range(2), links), [Demand(0, 1, rate)])
