"""Where this program keeps things between its calls."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Where this program keeps what it can do without.

    Raises
    ------
    RuntimeError
        The user has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tactical"
