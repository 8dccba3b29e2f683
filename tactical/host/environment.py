"""Environment variables and files that make a Python worker start quickly and alike everywhere."""

from __future__ import annotations

import compileall
import os
import sys
from pathlib import Path

import tactical

PACKAGES = ("tactical", "scenarios", "fdm", "mobility", "captures", "routing")
"""What a worker imports of ours."""


def package_root() -> Path:
    """The directory that holds the packages: a checkout, or site-packages."""
    return Path(tactical.__file__).resolve().parent.parent


def worker_environment(path: str) -> dict[str, str]:
    """Variables of a worker whose machine has the search path `path`.

    One thread for OpenBLAS: its pool costs more to start than the small systems here to solve.
    """
    interpreter = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([interpreter, path]),
        "PYTHONPATH": str(package_root()),
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
    }


def compile_packages() -> None:
    """Write the byte code of our packages, which a read-only guest cannot do for itself."""
    for name in PACKAGES:
        compileall.compile_dir(package_root() / name, quiet=2)
