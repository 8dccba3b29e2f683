"""What every answer claims, worked out again here from its flows alone.

Lengths are written out once more and shortest paths are found by the method of Bellman and Ford, so
that nothing of the package vouches for itself.
"""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fdm
from fdm import Bpr, Delay, Demand, Deterministic, Kleinrock, Link, Network, Solution, solve

BITS = 12000.0
GAP = 1e-9

capacities = st.sampled_from([0.0, 1e5, 1e6, 2e6, 5e7]) | st.floats(1e4, 1e8)
delays = st.sampled_from([0.0, 0.01, 0.25]) | st.floats(0.0, 1.0)
rates = st.sampled_from([0.0, 1e5, 1e6]) | st.floats(1e3, 1e7)


@st.composite
def networks(draw):
    count = draw(st.integers(2, 7))
    node = st.integers(0, count - 1)
    links = draw(st.lists(st.builds(Link, node, node, capacities, delays), min_size=1, max_size=20))
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demands = draw(
        st.lists(st.builds(lambda p, r: Demand(*p, r), pairs, rates), min_size=1, max_size=5)
    )
    return Network(range(count), links), demands


@st.composite
def problems(draw):
    """With a ring of wide links, so that every demand has a path, and most fit."""
    network, demands = draw(networks())
    count = len(network.nodes)
    ring = [Link(node, (node + 1) % count, 1e8, draw(delays)) for node in range(count)]
    network = Network(network.nodes, (*network.links, *ring))
    kappa = st.sampled_from([0.1, 1.0, 8.0])
    delay = draw(
        st.builds(
            lambda kind, kappa, equilibrium: kind(BITS, kappa, equilibrium),
            st.sampled_from([Kleinrock, Deterministic]),
            kappa | st.tuples(*[kappa] * len(network.links)),
            st.booleans(),
        )
        | st.builds(Bpr, st.sampled_from([0.15, 2.0]), st.sampled_from([1.0, 4.0]), st.booleans())
    )
    methods = ["path flows"]
    if not delay.equilibrium and not isinstance(delay, Bpr):
        methods += ["auto", "interior point"]  # flow deviation alone may stop before the gap
    return network, demands, delay, draw(st.sampled_from(methods))


def length(link: Link, flow: float, delay: Delay, kappa: float) -> float:
    """How much one more bit/s on a link adds to what is minimised."""
    capacity, spare = link.capacity_bps, link.capacity_bps - flow
    if isinstance(delay, Bpr):
        more = delay.alpha * (flow / capacity) ** delay.beta
        return link.delay_s * (1.0 + more * (1.0 if delay.equilibrium else delay.beta + 1.0))
    queue = 1.0 / spare if delay.equilibrium else capacity / spare**2
    if isinstance(delay, Deterministic):
        queue = 0.5 * queue + 0.5 / capacity
    return kappa * queue + link.delay_s / BITS


def lengths(network: Network, flow, delay: Delay) -> list[float]:
    several = getattr(delay, "kappa", 0.0)
    kappas = several if isinstance(several, tuple) else (several,) * len(network.links)
    return [
        length(link, f, delay, kappa) if link.capacity_bps > 0.0 else math.inf
        for link, f, kappa in zip(network.links, flow, kappas, strict=True)
    ]


def distances(network: Network, cost: list[float], origin) -> dict:
    """Bellman and Ford's method."""
    distance = dict.fromkeys(network.nodes, math.inf)
    distance[origin] = 0.0
    for _ in network.nodes:
        for link, one in zip(network.links, cost, strict=True):
            if link.capacity_bps > 0.0:
                distance[link.head] = min(distance[link.head], distance[link.tail] + one)
    return distance


def excess(network: Network, demands, solution: Solution, cost: list[float]) -> tuple[float, float]:
    """Σ length·f, and how much of it lies beyond the shortest paths."""
    now = sum(one * f for one, f in zip(cost, solution.link_flows_bps, strict=True) if f > 0.0)
    best = sum(
        admitted * distances(network, cost, demand.origin)[demand.destination]
        for demand, admitted in zip(demands, solution.admitted_bps, strict=True)
        if admitted > 0.0
    )
    return now, now - best


