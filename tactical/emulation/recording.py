"""Recorders: one dumpcap for each interface of stations and host."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from captures.recording import parse_counters, recorder_arguments

from .commands import Command
from .events import EventLog
from .network import Network
from .plan import HostInterface, Plan
from .processes import Process

READY_TIMEOUT_S = 60.0


def recorder_command(plan: Plan, interface: HostInterface, run_dir: Path) -> Command:
    """The recorder of one interface."""
    argv = recorder_arguments(
        interface.name,
        run_dir / interface.capture,
        snap_length_bytes=plan.snap_length_bytes,
    )
    return Command(tuple(argv), interface.node)


@contextmanager
def recorders(network: Network, run_dir: Path, events: EventLog) -> Iterator[list[Process]]:
    """All interfaces are recorded inside the block; what each recorder counted is logged.

    Yields the recorders' processes.

    Raises
    ------
    CommandError
        If a recorder cannot start.
    """
    with ExitStack() as stack:
        started: list[tuple[HostInterface, Process]] = []
        for interface in network.plan.host_interfaces:
            log = run_dir / "logs" / f"recorder-{interface.name}.log"
            # dumpcap gives up the right to write where it may not; the run may belong to a user.
            capture = run_dir / interface.capture
            capture.touch()
            capture.chmod(0o666)
            process = network.start(recorder_command(network.plan, interface, run_dir), log)
            stack.callback(_stop, interface, process, capture, events)
            started.append((interface, process))
        for interface, process in started:
            process.wait_for_text("File:", READY_TIMEOUT_S)
            events.write(
                "capture_start",
                interface.node,
                interface=interface.name,
                file=interface.capture,
                snap_length_bytes=network.plan.snap_length_bytes,
            )
        yield [process for _, process in started]


def _stop(interface: HostInterface, process: Process, capture: Path, events: EventLog) -> None:
    process.stop(signal.SIGINT)
    capture.chmod(0o644)
    counters = parse_counters(process.said())
    events.write(
        "capture_stop",
        interface.node,
        interface=interface.name,
        received=counters.received,
        dropped=counters.dropped,
    )
