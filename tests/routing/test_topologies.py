"""Sizes of generated networks, what of them is known, and the paper's three."""

from collections import Counter

import pytest

from routing import Graph, cheapest_flow, decompose, disjoint_paths, equal_cost_paths, value
from routing.maxflowsdn import BCUBE, DCELL, FAT_TREE, NETWORKS, Network
from routing.topologies import Topology, bcube, dcell, fat_tree, leaf_spine, vl2


def degrees(topology: Topology) -> Counter[str]:
    return Counter(end for a, b, _ in topology.cables for end in (a, b))


def most(graph: Graph, source: str, destination: str) -> int:
    return value(graph, cheapest_flow(graph, source, destination), source)


@pytest.mark.parametrize(
    ("topology", "hosts", "switches", "cables"),
    [
        (fat_tree(4), 16, 20, 48),
        (fat_tree(16), 1024, 320, 3072),
        (leaf_spine(4, 2, 10), 40, 6, 48),
        (vl2(6, 8, 20), 240, 12 + 8 + 3, 240 + 24 + 24),
        (bcube(4, 1), 16, 8, 32),
        (bcube(5, 2), 125, 75, 375),
        (dcell(4, 1), 20, 5, 30),
        (dcell(2, 3), 1806, 903, 1806 + 1806 * 3 // 2),
    ],
)
def test_sizes(topology, hosts, switches, cables):
    assert (len(topology.hosts), len(topology.switches)) == (hosts, switches)
    assert len(topology.cables) == len({frozenset(c[:2]) for c in topology.cables}) == cables
    assert set(degrees(topology)) == {*topology.hosts, *topology.switches}
    assert len(topology.graph.links) == 2 * cables


@pytest.mark.parametrize(
    ("topology", "ports", "interfaces"),
    [
        (fat_tree(6), {6}, {1}),
        (leaf_spine(4, 2, 10), {12, 4}, {1}),
        (vl2(6, 8, 20), {22, 6, 8}, {1}),
        (bcube(3, 2), {3}, {3}),
        (dcell(3, 2), {3}, {3}),
    ],
)
def test_ports_of_switches_and_interfaces_of_hosts(topology, ports, interfaces):
    found = degrees(topology)
    assert {found[switch] for switch in topology.switches} == ports
    assert {found[host] for host in topology.hosts} == interfaces


def test_paths_of_a_fat_tree():
    graph = fat_tree(6).graph
    to = {"h1": 1, "h3": 3, "h53": 9}  # same edge switch, same pod, another pod
    assert {host: len(equal_cost_paths(graph, "h0", host)) for host in to} == to
    assert len(disjoint_paths(graph, "e0", "e17", 9)) == 3


def test_a_leaf_has_all_spines_between_it_and_another():
    topology = leaf_spine(3, 4, 2, 10e9, 40e9)
    assert most(topology.graph, "l0", "l2") == 160e9
    assert most(topology.graph, "h0", "h5") == 10e9


def test_vl2_has_full_bisection_between_racks():
    graph = vl2(4, 4, 20).graph
    assert most(graph, "t0", "t3") == 20e9, "20 hosts of 1 Gbit/s behind two cables of 10"
    assert len(equal_cost_paths(graph, "t0", "t3")) == 2 * 2 * 2


@pytest.mark.parametrize(("topology", "paths"), [(bcube(3, 1), 2), (bcube(3, 2), 3)])
def test_bcube_has_a_disjoint_path_for_every_interface(topology, paths):
    for host in topology.hosts[1:]:
        assert len(disjoint_paths(topology.graph, "h0", host, 9)) == paths


@pytest.mark.parametrize(("ports", "level"), [(2, 2), (4, 1)])
def test_dcell_is_within_its_diameter(ports, level):
    """At most 2^(k+1) - 1 steps between hosts, a switch counting none."""
    topology = dcell(ports, level)
    next_to: dict[str, set[str]] = {}
    for a, b, _ in topology.cables:
        next_to.setdefault(a, set()).add(b)
        next_to.setdefault(b, set()).add(a)
    for source in topology.hosts:
        reached, wave, steps = {source}, {source}, 0
        while wave:
            around = {n for host in wave for n in next_to[host]}
            through = {n for s in around & set(topology.switches) for n in next_to[s]}
            wave = ((around | through) & set(topology.hosts)) - reached
            reached |= wave
            steps += bool(wave)
        assert len(reached) == len(topology.hosts)
        assert steps <= 2 ** (level + 1) - 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fat_tree(5), "ports is 5; expected an even number of 2 or more"),
        (lambda: fat_tree(0), "ports is 0; expected an even"),
        (lambda: leaf_spine(2, 0, 1), "spines is 0; expected 1 or more"),
        (lambda: vl2(3, 4), "aggregation_ports is 3; expected an even"),
        (lambda: vl2(4, 4, 0), "hosts_each is 0; expected 1 or more"),
        (lambda: bcube(1, 1), "ports is 1; expected 2 or more"),
        (lambda: dcell(2, -1), "level is -1; expected 0 or more"),
    ],
)
def test_what_cannot_be_built_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("network", "mbps", "paths"),
    [
        (FAT_TREE, 13, ["h1 s9 s1 s91 s7 s15 h2", "h1 s9 s2 s93 s8 s15 h2"]),
        (
            DCELL,
            30,
            [
                "h0.1 DCs0 h0.3 h3.1 DCs3 h3.4",
                "h0.1 h1.1 DCs1 h1.3 h3.2 DCs3 h3.4",
                "h0.1 h1.1 DCs1 h1.4 h4.2 DCs4 h4.4 h3.4",
            ],
        ),
        (
            BCUBE,
            30,
            ["h1 s90 s12 s83 h2", "h1 s81 s6 s92 h2", "h1 s90 s1 s80 s3 s92 h2"],
        ),
    ],
    ids=[network.name for network in NETWORKS],
)
def test_the_papers_networks_have_its_maximum_flows_and_paths(network, mbps, paths):
    graph = network.topology.graph
    flow = cheapest_flow(graph, network.source, network.destination)
    assert value(graph, flow, network.source) == mbps * 1_000_000
    found = decompose(graph, flow, network.source, network.destination)
    assert [" ".join(map(str, graph.passed(path))) for path, _ in found] == paths


