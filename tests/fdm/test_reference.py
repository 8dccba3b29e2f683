from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fdm
from fdm import Demand, Link, Network

pytest.importorskip("cvxpy", reason="cvxpy is not installed")
from fdm.reference import reference

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", ["tac2", "tac10-90"])
def test_the_reference_agrees_on_instances(name):
    instance = fdm.load(DATA / f"{name}.json")
    other = reference(instance.network, instance.demands)
    assert other.status == "optimal"
    assert other.gamma_T == pytest.approx(instance.optimum_gamma_T, rel=1e-6)
    ours = fdm.solve(instance.network, instance.demands)
    assert ours.link_flows_bps == pytest.approx(other.link_flows_bps, rel=1e-2, abs=2e4)


@st.composite
def problems(draw):
    count = draw(st.integers(2, 5))
    node = st.integers(0, count - 1)
    link = st.builds(Link, node, node, st.floats(2e5, 1e7), st.floats(0.0, 0.5))
    links = draw(st.lists(link, min_size=3, max_size=14))
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demand = st.builds(lambda pair, rate: Demand(*pair, rate), pairs, st.floats(1e5, 1e6))
    demands = draw(st.lists(demand, min_size=1, max_size=4))
    return Network(range(count), links), demands, draw(st.sampled_from([0.5, 1.0, 5.0]))


@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_reference_agrees_on_random_networks(problem):
    network, demands, kappa = problem
    other = reference(network, demands, kappa=kappa)
    ours = fdm.solve(network, demands, kappa=kappa)
    # A link that is all but full, or demands that all but fit, are beyond the general solver.
    fullest = max(
        flow / link.capacity_bps
        for flow, link in zip(ours.link_flows_bps, network.links, strict=True)
    )
    assume(fullest < 0.999 if ours.feasible else (ours.fitting_share or 0.0) < 0.999)
    if ours.feasible:
        assert other.status in ("optimal", "optimal_inaccurate")
        assert ours.gamma_T <= other.gamma_T * (1 + 1e-4)
        assert other.gamma_T == pytest.approx(ours.gamma_T, rel=1e-3)
    else:
        assert other.status in ("infeasible", "infeasible_inaccurate")
