"""Capture files given on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tactical.faults import Refused
from tactical.recognition import CAPTURE, COMPRESSED, mismatch

if TYPE_CHECKING:
    from captures import Capture


def read_capture(path: Path, tell: Callable[[str, float], None]) -> Capture:
    """Read a capture, with the progress told; one that is damaged up to the damage.

    Raises
    ------
    Refused
        There is no capture file at `path`.
    """
    from captures import read

    try:
        if path.is_dir():
            if (path / "run.toml").is_file():
                raise Refused(
                    f"{path} is a run directory: `tactical report` analyses it; "
                    f"its captures alone are {path / 'captures' / '*'}"
                )
            raise Refused(f"{path} is a directory: give the capture files in it")
        size = max(path.stat().st_size, 1)
        what = f"reading {path.name}"
        tell(what, 0.0)
        capture = read(path, progress=lambda done: tell(what, min(done / size, 1.0)))
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}") from error
    if capture.damage is not None and not capture.frames and not capture.interfaces:
        otherwise = mismatch(path, CAPTURE, COMPRESSED)
        raise Refused(f"{path} is no capture file: {capture.damage}{otherwise}")
    return capture
