"""`tactical calibrate`: what the emulated network does, against what it is told to do."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tactical.host.choice import EMULATING, choose
from tactical.outcome import FAILED
from tactical.progress import stages
from tactical.runs import add_time_argument
from tactical.streams import print_json

SUMMARY = "measure how faithful the emulated network is on this machine"
EXAMPLES = """\
Builds a network as experiments do (Open vSwitch, HTB, netem, hwsim radios, multipath TCP), sends
through it, and prints what was measured beside what was configured or follows from theory: rate,
delay, jitter, loss, rates of two queues, waits under Poisson traffic (and the κ they give), goodput
of MPTCP over two links, handover. docs/fidelity.md says how, and what each criterion is.

The result is kept for the machine, kernel and clock it belongs to; later runs hold a copy of it.
Exit status 1: a criterion was missed, or nothing could be measured.

examples:
  tactical calibrate
  tactical calibrate --quick
  tactical calibrate --backend vm --time real --json > calibration.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "--backend",
        choices=EMULATING,
        default="auto",
        help="native: this machine's kernel, as root; vm: a virtual machine; auto: native where "
        "it works (default)",
    )
    add_time_argument(parser)
    parser.add_argument(
        "--quick", action="store_true", help="measure for a third of the time, at one load only"
    )


def run(options: argparse.Namespace) -> int:
    """Measure, judge, print, keep; fails where a criterion is missed."""
    from tactical.calibration import record
    from tactical.calibration.session import CalibrationError, measure
    from tactical.calibration.verdicts import judge, table

    machine = choose(options.backend, options.time)
    try:
        with stages() as show:
            document = measure(machine, quick=options.quick, show=show)
    except CalibrationError as error:
        if options.json:
            print_json({"error": str(error)})
        print(f"tactical: {error}", file=sys.stderr)
        return FAILED
    try:
        kept = f"kept in {record.save(machine, document)}"
    except (OSError, RuntimeError) as error:
        kept = f"not kept: {error}"
    if options.json:
        print_json(document)
    else:
        print(f"{document['machine']}\n\n{table(judge(document['measurements']))}\n\n{kept}")
    if missed := missed_rows(document):
        print(f"tactical: missed: {', '.join(missed)}", file=sys.stderr)
    return 0 if document["passed"] else FAILED


def missed_rows(document: dict[str, Any]) -> list[str]:
    """Names of the quantities whose criterion was missed."""
    rows = (row for row in document["rows"] if row["verdict"] == "missed")
    return [f"{row['quantity']} {row['where']}".strip() for row in rows]
