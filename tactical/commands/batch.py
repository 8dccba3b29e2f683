"""`tactical batch`: many runs from one file, gathered in one table."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tactical import batch as batches
from tactical import faults, judging
from tactical.emulation.plan import PlanError
from tactical.experiment import Request, execute
from tactical.faults import Refused
from tactical.host.choice import BACKENDS, choose
from tactical.host.machine import HostError
from tactical.host.simulated import SimulatedMachine
from tactical.outcome import FAILED
from tactical.recognition import BATCH, mismatch
from tactical.runs import add_time_argument, check_writable, make, runs_directory
from tactical.scenario_arguments import check_layout
from tactical.streams import print_json

SUMMARY = "make many runs from one file, and gather them in one table"
EXAMPLES = """\
FILE is TOML. Every combination of scenario, protocol, seed and varied parameter is one run:

  scenarios = ["contended", "random-walk"]
  protocols = ["mptcp", "fdm"]          # default: all
  seeds = "0-4"                         # or [0, 1, 2]; default: 0
  [set]                                 # parameters of all runs
  duration_s = 60
  [vary]                                # every combination of these
  "controller.queue_discipline" = ["codel", "fifo"]

Runs that are done already, here or in an earlier call, are not made again; a run that fails does
not stop the others. All figures go into one Parquet file, FILE's name beside the runs, with a row
for each user of each run; --query asks it in SQL, where it is the table `runs`.

examples:
  tactical batch study.toml
  tactical batch study.toml --dry-run
  tactical batch study.toml --workers 2
  tactical batch study.toml --query "SELECT protocol, avg(goodput_bps) FROM runs GROUP BY 1"
"""

_PLACE = "emulation"
_CLUSTER_TIMEOUT_S = 20
_MOST_WORKERS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="description of the batch")
    parser.add_argument(
        "--backend", choices=BACKENDS, default="auto", help="as for `tactical run` (default: auto)"
    )
    add_time_argument(parser)
    parser.add_argument(
        "--runs-dir",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where run directories are made and looked for (default: runs)",
    )
    side_by_side = parser.add_mutually_exclusive_group()
    side_by_side.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="sessions at a time on this machine (default: 1; more only in virtual time, where "
        "runs do not disturb each other)",
    )
    side_by_side.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="scheduler of a Dask cluster whose workers have the resource `emulation`, this "
        "environment and the runs directory",
    )
    parser.add_argument(
        "--query", metavar="SQL", help="make no runs; ask the table of those that are done"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="tell what is done and what would be run"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 1 to {_MOST_WORKERS}, not {text!r}"
        )
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Make what is missing, gather what is there; fails if a run did."""
    try:
        batch = batches.load(options.file)
    except batches.BatchError as error:
        raise Refused(f"{error}{mismatch(options.file, BATCH)}") from error
    for session in batch.sessions:
        check_layout(session.experiment.build(session.seed))
    if options.dry_run:
        return _tell_plan(options, batch)
    path = options.runs_dir / f"{batch.name}.parquet"
    failed = 0
    if options.query is None:
        failed = _make_missing(options, batch)
    table = _gather(options, batch, path)
    if options.query is None and options.json:
        print_json({"table": str(path), "failed": failed, "runs": table})
        return FAILED if failed else 0
    rows = _asked(path, options.query or _summary(batch))
    if options.json:
        print_json(_plain(rows))
    else:
        print(_lines(rows))
    if options.query is None:
        print(f"Table: {path}")
    return FAILED if failed else 0


def _tell_plan(options: argparse.Namespace, batch: batches.Batch) -> int:
    listed = [
        {
            "session": str(session),
            "protocol": protocol,
            "directory": done and str(done),
        }
        for session in batch.sessions
        for protocol in session.protocols
        for done in [batches.finished(options.runs_dir, session, protocol)]
    ]
    if options.json:
        print_json({"runs": listed})
    else:
        for each in listed:
            print(f"{each['session']}, {each['protocol']}: {each['directory'] or 'to be run'}")
    return 0


def _make_missing(options: argparse.Namespace, batch: batches.Batch) -> int:
    """Make the runs that are not done; returns how many failed."""
    chosen = [
        Missing(session, protocols, options.backend, options.time, options.runs_dir.resolve())
        for session in batch.sessions
        if (protocols := batches.missing(options.runs_dir, session))
    ]
    if not chosen:
        return 0
    machine = choose(options.backend, options.time)
    for name in {each.session.experiment.name for each in chosen}:
        parent = runs_directory(options.runs_dir, name)
        machine.check([parent])
        check_writable(options.runs_dir, parent)
    if options.workers > 1 and not (machine.virtual_time or machine.name == SimulatedMachine.name):
        raise Refused(
            f"--workers {options.workers}: runs in real time on one machine disturb each other; "
            "use --time virtual, or a cluster of machines"
        )
    if options.workers > 1 or options.cluster is not None:
        return _make_side_by_side(chosen, options)
    failed = 0
    for number, each in enumerate(chosen, start=1):
        _say(f"session {number} of {len(chosen)}: {each}")
        duration_s = each.session.experiment.build(each.session.seed).duration_s
        try:
            run_dirs, stopped = make(each.requests, duration_s)
        except HostError as error:
            _say(f"{each}: {error}")
            failed += len(each.protocols)
            continue
        failed += sum(not judging.analysed(run_dir) for run_dir in run_dirs)
        if stopped is not None:
            raise stopped
    return failed


