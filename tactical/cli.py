"""The command `tactical`: thin subcommands over the packages.

Results go to standard output, progress to standard error. With ``--json`` standard output holds
one JSON document, also when something is wrong: ``{"error": "…"}``.

Exit status: 0 all is well, 1 a run or its analysis failed, 2 what was asked for cannot be done,
128 + N stopped by signal N (130 for Ctrl-C).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import shlex
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import scenarios
from tactical import faults, solve, streams
from tactical.host.choice import BACKENDS, choose
from tactical.host.machine import HostError
from tactical.progress import reporter

if TYPE_CHECKING:
    from analysis import RunResult
    from tactical.experiment import Progress, Request

FAILED, REFUSED = 1, 2

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
RUN_EXAMPLES = """\
KEY=VALUE changes a parameter; `tactical check SCENARIO` lists them with units and bounds. --config
takes a TOML file of them, also the run.toml of an earlier run, of which it repeats the parameters
but neither seed, protocol nor backend: give --seed, --protocol and --backend for these. --set wins
over --config.

A run takes its scenario's duration and about a minute more. In a virtual machine it needs a
processor to itself; where it had none, it is marked OVERLOADED.

examples:
  tactical run direct-move
  tactical run direct-move --protocol mptcp --set traffic.congestion_control=bbr
  tactical run direct-move --set uav.rate_bps=2e6 --set duration_s=200 --backend vm
  tactical run direct-move --config RUN/run.toml --seed 7 --protocol fdm --json > results.json
"""
CHECK_EXAMPLES = """\
examples:
  tactical check direct-move
  tactical check direct-move --set ships.count=5 --set uav.range_m=2000
"""
REPORT_EXAMPLES = """\
Each run gets a new result.json and report.html. Several runs get one more report that compares
them, beside the first, in a file named after what it compares; one that is there stays. Reports
among RUN, as a pattern such as 20260101T* also finds them, are left out.

examples:
  tactical report runs/direct-move/20260101T120000Z-fdm-0-1a2b3c4d
  tactical report runs/direct-move/20260101T* --output comparison.html
"""


class Refused(Exception):
    """What was asked for cannot be done; the text is the one sentence for the user."""


class Stopped(KeyboardInterrupt):
    """A signal asked for an orderly end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


class Parser(argparse.ArgumentParser):
    """Reports mistakes like every other error: one sentence, as JSON when JSON was asked for."""

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; see `{self.prog} --help`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
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
        with _stopped_by_signals():
            options = _parser().parse_args(given)
            handler: Callable[[argparse.Namespace], int] = options.handler
            return handler(options)
    except (Refused, HostError, scenarios.ScenarioError) as error:
        return _tell(str(error), as_json, REFUSED)
    except Stopped as stopped:
        return 128 + stopped.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - the last resort
        return _tell(
            f"something went wrong that should not: {faults.explained(error)}", as_json, FAILED
        )


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

    def command(
        name: str, handler: Callable[[argparse.Namespace], int], summary: str, epilog: str = ""
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        added.add_argument("--json", action="store_true", help="print one JSON document")
        added.set_defaults(handler=handler)
        return added

    command("doctor", _doctor, "tell what this machine can do, and how to install what it lacks")
    command("scenarios", _list_scenarios, "list the experiments")

    check = command(
        "check", _check, "validate an experiment and show its parameters", CHECK_EXAMPLES
    )
    _add_experiment(check)

    run = command("run", _run, "run an experiment, analyse it, compare the protocols", RUN_EXAMPLES)
    _add_experiment(run)
    run.add_argument(
        "--protocol",
        choices=[*scenarios.PROTOCOLS, "all"],
        default="all",
        help="sptcp: one TCP connection that hands over; mptcp: the kernel's multipath TCP; "
        "fdm: multipath TCP in queues set by flow deviation; all: each in turn (default)",
    )
    run.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="native: this machine's kernel, as root; vm: a virtual machine; auto: native where "
        "it works (default)",
    )
    run.add_argument(
        "--runs-dir",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where run directories are made (default: runs)",
    )
    run.add_argument(
        "--dry-run", action="store_true", help="print every privileged command and do nothing"
    )

    solving = command(
        "solve", _solve, "split the demands on a network for the least delay", solve.EXAMPLES
    )
    solve.add_arguments(solving)

    report = command("report", _report, "analyse runs and compare them", REPORT_EXAMPLES)
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    report.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write the report, also over an earlier one (default: report.html in the "
        "run; for several, a new file beside the first)",
    )
    return parser


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="name, see `tactical scenarios`")
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


def _doctor(options: argparse.Namespace) -> int:
    from tactical.host import doctor

    report = doctor.examine()
    print(_as_json(report.to_json()) if options.json else doctor.render(report))
    return 0 if report.chosen else FAILED


def _list_scenarios(options: argparse.Namespace) -> int:
    known = {
        name: (experiment.__doc__ or "").strip().partition("\n")[0]
        for name, experiment in sorted(scenarios.EXPERIMENTS.items())
    }
    if options.json:
        print(_as_json([{"name": name, "summary": text} for name, text in known.items()]))
    else:
        for name, text in known.items():
            print(f"{name:<20} {text}")
    return 0


