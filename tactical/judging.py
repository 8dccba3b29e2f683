"""Runs judged: each analysed, all compared in one table and one report."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tactical import faults
from tactical.faults import Refused
from tactical.outcome import FAILED, OVERLOADED
from tactical.streams import print_json

if TYPE_CHECKING:
    from analysis import DrawnRun, RunResult


def judge(
    run_dirs: Sequence[Path],
    *,
    as_json: bool,
    output: Path | None = None,
    story: bool = False,
    fail_on_overload: bool = False,
) -> int:
    """Analyse runs, print the comparison, and write the report; the exit status.

    With `story` the handovers of each run follow the comparison, from cause to effect.

    Each run is analysed and its files are written before the next one's turn: what goes wrong
    with one, and a signal, leave the others as they are. With `fail_on_overload` a run whose
    machine could not keep up makes the status `OVERLOADED`, unless one failed.
    """
    import analysis

    if not run_dirs:
        return FAILED
    results: dict[Path, DrawnRun] = {}
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
        drawn = list(results.values())
        found = [each.result for each in drawn]
        report = output or next(iter(results)) / "report.html"
        fresh: Path | None = None
        try:
            if output is None and len(found) > 1:
                directory = run_dirs[0].absolute().parent
                report = fresh = _new_file(directory, _comparison_name(found))
            if output is not None or len(found) > 1:
                analysis.report(drawn, report)
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
            document |= results[run_dir].result.to_json()
        else:
            again = f"; `tactical report {shlex.quote(str(run_dir))}` does it"
            reason = problems.get(run_dir, f"stopped before its end{again}")
            document |= {"state": "failed", "reason": f"not analysed: {reason}"}
        documents.append(document)
    if as_json:
        print_json(documents)
    elif results:
        found = [each.result for each in results.values()]
        print(analysis.table(found))
        if story:
            print(f"\n{analysis.stories_text(found)}\n")
        if report is not None:
            print(f"Report: {report}")
    failed = [entry for entry in documents if entry.get("state") != "done"]
    for entry in failed:
        reason = " ".join(str(entry.get("reason") or "no reason was recorded").split())
        told = _logs(Path(entry["directory"]))
        print(f"tactical: {entry['directory']} failed: {reason}{told}", file=sys.stderr)
    if stopped is not None:
        raise stopped
    if failed or incomplete:
        return FAILED
    if fail_on_overload and any(entry.get("overloaded") for entry in documents):
        print("tactical: a run was on a machine that could not keep up", file=sys.stderr)
        return OVERLOADED
    return 0


def _logs(run_dir: Path) -> str:
    """Where more is said about a run that failed."""
    log = run_dir / "logs" / "worker.log"
    return f" (more in {log} and the logs beside it)" if log.exists() else ""


def analysed(run_dir: Path) -> bool:
    """Analyse one run and write its files; whether it was done. Says what is wrong if not."""
    try:
        result = _analyse(run_dir).result
    except Exception as error:  # noqa: BLE001 - whatever it is, other runs have theirs
        print(f"tactical: {run_dir} failed: not analysed: {_why(error)}", file=sys.stderr)
        return False
    if result.state != "done":
        print(f"tactical: {run_dir} failed: {result.reason}", file=sys.stderr)
    return result.state == "done"


def _analyse(run_dir: Path) -> DrawnRun:
    """Analyse one run and write its files."""
    import analysis
    from tactical.host.hermetic import IMAGE_NAME

    if (image := run_dir / IMAGE_NAME).exists():
        raise analysis.RunDirectoryError(
            f"what its virtual machine recorded is still in {image}: when that has ended and there "
            f"is room, `tactical report {shlex.quote(str(run_dir))}` brings it back"
        )
    try:
        analysis.collect(run_dir)
    except Exception as error:  # noqa: BLE001
        # The columns are a convenience; the analysis reads what they are made from.
        print(f"tactical: {run_dir}: no samples.parquet: {_why(error)}", file=sys.stderr)
    drawn = analysis.DrawnRun(analysis.write(run_dir))
    analysis.report([drawn], run_dir / "report.html")
    return drawn


def _why(error: Exception) -> str:
    from analysis import RunDirectoryError

    if isinstance(error, RunDirectoryError):
        return str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return os.strerror(error.errno)
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
