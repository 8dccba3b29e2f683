"""Choosing an experiment on the command line: its name, parameters and seed."""

import argparse
import stat
from pathlib import Path

import scenarios
from tactical.faults import Refused
from tactical.recognition import PARAMETERS, RUN_TOML, mismatch


def add_scenario_arguments(
    parser: argparse.ArgumentParser,
    *,
    metavar: str = "SCENARIO",
    meaning: str = "name, see `tactical scenarios`",
) -> None:
    """Declare which experiment, with which parameters and seed."""
    parser.add_argument("scenario", metavar=metavar, help=meaning)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change a parameter; may be repeated",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file of parameters; of an earlier run's run.toml, its parameters only",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seed of what is random (default: 0)"
    )


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^32-1, not {text!r}")
    return seed


def load(options: argparse.Namespace) -> scenarios.Experiment:
    """The experiment that the arguments describe.

    Raises
    ------
    Refused, scenarios.ScenarioError
        There is no such experiment, or a parameter makes no sense.
    """
    config = options.config
    if config is not None:
        try:
            mode = config.stat().st_mode
        except FileNotFoundError:
            raise Refused(f"--config {config}: there is no such file") from None
        except OSError as error:
            raise Refused(f"--config {config} cannot be read: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            raise Refused(f"--config {config} is a directory, not a TOML file")
        if not stat.S_ISREG(mode):
            raise Refused(f"--config {config} is no regular file")
    try:
        return scenarios.load(options.scenario, options.overrides, options.config)
    except scenarios.ScenarioError as error:
        if config is None or error.origin != str(config):
            raise
        raise Refused(f"{error}{mismatch(config, PARAMETERS, RUN_TOML)}") from error


def check_layout(scenario: scenarios.Scenario) -> None:
    """Refuse a scenario that cannot be laid out as a network, for any protocol."""
    from tactical.emulation.plan import PlanError, make_plan

    for protocol in scenarios.PROTOCOLS:
        try:
            make_plan(scenario, protocol)
        except PlanError as error:
            raise Refused(f"{scenario.name}, {protocol}: {error}") from error
