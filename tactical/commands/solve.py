"""`tactical solve`: flow deviation on a network in a file, or at a moment of a scenario."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fdm
import scenarios
from fdm.queues import MODES
from tactical import scenario_arguments
from tactical.faults import Refused
from tactical.recognition import INSTANCE, mismatch
from tactical.streams import print_json

SUMMARY = "split the demands on a network for the least mean packet delay"
EXAMPLES = """\
NETWORK is a JSON file: `nodes`, `links` (tail, head, capacity_bps, delay_s), `commodities` (origin,
destination, demand_bps) and, optionally, `packet_bits`; see docs/flow-deviation.md. With --at it is
the name of an experiment, and what is solved is what the controller would solve at that moment of
a run: with what is attached then, the rates on the wire, and the experiment's controller.*
parameters. The answer as JSON holds the network as well, and can be solved again.

The table shows who gets what over which paths with which delay, the fullest links, and the
Open vSwitch queues that carry it out.

examples:
  tactical solve network.json
  tactical solve network.json --json > solution.json
  tactical solve network.json --picture network.svg --kappa 5
  tactical solve direct-move --at 70
  tactical solve direct-move --at 70 --set ships.count=5 --picture ships.png
"""

_ROWS = 40

_SHARE = 0.95
"""What `fdm.solve` takes by itself, as the controller lets it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    scenario_arguments.add_scenario_arguments(
        parser,
        metavar="NETWORK",
        meaning="JSON file, or with --at the name of an experiment, see `tactical scenarios`",
    )
    parser.add_argument(
        "--at",
        type=float,
        metavar="SECONDS",
        help="run time at which to solve the experiment",
    )
    parser.add_argument(
        "--delay",
        choices=("mm1", "md1", "bpr"),
        help="delay on a link: M/M/1 queue (default), M/D/1 queue, or the road function of the BPR",
    )
    parser.add_argument(
        "--kappa",
        type=float,
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
        help="who is cut when the demands do not fit (default: max-min fair)",
    )
    parser.add_argument(
        "--capacity-share",
        type=float,
        metavar="S",
        help="share of the capacities that is then used, and that queues are guaranteed at most "
        "(default: 0.95)",
    )
    parser.add_argument(
        "--paths",
        type=int,
        metavar="K",
        help="paths of a demand that get queues; their rates are the best for so many (default: 2)",
    )
    parser.add_argument(
        "--queues",
        choices=MODES,
        help="what a queue may take beyond its guarantee: an equal share of what is left on the "
        "path with most room (overflow, default), nothing (strict), an equal share on every path "
        "(work-conserving)",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="draw the network with the utilisation of its links, as .svg, .png or .pdf",
    )


@dataclass(frozen=True)
class _Problem:
    """What to solve, with what only a scenario knows."""

    instance: fdm.Instance
    delay: fdm.Delay
    admission_share: float
    """Share of the capacities to which demands that do not fit are cut."""
    capacity_share: float
    """Share of the capacities that queues are guaranteed at most."""
    queue_mode: str
    paths: int
    queued: frozenset[int] | None = None
    """Links that have queues; None for all."""
    places: Mapping[fdm.Node, tuple[float, float]] | None = None


def run(options: argparse.Namespace) -> int:
    """Solve, print, draw; the exit status."""
    from tactical.waiting import waiting

    if options.paths is not None and options.paths < 1:
        raise Refused(f"--paths must be 1 or more, not {options.paths}")
    picture: Path | None = options.picture
    if picture is not None:
        _check_picture(picture)
    try:
        problem = _from_file(options) if options.at is None else _from_scenario(options)
        instance = problem.instance
        with waiting(f"solving {instance.name}") as progress:
            clock = time.perf_counter()
            solution = fdm.solve(
                instance.network,
                instance.demands,
                delay=problem.delay,
                gap=options.gap,
                method=options.method,
                admission=options.admission or fdm.ADMISSIONS[0],
                capacity_share=problem.admission_share,
                progress=progress,
            )
            elapsed_s = time.perf_counter() - clock
            queues = _queues(problem, solution)
        if picture is not None:
            _draw(problem, solution, picture)
    except ValueError as error:
        raise Refused(str(error)) from error
    if options.json:
        document = {
            **instance.as_dict(),
            **solution.as_dict(),
            "solve_time_s": elapsed_s,
            "deployment": queues and queues.as_dict(),
        }
        print_json(document)
    else:
        print(table(instance, solution, queues))
        if picture is not None:
            print(f"Picture: {picture}")
    return 0


