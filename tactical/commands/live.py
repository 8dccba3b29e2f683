"""`tactical live`: a running network on a page on which people steer it."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import scenarios
from tactical.faults import Refused
from tactical.host.choice import EMULATING, choose
from tactical.live.arguments import add_page_arguments
from tactical.runs import add_time_argument, check_writable, make, runs_directory
from tactical.scenario_arguments import add_scenario_arguments, check_layout, load

if TYPE_CHECKING:
    from tactical.host.process import Child
    from tactical.live.viewers import Viewers

DURATION_S = 600.0
_LOOK_EVERY_S = 0.5

SUMMARY = "run an experiment on a page on which people steer it"
EXAMPLES = """\
Starts the network and serves a page until Ctrl-C, which takes the network down and keeps everything
that was recorded. On the page with the token ships and UAVs are dragged, links are cut and healed,
demands and the policy are changed; the address without the token watches. The controller and the
radios follow as they would follow ships that sail there.

Where the processor is emulated, the network's clock goes no faster than this machine's, and falls
behind where the processor is not fast enough.

examples:
  tactical live direct-move
  tactical live ship-to-shore --protocol mptcp --no-browser
  tactical live direct-move --duration 1800 --set ships.count=4 --port 8000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_scenario_arguments(parser)
    parser.add_argument(
        "--protocol",
        choices=[protocol for protocol in scenarios.PROTOCOLS if protocol != "sptcp"],
        default="fdm",
        help="how it begins: with (fdm, default) or without (mptcp) flow deviation; the page "
        "changes that",
    )
    parser.add_argument(
        "--duration",
        type=_duration,
        metavar="SECONDS",
        help=f"how long traffic flows, in run time (default: {DURATION_S:g}, or that of the "
        "scenario where it cannot last so long)",
    )
    parser.add_argument(
        "--backend",
        choices=EMULATING,
        default="auto",
        help="native: this machine's kernel, as root; vm: a virtual machine; auto: native where "
        "it works (default)",
    )
    add_time_argument(parser)
    parser.add_argument(
        "--runs-dir",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where the run directory is made (default: runs)",
    )
    add_page_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run the network and serve the page until a signal ends both."""
    from tactical.experiment import Request
    from tactical.live.showing import shown
    from tactical.live.sources import Steered

    experiment = _lasting(options)
    scenario = experiment.build(options.seed)
    check_layout(scenario)
    machine = choose(options.backend, options.time)
    parent = runs_directory(options.runs_dir, scenario.name)
    machine.check([parent])
    check_writable(options.runs_dir, parent)
    request = Request(
        experiment,
        options.protocol,
        options.seed,
        machine.name,
        options.runs_dir,
        options.time,
        steered=True,
    )
    with ExitStack() as stack:
        pages: list[Viewers] = []

        def serve(run_dir: Path, worker: Child) -> None:
            source = Steered(run_dir, worker)
            pages.append(stack.enter_context(shown(source, options, run=str(run_dir))))

        run_dirs, stopped = make(
            [request], scenario.duration_s, started=serve, afterwards="is kept"
        )
        for run_dir in run_dirs:
            print(f"{'Recorded':<16}{run_dir}", file=sys.stderr)
        if stopped is not None:
            raise stopped
        for viewers in pages:
            source = viewers.source
            while isinstance(source, Steered):
                time.sleep(_LOOK_EVERY_S)
                source = viewers.source = source.recording() or source
        threading.Event().wait()
    return 0


def _lasting(options: argparse.Namespace) -> scenarios.Experiment:
    """The experiment, with traffic for as long as people may want to watch."""
    given = list(options.overrides)
    wanted_s = DURATION_S if options.duration is None else options.duration
    options.overrides = [f"duration_s={wanted_s}", *given]
    try:
        return load(options)
    except (Refused, scenarios.ScenarioError):
        if options.duration is not None:
            raise
    options.overrides = given
    return load(options)


def _duration(text: str) -> float:
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 1.0 <= duration_s <= 86400.0:
        raise argparse.ArgumentTypeError(f"must be 1 to 86400 seconds, not {text!r}")
    return duration_s
