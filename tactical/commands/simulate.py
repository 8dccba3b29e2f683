"""`tactical simulate`: experiments of multipath congestion control, packet by packet."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from tactical.faults import Refused
from tactical.streams import print_json

if TYPE_CHECKING:
    from simulation.experiments import Experiment, Row

SUMMARY = "simulate an experiment on multipath transfers, beside the paper's values"
EXAMPLES = """\
The paper is "Design, implementation and evaluation of congestion control for multipath TCP" (NSDI
2011), see docs/simulation.md, and for maxflowsdn that on MaxFlowSDN (2025), see docs/routing.md. No
root, no kernel and no network is needed. Columns:

  paper      its value; with ~ recalled from memory, not read in a copy
  balance    ours without packets: where increase and decrease of the windows balance; for
             maxflowsdn what the links of the paths can carry
  simulated  ours from packets

examples:
  tactical simulate --list
  tactical simulate rtt-mismatch
  tactical simulate fat-tree --seed 3
  tactical simulate torus --json > torus.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help="its name; see --list")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="of paths, starts, losses and bursts; equal seeds give equal values (default: 1)",
    )


def run(options: argparse.Namespace) -> int:
    """Simulate and print; the exit status."""
    from simulation.experiments import EXPERIMENTS
    from tactical import maxflowsdn

    experiments = {**EXPERIMENTS, maxflowsdn.EXPERIMENT.name: maxflowsdn.EXPERIMENT}
    if options.list:
        return _list(list(experiments.values()), options.json)
    if options.experiment is None:
        raise Refused("name an experiment to simulate: `tactical simulate --list` shows them")
    if options.experiment not in experiments:
        raise Refused(
            f"there is no experiment {options.experiment} to simulate; there are "
            f"{', '.join(experiments)}"
        )
    if options.seed < 0:
        raise Refused(f"--seed must be 0 or more, not {options.seed}")
    experiment = experiments[options.experiment]
    begun_s = time.perf_counter()
    rows = _simulated(experiment, options.seed)
    if options.json:
        document = {
            **_described(experiment),
            "seed": options.seed,
            "took_s": time.perf_counter() - begun_s,
            "rows": [_as_dict(row) for row in rows],
        }
        print_json(document)
    else:
        print(f"{experiment.name}: {experiment.summary} (section {experiment.section})\n")
        print(table(rows))
    return 0


def _list(experiments: list[Experiment], as_json: bool) -> int:
    if as_json:
        print_json([_described(experiment) for experiment in experiments])
    else:
        for experiment in experiments:
            print(f"{experiment.name:<20} {experiment.summary}")
    return 0


def _described(experiment: Experiment) -> dict[str, str]:
    return {
        "experiment": experiment.name,
        "summary": experiment.summary,
        "section": experiment.section,
    }


def _simulated(experiment: Experiment, seed: int) -> list[Row]:
    from tactical.waiting import telling

    now = [("the start", 0.0)]

    def progress(what: str, done: float) -> None:
        now[0] = what, done

    def said() -> str:
        what, done = now[0]
        return f"simulating {experiment.name}: {what}, {100 * done:.0f} %"

    with telling(said):
        return experiment.simulate(seed, progress)


def _as_dict(row: Row) -> dict[str, Any]:
    return {
        "quantity": row.quantity,
        "unit": row.unit,
        "paper": row.paper,
        "paper_recalled": row.recalled if row.paper is not None else None,
        "balance": row.balance,
        "simulated": row.simulated,
    }


def table(rows: list[Row]) -> str:
    """Return the rows for people."""
    lines = [("", "paper", "balance", "simulated", "")]
    for row in rows:
        paper = f"{'~' if row.recalled else ''}{row.paper:.4g}" if row.paper is not None else ""
        balance = f"{row.balance:.4g}" if row.balance is not None else ""
        lines.append((row.quantity, paper, balance, f"{row.simulated:.4g}", row.unit))
    # A column without any value is left out.
    kept = [c for c in range(5) if c in (0, 3, 4) or any(line[c] for line in lines[1:])]
    widths = {c: max(len(line[c]) for line in lines) for c in kept}
    return "\n".join(
        "  ".join(
            f"{line[c]:<{widths[c]}}" if c in (0, 4) else f"{line[c]:>{widths[c]}}" for c in kept
        ).rstrip()
        for line in lines
    )
