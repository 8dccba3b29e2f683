"""`tactical check`: whether an experiment is valid, and its parameters."""

import argparse
import textwrap

import scenarios
from tactical.scenario_arguments import add_scenario_arguments, check_layout, load
from tactical.streams import columns, print_json

SUMMARY = "validate an experiment and show its parameters"
EXAMPLES = """\
Each parameter is shown with its value, what it means, its unit and its bounds; then when ships come
into range, and when they hand over. Nothing is run.

examples:
  tactical check direct-move
  tactical check direct-move --set ships.count=5 --set uav.range_m=2000
  tactical check direct-move --config RUN/run.toml      the parameters of an earlier run
"""

_INDENT = " " * 6
_LEAST_ROOM = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_scenario_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the parameters with units and bounds, and when ships reach which access point."""
    experiment = load(options)
    scenario = experiment.build(options.seed)
    check_layout(scenario)
    rows = scenarios.describe(experiment)
    fingerprint = scenarios.fingerprint(experiment)
    changes = scenario.coverage()
    if options.json:
        document = {
            "scenario": scenario.name,
            "fingerprint": fingerprint,
            "parameters": [row._asdict() for row in rows],
            "coverage": [
                {
                    "time_s": change.time_s,
                    "station": change.station,
                    "access_point": change.access_point,
                    "entering": change.entering,
                }
                for change in changes
            ],
            "handovers": [change._asdict() for change in scenario.handovers()],
            "satellite_handovers": [turn._asdict() for turn in scenario.satellite_handovers()],
        }
        print_json(document)
        return 0
    print(f"{scenario.name} ({fingerprint}) is valid.")
    keys = max(len(row.key) for row in rows)
    values = max(len(_number(row.value)) for row in rows)
    for row in rows:
        start = f"  {row.key:<{keys}}  {_number(row.value):>{values}}  "
        print(_hung(start, f"{row.meaning}: {row.expected}", columns()))
    radios = {access_point.name for access_point in scenario.access_points}
    said = [
        (
            change.time_s,
            f"{change.station} {'enters' if change.entering else 'leaves'} the range of "
            f"{change.access_point}",
        )
        for change in changes
    ]
    said += [
        (move.time_s, f"{move.station} changes from {move.before} to {move.after}")
        for move in scenario.handovers()
        if {move.before, move.after} <= radios
    ]
    said += [
        (
            turn.time_s,
            f"{turn.satellite} changes from satellite {turn.before or '(none)'} to "
            f"{turn.after or '(none)'}",
        )
        for turn in scenario.satellite_handovers()
    ]
    for time_s, what in sorted(said, key=lambda each: each[0]):
        print(f"At {time_s:g} s {what}.")
    return 0


def _hung(start: str, text: str, width: int | None) -> str:
    """`text` beside `start`, or below it where there is little room; no wider than `width`."""
    if width is None:
        return start + text
    beside = width - len(start) >= _LEAST_ROOM
    indent = " " * len(start) if beside else _INDENT
    hung = textwrap.fill(
        text,
        max(width, _LEAST_ROOM),
        initial_indent=start if beside else indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return hung if beside else f"{start.rstrip()}\n{hung}"


def _number(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"
