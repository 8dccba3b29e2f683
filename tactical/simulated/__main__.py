"""The worker: ``python -m tactical.simulated RUN_DIR…`` simulates runs side by side."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from simulation.transfers import Loop

from ..emulation.__main__ import interrupt
from .log import SimulatedLog
from .session import simulate


def attempt(run_dir: Path) -> bool:
    """Simulate one run; whether it is done. What goes wrong is the reason of its last state."""
    try:
        simulate(run_dir)
    except Exception as error:  # noqa: BLE001 - the others may well work
        traceback.print_exc()
        with SimulatedLog(run_dir, Loop()) as log:
            reason = f"{type(error).__name__}: {error}"
            log.write("state", "run", state="failed", reason=reason)
        return False
    return True


def main(arguments: list[str]) -> int:
    """Simulate the given runs; 0 if all are done, 1 if one failed, 130 if interrupted."""
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    run_dirs = [Path(argument) for argument in arguments]
    try:
        if len(run_dirs) == 1:
            return 0 if attempt(run_dirs[0]) else 1
        with ProcessPoolExecutor(min(len(run_dirs), len(os.sched_getaffinity(0)))) as pool:
            return 0 if all(list(pool.map(attempt, run_dirs))) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
