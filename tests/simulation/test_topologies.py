"""Data centre networks: their size, and that paths are what they should be."""

import random
from itertools import pairwise

import pytest

from simulation import Link
from simulation.topologies import BCube, FatTree, permutation


def ends(links: int, paths: list[list[int]]) -> None:
    for path in paths:
        assert len(set(path)) == len(path)
        assert all(0 <= link < links for link in path)


def test_fat_tree_of_the_paper():
    tree = FatTree(8, Link(100e6))
    assert (tree.hosts, tree.switches, len(tree.links)) == (128, 80, 768)
    assert [tree.path_count(0, to) for to in (3, 4, 15, 16, 127)] == [1, 4, 4, 16, 16]
    assert [len(tree.path(0, to, 0)) for to in (3, 4, 16)] == [2, 4, 6]


@pytest.mark.parametrize("ports", [4, 6])
def test_fat_tree_paths_are_all_different_and_share_links_as_switches_do(ports):
    tree = FatTree(ports, Link(1e6))
    half = ports // 2
    into = [set() for _ in tree.links]  # what follows a link, over all paths
    for source in range(tree.hosts):
        for destination in range(tree.hosts):
            if source == destination:
                continue
            count = tree.path_count(source, destination)
            paths = [tree.path(source, destination, which) for which in range(count)]
            assert len(set(map(tuple, paths))) == count
            ends(len(tree.links), paths)
            for path in paths:
                assert path[0] == 2 * source and path[-1] == 2 * destination + 1
                # First up, which is even, then down.
                assert [link % 2 for link in path] == [0] * (len(path) // 2) + [1] * (
                    len(path) // 2
                )
                for a, b in pairwise(path):
                    into[a].add(b)
    used = [link for link in range(len(tree.links)) if into[link]]
    # A link into a switch is followed by links out of one switch only: half or k − 1 of them
    # going up and down, half going down only, or k − 1 at a core.
    sizes = {len(into[link]) for link in used}
    assert sizes == {half, ports - 1}
    for a in used:
        for b in used:
            if into[a] & into[b]:
                union = into[a] | into[b]
                assert len(union) <= ports


def test_few_paths_are_spread_over_the_aggregation_switches():
    tree, draw = FatTree(8, Link(100e6)), random.Random(1)
    for count in (1, 2, 4, 8, 16):
        paths = tree.choose(0, 127, count, draw)
        assert len(set(map(tuple, paths))) == count
        assert len({path[1] for path in paths}) >= min(count, 2)
        if count <= 4:
            assert len({path[1] for path in paths}) == count
    assert len(tree.choose(0, 1, 8, draw)) == 1
    assert len(tree.choose(0, 5, 8, draw)) == 4


def test_bcube_of_the_paper():
    cube = BCube(5, 3, Link(100e6))
    assert (cube.hosts, cube.switches, len(cube.links)) == (125, 75, 750)
    assert len(set(cube.neighbours(17))) == 12
    draw = random.Random(1)
    for source, destination in ((0, 1), (0, 31), (0, 5), (124, 37), (60, 61)):
        paths = cube.disjoint(source, destination, draw)
        ends(len(cube.links), paths)
        assert len({link for path in paths for link in path}) == sum(map(len, paths))
        assert sorted(path[0] for path in paths) == [
            2 * (level * 125 + source) for level in range(3)
        ]
        assert {path[-1] for path in paths} == {
            2 * (level * 125 + destination) + 1 for level in range(3)
        }
        for path in paths:
            for up, down in zip(path[::2], path[1::2], strict=True):
                level, a = divmod(up // 2, 125)
                other, b = divmod(down // 2, 125)
                assert level == other and a != b
                assert cube.with_digit(a, level, 0) == cube.with_digit(b, level, 0)
        wrong = sum(cube.digit(source, i) != cube.digit(destination, i) for i in range(3))
        assert len(cube.shortest(source, destination, draw)) == 2 * wrong


def test_a_permutation_sends_nobody_to_himself():
    draw = random.Random(2)
    for hosts in (2, 3, 10):
        assert sorted(permutation(hosts, draw)) == list(range(hosts))
        assert all(i != j for i, j in enumerate(permutation(hosts, draw)))


def test_an_odd_number_of_ports_makes_no_fat_tree():
    with pytest.raises(ValueError, match="ports is 3"):
        FatTree(3, Link(1e6))
