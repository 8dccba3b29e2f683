"""`tactical compare`: groups of runs against each other, with confidence intervals."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tactical.faults import Refused
from tactical.progress import stages
from tactical.recognition import RUN, mismatch
from tactical.streams import print_json

SUMMARY = "compare groups of runs, with confidence intervals over seeds"
EXAMPLES = """\
Runs that differ in nothing but their seed form a group: a protocol, with parameters where they
differ. A group's mean has Student's interval over its seeds. Groups are compared seed by seed: the
same seed is the same movement in both, so the differences vary less than the figures. With one seed
there is no interval, and none is shown.

What a run's result.json holds is taken from there; older results are measured again. Runs that
failed are left out, and told of. --report also draws box plots and distributions.

examples:
  tactical compare runs/direct-move/*-mptcp-* runs/direct-move/*-fdm-*
  tactical compare runs/random-walk/* --report comparison.html
  tactical compare runs/random-walk/* --confidence 0.99 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="SHARE",
        help="confidence of the intervals (default: 0.95)",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="also write a page of figures")


def run(options: argparse.Namespace) -> int:
    """Load the results, compare and print."""
    from analysis import RunDirectoryError
    from analysis.presentation.comparison_page import comparison_report
    from analysis.presentation.comparison_text import comparison_text
    from analysis.run.compare import compare, load

    if not 0 < options.confidence < 1:
        raise Refused(
            f"--confidence {options.confidence:g}: expected a share between 0 and 1, such as 0.95"
        )
    # A pattern such as runs/direct-move/* also finds reports.
    given = list(dict.fromkeys(options.runs))
    run_dirs = [path for path in given if not os.path.isfile(path)]  # noqa: PTH113
    if not run_dirs:
        raise Refused(f"{given[0]} is no run directory{mismatch(given[0], RUN)}")
    try:
        with stages() as tell:
            results = []
            for number, path in enumerate(run_dirs):
                tell("reading results", number / len(run_dirs))
                results.append(load(path))
        found = compare(results, confidence=options.confidence)
    except OSError as error:
        raise Refused(f"{error.filename or 'a run'} cannot be read: {error.strerror}") from error
    except (RunDirectoryError, ValueError) as error:
        raise Refused(str(error)) from error
    if options.report is not None:
        try:
            comparison_report(found, options.report)
        except OSError as error:
            raise Refused(f"--report {options.report}: {error.strerror or error}") from error
    if options.json:
        print_json(found.to_json())
    else:
        print(comparison_text(found))
        if options.report is not None:
            print(f"Report: {options.report}")
    return 0
