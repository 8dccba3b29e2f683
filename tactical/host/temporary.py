"""Temporary directories that a later start clears away if nobody was left to do it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "tactical-vm-"
_YOUNG_S = 60.0
"""A directory this young may not be locked yet."""


class TemporaryDirectory:
    """A directory, locked for as long as this process lives or until `remove`.

    Attributes
    ----------
    path : Path
    """

    def __init__(self) -> None:
        remove_stale()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_stale() -> None:
    """Remove what processes left here that were killed: their locks are gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if time.time() - path.stat().st_mtime < _YOUNG_S:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # gone meanwhile, or somebody else's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(lock)