def _from_file(options: argparse.Namespace) -> _Problem:
    name = options.scenario
    if name in scenarios.EXPERIMENTS and not Path(name).exists():
        raise Refused(f"{name} is an experiment, not a file: give the moment with --at SECONDS")
    for given, option in (
        (options.overrides, "--set"),
        (options.config, "--config"),
        (options.seed, "--seed"),
    ):
        if given:
            raise Refused(
                f"{option} changes an experiment, and {name} is read as a file: "
                "give the moment of an experiment with --at SECONDS"
            )
    try:
        instance = fdm.load(name)
    except fdm.InstanceError as error:
        raise Refused(f"{error}{mismatch(Path(name), INSTANCE)}") from error
    delay: fdm.Delay
    if options.delay == "bpr":
        delay = fdm.Bpr(equilibrium=options.equilibrium)
    else:
        kappa = 1.0 if options.kappa is None else options.kappa
        kind = fdm.Deterministic if options.delay == "md1" else fdm.Kleinrock
        delay = kind(instance.packet_bits, kappa, options.equilibrium)
    share = _SHARE if options.capacity_share is None else options.capacity_share
    return _Problem(
        instance,
        delay,
        share,
        share,
        options.queues or "overflow",
        2 if options.paths is None else options.paths,
    )


def _from_scenario(options: argparse.Namespace) -> _Problem:
    from tactical.moment import moment

    for given, option, instead in (
        (options.delay, "--delay", None),
        (options.equilibrium, "--equilibrium", None),
        (options.kappa is not None, "--kappa", "controller.kappa"),
        (options.capacity_share is not None, "--capacity-share", "controller.capacity_share"),
        (options.admission, "--admission", None),
        (options.paths is not None, "--paths", None),
        (options.queues, "--queues", None),
    ):
        if given:
            advice = f"; change it with --set {instead}" if instead else ""
            raise Refused(f"{option} is the controller's choice in an experiment{advice}")
    scenario = scenario_arguments.load(options).build(options.seed)
    scenario_arguments.check_layout(scenario)
    if not 0.0 <= options.at <= scenario.duration_s:
        raise Refused(
            f"--at {options.at:g}: must be from 0 to the {scenario.duration_s:g} s that "
            f"{scenario.name} lasts"
        )
    now = moment(scenario, options.at)
    return _Problem(
        now.instance,
        now.delay,
        _SHARE,
        now.capacity_share,
        now.queue_mode,
        now.paths,
        now.queued,
        now.places,
    )


@dataclass(frozen=True)
class _Queues:
    """How the answer is carried out."""

    paths: int
    mode: str
    solution: fdm.Solution
    """The best with at most so many paths of a demand."""
    rates: Mapping[tuple[int, fdm.Path, int], fdm.QueueRate]

    def as_dict(self) -> dict[str, Any]:
        return {
            "paths": self.paths,
            "mode": self.mode,
            "feasible": self.solution.feasible,
            "mean_packet_delay_s": self.solution.mean_packet_delay_s,
            "admitted_bps": list(self.solution.admitted_bps),
            "queues": [
                {
                    "link": link,
                    "demand": demand,
                    "path": list(path),
                    "min_bps": rate.min_bps,
                    "max_bps": rate.max_bps,
                }
                for (demand, path, link), rate in self.rates.items()
            ],
        }


def _queues(problem: _Problem, solution: fdm.Solution) -> _Queues | None:
    """Queue rates; None for roads."""
    if problem.delay.bounded:
        return None
    network, demands = problem.instance.network, problem.instance.demands
    few = fdm.limit_paths(network, demands, solution, problem.delay, most=problem.paths)
    rates = fdm.queue_rates(
        network, few, capacity_share=problem.capacity_share, mode=problem.queue_mode
    )
    return _Queues(
        problem.paths,
        problem.queue_mode,
        few,
        {
            key: rate
            for key, rate in rates.items()
            if problem.queued is None or key[2] in problem.queued
        },
    )


