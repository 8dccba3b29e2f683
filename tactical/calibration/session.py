"""A calibration as seen from the host: start the worker, follow it, bring its measurements home."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..emulation.__main__ import VIRTUAL_TIME
from ..host.machine import Machine
from ..host.process import PROGRESS_MARK
from .__main__ import QUICK
from .names import MEASUREMENTS
from .verdicts import MEASURES, judge

FOLLOW_PERIOD_S = 0.25
STOP_GRACE_S = 60.0


class CalibrationError(Exception):
    """The network could not be built or measured; the text says why."""


def measure(machine: Machine, *, quick: bool, show: Callable[[str, float], None]) -> dict[str, Any]:
    """Calibrate on a machine.

    Parameters
    ----------
    machine
        Where the network is built.
    quick
        Measure for 20 s instead of a minute.
    show
        Called with what is being done, and which part of all is done.

    Returns
    -------
    dict
        ``machine``, ``backend``, ``time``, ``kernel``, ``created``, ``quick``, ``rows``,
        ``passed`` and the ``measurements`` that the rows were judged from.

    Raises
    ------
    CalibrationError
        If the worker has no result.
    HostError
        If the machine cannot be started.
    """
    directory = Path(tempfile.mkdtemp(prefix="tactical-calibration-"))
    logs = directory / "logs"
    logs.mkdir()
    log, told = logs / "worker.log", logs / "told.log"
    told.touch()
    show("starting the machine", 0.0)
    keep = False
    try:
        child = machine.start(
            worker(directory, quick=quick, virtual_time=machine.virtual_time),
            [directory],
            log,
            told=[told],
        )
        try:
            while child.wait(FOLLOW_PERIOD_S) is None:
                show(*_stage(told if machine.virtual_time else log))
        finally:
            child.stop(STOP_GRACE_S)
        try:
            found = json.loads((directory / MEASUREMENTS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            keep = True
            raise CalibrationError(
                f"{child.ending('the worker')}; nothing was measured, its logs are in {logs}"
            ) from None
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
    rows = judge(found["measurements"])
    return {
        "machine": machine.description,
        "backend": machine.name,
        "time": "virtual" if machine.virtual_time else "real",
        "kernel": found["kernel"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "measured_for_s": found["measured_for_s"],
        "passed": all(row.verdict != "missed" for row in rows),
        "rows": [row.to_json() for row in rows],
        "measurements": found["measurements"],
    }


def worker(directory: Path, *, quick: bool, virtual_time: bool) -> list[str]:
    """The command that measures on a machine, and writes into `directory`."""
    how = [VIRTUAL_TIME] * virtual_time + [QUICK] * quick
    # The OVSDB client imports eventlet where that is installed, and eventlet warns of itself.
    python = [sys.executable, "-W", "ignore::DeprecationWarning"]
    return [*python, "-m", "tactical.calibration", *how, str(directory)]


def _stage(log: Path) -> tuple[str, float]:
    """What the worker has told last, and which part of all is done before it."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    told = [
        line.removeprefix(PROGRESS_MARK).strip() for line in lines if line.startswith(PROGRESS_MARK)
    ]
    if not told:
        return "starting the machine", 0.0
    if told[-1] in MEASURES:
        return f"measuring {told[-1]}", (1 + MEASURES.index(told[-1])) / (1 + len(MEASURES))
    return told[-1], 0.0
