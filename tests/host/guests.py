"""What tests of virtual machines share."""

import time
from pathlib import Path

import pytest

from tactical.host import doctor

PROBLEMS = doctor.virtual_problems()
needs_virtual_machine = pytest.mark.skipif(
    bool(PROBLEMS), reason=f"no virtual machine here: {', '.join(PROBLEMS)}"
)


def kernel() -> str:
    """Release of the kernel that guests boot."""
    newest = doctor.newest_suitable_kernel()
    assert newest is not None
    return newest.release


def wait_for(text: str, log: Path, limit_s: float = 120.0) -> None:
    """Return when a log contains a text."""
    limit = time.monotonic() + limit_s
    while not (log.exists() and text in log.read_text(errors="replace")):
        assert time.monotonic() < limit, log.read_text() if log.exists() else "no log"
        time.sleep(0.1)