@dataclass(frozen=True)
class Missing:
    """A session's runs that are not done, and how to make them."""

    session: batches.Session
    protocols: tuple[str, ...]
    backend: str
    time: str
    runs_dir: Path

    def __str__(self) -> str:
        return f"{self.session}: {', '.join(self.protocols)}"

    @property
    def requests(self) -> list[Request]:
        """The runs to make."""
        return [
            Request(
                self.session.experiment,
                protocol,
                self.session.seed,
                self.backend,
                self.runs_dir,
                self.time,
            )
            for protocol in self.protocols
        ]

    def make(self) -> tuple[str, list[str]]:
        """Make and analyse the runs, on whatever worker this is; its name and what went wrong."""
        try:
            run_dirs = execute(self.requests)
        except (HostError, PlanError) as error:
            return str(self), [str(error)] * len(self.protocols)
        wrong = [str(run_dir) for run_dir in run_dirs if not judging.analysed(run_dir)]
        return str(self), [f"{run_dir} failed" for run_dir in wrong]


def _make_side_by_side(chosen: Sequence[Missing], options: argparse.Namespace) -> int:
    """Make sessions on the workers of a Dask cluster, one on each at a time."""
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError as error:
        raise Refused(
            "--workers and --cluster need Dask: install tactical with its extra `cluster`"
        ) from error
    with ExitStack() as stack:
        if options.cluster is None:
            # A process each: a worker's threads would share one set of signal handlers.
            cluster = LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                host="127.0.0.1",
                resources={_PLACE: 1},
            )
            stack.enter_context(cluster)
            address = cluster.scheduler_address
        else:
            address = options.cluster
        try:
            client = stack.enter_context(Client(address, timeout=_CLUSTER_TIMEOUT_S))
        except (OSError, ValueError) as error:
            raise Refused(f"--cluster {address}: no scheduler answers there ({error})") from error
        # One session at a time on each worker, and none is made twice because a worker was lost.
        futures = client.map(Missing.make, chosen, resources={_PLACE: 1}, pure=False, retries=0)
        failed = 0
        for number, future in enumerate(as_completed(futures), start=1):
            try:
                name, problems = future.result()
            except Exception as error:  # noqa: BLE001 - the other sessions go on
                name, problems = "a session", [faults.explained(error)]
            failed += len(problems)
            _say(f"{number} of {len(chosen)} sessions: {name}: {'; '.join(problems) or 'done'}")
    return failed


def _say(text: str) -> None:
    print(f"tactical: {text}", file=sys.stderr, flush=True)


def _gather(options: argparse.Namespace, batch: batches.Batch, path: Path) -> list[dict[str, Any]]:
    """Write the table of all runs of the batch that are done; returns its rows."""
    table: list[dict[str, Any]] = []
    for session in batch.sessions:
        for protocol in session.protocols:
            run_dir = batches.finished(options.runs_dir, session, protocol)
            if run_dir is None:
                continue
            if not (run_dir / "result.json").is_file() and not judging.analysed(run_dir):
                continue
            try:
                result = json.loads((run_dir / "result.json").read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise Refused(f"{run_dir / 'result.json'} cannot be read: {error}") from error
            table += batches.rows(result, session, run_dir)
    if not table:
        raise Refused(f"no run of {options.file} is done in {options.runs_dir}")
    try:
        batches.write_table(table, path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
    return table


def _asked(path: Path, query: str) -> list[dict[str, Any]]:
    """The rows that a query of the table gives."""
    import duckdb

    with duckdb.connect() as connection:
        # The file is looked at and nothing else: a query must not write or fetch.
        connection.execute("CREATE TABLE runs AS SELECT * FROM read_parquet(?)", [str(path)])
        connection.execute("SET enable_external_access = false")
        try:
            found = connection.execute(query)
        except duckdb.Error as error:
            # After an empty line DuckDB repeats the query; before it are names that were meant.
            said = " ".join(str(error).split("\n\n")[0].split())
            raise Refused(f"--query: {said}") from error
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _plain(value: Any) -> Any:
    """What SQL has found, in what JSON knows: dates and decimals as text, NaN as null."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)


def _summary(batch: batches.Batch) -> str:
    """The query behind the table that is shown: means over users and seeds."""
    varied = list(batch.sessions[0].varied)
    groups = ", ".join(f'"{name}"' for name in ("scenario", "protocol", *varied))
    return f"""
        SELECT {groups}, count(DISTINCT directory) AS runs,
            round(avg(goodput_bps) / 1e6, 3) AS goodput_mbps,
            round(avg(mean_packet_delay_s) * 1e3, 1) AS delay_ms,
            round(avg(longest_interruption_s), 2) AS interruption_s,
            round(avg(jain), 4) AS jain
        FROM runs GROUP BY {groups} ORDER BY {groups}"""


def _lines(rows: list[dict[str, Any]]) -> str:
    """Rows as a table of text."""
    if not rows:
        return "no rows"
    shown = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in shown
    )
