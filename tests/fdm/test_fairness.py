"""The split between demands follows one rule, whatever found the link flows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fdm
from fdm import Demand, Link, Network, Solution, solve
from fdm.fairness import shared

METHODS = [method for method in fdm.METHODS if method != "flow deviation"]


@pytest.fixture(scope="module", autouse=True)
def compiled():
    pytest.importorskip("numba", reason="Numba is not installed")
    fdm.prepare()


rates = st.sampled_from([1e5, 2e5, 3e5]) | st.floats(5e4, 4e5)


@st.composite
def shared_segments(draw):
    """Several users before the same stages of parallel ways: any of them can take any way."""
    users = draw(st.integers(2, 4))
    stages = draw(st.integers(1, 2))
    nodes = [f"user{u}" for u in range(users)] + [f"stage{s}" for s in range(stages + 1)]
    links = [Link(f"user{u}", "stage0", 1e8) for u in range(users)]
    for stage in range(stages):
        for _ in range(draw(st.integers(2, 3))):
            capacity, delay = draw(st.floats(8e5, 3e6)), draw(st.sampled_from([0.0, 0.004, 0.01]))
            links.append(Link(f"stage{stage}", f"stage{stage + 1}", capacity, delay))
    demands = [Demand(f"user{u}", f"stage{stages}", draw(rates)) for u in range(users)]
    return Network(nodes, links), demands


def split(solution: Solution) -> list[dict[tuple[int, ...], float]]:
    """For each demand, the part of it on each way; the first link is the user's own."""
    return [
        {flow.path[1:]: flow.rate_bps / sum(one.rate_bps for one in flows) for flow in flows}
        for flows in solution.path_flows
    ]


def close(one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float]) -> bool:
    return all(
        one.get(path, 0.0) == pytest.approx(other.get(path, 0.0), abs=1e-5)
        for path in one.keys() | other.keys()
    )


@given(shared_segments())
@settings(max_examples=30, deadline=None)
def test_demands_with_the_same_choice_choose_in_the_same_proportions(problem):
    network, demands = problem
    solution = solve(network, demands)
    if not solution.feasible:
        return
    assert solution.relative_gap <= 1e-9
    first, *others = split(solution)
    assert all(close(first, other) for other in others)


@given(shared_segments(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_split_depends_on_neither_method_nor_start_nor_order(problem, random):
    network, demands = problem
    expected = solve(network, demands)
    if not expected.feasible:
        return
    answers = [solve(network, demands, method=method) for method in METHODS]
    weaker = Network(
        network.nodes,
        [*network.links[:-1], network.links[-1]._replace(capacity_bps=1e5)],
    )
    answers.append(solve(network, demands, start=solve(weaker, demands)))
    for answer in answers:
        for one, other in zip(split(answer), split(expected), strict=True):
            assert close(one, other), answer.method
    order = list(range(len(demands)))
    random.shuffle(order)
    names = list(network.nodes)
    random.shuffle(names)
    moved = solve(Network(names, network.links), [demands[number] for number in order])
    for number, one in zip(order, split(moved), strict=True):
        assert close(one, split(expected)[number])


def test_parts_of_one_demand_are_treated_as_the_whole():
    network = Network("ab", [Link("a", "b", 1e6, 0.01), Link("a", "b", 1e6, 0.012)])
    whole = solve(network, [Demand("a", "b", 9e5)])
    parts = solve(network, [Demand("a", "b", 6e5), Demand("a", "b", 3e5)])
    assert parts.link_flows_bps == pytest.approx(whole.link_flows_bps, rel=1e-6)
    for number, share in ((0, 2 / 3), (1, 1 / 3)):
        assert [flow.rate_bps for flow in parts.path_flows[number]] == pytest.approx(
            [share * flow.rate_bps for flow in whole.path_flows[0]], rel=1e-6
        )


@pytest.mark.parametrize("access_bps", [1e7, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("method", METHODS)
def test_users_stay_alike_where_the_delay_can_hardly_tell(access_bps, method):
    # The wider the access, the flatter the delay in who takes what.
    links = [Link(user, way, access_bps) for user in ("a", "b", "c") for way in ("wide", "quick")]
    links += [Link("wide", "host", 5e7, 0.25), Link("quick", "host", 1e6, 0.01)]
    network = Network(["a", "b", "c", "wide", "quick", "host"], links)
    demands = [Demand(user, "host", 1e6) for user in ("a", "b", "c")]
    solution = solve(network, demands, method=method)
    quick = [
        sum(flow.rate_bps for flow in flows if flow.path[-1] == 7) for flows in solution.path_flows
    ]
    assert sum(quick) ** 2 / (3 * sum(rate**2 for rate in quick)) >= 0.999


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=4))
@settings(max_examples=50, deadline=None)
def test_twins_get_the_mean_of_what_they_had(shares):
    """The network remembers where paths lead for whom: the second time is as good as the first."""
    users = [f"user{number}" for number in range(len(shares))]
    links = [Link(user, way, 1e8) for user in users for way in ("satcom", "uav")]
    links += [Link("satcom", "shore", 5e7, 0.25), Link("uav", "shore", 1e6, 0.01)]
    network = Network([*users, "satcom", "uav", "shore"], links)
    demands = [Demand(user, "shore", 1e5) for user in users]
    ways = [
        [(2 * number, len(links) - 2), (2 * number + 1, len(links) - 1)]
        for number in range(len(users))
    ]
    routing = [
        {
            path: part
            for path, part in zip(paths, (1e5 * (1 - share), 1e5 * share), strict=True)
            if part > 0.0
        }
        for paths, share in zip(ways, shares, strict=True)
    ]
    even = shared(network, demands, routing)
    mean = 1e5 * sum(shares) / len(shares)
    for paths, rates_of in zip(ways, even, strict=True):
        assert rates_of.get(paths[0], 0.0) == pytest.approx(1e5 - mean, abs=1e-6)
        assert rates_of.get(paths[1], 0.0) == pytest.approx(mean, abs=1e-6)
    assert shared(network, demands, even) == even
