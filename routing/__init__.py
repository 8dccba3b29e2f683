"""Path choice other than flow deviation: maximum flows, disjoint, shortest and equal-cost paths.

    graph  →  cheapest_flow()  →  flow of every link  →  decompose()  →  paths and their rates

Everything is in whole bit/s, so that results are exact. Nothing here needs more than the standard
library.
"""

from routing.disjoint import disjoint_paths
from routing.flow import PathFlow, cheapest_flow, decompose, delay_then_hops, value
from routing.graph import Graph, Link, Node, Path
from routing.multipath import bottleneck_bps, equal_cost_paths, weights
from routing.shortest import k_shortest_paths, shortest_path, shortest_paths_to

__all__ = [
    "Graph",
    "Link",
    "Node",
    "Path",
    "PathFlow",
    "bottleneck_bps",
    "cheapest_flow",
    "decompose",
    "delay_then_hops",
    "disjoint_paths",
    "equal_cost_paths",
    "k_shortest_paths",
    "shortest_path",
    "shortest_paths_to",
    "value",
    "weights",
]
