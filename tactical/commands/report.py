"""`tactical report`: analyse runs and compare them."""

import argparse
import sys
from pathlib import Path

from tactical.faults import Refused
from tactical.judging import judge
from tactical.recognition import RUN, mismatch

SUMMARY = "analyse runs and compare them"
EXAMPLES = """\
Each run gets a new result.json and report.html. Several runs get one more report that compares
them, beside the first, in a file named after what it compares; one that is there stays. Reports
among RUN, as a pattern such as 20260101T* also finds them, are left out.

examples:
  tactical report runs/direct-move/20260101T120000Z-fdm-0-1a2b3c4d
  tactical report runs/direct-move/20260101T* --output comparison.html
  tactical report RUN --story                 what each handover set off, with times and errors
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write the report, also over an earlier one (default: report.html in the "
        "run; for several, a new file beside the first)",
    )
    parser.add_argument(
        "--story",
        action="store_true",
        help="also tell each handover from its cause to its effect (always in the report and in "
        "result.json: handover_stories)",
    )


def run(options: argparse.Namespace) -> int:
    """Analyse and compare; fails if one of the runs did."""
    run_dirs = []
    for path in dict.fromkeys(options.runs):
        try:
            described = (path / "run.toml").is_file()
        except OSError as error:  # a name too long, a directory of somebody else
            raise Refused(f"{path} cannot be read: {error.strerror}") from error
        if described:
            run_dirs.append(path)
        elif _is_page(path):
            print(f"tactical: {path} is a report, not a run; left out", file=sys.stderr)
        else:
            raise Refused(f"{path} is no run directory: it has no run.toml{mismatch(path, RUN)}")
    from tactical.host.hermetic import IMAGE_NAME

    for run_dir in run_dirs:
        if (run_dir / IMAGE_NAME).is_file():
            _recover(run_dir)
    if not run_dirs:
        raise Refused("there is no run directory among what was given, only reports")
    output = options.output
    try:
        if output is not None and not output.parent.is_dir():
            raise Refused(f"--output {output}: there is no directory {output.parent}")
    except OSError as error:
        raise Refused(f"--output {output} cannot be used: {error.strerror}") from error
    return judge(run_dirs, as_json=options.json, output=output, story=options.story)


def _recover(run_dir: Path) -> None:
    """Bring back what a virtual machine recorded, if `tactical` was killed while it ran."""
    from tactical.experiment import recover
    from tactical.host.machine import HostError

    try:
        if recover(run_dir):
            print(f"tactical: {run_dir}: brought back what was recorded", file=sys.stderr)
    except HostError as error:
        print(f"tactical: {error}", file=sys.stderr)


def _is_page(path: Path) -> bool:
    """Whether it is a report, or at least an HTML page, which nobody takes for a run."""
    try:
        if not path.is_file():  # reading a named pipe would wait for a writer
            return False
        with path.open("rb") as file:
            return path.suffix == ".html" and file.read(15).lower() == b"<!doctype html>"
    except OSError:
        return False
