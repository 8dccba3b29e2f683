"""What must hold for every network: the conditions of optimality and the symmetries."""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fdm import Demand, Link, Network, Solution, solve

GAP = 1e-9

capacities = st.sampled_from([0.0, 1e5, 1e6, 2e6, 5e7]) | st.floats(1e4, 1e8)
delays = st.sampled_from([0.0, 0.01, 0.25]) | st.floats(0.0, 1.0)
rates = st.sampled_from([0.0, 1e5, 1e6]) | st.floats(1e3, 1e7)


@st.composite
def problems(draw):
    count = draw(st.integers(2, 7))
    node = st.integers(0, count - 1)
    links = draw(st.lists(st.builds(Link, node, node, capacities, delays), min_size=1, max_size=20))
    pairs = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    demands = draw(
        st.lists(st.builds(lambda p, r: Demand(*p, r), pairs, rates), min_size=1, max_size=5)
    )
    return Network(range(count), links), demands, draw(st.sampled_from([0.1, 1.0, 8.0]))


@st.composite
def connected_problems(draw):
    """A ring of wide links carries everything, so that every demand fits."""
    network, demands, kappa = draw(problems())
    count = len(network.nodes)
    ring = [Link(node, (node + 1) % count, 1e8, draw(delays)) for node in range(count)]
    return Network(network.nodes, (*network.links, *ring)), demands, kappa


def flow_by_path(network: Network, solution: Solution) -> list[float]:
    flow = [0.0] * len(network.links)
    for flows in solution.path_flows:
        for path, rate in flows:
            for link in path:
                flow[link] += rate
    return flow


@given(problems())
def test_conservation_and_capacity(problem):
    network, demands, kappa = problem
    solution = solve(network, demands, kappa=kappa)
    assert len(solution.path_flows) == len(solution.admitted_bps) == len(demands)
    for demand, admitted, flows in zip(
        demands, solution.admitted_bps, solution.path_flows, strict=True
    ):
        assert admitted <= demand.rate_bps
        assert sum(flow.rate_bps for flow in flows) == pytest.approx(admitted, rel=1e-9)
        for path, rate in flows:
            assert rate > 0.0
            ends = [(network.links[link].tail, network.links[link].head) for link in path]
            assert ends[0][0] == demand.origin
            assert ends[-1][1] == demand.destination
            assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    assert list(solution.link_flows_bps) == pytest.approx(flow_by_path(network, solution))
    for link, flow in zip(network.links, solution.link_flows_bps, strict=True):
        assert flow < link.capacity_bps or flow == 0.0
    if solution.feasible:
        assert list(solution.admitted_bps) == [demand.rate_bps for demand in demands]


@given(connected_problems(), st.randoms(use_true_random=False))
def test_renumbering_changes_nothing(problem, random):
    network, demands, kappa = problem
    links, nodes = list(network.links), list(network.nodes)
    random.shuffle(links)
    random.shuffle(nodes)
    names = {node: f"node {position}" for position, node in enumerate(nodes)}
    renamed = Network(
        [names[node] for node in nodes],
        [link._replace(tail=names[link.tail], head=names[link.head]) for link in links],
    )
    moved = [Demand(names[d.origin], names[d.destination], d.rate_bps) for d in reversed(demands)]
    first = solve(network, demands, kappa=kappa)
    second = solve(renamed, moved, kappa=kappa)
    assert second.gamma_T == pytest.approx(first.gamma_T, rel=1e-7, abs=1e-12)


units = st.sampled_from([1e-6, 1e-3, 1.0, 8.0, 1e4])


@given(connected_problems(), units, units)
def test_units_change_nothing(problem, data, time):
    """Bits or bytes, seconds or milliseconds."""
    network, demands, kappa = problem
    scaled = Network(
        network.nodes,
        [
            link._replace(capacity_bps=link.capacity_bps * data / time, delay_s=link.delay_s * time)
            for link in network.links
        ],
    )
    raised = [demand._replace(rate_bps=demand.rate_bps * data / time) for demand in demands]
    first = solve(network, demands, kappa=kappa)
    second = solve(scaled, raised, packet_bits=12000.0 * data, kappa=kappa)
    assert second.feasible == first.feasible
    assert second.gamma_T == pytest.approx(first.gamma_T, rel=1e-7, abs=1e-12)
    assert second.mean_packet_delay_s == pytest.approx(first.mean_packet_delay_s * time, rel=1e-7)


@given(connected_problems(), st.integers(0, 4), st.floats(1.0, 3.0))
def test_delay_does_not_fall_when_a_demand_grows(problem, which, factor):
    network, demands, kappa = problem
    grown = list(demands)
    which %= len(demands)
    grown[which] = grown[which]._replace(rate_bps=grown[which].rate_bps * factor)
    first, second = solve(network, demands, kappa=kappa), solve(network, grown, kappa=kappa)
    assume(first.feasible and second.feasible)
    assert second.gamma_T >= first.gamma_T * (1 - 1e-7)


@given(
    st.integers(2, 6),
    st.lists(st.tuples(st.floats(1e5, 1e8), delays), min_size=1, max_size=4),
    st.floats(0.05, 0.97),
)
@settings(deadline=None)
def test_users_with_the_same_choice_get_the_same(users, gateways, load):
    nodes = [f"user{u}" for u in range(users)] + [f"gateway{g}" for g in range(len(gateways))]
    links = [
        Link(f"user{u}", f"gateway{g}", 1e8) for u in range(users) for g in range(len(gateways))
    ]
    links += [Link(f"gateway{g}", "host", *gateway) for g, gateway in enumerate(gateways)]
    network = Network([*nodes, "host"], links)
    total = min(sum(capacity for capacity, _ in gateways), 1e8)
    demands = [Demand(f"user{u}", "host", load * total / users) for u in range(users)]
    solution = solve(network, demands)
    assert solution.relative_gap <= GAP
    for gateway in range(len(gateways)):
        shares = [
            sum(f.rate_bps for f in flows if links[f.path[0]].head == f"gateway{gateway}")
            for flows in solution.path_flows
        ]
        if sum(shares) > 1e-6 * load * total:
            jain = sum(shares) ** 2 / (users * sum(share**2 for share in shares))
            assert jain >= 0.999