def _check_picture(path: Path) -> None:
    from tactical.picture import SUFFIXES

    if path.suffix not in SUFFIXES:
        raise Refused(f"--picture {path}: the name must end in {', '.join(SUFFIXES)}")
    try:
        if path.is_dir() or not path.parent.is_dir():
            raise Refused(f"--picture {path}: there is no directory {path.parent}")
    except OSError as error:
        raise Refused(f"--picture {path} cannot be used: {error.strerror}") from error


def _draw(problem: _Problem, solution: fdm.Solution, path: Path) -> None:
    from tactical.picture import draw

    try:
        draw(problem.instance, solution, path, problem.places)
    except OSError as error:
        raise Refused(f"--picture {path} cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise Refused(f"--picture {path}: {error}") from error


def table(
    instance: fdm.Instance,
    solution: fdm.Solution,
    queues: _Queues | None,
) -> str:
    """Return the answer for people: the verdict, demands, the fullest links, queues."""
    network = instance.network
    parts = [
        f"{instance.name}: {len(network.nodes)} nodes, {len(network.links)} links, "
        f"{len(instance.demands)} demands",
        _verdict(solution),
        f"mean packet delay {solution.mean_packet_delay_s * 1e3:.6g} ms, γT "
        f"{solution.gamma_T:.10g}, relative gap {solution.relative_gap:.1e}, "
        f"{solution.iterations} iterations of {solution.method}, "
        f"{solution.solve_time_s * 1e3:.3g} ms",
        *_columns(
            ("demand", "Mbit/s", "cut", "ms", "paths (Mbit/s)"),
            [
                (
                    f"{demand.origin} to {demand.destination}",
                    f"{admitted / 1e6:.6g}",
                    f"{cut / 1e6:.4g}",
                    f"{delay_s * 1e3:.4g}",
                    "; ".join(
                        f"{flow.rate_bps / 1e6:.6g} by {_nodes(network, flow.path)}"
                        for flow in flows
                    ),
                )
                for demand, admitted, cut, delay_s, flows in zip(
                    instance.demands,
                    solution.admitted_bps,
                    solution.cut_bps,
                    solution.demand_delay_s,
                    solution.path_flows,
                    strict=True,
                )
            ],
            "more demands",
        ),
    ]
    links = sorted(
        (
            (flow / link.capacity_bps, flow, link)
            for link, flow in zip(network.links, solution.link_flows_bps, strict=True)
            if link.capacity_bps > 0.0
        ),
        key=lambda row: -row[0],
    )
    parts += _columns(
        ("link", "Mbit/s", "of", "%"),
        [
            (
                f"{link.tail} to {link.head}",
                f"{flow / 1e6:.6g}",
                f"{link.capacity_bps / 1e6:.6g}",
                f"{used * 100:.2f}",
            )
            for used, flow, link in links
        ],
        "more links, less used",
    )
    if queues is not None:
        parts += _columns(
            ("queue of", "guaranteed bit/s", "at most bit/s", "on the link", "of the path"),
            [
                (
                    f"{instance.demands[demand].origin} to {instance.demands[demand].destination}",
                    f"{rate.min_bps}",
                    f"{rate.max_bps}",
                    f"{network.links[link].tail} to {network.links[link].head}",
                    _nodes(network, path),
                )
                for (demand, path, link), rate in queues.rates.items()
            ],
            "more queues",
            texts=(0, 3, 4),
        )
        if queues.solution is not solution:
            parts.append(
                f"Queues are for at most {queues.paths} paths of a demand: mean packet delay "
                f"{queues.solution.mean_packet_delay_s * 1e3:.6g} ms"
                + ("." if queues.solution.feasible else ", with demands cut to fit.")
            )
    return "\n".join(parts)


def _columns(
    head: tuple[str, ...], rows: list[tuple[str, ...]], more: str, texts: tuple[int, ...] = (0, 4)
) -> list[str]:
    """A blank line and a table; nothing if it has no rows. Columns in `texts` start at the left."""
    if not rows:
        return []
    shown = [head, *rows[:_ROWS]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(head))]
    lines = [
        "  ".join(
            f"{cell:<{width}}" if column in texts else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]
    if len(rows) > _ROWS:
        lines.append(f"… and {len(rows) - _ROWS} {more} (see --json)")
    return ["", *lines]


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


def _nodes(network: fdm.Network, path: fdm.Path) -> str:
    nodes = [network.links[path[0]].tail, *(network.links[link].head for link in path)]
    return "-".join(map(str, nodes))
