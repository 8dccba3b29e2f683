"""How fast the simulator moves packets, beside the same code without the compiler.

    python benchmarks/simulation.py [--without PART...] [--json]

Times are thread CPU time, rates packet-hops (a packet over a link) per second of it, on one core.
The traffic is TP1 of the paper on a fat tree: every host sends to another with LIA.

start     a first simulation in a new process, with nothing compiled yet and afterwards
tree      128 hosts, 1 and 8 subflows a connection, with memory of the process
python    the same, 8 subflows, uncompiled
large     1024 hosts, 8 subflows
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Python looks for modules beside the script first, where `simulation` is this file.
ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [
    str(ROOT),
    *(entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()),
]

import simulation  # noqa: E402
from simulation.experiments.data_centre import fat_tree, pairs, traffic  # noqa: E402

PARTS = ("start", "tree", "python", "large")

_STATED = """\
Stated elsewhere for this traffic, not measured here: the authors' simulator htsim (C++) 1.0 to 1.34
million packet-hops a second with 8 subflows and 2.0 to 3.5 with 1; ns-3.44, which has no multipath
TCP, 0.04 to 0.05."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--without", nargs="+", choices=PARTS, default=[], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--first-run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.first_run:
        print(json.dumps(_first_run()))
        return 0

    def say(text: str) -> None:
        print(text, file=sys.stderr if options.json else sys.stdout, flush=True)

    parts = [part for part in PARTS if part not in options.without]
    found: dict[str, Any] = {}
    if "start" in parts:
        found["start"] = start()
        say(
            "first simulation in a new process: {cold_cpu_s:.1f} s of CPU time if it has to "
            "compile, {kept_cpu_s:.2f} s afterwards".format(**found["start"])
        )
    simulation.prepare()
    if "tree" in parts:
        found["tree"] = [tp1(8, count, 0.5, 1.0) for count in (1, 8)]
        for row in found["tree"]:
            say(_row(row))
    if "python" in parts:
        found["python"] = tp1(8, 8, 0.0, 0.05, compiled=False)
        say(_row(found["python"]) + ", uncompiled")
        # The same stretch, so that the share of starting flows is the same.
        found["python_compiled"] = tp1(8, 8, 0.0, 0.05)
        say(_row(found["python_compiled"]) + ", the same compiled")
        ratio = found["python_compiled"]["hops_per_s"] / found["python"]["hops_per_s"]
        say(f"compiled over uncompiled: {ratio:.0f}")
    if "large" in parts:
        found["large"] = tp1(16, 8, 0.0, 0.2)
        say(_row(found["large"]))
    say(_STATED)
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False))
    return 0


def start() -> dict[str, float]:
    """A first simulation with an empty folder of compiled code, and with a filled one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        found = {}
        for name in ("cold", "kept"):
            done = subprocess.run(
                [sys.executable, __file__, "--first-run"],
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
                check=True,
            )
            found[f"{name}_cpu_s"] = float(json.loads(done.stdout))
    return found


def _first_run() -> float:
    link = simulation.Link()
    connection = simulation.Connection([simulation.Path([0])], packets=1)
    simulation.Simulation([link], [connection], compiled=True).run(1.0)
    return time.process_time()


def tp1(
    ports: int, paths: int, warm_s: float, measured_s: float, compiled: bool = True
) -> dict[str, Any]:
    """Simulate a fat tree, and time the part after the start."""
    tree, draw = fat_tree(ports), random.Random(1)
    who = pairs("TP1", tree.hosts, draw)
    connections = traffic(who, lambda a, b, draw: tree.choose(a, b, paths, draw), "lia", 1500, draw)
    run = simulation.Simulation(tree.links, connections, compiled=compiled)
    run.run(warm_s)
    before = run.counters()
    begun = time.thread_time()
    run.run(warm_s + measured_s)
    took_s = time.thread_time() - begun
    after = run.counters()
    packets = after.delivered_packets - before.delivered_packets
    return {
        "hosts": tree.hosts,
        "paths": paths,
        "simulated_s": measured_s,
        "cpu_s": took_s,
        "hops": after.hops - before.hops,
        "hops_per_s": (after.hops - before.hops) / took_s,
        "mbps_per_host": float(packets.mean() * 0.012 / measured_s),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _row(row: dict[str, Any]) -> str:
    return (
        "{hosts} hosts, {paths} paths: {millions:.2f} million packet-hops/s, {simulated_s:g} "
        "simulated seconds in {cpu_s:.2f} s, {mbps_per_host:.1f} Mbit/s a host, peak memory of "
        "the process {peak_memory_mb:.0f} MB".format(millions=row["hops_per_s"] / 1e6, **row)
    )


if __name__ == "__main__":
    sys.exit(main())
