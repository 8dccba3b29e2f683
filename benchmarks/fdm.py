"""How long flow deviation takes, beside cvxpy with Clarabel in the same run.

    python benchmarks/fdm.py FILE.json... [--large] [--reference SECONDS]

Medians of thread CPU time through the public call, from Python objects to certificate. Warm is a
solve from the last answer, to a gap of 1e-6, after one link has lost a fifth of its capacity.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Python looks for modules beside the script first, where `fdm` is this file.
sys.path[:] = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()
]

import fdm  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--large", action="store_true", help="1000 nodes and 10^5 demands, too")
    parser.add_argument(
        "--reference",
        type=int,
        default=200,
        metavar="N",
        help="compare with cvxpy up to so many demands (default: 200)",
    )
    options = parser.parse_args()
    clock = time.perf_counter()
    fdm.prepare()
    print(f"compiled or loaded in {time.perf_counter() - clock:.2f} s")
    print(
        f"{'instance':<14}{'links':>6}{'demands':>8}{'cold ms':>10}{'gap':>9}{'error':>10}"
        f"{'warm ms':>9}{'p99':>9}{'cvxpy ms':>10}{'ratio':>8}"
    )
    for path in options.files:
        _instance(path, options.reference)
    if options.large:
        _large()


def _timed(call: Callable[[], object]) -> float:
    clock = time.thread_time()
    call()
    return (time.thread_time() - clock) * 1e3


def _instance(path: Path, most: int) -> None:
    instance = fdm.load(path)
    network, demands, bits = instance.network, instance.demands, instance.packet_bits
    solution = fdm.solve(network, demands, packet_bits=bits)
    cold = statistics.median(
        _timed(
            lambda: fdm.solve(fdm.Network(network.nodes, network.links), demands, packet_bits=bits)
        )
        for _ in range(5)
    )
    numbers = random.Random(0)
    warm = []
    for _ in range(100):
        links = list(network.links)
        which = numbers.randrange(len(links))
        links[which] = links[which]._replace(capacity_bps=0.8 * links[which].capacity_bps)
        changed = fdm.Network(network.nodes, links)
        warm.append(_timed(lambda new=changed: _again(new, demands, bits, solution)))
    error = (
        solution.gamma_T / instance.optimum_gamma_T - 1.0
        if instance.optimum_gamma_T is not None
        else float("nan")
    )
    row = (
        f"{instance.name:<14}{len(network.links):>6}{len(demands):>8}{cold:>10.3f}"
        f"{solution.relative_gap:>9.0e}{error:>10.0e}{statistics.median(warm):>9.3f}"
        f"{sorted(warm)[98]:>9.3f}"
    )
    if len(demands) <= most:
        from fdm.reference import reference

        other = _timed(lambda: reference(network, demands, packet_bits=bits))
        row += f"{other:>10.1f}{other / cold:>7.0f}×"
    print(row, flush=True)


def _again(
    network: fdm.Network, demands: tuple[fdm.Demand, ...], bits: float, start: fdm.Solution
) -> None:
    fdm.solve(network, demands, packet_bits=bits, start=start, gap=1e-6)


def _large() -> None:
    """1000 nodes, 5000 links, 10⁵ demands, scaled until the fullest link is at 0.9 or more."""
    numbers = random.Random(1)
    count = 1000
    places = [(numbers.random(), numbers.random()) for _ in range(count)]
    links = []
    for node in range(count):
        near = sorted(
            range(count),
            key=lambda other: (
                (places[node][0] - places[other][0]) ** 2
                + (places[node][1] - places[other][1]) ** 2
            ),
        )[1:4]
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
            demands.append(fdm.Demand(a, b, numbers.expovariate(1 / 1e6)))
    factor = 1.0
    for _ in range(12):
        scaled = [demand._replace(rate_bps=demand.rate_bps * factor) for demand in demands]
        clock = time.thread_time()
        solution = fdm.solve(network, scaled, gap=1e-4, admission="proportional")
        took = time.thread_time() - clock
        used = max(
            flow / link.capacity_bps
            for flow, link in zip(solution.link_flows_bps, links, strict=True)
        )
        print(
            f"1000 nodes, {len(links)} links, {len(demands)} demands: {took:.1f} s, "
            f"gap {solution.relative_gap:.1e}, fullest link {used:.3f}, {solution.method}",
            flush=True,
        )
        if used >= 0.9:
            break
        factor *= 1.0 + (0.93 - used) / used


if __name__ == "__main__":
    main()
