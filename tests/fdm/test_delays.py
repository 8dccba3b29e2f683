"""Delay functions, equilibria, and the fair split, whatever the method."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fdm
from fdm import Bpr, Demand, Deterministic, Kleinrock, Link, Network, solve

QUEUES = [
    Kleinrock(),
    Kleinrock(kappa=4.0),
    Kleinrock(equilibrium=True),
    Deterministic(),
    Deterministic(equilibrium=True),
]
ROADS = [Bpr(), Bpr(equilibrium=False), Bpr(alpha=1.0, beta=1.0), Bpr(alpha=0.5, beta=2.5)]
METHODS = ["flow deviation", "path flows"]


@pytest.mark.parametrize("delay", QUEUES + ROADS)
@given(st.floats(1e4, 1e8), st.floats(0.01, 0.95), st.floats(0.001, 1.0))
def test_lengths_are_the_slope_of_what_is_minimised(delay, capacity, load, delay_s):
    network = Network("ab", [Link("a", "b", capacity, delay_s)])
    f, step = load * capacity, 1e-4 * min(load, 1 - load) * capacity
    slope = (delay.objective(network, [f + step]) - delay.objective(network, [f - step])) / step / 2
    assert delay.lengths(network, [f])[0] == pytest.approx(slope, rel=1e-4)


@given(st.floats(0.01, 0.99))
def test_fixed_packets_wait_half_as_long(load):
    network = Network("ab", [Link("a", "b", 1e6)])
    service_s = 12000 / 1e6
    random = Kleinrock().latencies(network, [load * 1e6])[0] - service_s
    fixed = Deterministic().latencies(network, [load * 1e6])[0] - service_s
    assert fixed == pytest.approx(random / 2, rel=1e-9)


BRAESS = Network(
    "sabt",
    [
        Link("s", "a", 10.0, 1.0),
        Link("b", "t", 10.0, 1.0),
        Link("s", "b", 1e9, 60.0),
        Link("a", "t", 1e9, 60.0),
        Link("a", "b", 1e9, 1e-3),
    ],
)


@pytest.mark.parametrize("method", METHODS)
def test_selfish_users_crowd_the_short_cut_that_the_optimum_leaves(method):
    demands = [Demand("s", "t", 60.0)]
    selfish = solve(BRAESS, demands, delay=Bpr(1.0, 1.0), method=method, gap=1e-10)
    best = solve(BRAESS, demands, delay=Bpr(1.0, 1.0, equilibrium=False), method=method, gap=1e-10)
    assert best.gamma_T <= selfish.gamma_T
    latencies = Bpr(1.0, 1.0).latencies(BRAESS, selfish.link_flows_bps)
    used = [
        sum(latencies[link] for link in flow.path)
        for flow in selfish.path_flows[0]
        if flow.rate_bps > 1e-3
    ]
    assert max(used) == pytest.approx(min(used), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", QUEUES)
def test_two_links_carry_what_the_closed_form_says(method, delay):
    network = Network("ab", [Link("a", "b", 2e6, 0.0), Link("a", "b", 1e6, 0.0)])
    solution = solve(network, [Demand("a", "b", 2e6)], delay=delay, method=method)
    lengths = delay.lengths(network, solution.link_flows_bps)
    assert solution.relative_gap <= 1e-9
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-3)
    if delay == Kleinrock(equilibrium=True):  # equal free capacity
        assert solution.link_flows_bps == pytest.approx([1.5e6, 0.5e6], rel=1e-3)


def test_kappa_may_differ_from_link_to_link():
    network = Network("ab", [Link("a", "b", 1e6), Link("a", "b", 1e6)])
    for method in fdm.METHODS:
        solution = solve(network, [Demand("a", "b", 1e6)], kappa=[1.0, 4.0], method=method)
        free = [1e6 - flow for flow in solution.link_flows_bps]
        assert free[1] == pytest.approx(2.0 * free[0], rel=1e-3)
    with pytest.raises(ValueError, match="one for each of the 2 links"):
        solve(network, [], kappa=[1.0])
    with pytest.raises(ValueError, match="neither roads nor user equilibria"):
        solve(network, [], delay=Bpr(), method="interior point")


@given(
    st.integers(0, 300).map(lambda percent: percent / 100),
    st.sampled_from(METHODS),
    st.sampled_from(ROADS),
)
@settings(deadline=None)
def test_roads_take_any_demand(load, method, delay):
    network = Network(
        range(4),
        [Link(a, b, 100.0 * (1 + a), 1.0 + b) for a, b in itertools.permutations(range(4), 2)],
    )
    demands = [Demand(a, b, load * 100.0) for a, b in itertools.permutations(range(4), 2)]
    solution = solve(network, demands, delay=delay, method=method, gap=1e-6)
    assert solution.feasible
    assert math.isfinite(solution.gamma_T)
    assert solution.relative_gap <= (1e-6 if method == "path flows" else 1e-3)


@pytest.mark.parametrize("method", fdm.METHODS)
@pytest.mark.parametrize("users", [2, 5])
def test_users_get_the_same_even_from_an_unfair_start(method, users):
    links = [Link(f"u{u}", g, 1e8) for u in range(users) for g in ("satellite", "drone")]
    links += [Link("satellite", "host", 5e7, 0.25), Link("drone", "host", 1e6, 0.01)]
    network = Network([*(f"u{u}" for u in range(users)), "satellite", "drone", "host"], links)
    demands = [Demand(f"u{u}", "host", 3e6) for u in range(users)]
    fair = solve(network, demands, method=method)
    flows = [((fdm.PathFlow((2 * u, 2 * users), 3e6)),) for u in range(users)]
    flows[0] = (
        fdm.PathFlow((0, 2 * users), 2.3e6),
        fdm.PathFlow((1, 2 * users + 1), 0.7e6),
    )
    unfair = solve(network, demands[:], method=method, start=_with_flows(fair, flows))
    for solution in (fair, unfair):
        shares = [
            sum(f.rate_bps for f in paths if network.links[f.path[0]].head == "drone")
            for paths in solution.path_flows
        ]
        assert solution.relative_gap <= 1e-9
        assert sum(shares) > 5e5
        assert sum(shares) ** 2 / (users * sum(s * s for s in shares)) >= 0.999


def _with_flows(solution, flows):
    import dataclasses

    return dataclasses.replace(solution, path_flows=tuple(flows))


@pytest.mark.parametrize("method", fdm.METHODS)
def test_demands_with_the_same_ends_share_in_proportion(method):
    network = Network("ab", [Link("a", "b", 1e6, 0.01), Link("a", "b", 5e6, 0.2)])
    demands = [Demand("a", "b", 3e5), Demand("a", "b", 9e5), Demand("a", "b", 0.0)]
    solution = solve(network, demands, method=method)
    share = [{f.path: f.rate_bps / 3e5 for f in solution.path_flows[0]}]
    share.append({f.path: f.rate_bps / 9e5 for f in solution.path_flows[1]})
    assert share[0] == pytest.approx(share[1], rel=1e-6)
    assert solution.path_flows[2] == ()
    assert solution.demand_delay_s[0] == pytest.approx(solution.demand_delay_s[1], rel=1e-6)
