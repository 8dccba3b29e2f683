"""The event loop, compiled by Numba once for each machine, or as the Python that it is.

All functions of the loop are plain functions, so a small simulation runs without Numba, and the
uncompiled code can check the compiled.

Numba keeps what it compiled beside the source of the loop, or in NUMBA_CACHE_DIR, and compiles
anew when that one file changes; `_keep` makes it do so when any file of the loop changes.
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from simulation import congestion, draws, engine, heaps, queueing, scheduling, state, transport

_MODULES = (draws, heaps, queueing, congestion, transport, scheduling, engine)
_SOURCES = [Path(module.__file__ or "") for module in (*_MODULES, state, sys.modules[__name__])]
_MARKER = "simulation-engine.source"


def available() -> bool:
    """Return whether there is something to compile with, and the user did not switch it off."""
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not disabled and importlib.util.find_spec("numba") is not None


@cache
def advance() -> Callable[..., bool]:
    """Return the compiled `simulation.engine.advance`."""
    import numba
    from numba.extending import register_jitable

    for module in _MODULES:
        for each in vars(module).values():
            if isinstance(each, FunctionType) and each.__module__ == module.__name__:
                register_jitable(no_cfunc_wrapper=True, no_cpython_wrapper=True)(each)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    loop: Any = numba.njit(**options)(engine.advance)
    if _keep():
        with suppress(RuntimeError):  # no folder to keep it in that can be written to
            loop.enable_caching()
    compiled: Callable[..., bool] = loop
    return compiled


def prepare() -> None:
    """Compile ahead of time, which takes some ten seconds once for each machine."""
    from simulation.network import Connection, Link, Path
    from simulation.simulator import Simulation

    if available():
        Simulation([Link()], [Connection([Path([0])], packets=1)], compiled=True).run(1.0)


def _keep() -> bool:
    """Return whether what is kept can be used, after throwing away what is outdated."""
    folder = _folder()
    if folder is None:
        return False
    now = hashlib.sha256(b"".join([source.read_bytes() for source in _SOURCES])).hexdigest()
    marker = folder / _MARKER
    try:
        if not marker.exists() or marker.read_text(encoding="ascii") != now:
            # Machine code too (nbc): Numba writes a new index before the code that it names, and
            # another process would find the old code under that name in between.
            for file in folder.rglob("engine.advance-*.nb[ic]"):
                file.unlink(missing_ok=True)
            marker.write_text(now, encoding="ascii")
    except (OSError, ValueError):
        return False
    return True


def _folder() -> Path | None:
    """Return where Numba keeps compiled code, or None if it can write nowhere."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(own)] if own else []
    places += [_SOURCES[0].parent / "__pycache__", Path(home).expanduser() / "numba"]
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
        except OSError:
            continue
        return place
    return None
