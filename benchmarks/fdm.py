"""How long flow deviation takes, beside other solvers in the same run.

    python benchmarks/fdm.py [FILE.json...] [--without PART...] [--json]

Without files it takes all instances of ../shared/instances, or of tests/fdm/data where there are
none. Times are thread CPU time in milliseconds through the public call, from Python objects to
certificate; peers get all the CPU time of the process counted, and one thread as we do.

cold        to a relative gap of 1e-9, on a network not seen before
warm        to 1e-6 from the answer before one random link lost a fifth of its capacity
reference   the same problem in cvxpy with Clarabel at 1e-9, see fdm.reference
roads       Sioux Falls as a user equilibrium to 1e-6, beside AequilibraE (bi-conjugate
            Frank-Wolfe), which brings the data: pip install 'tactical[benchmark]'
large       1000 nodes and 100 000 demands, 0.9 of what fits, to 1e-4 in a process of its own, with
            its peak memory
"""

import argparse
import contextlib
import json
import math
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Python looks for modules beside the script first, where `fdm` is this file.
sys.path[:] = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()
]

import fdm  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("instances", "reference", "roads", "large")
SIOUX_FALLS = 42.31335287107440e5
"""Optimum published with the network in bstabler/TransportationNetworks."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument(
        "--without", nargs="+", choices=PARTS, default=[], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--repeat", type=int, default=31, metavar="N", help="cold solves (31)")
    parser.add_argument("--changes", type=int, default=300, metavar="N", help="warm solves (300)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--large-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # none of them is loaded yet
    if options.large_only:
        print(json.dumps(large()))
        return 0

    def say(text: str) -> None:
        print(text, file=sys.stderr if options.json else sys.stdout, flush=True)

    clock = time.perf_counter()
    fdm.prepare()
    found: dict[str, Any] = {"prepared_s": time.perf_counter() - clock}
    say(f"one thread each; compiled loops loaded or made in {found['prepared_s']:.2f} s\n")
    if "instances" not in options.without:
        say(_HEAD)
        found["instances"] = []
        for path in options.files or _default_files():
            row = instance(
                path, options.repeat, options.changes, "reference" not in options.without
            )
            found["instances"].append(row)
            say(_row(row))
        say("")
    if "roads" not in options.without:
        found["roads"] = roads()
        say(_roads(found["roads"]) + "\n")
    if "large" not in options.without:
        found["large"] = _apart("--large-only")
        say(_large(found["large"]))
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False))
    return 0


def _default_files() -> list[Path]:
    shared = sorted((ROOT.parent / "shared" / "instances").glob("*.json"))
    return shared or sorted((ROOT / "tests" / "fdm" / "data").glob("*.json"))


def _apart(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _timed(call: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    begun = clock()
    call()
    return (clock() - begun) * 1e3


def _percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank: at least so many per cent are not above it."""
    return sorted(values)[max(0, math.ceil(percent / 100.0 * len(values)) - 1)]


def instance(path: Path, repeat: int, changes: int, compare: bool) -> dict[str, Any]:
    """Measure one file."""
    case = fdm.load(path)
    network, demands, bits = case.network, case.demands, case.packet_bits

    def again() -> fdm.Solution:
        return fdm.solve(fdm.Network(network.nodes, network.links), demands, packet_bits=bits)

    solution = again()
    cold = [_timed(again) for _ in range(repeat)]
    numbers = random.Random(0)
    warm, worst = [], 0.0
    for _ in range(changes):
        links = list(network.links)
        which = numbers.randrange(len(links))
        links[which] = links[which]._replace(capacity_bps=0.8 * links[which].capacity_bps)
        changed = fdm.Network(network.nodes, links)
        begun = time.thread_time()
        after = fdm.solve(changed, demands, packet_bits=bits, start=solution, gap=1e-6)
        warm.append((time.thread_time() - begun) * 1e3)
        worst = max(worst, after.relative_gap)
    row: dict[str, Any] = {
        "name": case.name,
        "links": len(network.links),
        "demands": len(demands),
        "method": solution.method,
        "cold_ms": statistics.median(cold),
        "cold_p99_ms": _percentile(cold, 99),
        "relative_gap": solution.relative_gap,
        "error": None,
        "warm_ms": statistics.median(warm),
        "warm_p99_ms": _percentile(warm, 99),
        "warm_worst_gap": worst,
        "reference_ms": None,
        "reference_error": None,
        "ratio": None,
    }
    optimum = case.optimum_gamma_T
    if optimum:
        row["error"] = solution.gamma_T / optimum - 1.0
    if compare:
        from fdm.reference import reference

        other = reference(network, demands, packet_bits=bits)
        times = [
            _timed(lambda: reference(network, demands, packet_bits=bits), time.process_time)
            for _ in range(3)
        ]
        row["reference_ms"] = statistics.median(times)
        row["ratio"] = row["reference_ms"] / row["cold_ms"]
        if optimum and math.isfinite(other.gamma_T):
            row["reference_error"] = other.gamma_T / optimum - 1.0
    return row


