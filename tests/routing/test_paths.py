"""Shortest, disjoint and equal-cost paths, against all paths of small graphs."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing import (
    Graph,
    Link,
    Path,
    bottleneck_bps,
    cheapest_flow,
    disjoint_paths,
    equal_cost_paths,
    k_shortest_paths,
    shortest_path,
    shortest_paths_to,
    value,
    weights,
)
from tests.routing.graphs import graphs


def all_paths(graph: Graph, at: int, to: int, passed: frozenset[int]) -> Iterator[Path]:
    """Every path without a node twice, the slow way."""
    if at == to:
        yield ()
        return
    for link in graph.outgoing[at]:
        head = graph.ends[link][1]
        if head not in passed:
            for rest in all_paths(graph, head, to, passed | {head}):
                yield (link, *rest)


def from_0_to_1(graph: Graph) -> list[Path]:
    at, to = graph.index[0], graph.index[1]
    return list(all_paths(graph, at, to, frozenset({at})))


@given(graphs(), st.integers(0, 12))
def test_yens_paths_are_the_shortest_of_all(graph, count):
    lengths = [link.delay_s for link in graph.links]
    found = k_shortest_paths(graph, 0, 1, count, lengths)
    everything = from_0_to_1(graph)
    assert len(found) == len(set(found)) == min(count, len(everything))
    assert set(found) <= set(everything)

    def length(path: Path) -> float:
        return sum(lengths[link] for link in path)

    assert [length(path) for path in found] == sorted(map(length, everything))[:count]
    first = shortest_path(graph, 0, 1, lengths)
    assert first == (k_shortest_paths(graph, 0, 1, 1, lengths) or [None])[0]


@given(graphs())
def test_paths_from_all_nodes_to_one_are_as_short_as_each_alone(graph):
    lengths = [link.delay_s for link in graph.links]
    found = shortest_paths_to(graph, 1, lengths)
    for node in graph.nodes:
        alone = shortest_path(graph, node, 1, lengths) if node != 1 else None
        assert (node in found) == (alone is not None)
        if alone is not None:
            passed = graph.passed(found[node])
            assert (passed[0], passed[-1]) == (node, 1)
            assert len(set(passed)) == len(passed), "also where lengths are 0"
            assert sum(lengths[link] for link in found[node]) == sum(lengths[e] for e in alone)


@given(graphs())
def test_equal_cost_paths_are_all_of_fewest_hops(graph):
    everything = from_0_to_1(graph)
    fewest = min(map(len, everything), default=0)
    expected = sorted(path for path in everything if len(path) == fewest)
    assert sorted(equal_cost_paths(graph, 0, 1)) == expected


@given(graphs(), st.integers(0, 5))
def test_disjoint_paths_are_as_many_as_there_can_be_and_none_cost_less(graph, count):
    costs = [int(link.delay_s) + 1 for link in graph.links]
    found = disjoint_paths(graph, 0, 1, count, costs)
    used = [link for path in found for link in path]
    assert len(used) == len(set(used))
    # Menger: as many as links whose loss cuts the two off.
    ones = [int(link.capacity_bps >= 1.0) for link in graph.links]
    most = value(graph, cheapest_flow(graph, 0, 1, capacities=ones), 0)
    assert len(found) == min(count, most)
    if len(found) == 2:
        everything = from_0_to_1(graph)
        assert sum(costs[link] for link in used) == min(
            sum(costs[link] for link in (*a, *b))
            for a in everything
            for b in everything
            if not set(a) & set(b)
        )


def test_the_shortest_path_is_given_up_where_two_disjoint_ones_need_that():
    """Suurballe's point: o-a-b-d is shortest, and no other path is disjoint with it."""
    graph = Graph(
        Link(*ends, 1.0, delay_s)
        for *ends, delay_s in (
            ("o", "a", 1), ("a", "b", 1), ("b", "d", 1), ("o", "b", 3), ("a", "d", 3)
        )
    )  # fmt: skip
    assert shortest_path(graph, "o", "d", [link.delay_s for link in graph.links]) == (0, 1, 2)
    assert sorted(disjoint_paths(graph, "o", "d", 2)) == [(0, 4), (3, 2)]


def test_weights_are_in_proportion_to_the_bottleneck():
    graph = Graph(
        [Link("a", "b", 30.0), Link("b", "d", 10.0), Link("a", "c", 40.0), Link("c", "d", 30.0)]
    )
    paths = equal_cost_paths(graph, "a", "d")
    assert [bottleneck_bps(graph, path) for path in paths] == [10.0, 30.0]
    assert weights(graph, paths) == [0.25, 0.75]


def test_there_may_be_no_path():
    graph = Graph([Link("a", "b", 1.0), Link("b", "c", 0.0)])
    assert shortest_path(graph, "a", "c") is None
    assert k_shortest_paths(graph, "a", "c", 3) == []
    assert disjoint_paths(graph, "a", "c", 3) == []
    assert equal_cost_paths(graph, "a", "c") == []


@pytest.mark.parametrize("find", [k_shortest_paths, disjoint_paths])
def test_a_negative_count_is_refused(find):
    with pytest.raises(ValueError, match="count must be 0 or more, not -1"):
        find(Graph([Link("a", "b", 1.0)]), "a", "b", -1)
