"""All methods against a general convex solver that shares nothing with them."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fdm
from fdm import Bpr, Demand, Deterministic, Kleinrock, Link, Network

pytest.importorskip("cvxpy", reason="cvxpy is not installed")
from fdm.reference import reference

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", ["tac2", "tac10-90", "nsfnet-90"])
def test_the_reference_agrees_on_instances(name):
    instance = fdm.load(DATA / f"{name}.json")
    other = reference(instance.network, instance.demands)
    assert other.status == "optimal"
    assert other.gamma_T == pytest.approx(instance.optimum_gamma_T, rel=1e-6)
    ours = fdm.solve(instance.network, instance.demands)
    assert ours.link_flows_bps == pytest.approx(other.link_flows_bps, rel=1e-2, abs=2e4)


@st.composite
def networks(draw):
    """Small, often with parallel links, and with more than one commodity an origin."""
    count = draw(st.integers(2, 5))
    node = st.integers(0, count - 1)
    link = st.builds(Link, node, node, st.floats(2e5, 1e7), st.floats(0.0, 0.5))
    links = draw(st.lists(link, min_size=3, max_size=12))
    links += [
        again._replace(capacity_bps=draw(st.floats(2e5, 1e7)))
        for again in draw(st.lists(st.sampled_from(links), max_size=3))
    ]
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demand = st.builds(lambda pair, rate: Demand(*pair, rate), pairs, st.floats(1e5, 1e6))
    return Network(range(count), links), draw(st.lists(demand, min_size=1, max_size=4))


kappas = st.sampled_from([0.5, 1.0, 5.0])


@st.composite
def problems(draw):
    network, demands = draw(networks())
    kappa = draw(kappas | st.tuples(*[kappas] * len(network.links)))
    kind = draw(st.sampled_from([Kleinrock, Deterministic]))
    return network, demands, kind(kappa=kappa, equilibrium=draw(st.booleans()))


def close(ours: fdm.Solution, other, rel: float, small: float = 1e-12) -> None:
    # The general solver's flows fall a little short of the demands, or lie a little above the best.
    assert other.objective == pytest.approx(ours.objective, rel=rel, abs=small)
    assert ours.lower_bound <= other.objective * (1 + rel) + small


@given(problems(), st.sampled_from(fdm.METHODS))
@settings(max_examples=50, deadline=None)
def test_all_methods_agree_with_the_reference_on_random_networks(problem, method):
    network, demands, delay = problem
    if delay.equilibrium and method == "interior point":
        method = "path flows"  # the former does not know equilibria
    ours = fdm.solve(network, demands, delay=delay, method=method, gap=1e-7)
    # A link that is all but full, or demands that all but fit, are beyond the general solver.
    fullest = max(
        flow / link.capacity_bps
        for flow, link in zip(ours.link_flows_bps, network.links, strict=True)
    )
    assume(fullest < 0.999 if ours.feasible else (ours.fitting_share or 0.0) < 0.999)
    other = reference(network, demands, delay=delay)
    assume(other.status != "solver_error")
    if not ours.feasible:
        assert other.status in ("infeasible", "infeasible_inaccurate")
    else:
        assert other.status in ("optimal", "optimal_inaccurate")
        # Flow deviation stops where it has zigzagged long enough, and says so.
        close(ours, other, 1e-4 + ours.relative_gap)


@given(networks(), st.sampled_from([1.0, 2.0, 4.0]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_roads_agree_with_the_reference(problem, beta, equilibrium):
    network, demands = problem
    reached = {demand.origin: network.reachable(demand.origin) for demand in demands}
    demands = [d for d in demands if d.destination in reached[d.origin]]
    assume(demands)
    delay = Bpr(0.5, beta, equilibrium)
    ours = fdm.solve(network, demands, delay=delay, gap=1e-7)
    other = reference(network, demands, delay=delay)
    assume(other.status == "optimal")
    close(ours, other, 1e-3, 1e-6 * sum(demand.rate_bps for demand in demands))


def test_what_is_down_and_what_sends_nothing_are_left_out():
    network = Network("ab", [Link("a", "b", 0.0), Link("a", "b", 1e6, 0.1)])
    other = reference(network, [Demand("a", "b", 5e5), Demand("b", "a", 0.0)])
    assert other.status == "optimal"
    assert other.link_flows_bps[0] == 0.0
    assert other.link_flows_bps[1] == pytest.approx(5e5, rel=1e-6)
    assert reference(network, [Demand("b", "a", 1.0)]).status.startswith("infeasible")