_HEAD = (
    f"{'instance':<14}{'links':>6}{'demands':>8}{'cold ms':>10}{'p99':>9}{'gap':>9}{'error':>9}"
    f"{'warm ms':>10}{'p99':>9}{'gap':>9}{'cvxpy ms':>10}{'error':>9}{'ratio':>8}"
)


def _row(row: dict[str, Any]) -> str:
    def small(value: float | None) -> str:
        return "" if value is None else f"{value:.0e}"

    text = (
        f"{row['name']:<14}{row['links']:>6}{row['demands']:>8}{row['cold_ms']:>10.3f}"
        f"{row['cold_p99_ms']:>9.3f}{small(row['relative_gap']):>9}{small(row['error']):>9}"
        f"{row['warm_ms']:>10.3f}{row['warm_p99_ms']:>9.3f}{small(row['warm_worst_gap']):>9}"
    )
    if row["ratio"] is not None:
        text += (
            f"{row['reference_ms']:>10.1f}{small(row['reference_error']):>9}{row['ratio']:>7.1f}×"
        )
    return text


def sioux_falls() -> tuple[fdm.Network, tuple[fdm.Demand, ...]]:
    """Return the network of LeBlanc, Morlok and Pierskalla (1975) as AequilibraE ships it.

    Raises
    ------
    ImportError
        AequilibraE is not installed.
    """
    import aequilibrae
    import openmatrix

    archive = Path(aequilibrae.__file__).parent / "reference_files" / "sioux_falls.zip"
    with tempfile.TemporaryDirectory() as directory:
        zipfile.ZipFile(archive).extractall(directory)
        with sqlite3.connect(Path(directory) / "project_database.sqlite") as database:
            rows = database.execute(
                "SELECT a_node, b_node, capacity_ab, free_flow_time FROM links ORDER BY link_id"
            ).fetchall()
        with openmatrix.open_file(str(Path(directory) / "matrices" / "demand.omx")) as matrices:
            trips = matrices[matrices.list_matrices()[0]][:]
    links = [fdm.Link(a, b, float(capacity), float(time)) for a, b, capacity, time in rows]
    nodes = range(1, len(trips) + 1)
    demands = tuple(
        fdm.Demand(a, b, float(trips[a - 1, b - 1]))
        for a in nodes
        for b in nodes
        if a != b and trips[a - 1, b - 1] > 0.0
    )
    return fdm.Network(nodes, links), demands


def roads() -> dict[str, Any]:
    """Measure Sioux Falls; only the reason if AequilibraE is missing."""
    try:
        network, demands = sioux_falls()
    except ImportError as error:
        return {"missing": f"{error.name or error} is not installed"}

    def ours(gap: float = 1e-6) -> fdm.Solution:
        return fdm.solve(
            fdm.Network(network.nodes, network.links), demands, delay=fdm.Bpr(), gap=gap
        )

    exact = ours(1e-12)
    ours_ms = statistics.median([_timed(ours) for _ in range(31)])
    execute, objective = _aequilibrae(network, demands)
    # It draws its progress on standard error and prints remarks on standard output.
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        contextlib.redirect_stdout(nowhere),
    ):
        theirs_ms = _timed(execute, time.process_time)
    return {
        "name": "Sioux Falls",
        "links": len(network.links),
        "demands": len(demands),
        "error": exact.objective / SIOUX_FALLS - 1.0,
        "cold_ms": ours_ms,
        "relative_gap": ours().relative_gap,
        "aequilibrae_ms": theirs_ms,
        "aequilibrae_error": objective() / SIOUX_FALLS - 1.0,
        "ratio": theirs_ms / ours_ms,
    }


