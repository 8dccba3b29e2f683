"""`tactical scenarios`: the experiments that can be run."""

import argparse

import scenarios
from tactical.streams import print_json

SUMMARY = "list the experiments"
EXAMPLES = """\
A name is what `tactical check`, `preview`, `run` and `solve --at` take. docs/scenarios.md tells
what each experiment is about; `tactical check NAME` shows its parameters.

examples:
  tactical scenarios
  tactical scenarios --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> int:
    """List names with what they are."""
    known = {
        name: (experiment.__doc__ or "").strip().partition("\n")[0]
        for name, experiment in sorted(scenarios.EXPERIMENTS.items())
    }
    if options.json:
        print_json([{"name": name, "summary": text} for name, text in known.items()])
    else:
        for name, text in known.items():
            print(f"{name:<20} {text}")
    return 0
