"""Recorders: one dumpcap for each capture point, bounded so that captures never fill the disk."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from captures.recording import parse_counters, recorder_arguments

from ..host.process import search_path
from .commands import Command
from .events import EventLog
from .plan import CapturePoint, Plan
from .processes import EmulationError, Process

if TYPE_CHECKING:
    from .network import Network

READY_TIMEOUT_S = 60.0
STARTED_TOGETHER = 16
"""Recorders that start side by side: of a fleet's hundreds on one processor none would be ready in
time, and one after the other each would be waited for."""
RING_FILES = 8
"""Files a recorder writes in turn; with the last one full, the oldest is overwritten."""
SHARE_OF_FREE_SPACE = 0.8

_RECORDER = "dumpcap"
# Older releases of dumpcap take no more.
_LARGEST_FILE_KIBIBYTES = 2_000_000
_SEGMENT_BYTES = 1400
# An enhanced packet block of pcapng around each packet (draft-ietf-opsawg-pcapng, section 4.3).
_BLOCK_BYTES = 32
_SAFETY = 1.5
_SIGNALLING_BYTES = 64 * 1024
"""What is seen at any point beside data: iperf3's control connections, probes, associations."""


def expected_bytes(plan: Plan) -> int:
    """Size that all captures of a run may reach together."""
    return sum(_expected_at(plan, point) for point in plan.capture_points)


def _expected_at(plan: Plan, point: CapturePoint) -> int:
    """Size that the capture of one point may reach, half as much again to be safe.

    Each interface of a station may carry all that the station sends and receives; the host, and
    an access point whom everybody joins, what all of them do. Every data packet has an
    acknowledgment.
    """
    everybody = point.side != "station"
    packets = sum(
        t.rate_bps * t.connections * t.duration_s / (8 * _SEGMENT_BYTES)
        for t in plan.transfers
        if everybody or t.user == point.node
    )
    for application in (each.application for each in plan.applications):
        if everybody or application.user == point.node:
            offered_bps = sum(map(application.offered_bps, ("up", "down")))
            packet_bytes = min(application.packet_bytes() or _SEGMENT_BYTES, _SEGMENT_BYTES)
            packets += offered_bps * application.duration_s / (8 * packet_bytes)
    kept = plan.snap_length_bytes + _BLOCK_BYTES
    return int(_SAFETY * packets * 2 * kept) + _SIGNALLING_BYTES


def room_bytes(plan: Plan) -> int:
    """Room that a file system needs so that its recorders have what they may need."""
    return int(expected_bytes(plan) / SHARE_OF_FREE_SPACE)


def problem_at_start(plans: Sequence[Plan], directory: Path) -> str | None:
    """Why runs of these plans could not be recorded below `directory`; None if they can.

    Parameters
    ----------
    plans
        The runs to make, one after the other.
    directory
        An existing directory on the file system that takes the captures.
    """
    if shutil.which(_RECORDER, path=search_path()) is None:
        return f"{_RECORDER} is not installed: nothing could be recorded"
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return f"{directory}: {error.strerror}; nothing could be recorded there"
    expected = sum(map(expected_bytes, plans))
    if expected > SHARE_OF_FREE_SPACE * free:
        return (
            f"{directory}: the captures may take {_megabytes(expected)}, but only "
            f"{_megabytes(free)} are free there"
        )
    return None


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e6:.2f} MB"


def ring_kibibytes(plan: Plan, room_bytes: int) -> dict[CapturePoint, int]:
    """Size of a file of each recorder's ring, so that all rings together fill the room.

    They share it in proportion to what may be seen there: the host sees everybody's packets.
    """
    expected = {point: _expected_at(plan, point) for point in plan.capture_points}
    each = room_bytes / sum(expected.values()) / RING_FILES / 1024
    return {
        point: max(1, min(int(each * size), _LARGEST_FILE_KIBIBYTES))
        for point, size in expected.items()
    }