def _aequilibrae(
    network: fdm.Network, demands: Sequence[fdm.Demand]
) -> tuple[Callable[[], object], Callable[[], float]]:
    """Prepare the same problem for AequilibraE: what solves it, and what then gives Beckmann's sum.

    Only the assignment itself is timed, not the preparation of its graph.
    """
    import logging
    import warnings

    import numpy as np
    import pandas as pd
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import Graph, TrafficAssignment, TrafficClass

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    alpha, beta = fdm.Bpr().alpha, fdm.Bpr().beta
    links = pd.DataFrame(
        [
            (number, link.tail, link.head, 1, link.capacity_bps, link.delay_s, alpha, beta)
            for number, link in enumerate(network.links, start=1)
        ],
        columns=[
            "link_id", "a_node", "b_node", "direction", "capacity", "time", "alpha", "beta",
        ],
    )  # fmt: skip
    zones = np.array(network.nodes)
    graph = Graph()
    graph.network = links
    graph.mode = "c"
    graph.prepare_graph(zones)
    graph.set_graph("time")
    graph.set_blocked_centroid_flows(False)
    matrix = AequilibraeMatrix()
    matrix.create_empty(zones=len(zones), matrix_names=["trips"], memory_only=True)
    matrix.index = zones
    matrix.matrix["trips"][:, :] = 0.0
    for demand in demands:
        row, column = network.index[demand.origin], network.index[demand.destination]
        matrix.matrix["trips"][row, column] = demand.rate_bps
    matrix.computational_view(["trips"])
    assignment = TrafficAssignment()
    assignment.add_class(TrafficClass("car", graph, matrix))
    assignment.set_vdf("BPR")
    assignment.set_vdf_parameters({"alpha": "alpha", "beta": "beta"})
    assignment.set_capacity_field("capacity")
    assignment.set_time_field("time")
    assignment.set_algorithm("bfw")
    assignment.set_cores(1)
    assignment.max_iter = 100_000
    assignment.rgap_target = 1e-6

    def objective() -> float:
        flow = assignment.results()["PCE_AB"].reindex(links.link_id).tolist()
        return fdm.Bpr().objective(network, flow)

    return assignment.execute, objective


def _roads(row: dict[str, Any]) -> str:
    if "missing" in row:
        return f"Sioux Falls: left out, {row['missing']} (pip install 'tactical[benchmark]')"
    return (
        f"Sioux Falls, {row['links']} links, {row['demands']} demands, user equilibrium: "
        f"{row['cold_ms']:.2f} ms to a gap of {row['relative_gap']:.0e}, published optimum met to "
        f"{abs(row['error']):.0e}; AequilibraE {row['aequilibrae_ms'] / 1e3:.2f} s to 1e-6, "
        f"{row['ratio']:.0f}×"
    )


def large() -> dict[str, Any]:
    """Measure 1000 nodes, 8000 links, 10⁵ demands at a load of 0.9 or more.

    The demands are 0.91 of what is proved not to fit: 25/21 of them have a `fitting_share` of
    0.9228 or less.
    """
    numbers = random.Random(1)
    count = 1000
    places = [(numbers.random(), numbers.random()) for _ in range(count)]
    links = []
    for node in range(count):
        near = sorted(range(count), key=lambda other: math.dist(places[node], places[other]))[1:4]
        for other in [*near, numbers.randrange(count)]:
            if other != node:
                capacity = numbers.choice([1e9, 2.5e9, 1e10])
                links += [
                    fdm.Link(node, other, capacity, 0.005),
                    fdm.Link(other, node, capacity, 0.005),
                ]
    network = fdm.Network(range(count), links)
    demands = []
    while len(demands) < 100_000:
        a, b = numbers.randrange(count), numbers.randrange(count)
        if a != b:
            demands.append(fdm.Demand(a, b, numbers.expovariate(1 / 21e6)))
    fdm.prepare()
    begun = time.thread_time()
    solution = fdm.solve(network, demands, gap=1e-4)
    took_s = time.thread_time() - begun
    return {
        "nodes": count,
        "links": len(links),
        "demands": len(demands),
        "feasible": solution.feasible,
        "fullest_link": max(
            flow / link.capacity_bps
            for flow, link in zip(solution.link_flows_bps, links, strict=True)
        ),
        "method": solution.method,
        "cold_s": took_s,
        "relative_gap": solution.relative_gap,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }


def _large(row: dict[str, Any]) -> str:
    return (
        f"{row['nodes']} nodes, {row['links']} links, {row['demands']} demands, fullest link "
        f"{row['fullest_link']:.3f}: {row['cold_s']:.1f} s to a gap of {row['relative_gap']:.1e} "
        f"by {row['method']}, peak memory {row['peak_memory_mb']:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