def _check(options: argparse.Namespace) -> int:
    experiment = _load(options)
    scenario = experiment.build(options.seed)
    _check_layout([scenario])
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
        }
        print(_as_json(document))
        return 0
    print(f"{scenario.name} ({fingerprint}) is valid.")
    keys = max(len(row.key) for row in rows)
    values = max(len(_number(row.value)) for row in rows)
    for row in rows:
        value = _number(row.value)
        print(f"  {row.key:<{keys}}  {value:>{values}}  {row.meaning}: {row.expected}")
    for change in changes:
        verb = "enters" if change.entering else "leaves"
        print(f"At {change.time_s:g} s {change.station} {verb} the range of {change.access_point}.")
    return 0


def _run(options: argparse.Namespace) -> int:
    from tactical import experiment as lifecycle
    from tactical.dry_run import dry_run

    experiment = _load(options)
    scenario = experiment.build(options.seed)
    _check_layout([scenario])
    machine = choose(options.backend)
    protocols = scenarios.PROTOCOLS if options.protocol == "all" else (options.protocol,)
    requests = [
        lifecycle.Request(experiment, protocol, options.seed, machine.name, options.runs_dir)
        for protocol in protocols
    ]
    if options.dry_run:
        commands = dry_run(requests)
        print(_as_json({"commands": commands}) if options.json else "\n".join(commands))
        return 0
    parent = _runs_directory(options.runs_dir, scenario.name)
    machine.check([parent])
    _check_writable(options.runs_dir, parent)
    run_dirs, stopped = _execute(requests, scenario.duration_s)
    status = _judge(run_dirs, options.json, None)
    if stopped is not None:
        raise stopped
    return status


def _execute(
    requests: Sequence[Request], duration_s: float
) -> tuple[list[Path], KeyboardInterrupt | None]:
    """Make the runs; when interrupted, whatever directories there are and the interrupt."""
    from tactical import experiment as lifecycle

    seen: dict[Path, None] = {}
    notice = (
        f"stopping… the network is taken down ({lifecycle.STOP_GRACE_S:g} s at most), "
        "then what was recorded is analysed"
    )
    with (
        reporter([request.protocol for request in requests], duration_s) as show,
        _stopped_by_signals(notice),
    ):

        def note(step: Progress) -> None:
            seen[step.run_dir] = None
            show(step)

        try:
            return lifecycle.execute(requests, progress=note), None
        except KeyboardInterrupt as interrupt:
            return list(seen), interrupt


def _solve(options: argparse.Namespace) -> int:
    try:
        return solve.run(options, _as_json)
    except solve.SolveError as error:
        raise Refused(str(error)) from error


def _report(options: argparse.Namespace) -> int:
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
            raise Refused(f"{path} is no run directory: it has no run.toml")
    if not run_dirs:
        raise Refused("there is no run directory among what was given, only reports")
    output = options.output
    try:
        if output is not None and not output.parent.is_dir():
            raise Refused(f"--output {output}: there is no directory {output.parent}")
    except OSError as error:
        raise Refused(f"--output {output} cannot be used: {error.strerror}") from error
    return _judge(run_dirs, options.json, output)


def _is_page(path: Path) -> bool:
    """Whether it is a report, or at least an HTML page, which nobody takes for a run."""
    try:
        if not path.is_file():  # reading a named pipe would wait for a writer
            return False
        with path.open("rb") as file:
            return path.suffix == ".html" and file.read(15).lower() == b"<!doctype html>"
    except OSError:
        return False


def _judge(run_dirs: Sequence[Path], as_json: bool, output: Path | None) -> int:
    """Analyse runs, print the comparison, and write the report; the exit status.

    Each run is analysed and its files are written before the next one's turn: what goes wrong
    with one, and a signal, leave the others as they are.
    """
    import analysis

    if not run_dirs:
        return FAILED
    results: dict[Path, RunResult] = {}
    problems: dict[Path, str] = {}
    stopped: KeyboardInterrupt | None = None
    for run_dir in run_dirs:
        try:
            results[run_dir] = _analyse(run_dir)
        except KeyboardInterrupt as interrupt:
            stopped = interrupt
            break
        except Exception as error:  # noqa: BLE001 - whatever it is, the other runs have theirs
            problems[run_dir] = _why(error)
    report: Path | None = None
    incomplete = False
    if results and stopped is None:
        found = list(results.values())
        report = output or next(iter(results)) / "report.html"
        fresh: Path | None = None
        try:
            if output is None and len(found) > 1:
                directory = run_dirs[0].absolute().parent
                report = fresh = _new_file(directory, _comparison_name(found))
            if output is not None or len(found) > 1:
                analysis.report(found, report)
            fresh = None
        except KeyboardInterrupt as interrupt:
            report, stopped = None, interrupt
        except OSError as error:
            raise Refused(f"{report} cannot be written: {error.strerror or error}") from error
        except Exception as error:  # noqa: BLE001 - the runs have their own reports
            print(f"tactical: {report} cannot be made: {_why(error)}", file=sys.stderr)
            report, incomplete = None, True
        finally:
            if fresh is not None:
                fresh.unlink(missing_ok=True)
    documents: list[dict[str, Any]] = []
    for run_dir in run_dirs:
        document: dict[str, Any] = {"directory": str(run_dir), "report": report and str(report)}
        if run_dir in results:
            document |= results[run_dir].to_json()
        else:
            again = f"; `tactical report {shlex.quote(str(run_dir))}` does it"
            reason = problems.get(run_dir, f"stopped before its end{again}")
            document |= {"state": "failed", "reason": f"not analysed: {reason}"}
        documents.append(document)
    if as_json:
        print(_as_json(documents))
    elif results:
        print(analysis.table(list(results.values())))
        if report is not None:
            print(f"Report: {report}")
    failed = [entry for entry in documents if entry.get("state") != "done"]
    for entry in failed:
        reason = " ".join(str(entry.get("reason") or "no reason was recorded").split())
        print(f"tactical: {entry['directory']} failed: {reason}", file=sys.stderr)
    if stopped is not None:
        raise stopped
    return FAILED if failed or incomplete else 0


