"""The worker: ``python -m tactical.emulation RUN_DIR…`` on a machine with root and the modules.

It runs in the same way on the host itself and inside the virtual machine.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType


def _interrupt(number: int, frame: FrameType | None) -> None:
    # The first signal unwinds; a second one must not cut the clearing away short.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Run the given run directories; 0 if all are done, 1 if one failed, 130 if interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    from .session import run_all

    try:
        return run_all([Path(argument) for argument in arguments])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
