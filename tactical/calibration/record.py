"""The latest calibration of each machine, kept in the cache directory."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from ..cache import cache_directory
from ..host.machine import Machine


def record_path(machine: Machine) -> Path:
    """Where the calibration of a machine is kept; its description names kernel and clock.

    Raises
    ------
    RuntimeError
        The user has no home directory.
    """
    name = re.sub(r"[^a-z0-9._-]+", "-", machine.description.lower())
    return cache_directory() / "calibration" / f"{name}.json"


def save(machine: Machine, document: dict[str, Any]) -> Path:
    """Keep a calibration; returns where.

    Raises
    ------
    OSError, RuntimeError
        It cannot be written, or there is no home directory.
    """
    path = record_path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
    Path(file.name).replace(path)
    return path


def latest(machine: Machine) -> dict[str, Any] | None:
    """The latest calibration of a machine; None if there is none that can be read."""
    try:
        found = json.loads(record_path(machine).read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return None
    return found if isinstance(found, dict) else None
