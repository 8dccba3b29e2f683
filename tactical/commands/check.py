"""`tactical check`: whether an experiment is valid, and its parameters."""

import argparse

import scenarios
from tactical.scenario_arguments import add_scenario_arguments, check_layout, load
from tactical.streams import print_json

SUMMARY = "validate an experiment and show its parameters"
EXAMPLES = """\
examples:
  tactical check direct-move
  tactical check direct-move --set ships.count=5 --set uav.range_m=2000
"""


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
        }
        print_json(document)
        return 0
    print(f"{scenario.name} ({fingerprint}) is valid.")
    keys = max(len(row.key) for row in rows)
    values = max(len(_number(row.value)) for row in rows)
    for row in rows:
        value = _number(row.value)
        print(f"  {row.key:<{keys}}  {value:>{values}}  {row.meaning}: {row.expected}")
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
    for time_s, what in sorted(said, key=lambda each: each[0]):
        print(f"At {time_s:g} s {what}.")
    return 0


def _number(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"
