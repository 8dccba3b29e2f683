"""The evaluation of MaxFlowSDN: which paths each method takes, and what arrives over them."""

import json
from itertools import combinations

import pytest

from routing.maxflowsdn import BCUBE, DCELL, FAT_TREE, NETWORKS, Network
from simulation import compilation
from tactical import cli, maxflowsdn

compiled_only = pytest.mark.skipif(
    not compilation.available(), reason="needs Numba to be quick enough"
)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
@pytest.mark.parametrize("name", maxflowsdn.METHODS)
def test_every_path_leads_from_one_host_to_the_other(name: str, network: Network) -> None:
    graph = network.topology.graph
    for path in maxflowsdn.METHODS[name](network).paths:
        passed = graph.passed(path)
        assert (passed[0], passed[-1]) == (network.source, network.destination)
        assert len(set(passed)) == len(passed)
        assert path == graph.through(passed)


@pytest.mark.parametrize(
    ("name", "mbps"),
    [
        ("StandardTCP", (7, 10, 10)),
        ("ParallelTCP", (7, 20, 20)),
        ("MPTCP", (7, 20, 20)),
        ("MaxFlowSDN", (13, 30, 30)),
        ("fdm", (0.95 * 13, 0.95 * 30, 0.95 * 30)),
    ],
)
def test_what_the_paths_of_a_method_can_carry(name: str, mbps: tuple[float, ...]) -> None:
    for network, expected in zip(NETWORKS, mbps, strict=True):
        routed = maxflowsdn.METHODS[name](network)
        carried = maxflowsdn.carried_bps(network.topology.graph, routed, network)
        assert carried == pytest.approx(expected * 1e6)


@pytest.mark.parametrize("network", [DCELL, BCUBE], ids=lambda network: network.name)
def test_parallel_connections_use_an_interface_each_at_both_ends(network: Network) -> None:
    paths = maxflowsdn.parallel_tcp(network).paths
    assert len(paths) == 2
    assert all(not set(a) & set(b) for a, b in combinations(paths, 2))


@compiled_only
def test_two_connections_fill_the_fat_tree_and_one_does_not() -> None:
    headers = maxflowsdn.PAYLOAD_BYTES / maxflowsdn.FRAME_BYTES
    for method, link_mbps in ((maxflowsdn.max_flow_sdn, 13.0), (maxflowsdn.standard_tcp, 7.0)):
        mbps = maxflowsdn.goodput_mbps(FAT_TREE, method(FAT_TREE), seed=1)
        assert 0.98 * headers * link_mbps < mbps < 1.001 * headers * link_mbps


@compiled_only
def test_the_command_has_the_papers_values_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "maxflowsdn", "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert len(rows) == 2 * len(NETWORKS) * len(maxflowsdn.METHODS)
    for network in NETWORKS:
        best, worst = (rows[f"{network.name}, {name}"] for name in ("MaxFlowSDN", "StandardTCP"))
        assert best["simulated"] >= 0.94 * best["balance"], "94 % of the maximum flow"
        ratio = best["simulated"] / worst["simulated"]
        assert ratio == pytest.approx(best["paper"] / worst["paper"], rel=0.06)
        assert rows[f"{network.name}, fdm"]["paper"] is None
        assert 0.0 <= rows[f"{network.name}, MPTCP: standard deviation"]["simulated"] < 0.5