def recorder_command(
    plan: Plan, point: CapturePoint, run_dir: Path, file_kibibytes: int | None = None
) -> Command:
    """The recorder of one capture point."""
    argv = recorder_arguments(
        point.interface,
        run_dir / point.file,
        snap_length_bytes=plan.snap_length_bytes,
        recorder=_RECORDER,
        ring_files=RING_FILES if file_kibibytes else None,
        ring_kibibytes=file_kibibytes,
    )
    return Command(tuple(argv), point.namespace)


@contextmanager
def recorders(network: Network, run_dir: Path, events: EventLog) -> Iterator[list[Process]]:
    """All capture points are recorded inside the block; what each recorder counted is logged.

    Yields the recorders' processes.

    Raises
    ------
    EmulationError
        If there is no room for the captures, or they cannot be written.
    CommandError
        If a recorder cannot start.
    """
    plan, captures = network.plan, run_dir / "captures"
    if (problem := problem_at_start([plan], captures)) is not None:
        raise EmulationError(problem)
    free = shutil.disk_usage(captures).free
    rings = ring_kibibytes(plan, int(SHARE_OF_FREE_SPACE * free))
    with ExitStack() as stack:
        # dumpcap gives up the right to write where it may not; the run may belong to a user.
        mode = captures.stat().st_mode
        try:
            captures.chmod(0o777)
        except OSError as error:
            raise EmulationError(
                f"{captures}: {error.strerror}; the recorders could not write there"
            ) from None
        stack.callback(captures.chmod, mode)
        started: list[Process] = []
        # A recorder goes on when its interface goes down, and does not start where it is.
        resting = [p for p in plan.capture_points if not _is_up(network, p)]
        _set(network, resting, "up")
        points = plan.capture_points
        for first in range(0, len(points), STARTED_TOGETHER):
            group = points[first : first + STARTED_TOGETHER]
            for point in group:
                log = run_dir / "logs" / f"recorder-{point.interface}.log"
                command = recorder_command(plan, point, run_dir, rings[point])
                process = network.start(command, log)
                stack.callback(_stop, point, process, run_dir, events)
                started.append(process)
            for point, process in zip(group, started[first:], strict=True):
                process.wait_for_text("File:", READY_TIMEOUT_S)
                events.write(
                    "capture_start",
                    point.node,
                    interface=point.interface,
                    file=point.file,
                    side=point.side,
                    position=point.position,
                    snap_length_bytes=plan.snap_length_bytes,
                    limit_bytes=1024 * rings[point] * RING_FILES,
                )
        _set(network, resting, "down")
        yield started


def _is_up(network: Network, point: CapturePoint) -> bool:
    """Whether an interface is in use (IFF_UP), which that of a station's other access is not."""
    flags = Command(("cat", f"/sys/class/net/{point.interface}/flags"), point.namespace)
    return bool(int(network.run(flags), 16) & 1)


def _set(network: Network, points: Sequence[CapturePoint], state: str) -> None:
    for point in points:
        network.run(Command(("ip", "link", "set", point.interface, state), point.namespace))


def _stop(point: CapturePoint, process: Process, run_dir: Path, events: EventLog) -> None:
    process.stop(signal.SIGINT)
    said = process.said()
    counters = parse_counters(said)
    files, written = _ring_files(run_dir / point.file), said.count("File: ")
    _join(files, run_dir / point.file)
    events.write(
        "capture_stop",
        point.node,
        interface=point.interface,
        position=point.position,
        received=counters.received,
        dropped=counters.dropped,
        overwritten_files=max(0, written - len(files)),
    )


def _ring_files(file: Path) -> list[Path]:
    """What dumpcap wrote in place of `file`, in order: NAME_00001_20260101120000.SUFFIX."""
    return sorted(file.parent.glob(f"{file.stem}_[0-9]*{file.suffix}"))


def _join(files: Sequence[Path], target: Path) -> None:
    """Make one capture of several; sections of pcapng may follow each other (section 4.1)."""
    if not files:
        return
    first, *others = files
    if others:
        with first.open("ab") as joined:
            for other in others:
                with other.open("rb") as part:
                    shutil.copyfileobj(part, joined)
                other.unlink()
    first.chmod(0o644)
    first.rename(target)