def _analyse(run_dir: Path) -> RunResult:
    """Analyse one run and write its files."""
    import analysis

    try:
        analysis.collect(run_dir)
    except Exception as error:  # noqa: BLE001
        # The columns are a convenience; the analysis reads what they are made from.
        print(f"tactical: {run_dir}: no samples.parquet: {_why(error)}", file=sys.stderr)
    result = analysis.write(run_dir)
    analysis.report([result], run_dir / "report.html")
    return result


def _why(error: Exception) -> str:
    from analysis import RunDirectoryError

    if isinstance(error, RunDirectoryError):
        return str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return faults.explained(error)


def _comparison_name(results: Sequence[RunResult]) -> str:
    """What the runs are, without the suffix: when, how many, protocols, seeds, parameters."""
    seeds = list(dict.fromkeys(result.seed for result in results))
    settings = list(dict.fromkeys(result.fingerprint for result in results))
    parts = [
        results[0].run.partition("-")[0],
        f"comparison-of-{len(results)}",
        "+".join(dict.fromkeys(result.protocol for result in results)),
        str(seeds[0]) if len(seeds) == 1 else f"{len(seeds)}-seeds",
        settings[0] if len(settings) == 1 else f"{len(settings)}-settings",
    ]
    # A damaged run.toml may say anything.
    return re.sub(r"[^\w.+-]+", "_", "-".join(filter(None, parts)))[:200]


def _new_file(directory: Path, name: str) -> Path:
    """Make an HTML file that was not there before: `name`.html, `name`-2.html, …"""
    path, number = directory / f"{name}.html", 1
    while True:
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
            path = directory / f"{name}-{number}.html"
        else:
            return path


def _load(options: argparse.Namespace) -> scenarios.Experiment:
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
    return scenarios.load(options.scenario, options.overrides, options.config)


def _check_layout(built: Sequence[scenarios.Scenario]) -> None:
    from tactical.emulation.plan import PlanError, make_plan

    for scenario in built:
        for protocol in scenarios.PROTOCOLS:
            try:
                make_plan(scenario, protocol)
            except PlanError as error:
                raise Refused(f"{scenario.name}, {protocol}: {error}") from error


def _runs_directory(runs_dir: Path, scenario: str) -> Path:
    """The directory in which the runs get theirs, which need not exist."""
    try:
        return runs_dir.resolve() / scenario
    except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links in a circle
        raise Refused(f"--runs-dir {runs_dir} cannot be used: {error}") from error


def _check_writable(runs_dir: Path, parent: Path) -> None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--runs-dir {runs_dir} cannot be made: {error.strerror}") from error
    try:
        Path(tempfile.mkdtemp(prefix=".writable-", dir=parent)).rmdir()
    except OSError as error:
        raise Refused(f"--runs-dir {runs_dir} cannot be written: {error.strerror}") from error


def _tell(problem: str, as_json: bool, status: int) -> int:
    sentence = " ".join(problem.split())
    if as_json:
        print(_as_json({"error": sentence}))
    print(f"tactical: {sentence}", file=sys.stderr)
    return status


def _number(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def _as_json(data: Any) -> str:
    return json.dumps(data, indent=2, allow_nan=False)


@contextmanager
def _stopped_by_signals(notice: str = "") -> Iterator[None]:
    """Make SIGTERM and SIGHUP end things in order, as Ctrl-C does.

    With a `notice`, that is said at once, and further signals only make it be said again: what
    follows has a time limit of its own and must not be left half done. Signals that are ignored,
    as by `nohup`, stay ignored.
    """
    stopping = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if notice:
            # Not from here: the signal may have come in the middle of another print.
            threading.Thread(target=_say, args=(notice,)).start()
            if stopping:
                return
        stopping = True
        raise Stopped(number)

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    # In one piece: another thread may say the same at the same time. Perhaps nobody listens.
    with suppress(OSError, ValueError):
        sys.stderr.write(f"tactical: {text}\n")
        sys.stderr.flush()
