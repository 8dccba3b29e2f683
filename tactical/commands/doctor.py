"""`tactical doctor`: what this machine can do, and what it lacks."""

import argparse

from tactical.outcome import FAILED
from tactical.streams import print_json

SUMMARY = "tell what this machine can do, and how to install what it lacks"
EXAMPLES = """\
For each backend (this machine's kernel, a virtual machine) it says whether it works and what it
lacks, and for each program which Debian package has it. Nothing is changed.

Exit status 1: no backend would work.

examples:
  tactical doctor
  tactical doctor --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> int:
    """Examine and tell; fails where no backend would work."""
    from tactical.host import doctor

    report = doctor.examine()
    if options.json:
        print_json(report.to_json())
    else:
        print(doctor.render(report))
    return 0 if report.chosen else FAILED
