"""The worker: ``python -m tactical.calibration [--virtual-time] [--quick] DIRECTORY``.

It runs where experiments run: as root on this machine, or inside the virtual machine.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from ..emulation.__main__ import VIRTUAL_TIME, interrupt

QUICK = "--quick"


def main(arguments: list[str]) -> int:
    """Measure; 0 if there is a result, 1 if the network could not be built, 130 if interrupted."""
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    from ..emulation.processes import EmulationError
    from ..host.process import CommandError
    from .measuring import calibrate

    parser = argparse.ArgumentParser()
    parser.add_argument(VIRTUAL_TIME, action="store_true")
    parser.add_argument(QUICK, action="store_true")
    parser.add_argument("directory", type=Path)
    given = parser.parse_args(arguments)
    try:
        return calibrate(given.directory, quick=given.quick, virtual_time=given.virtual_time)
    except (CommandError, EmulationError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
