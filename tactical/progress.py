"""Progress of runs for people who wait: bars on a terminal, plain lines elsewhere.

Everything here goes to standard error. When that goes away (a closed terminal, a pipe whose reader
has ended, a full disk) there is nobody left to tell, and the runs go on in silence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

from tactical.streams import Tolerant

if TYPE_CHECKING:
    from tactical.experiment import Progress

PLAIN_PERIOD_S = 10.0
_SILENT_S = 2.0


@contextmanager
def reporter(protocols: Sequence[str], duration_s: float) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of runs while the context lasts.

    Parameters
    ----------
    protocols : sequence of str
        One run for each, in the order they will be made.
    duration_s : float
        Run time of each, in seconds.

    Yields
    ------
    callable
        To be called with every `Progress`.
    """
    stream = Tolerant(sys.stderr)
    if not stream.rewritable():
        yield PlainLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<6}"),
        BarColumn(),
        TextColumn("{task.completed:5.1f} of {task.total:g} s"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Bars(*columns, console=Console(file=cast("TextIO", stream))) as bars:
        tasks = {
            protocol: bars.add_task(protocol, total=duration_s, start=False, state="waiting")
            for protocol in protocols
        }

        def show(step: Progress) -> None:
            task = tasks[step.protocol]
            if step.state != "defined":
                bars.start_task(task)
            bars.update(task, state=step.state)
            if step.time_s is not None:
                bars.update(task, completed=min(max(step.time_s, 0.0), duration_s))
            if step.state in ("done", "failed"):
                bars.stop_task(task)
            if step.message and step.message != step.state:
                bars.console.print(line(step), highlight=False, markup=False)

        yield show


@contextmanager
def stages() -> Iterator[Callable[[str, float], None]]:
    """Show how far a computation is, once it takes longer than two seconds.

    Yields
    ------
    callable
        To be called with what is being done, and which part of that is done (0 to 1).
    """
    stream = Tolerant(sys.stderr)
    begun_s = time.monotonic()
    if not stream.rewritable():
        told: list[str] = []

        def tell(what: str, share: float) -> None:
            if what not in told and time.monotonic() - begun_s > _SILENT_S:
                told.append(what)
                print(f"{what} …", file=stream, flush=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(file=cast("TextIO", stream)), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, share: float) -> None:
            if time.monotonic() - begun_s < _SILENT_S:
                return
            if what not in tasks:
                for task in tasks.values():
                    bars.update(task, completed=1.0)
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield show


class PlainLines:
    """One line for every message, and one for every ten seconds in which nothing happened."""

    def __init__(self) -> None:
        self._stream = Tolerant(sys.stderr)
        self._next_s: dict[str, float] = {}

    def __call__(self, step: Progress) -> None:
        due = self._next_s.get(step.protocol, 0.0)
        waited = step.time_s is not None and step.time_s >= due
        if step.message or waited:
            print(line(step), file=self._stream, flush=True)
        if waited and step.time_s is not None:
            self._next_s[step.protocol] = step.time_s + PLAIN_PERIOD_S


def line(step: Progress) -> str:
    """One step as a line of text."""
    moment = "" if step.time_s is None else f"{step.time_s:.1f} s"
    return f"{step.protocol:<6} {moment:>8}  {step.message or step.state}"
