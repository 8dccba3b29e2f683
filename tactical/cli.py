"""The command `tactical`: its subcommands are the modules of `tactical.commands`.

Results go to standard output, progress to standard error. With ``--json`` standard output holds
one JSON document, also when something is wrong: ``{"error": "…"}``.

Exit status: 0 all is well, 1 a run or its analysis failed, 2 what was asked for cannot be done,
128 + N stopped by signal N (130 for Ctrl-C).
"""

import argparse
import importlib
import importlib.metadata
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import scenarios
from tactical import faults, streams
from tactical.faults import Refused
from tactical.host.machine import HostError
from tactical.outcome import FAILED, REFUSED
from tactical.signals import Stopped, stopped_by_signals

COMMANDS = (
    "doctor",
    "calibrate",
    "scenarios",
    "check",
    "preview",
    "run",
    "batch",
    "live",
    "replay",
    "report",
    "analyse",
    "compare",
    "inspect",
    "solve",
    "simulate",
    "controller",
)

DESCRIPTION = """\
Run multipath TCP and a software-defined network over emulated moving radios, with the real
kernel, and judge what the captures show.
"""
EXAMPLES = """\
examples:
  tactical doctor                             what this machine can do, and what it lacks
  tactical run direct-move                    all protocols, one table, one report
  tactical run direct-move --protocol fdm --set satcom.delay_s=0.3 --seed 7
  tactical run direct-move --dry-run          print every privileged command, run nothing
  tactical report runs/direct-move/*-fdm-*    analyse and compare earlier runs
"""


class Parser(argparse.ArgumentParser):
    """Reports mistakes like every other error: one sentence, as JSON when JSON was asked for."""

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """As the base class's; what nobody knows is refused by the parser of its subcommand."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; see `{self.prog} --help`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    # It tells at length of a home directory that it cannot write to, and does without.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with streams.prepared() as output:
        ended: SystemExit | None = None
        try:
            status = _answer(given, as_json)
        except SystemExit as after_help:
            status, ended = 0, after_help
        output.flush()
        problem = output.problem
        # Where the reader of our output has gone, there is nobody left to tell.
        if problem is not None and not isinstance(problem, BrokenPipeError):
            why = getattr(problem, "strerror", None) or problem
            print(f"tactical: standard output cannot be written: {why}", file=sys.stderr)
        if problem is not None:
            return status or FAILED
        if ended is not None:
            raise ended
        return status


def _answer(given: Sequence[str], as_json: bool) -> int:
    try:
        with stopped_by_signals():
            options = _parser().parse_args(given)
            handler: Callable[[argparse.Namespace], int] = options.handler
            return handler(options)
    except (Refused, HostError, scenarios.ScenarioError) as error:
        return _tell(str(error), as_json, REFUSED)
    except Stopped as stopped:
        return 128 + stopped.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        if error.strerror is None or error.filename is None:
            return _tell_fault(error, as_json)
        # A disk that is full, a directory of somebody else: of the machine, not of the program.
        return _tell(f"{error.filename}: {error.strerror}", as_json, FAILED)
    except Exception as error:  # noqa: BLE001 - the last resort
        return _tell_fault(error, as_json)


def _parser() -> Parser:
    parser = Parser(
        prog="tactical",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version = importlib.metadata.version("tactical")
    parser.add_argument("--version", action="version", version=f"tactical {version}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"tactical.commands.{name}")
        summary: str = module.SUMMARY
        added = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(added)
        added.add_argument("--json", action="store_true", help="print one JSON document")
        added.set_defaults(handler=module.run)
    return parser


def _tell_fault(error: Exception, as_json: bool) -> int:
    what = f"something went wrong that should not: {faults.explained(error)}"
    return _tell(what, as_json, FAILED)


def _tell(problem: str, as_json: bool, status: int) -> int:
    sentence = " ".join(problem.split())
    if as_json:
        streams.print_json({"error": sentence})
    print(f"tactical: {sentence}", file=sys.stderr)
    return status
