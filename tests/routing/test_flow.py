"""Maximum flows against SciPy's, their cost against a linear program, and their paths."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from routing import Graph, Link, cheapest_flow, decompose, delay_then_hops, value
from tests.routing.graphs import graphs


def incidence(graph: Graph) -> np.ndarray:
    """Flow into each node, for one unit on each link."""
    matrix = np.zeros((len(graph.nodes), len(graph.links)))
    for link, (tail, head) in enumerate(graph.ends):
        matrix[tail, link] -= 1
        matrix[head, link] += 1
    return matrix


@given(graphs())
def test_the_value_is_that_of_scipys_maximum_flow(graph):
    flow = cheapest_flow(graph, 0, 1)
    ends, capacities = np.array(graph.ends).T, [int(link.capacity_bps) for link in graph.links]
    size = len(graph.nodes)
    matrix = csr_array((np.array(capacities, np.int32), ends), shape=(size, size))
    matrix.sum_duplicates()
    at, to = graph.index[0], graph.index[1]
    assert value(graph, flow, 0) == maximum_flow(matrix, at, to).flow_value


@given(graphs())
def test_it_is_a_flow_and_no_other_of_its_value_costs_less(graph):
    flow, costs = cheapest_flow(graph, 0, 1), delay_then_hops(graph)
    capacities = [link.capacity_bps for link in graph.links]
    assert all(0 <= f <= capacity for f, capacity in zip(flow, capacities, strict=True))
    into = incidence(graph) @ flow
    wanted = np.zeros(len(graph.nodes))
    wanted[graph.index[1]] = value(graph, flow, 0)
    wanted[graph.index[0]] = -value(graph, flow, 0)
    assert into.tolist() == wanted.tolist()
    # Costs of nanoseconds are too far apart for a solver in floating point.
    small = [round(link.delay_s) * 100 + 1 for link in graph.links]
    cheapest = cheapest_flow(graph, 0, 1, costs=small)
    bounds = [(0.0, capacity) for capacity in capacities]
    least = linprog(small, A_eq=incidence(graph), b_eq=wanted, bounds=bounds)
    assert np.dot(small, cheapest) == pytest.approx(least.fun)
    assert np.dot(small, cheapest) == pytest.approx(np.dot(small, flow)), "the same order of costs"
    assert np.dot(costs, flow) <= np.dot(costs, cheapest)


@given(graphs())
def test_paths_add_up_to_the_flow_link_by_link(graph):
    flow = cheapest_flow(graph, 0, 1)
    paths = decompose(graph, flow, 0, 1)
    carried = [0] * len(graph.links)
    for path, rate_bps in paths:
        passed = graph.passed(path)
        assert (passed[0], passed[-1]) == (0, 1)
        assert len(set(passed)) == len(passed)
        assert rate_bps > 0
        for link in path:
            carried[link] += rate_bps
    assert carried == flow, "nothing flows in circles"
    rates = [rate_bps for _, rate_bps in paths]
    assert rates == sorted(rates, reverse=True)
    assert len(paths) <= sum(f > 0 for f in flow)


def test_what_is_wanted_takes_the_path_of_least_delay_first():
    satellite, radio = Link("ship", "shore", 50e6, 0.25), Link("ship", "shore", 1e6, 0.01)
    graph = Graph([satellite, radio])
    assert cheapest_flow(graph, "ship", "shore", most=600_000) == [0, 600_000]
    assert cheapest_flow(graph, "ship", "shore", most=3_000_000) == [2_000_000, 1_000_000]
    assert cheapest_flow(graph, "ship", "shore") == [50_000_000, 1_000_000]
    assert cheapest_flow(graph, "ship", "shore", most=0) == [0, 0]


def test_an_earlier_choice_is_taken_back():
    """The cheapest path, by the middle, blocks both of the two that carry more."""
    graph = Graph(
        Link(*ends)
        for ends in (
            ("o", "a", 1, 1), ("a", "b", 1, 1), ("b", "d", 1, 1), ("o", "b", 1, 5), ("a", "d", 1, 5)
        )
    )  # fmt: skip
    assert cheapest_flow(graph, "o", "d", most=1) == [1, 1, 1, 0, 0]
    assert cheapest_flow(graph, "o", "d") == [1, 0, 1, 1, 1]


def test_rates_beyond_32_bits_are_exact():
    graph = Graph([Link("a", "b", 400e9 + 1), Link("a", "b", 3e12)])
    assert value(graph, cheapest_flow(graph, "a", "b"), "a") == 3_400_000_000_001


def test_the_widest_path_comes_first_which_keeps_them_few():
    """The example of the paper: 7 units from H1 to H2 over two switches, and three paths."""
    graph = Graph(
        Link(*ends)
        for ends in (
            ("H1", "SW1", 5), ("H1", "SW2", 2), ("SW1", "SW2", 2), ("SW1", "H2", 3),
            ("SW2", "H2", 4),
        )
    )  # fmt: skip
    flow = cheapest_flow(graph, "H1", "H2")
    assert flow == [5, 2, 2, 3, 4], "table 2"
    paths = decompose(graph, flow, "H1", "H2")
    assert [(graph.passed(path), rate) for path, rate in paths] == [
        (("H1", "SW1", "H2"), 3),
        (("H1", "SW2", "H2"), 2),
        (("H1", "SW1", "SW2", "H2"), 2),
    ]


def test_circles_are_no_part_of_a_path():
    graph = Graph([Link("a", "b", 9), Link("b", "c", 9), Link("c", "b", 9), Link("b", "d", 9)])
    assert decompose(graph, [3, 5, 5, 3], "a", "d") == [((0, 3), 3)]


@pytest.mark.parametrize(
    ("ends", "costs", "sentence"),
    [
        (("a", "z"), None, "there is no node 'z'"),
        (("z", "a"), None, "there is no node 'z'"),
        (("a", "a"), None, "origin and destination are both 'a'"),
        (("a", "b"), [0], "costs must be 1 or more, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused(ends, costs, sentence):
    with pytest.raises(ValueError, match=sentence):
        cheapest_flow(Graph([Link("a", "b", 1.0)]), *ends, costs=costs)


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        (Link("a", "b", -1.0), r"capacity_bps of link 0 \('a' to 'b'\) must be a finite number"),
        (Link("a", "b", float("inf")), "0 or more, not inf"),
        (Link("a", "b", 1.0, float("nan")), "delay_s of link 0 .* not nan"),
    ],
)
def test_a_link_that_cannot_be_is_refused(link, sentence):
    with pytest.raises(ValueError, match=sentence):
        Graph([link])
