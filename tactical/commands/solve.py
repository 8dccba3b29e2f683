"""`tactical solve`: flow deviation on a network in a file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import fdm
from tactical.faults import Refused
from tactical.streams import print_json

SUMMARY = "split the demands on a network for the least delay"
EXAMPLES = """\
FILE is a JSON object: `nodes`, `links` (tail, head, capacity_bps, delay_s), `commodities` (origin,
destination, demand_bps) and, optionally, `packet_bits`; see docs/flow-deviation.md.

examples:
  tactical solve network.json
  tactical solve network.json --json > solution.json
  tactical solve network.json --picture network.svg --kappa 5
"""

_ROWS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the network, a JSON file")
    parser.add_argument(
        "--delay",
        choices=("mm1", "md1", "bpr"),
        default="mm1",
        help="delay on a link: M/M/1 queue (default), M/D/1 queue, or the road function of the BPR",
    )
    parser.add_argument(
        "--kappa",
        type=float,
        default=1.0,
        metavar="K",
        help="coefficient of the queueing delay (default: 1)",
    )
    parser.add_argument(
        "--equilibrium",
        action="store_true",
        help="user equilibrium instead of the least mean delay",
    )
    parser.add_argument(
        "--method", choices=fdm.METHODS, default="auto", help="how to solve (default: auto)"
    )
    parser.add_argument(
        "--gap", type=float, default=1e-9, metavar="G", help="relative gap to reach (default: 1e-9)"
    )
    parser.add_argument(
        "--admission",
        choices=fdm.ADMISSIONS,
        default="max-min",
        help="who is cut when the demands do not fit (default: max-min fair)",
    )
    parser.add_argument(
        "--capacity-share",
        type=float,
        default=0.95,
        metavar="S",
        help="share of the capacities that is then used (default: 0.95)",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="draw the network with the utilisation of its links, as .svg, .png or .pdf",
    )


def run(options: argparse.Namespace) -> int:
    """Solve, print, draw; the exit status."""
    picture: Path | None = options.picture
    if picture is not None and picture.suffix not in (".svg", ".png", ".pdf"):
        raise Refused(f"--picture {picture}: the name must end in .svg, .png or .pdf")
    try:
        instance = fdm.load(options.file)
        clock = time.perf_counter()
        solution = fdm.solve(
            instance.network,
            instance.demands,
            delay=_delay(options, instance.packet_bits),
            gap=options.gap,
            method=options.method,
            admission=options.admission,
            capacity_share=options.capacity_share,
        )
        elapsed_s = time.perf_counter() - clock
    except ValueError as error:
        raise Refused(str(error)) from error
    if picture is not None:
        from tactical.picture import draw

        try:
            draw(instance, solution, picture)
        except OSError as error:
            raise Refused(f"--picture {picture} cannot be written: {error.strerror}") from error
    if options.json:
        print_json({"name": instance.name, **solution.as_dict(), "solve_time_s": elapsed_s})
    else:
        print(table(instance, solution))
        if picture is not None:
            print(f"Picture: {picture}")
    return 0


def _delay(options: argparse.Namespace, packet_bits: float) -> fdm.Delay:
    if options.delay == "bpr":
        return fdm.Bpr(equilibrium=options.equilibrium)
    kind = fdm.Deterministic if options.delay == "md1" else fdm.Kleinrock
    return kind(packet_bits, options.kappa, options.equilibrium)


def table(instance: fdm.Instance, solution: fdm.Solution) -> str:
    """Return the answer for people: the verdict, demands with their paths, the fullest links."""
    network = instance.network
    lines = [
        f"{instance.name}: {len(network.nodes)} nodes, {len(network.links)} links, "
        f"{len(instance.demands)} demands",
        _verdict(solution),
        f"mean packet delay {solution.mean_packet_delay_s * 1e3:.6g} ms, γT "
        f"{solution.gamma_T:.10g}, relative gap {solution.relative_gap:.1e}, "
        f"{solution.iterations} iterations of {solution.method}, "
        f"{solution.solve_time_s * 1e3:.3g} ms",
        "",
        f"{'demand':<24}{'Mbit/s':>10}{'cut':>10}{'ms':>9}  paths",
    ]
    shown = list(
        zip(
            instance.demands,
            solution.admitted_bps,
            solution.cut_bps,
            solution.demand_delay_s,
            solution.path_flows,
            strict=True,
        )
    )
    for demand, admitted, cut, delay_s, flows in shown[:_ROWS]:
        paths = "; ".join(
            f"{flow.rate_bps / 1e6:.6g} by {_nodes(network, flow.path)}" for flow in flows
        )
        name = f"{demand.origin} to {demand.destination}"
        lines.append(
            f"{name:<24}{admitted / 1e6:>10.6g}{cut / 1e6:>10.4g}{delay_s * 1e3:>9.4g}  {paths}"
        )
    lines += _more(len(shown), "demands")
    lines += ["", f"{'link':<24}{'Mbit/s':>10}{'of':>10}{'%':>9}"]
    links = sorted(
        (
            (flow / link.capacity_bps, flow, link)
            for link, flow in zip(network.links, solution.link_flows_bps, strict=True)
            if link.capacity_bps > 0.0
        ),
        key=lambda row: -row[0],
    )
    for used, flow, link in links[:_ROWS]:
        name = f"{link.tail} to {link.head}"
        lines.append(
            f"{name:<24}{flow / 1e6:>10.6g}{link.capacity_bps / 1e6:>10.6g}{used * 100:>9.2f}"
        )
    lines += _more(len(links), "links, less used")
    return "\n".join(lines)


def _verdict(solution: fdm.Solution) -> str:
    if solution.feasible:
        return "All demands fit."
    cut = sum(1 for rate in solution.cut_bps if rate > 0.0)
    proved = (
        f"; no routing fits more than {solution.fitting_share:.6g} of all of them"
        if solution.fitting_share is not None
        else ""
    )
    return f"The demands do not fit: {cut} of {len(solution.cut_bps)} are cut{proved}."


def _more(count: int, what: str) -> list[str]:
    return [f"… and {count - _ROWS} more {what} (see --json)"] if count > _ROWS else []


def _nodes(network: fdm.Network, path: fdm.Path) -> str:
    nodes = [network.links[path[0]].tail, *(network.links[link].head for link in path)]
    return "-".join(map(str, nodes))
