"""How long a maximum flow takes through a data centre, and the controller's rules for it.

    python -m benchmarks.routing [--repeat N] [--json]

From the first to the last host of fat trees, whose cables are eight times as fast as the others, so
that the flow has up to eight paths. Times are medians of thread CPU time in milliseconds.

graph       a graph from its cables
flow        the maximum flow of least delay and its decomposition into paths
scipy       SciPy's maximum flow (Dinic, compiled), of which neither cost nor paths come; the matrix
            is made before
networkx    NetworkX's maximum flow (preflow-push, in Python), likewise, if it is installed:
            pip install 'tactical[benchmark]'
decision    what the controller does when a transfer is asked for under the policy maxflow, from the
            event to flow entries and the steps to deploy them; described are the two hosts, or all
"""

import argparse
import dataclasses
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from routing import Graph, cheapest_flow, decompose, value
from routing.topologies import Topology, fat_tree
from tactical.controller.events import DatapathConnected, DemandSet, Event, QueuesRead
from tactical.controller.logic import Controller, Decision
from tests.controller.data_centres import described

PORTS = (8, 16, 24)
DECIDED = 16
RATE_BPS, FASTER = 1e8, 8


def ends(topology: Topology) -> tuple[str, str]:
    """The first and the last host."""
    return topology.hosts[0], topology.hosts[-1]


def network(ports: int) -> Topology:
    """A fat tree whose first and last host are connected by faster cables."""
    tree = fat_tree(ports, RATE_BPS)
    two = set(ends(tree))
    return dataclasses.replace(
        tree,
        cables=tuple(
            cable._replace(rate_bps=FASTER * RATE_BPS) if two & {cable.a, cable.b} else cable
            for cable in tree.cables
        ),
    )


def between(topology: Topology) -> Topology:
    """The same without hosts other than the two."""
    others = set(topology.hosts) - set(ends(topology))
    cables = tuple(c for c in topology.cables if not others & {c.a, c.b})
    return dataclasses.replace(topology, hosts=ends(topology), cables=cables)


def median_ms(what: Callable[[], object], repeat: int) -> float:
    """Median CPU time of calls."""
    times = []
    for _ in range(repeat):
        begun_s = time.thread_time()
        what()
        times.append(time.thread_time() - begun_s)
    return 1e3 * statistics.median(times)


def flows(ports: int, repeat: int) -> dict[str, Any]:
    """Figures of one fat tree."""
    topology = network(ports)
    graph, (source, destination) = topology.graph, ends(topology)

    def solve() -> int:
        flow = cheapest_flow(graph, source, destination)
        decompose(graph, flow, source, destination)
        return value(graph, flow, source)

    row: dict[str, Any] = {
        "ports": ports,
        "hosts": len(topology.hosts),
        "switches": len(topology.switches),
        "links": len(graph.links),
        "paths": len(
            decompose(graph, cheapest_flow(graph, source, destination), source, destination)
        ),
        "graph_ms": median_ms(lambda: Graph(graph.links), repeat),
        "flow_ms": median_ms(solve, repeat),
    }
    tails, heads = np.array(graph.ends).T
    capacities = np.array([link.capacity_bps for link in graph.links], np.int32)
    matrix = csr_array((capacities, (tails, heads)))
    at, to = graph.index[source], graph.index[destination]
    row["scipy_ms"] = median_ms(lambda: maximum_flow(matrix, at, to), repeat)
    assert maximum_flow(matrix, at, to).flow_value == solve()
    if (peer := _networkx()) is not None:
        digraph = peer.DiGraph()
        digraph.add_edges_from(
            (link.tail, link.head, {"capacity": int(link.capacity_bps)}) for link in graph.links
        )
        row["networkx_ms"] = median_ms(
            lambda: peer.maximum_flow(digraph, source, destination), max(repeat // 5, 1)
        )
        assert peer.maximum_flow_value(digraph, source, destination) == solve()
    return row


def _networkx() -> Any:
    try:
        return importlib.import_module("networkx")
    except ImportError:
        return None


def decision(everyone: bool, repeat: int) -> dict[str, Any]:
    """A transfer that begins and ends, in a controller that knows the network."""
    whole = network(DECIDED)
    topology = whole if everyone else between(whole)
    source, destination = ends(whole)
    sources = tuple(host for host in topology.hosts if host != destination)
    controller = Controller(described(topology, sources, destination))

    def tell(event: Event, now_s: float) -> Decision:
        decided = controller.handle(event, now_s)
        controller.confirm(decided)
        return decided

    tell(QueuesRead({}), 0.0)
    for datapath in controller.network.datapaths:
        tell(DatapathConnected(datapath.dpid), 0.0)
    times, entries = [], 0
    for number in range(repeat):
        begun_s = time.thread_time()
        decided = controller.handle(DemandSet(source, 1e12), 20.0 * number)
        times.append(time.thread_time() - begun_s)
        controller.confirm(decided)
        assert decided.change is not None
        entries = len(decided.change.added)
        tell(DemandSet(source, 0.0), 20.0 * number + 10.0)
    return {
        "switches": len(controller.network.datapaths),
        "users": len(sources),
        "entries": entries,
        "decision_ms": 1e3 * statistics.median(times),
        "worst_ms": 1e3 * max(times),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=31, metavar="N", help="of each (31)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be 1 or more")
    rows = [flows(ports, options.repeat) for ports in PORTS]
    decisions = [decision(everyone, options.repeat) for everyone in (False, True)]
    if options.json:
        print(json.dumps({"flows": rows, "decisions": decisions}, indent=1))
        return 0
    for row in rows:
        peer = f"{row['networkx_ms']:.1f}" if "networkx_ms" in row else "not installed"
        print(
            f"k = {row['ports']}: {row['hosts']} hosts, {row['switches']} switches, {row['links']} "
            f"links; {row['paths']} paths; graph {row['graph_ms']:.1f} ms, flow "
            f"{row['flow_ms']:.1f} ms, scipy {row['scipy_ms']:.1f} ms, networkx {peer} ms"
        )
    for row in decisions:
        print(
            f"decision with {row['switches']} switches and {row['users']} users: {row['entries']} "
            f"entries in {row['decision_ms']:.0f} ms, at worst {row['worst_ms']:.0f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
