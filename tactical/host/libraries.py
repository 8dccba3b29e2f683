"""Python libraries that a worker may use and that need not be there."""

from __future__ import annotations

import os
import sys

from tactical.host.environment import worker_environment
from tactical.host.process import CommandError, run, search_path

_IMPORT_TIMEOUT_S = 120.0


def mininet_wifi_problem() -> str | None:
    """Why a worker could not use Mininet-WiFi, and what helps; None if it can.

    It is imported by a Python of its own, as a worker would: it needs libraries that it does not
    declare, and loads slowly.
    """
    environment = {**os.environ, **worker_environment(search_path())}
    argv = (sys.executable, "-P", "-c", "import mn_wifi.net")
    try:
        run(argv, timeout_s=_IMPORT_TIMEOUT_S, environment=environment)
    except CommandError as error:
        said = (error.stderr.strip() or str(error)).splitlines()[-1]
        return (
            f"{sys.executable} cannot import Mininet-WiFi ({said}); install it for this Python "
            "from its sources, as docs/emulation.md says"
        )
    return None
