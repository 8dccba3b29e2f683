"""The worker: ``python -m tactical.emulation RUN_DIR…`` on a machine with root and the modules.

It runs in the same way on the host itself and inside the virtual machine. With ``--virtual-time``
first, the machine's clock counts instructions; see `tactical.host.hermetic`.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

VIRTUAL_TIME = "--virtual-time"


def interrupt(number: int, frame: FrameType | None) -> None:
    """Unwind, as a signal handler."""
    # The first signal unwinds; a second one must not cut the clearing away short.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Run the given run directories; 0 if all are done, 1 if one failed, 130 if interrupted."""
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    from .session import run_all

    virtual_time = arguments[:1] == [VIRTUAL_TIME]

    try:
        run_dirs = [Path(argument) for argument in arguments[virtual_time:]]
        return run_all(run_dirs, virtual_time=virtual_time)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