def renamed(network: Network, names: dict[str, str]) -> set[frozenset[str]]:
    return {frozenset(names.get(end, end) for end in c[:2]) for c in network.topology.cables}


def cables(topology: Topology) -> set[frozenset[str]]:
    return {frozenset(cable[:2]) for cable in topology.cables}


def test_the_papers_dcell_is_one_once_its_misprints_are_mended():
    names = {f"h{cell}.{i + 1}": f"h{4 * cell + i}" for cell in range(5) for i in range(4)}
    names |= {f"DCs{cell}": f"s{cell}" for cell in range(5)}
    assert renamed(DCELL, names) == cables(dcell(4, 1))


def test_the_papers_bcube_is_one():
    hosts = [f"s{i}" for i in range(1, 15)]
    hosts.insert(4, "h1")
    hosts.insert(14, "h2")
    names = {host: f"h{i}" for i, host in enumerate(hosts)}
    names |= {f"s{level + 8}{i}": f"s{level}.{i}" for level in (0, 1) for i in range(4)}
    assert renamed(BCUBE, names) == cables(bcube(4, 1))


def test_the_papers_fat_tree_is_one_with_two_hosts_once_its_misprint_is_mended():
    names = {f"s{i + 1}": f"a{i}" for i in range(8)} | {f"s{i + 9}": f"e{i}" for i in range(8)}
    names |= {f"s9{i + 1}": f"c{i}" for i in range(4)} | {"h1": "h0", "h2": "h12"}
    # Pods of the paper are s1 s2 s9 s10 and so on.
    whole = {cable for cable in cables(fat_tree(4)) if not any(end[0] == "h" for end in cable)}
    assert renamed(FAT_TREE, names) == whole | {frozenset({"h0", "e0"}), frozenset({"h12", "e6"})}
