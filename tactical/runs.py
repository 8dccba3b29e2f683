"""Runs made from the command line: where they go, and what is shown meanwhile."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tactical.faults import Refused
from tactical.host.choice import TIMES
from tactical.progress import reporter
from tactical.signals import stopped_by_signals

if TYPE_CHECKING:
    from tactical.experiment import Progress, Request
    from tactical.host.process import Child


def add_time_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which clock a run goes by."""
    parser.add_argument(
        "--time",
        choices=TIMES,
        default="auto",
        help="real: this machine's clock; virtual: a virtual machine's clock that counts "
        "instructions, so that results hardly depend on how busy this machine is; auto: virtual "
        "where the processor has to be emulated (default)",
    )


def make(
    requests: Sequence[Request],
    duration_s: float,
    *,
    started: Callable[[Path, Child], None] = lambda _, __: None,
    afterwards: str = "is analysed",
) -> tuple[list[Path], KeyboardInterrupt | None]:
    """Make the runs; when interrupted, whatever directories there are and the interrupt.

    `started` is called as by `tactical.experiment.execute`; `afterwards` is what people who
    interrupt are told of the recording.
    """
    from tactical import experiment as lifecycle

    seen: dict[Path, None] = {}
    notice = (
        f"stopping… the network is taken down ({lifecycle.STOP_GRACE_S:g} s at most), "
        f"then what was recorded {afterwards}"
    )
    with (
        reporter([request.protocol for request in requests], duration_s) as show,
        stopped_by_signals(notice),
    ):

        def note(step: Progress) -> None:
            seen[step.run_dir] = None
            show(step)

        try:
            return lifecycle.execute(requests, progress=note, started=started), None
        except KeyboardInterrupt as interrupt:
            return list(seen), interrupt


def runs_directory(runs_dir: Path, scenario: str) -> Path:
    """The directory in which the runs get theirs, which need not exist."""
    try:
        return runs_dir.resolve() / scenario
    except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links in a circle
        raise Refused(f"--runs-dir {runs_dir} cannot be used: {error}") from error


def check_writable(runs_dir: Path, parent: Path) -> None:
    """Make the directory `parent` below `runs_dir` if need be, or refuse."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--runs-dir {runs_dir} cannot be made: {error.strerror}") from error
    try:
        Path(tempfile.mkdtemp(prefix=".writable-", dir=parent)).rmdir()
    except OSError as error:
        raise Refused(f"--runs-dir {runs_dir} cannot be written: {error.strerror}") from error
