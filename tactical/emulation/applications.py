"""The programs of applications (`tactical.applications`), one at every node that has any.

They are started and have opened their sockets before the traffic begins, so that nothing of that
takes time of the run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios import Requests

from ..applications.description import Description
from .commands import Command
from .plan import Plan, PlannedApplication
from .processes import Process

if TYPE_CHECKING:
    from .network import Network

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


def description(plan: Plan, planned: PlannedApplication) -> Description:
    """What both ends of an application are told. Pure."""
    application = planned.application
    schedule = application.schedule()
    transport = application.transport_protocol
    return Description(
        name=planned.name,
        kind=application.kind,
        transport="mptcp" if transport == "tcp" and plan.multipath else transport,
        upwards=application.direction == "up",
        host=plan.host.address,
        station=plan.stations[application.user][0].address,
        port=planned.port,
        congestion_control=application.congestion_control,
        start_s=application.start_s,
        end_s=application.start_s + application.duration_s,
        at_s=list(schedule.at_s),
        size_bytes=list(schedule.size_bytes),
        request_bytes=application.request_bytes if isinstance(application, Requests) else 0,
    )


def program_command(plan: Plan, node: str, run_dir: Path) -> Command:
    """The program that runs all applications of a node."""
    side = "host" if node == plan.host.node else "station"
    argv = (sys.executable, "-m", "tactical.applications", side, str(run_dir / "traffic"))
    return Command(argv, node)


class Programs:
    """Running programs: told when run time begins, and when it is over."""

    def __init__(self, processes: dict[str, Process]) -> None:
        self._processes = processes

    @property
    def processes(self) -> tuple[Process, ...]:
        """All of them; none ends before it is told."""
        return tuple(self._processes.values())

    def begin(self, zero_s: float) -> None:
        """Let all begin; `zero_s` is the monotonic clock at run time 0."""
        for process in self._processes.values():
            _say(process, f"{zero_s!r}\n")

    def end(self) -> None:
        """Let all write down what they saw, and end.

        Raises
        ------
        CommandError
            If one does not end well.
        """
        for process in self._processes.values():
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes.values():
            if (status := process.wait(STOP_TIMEOUT_S)) != 0:
                raise process.failure(f"ended with status {status}" if status else "did not end")


@contextmanager
def programs(network: Network, run_dir: Path) -> Iterator[Programs]:
    """The programs of all applications of a run, with their sockets open.

    Raises
    ------
    CommandError
        If one cannot open its sockets.
    """
    plan = network.plan
    with ExitStack() as stack:
        started: dict[str, Process] = {}
        for node, applications in plan.applications_at.items():
            process = Process(
                network.argv(program_command(plan, node, run_dir)),
                run_dir / "logs" / f"applications-{node}.log",
                piped=True,
            )
            stack.callback(process.stop)
            told = [description(plan, planned).to_json() for planned in applications]
            _say(process, json.dumps(told) + "\n")
            started[node] = process
        for process in started.values():
            process.wait_for_text("ready\n", READY_TIMEOUT_S)
        yield Programs(started)


def _say(process: Process, line: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has died, which is noticed elsewhere
        process.stdin.write(line)
        process.stdin.flush()