@given(problems())
@settings(max_examples=60)
def test_the_gap_is_what_it_is_said_to_be_and_as_small_as_asked_for(problem):
    network, demands, delay, method = problem
    solution = solve(network, demands, delay=delay, method=method, gap=GAP)
    cost = lengths(network, solution.link_flows_bps, delay)
    now, beyond = excess(network, demands, solution, cost)
    gap = beyond / now if now > 0.0 else 0.0
    assert solution.relative_gap == pytest.approx(gap, abs=1e-12)
    assert solution.relative_gap <= GAP
    assert solution.lower_bound == pytest.approx(solution.objective - max(0.0, beyond), rel=1e-9)
    assert math.isfinite(solution.gamma_T)


@given(problems())
@settings(max_examples=50)
def test_used_paths_of_a_demand_are_equally_long_and_no_path_is_shorter(problem):
    network, demands, delay, method = problem
    solution = solve(network, demands, delay=delay, method=method, gap=GAP)
    cost = lengths(network, solution.link_flows_bps, delay)
    total = sum(one * f for one, f in zip(cost, solution.link_flows_bps, strict=True) if f > 0.0)
    for demand, flows in zip(demands, solution.path_flows, strict=True):
        shortest = distances(network, cost, demand.origin)[demand.destination]
        for path, rate in flows:
            beyond = sum(cost[link] for link in path) - shortest
            assert beyond >= -1e-9 * shortest
            # What a path is too long by counts as much as it carries.
            assert beyond * rate <= 2 * GAP * total


@given(problems(), st.data())
@settings(max_examples=50)
def test_any_flow_that_fits_bounds_the_optimum_from_both_sides(problem, data):
    network, demands, delay, _ = problem
    best = solve(network, demands, delay=delay)
    assume(best.feasible and best.objective > 0.0)
    # Any mixture of the best routing and of one at the lengths of an empty network.
    share = data.draw(st.floats(0.0, 1.0))
    empty = solve(network, [d._replace(rate_bps=1e-3 * d.rate_bps) for d in demands], delay=delay)
    flow = [
        share * f + (1.0 - share) * 1e3 * g
        for f, g in zip(best.link_flows_bps, empty.link_flows_bps, strict=True)
    ]
    assume(
        delay.bounded
        or all(
            f < 0.999 * c.capacity_bps or f == 0.0 for f, c in zip(flow, network.links, strict=True)
        )
    )
    certificate = fdm.certify(network, demands, flow, delay)
    assert certificate.lower_bound <= best.objective * (1 + 1e-9)
    assert best.objective <= certificate.objective * (1 + 1e-8)


@given(networks(), st.floats(1.0, 1e3))
@settings(max_examples=50)
def test_who_says_that_demands_do_not_fit_proves_it(problem, factor):
    network, demands = problem
    reached = {demand.origin: network.reachable(demand.origin) for demand in demands}
    demands = [
        demand._replace(rate_bps=demand.rate_bps * factor)
        for demand in demands
        if demand.destination in reached[demand.origin]
    ]
    solution = solve(network, demands)
    assume(not solution.feasible)
    # Each bit/s takes at least its shortest length, and a link has length·capacity to give.
    cost = [one if one is not None else math.inf for one in solution.proof]
    assert min(cost) >= 0.0
    room = sum(
        one * link.capacity_bps
        for one, link in zip(cost, network.links, strict=True)
        if link.capacity_bps > 0.0
    )
    need = sum(
        demand.rate_bps * distances(network, cost, demand.origin)[demand.destination]
        for demand in demands
        if demand.rate_bps > 0.0
    )
    assert room / need <= solution.fitting_share * (1 + 1e-9)
    assert solution.fitting_share <= 1.0 + 1e-8
