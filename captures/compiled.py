"""The loops of this package, compiled by Numba when that is worth the wait.

The loops are plain functions; `fast` returns one of them as it is or compiled. Little work is done
uncompiled, unless the compiled loops are in memory already: loading them takes some tenths of a
second, and compiling them, once for each machine, some seconds (`captures.prepare` does it ahead
of time).

Numba keeps what it compiled beside the source and compiles anew when that file changes. It looks
at no other file, so a loop and the functions it calls stand in one file.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

LOAD_BYTES = 256 << 10
"""Work above which it pays to load the compiled loops, in bytes of capture files without payload
(some 80 a packet)."""

COMPILE_BYTES = 8 << 20
"""The same, if they have to be compiled first."""

_LOOPS: dict[Callable[..., Any], Callable[..., Any]] = {}
_state = {"loaded": False}


def fast(function: _F, work_bytes: int) -> _F:
    """Return a function, compiled if it is worth it.

    Parameters
    ----------
    function : callable
        Of a module of this package; it and all functions it calls there can be compiled.
    work_bytes : int
        How much there is to do, see `LOAD_BYTES`.
    """
    if not _state["loaded"]:
        limit = LOAD_BYTES if _kept(function) else COMPILE_BYTES
        if work_bytes < limit or not available():
            return function
        _state["loaded"] = True
    if function not in _LOOPS:
        _LOOPS[function] = _compile(function)
    return cast(_F, _LOOPS[function])


def available() -> bool:
    """Whether there is something to compile with, and the user did not switch it off."""
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not disabled and importlib.util.find_spec("numba") is not None


def load() -> None:
    """Use the compiled loops from now on, however little there is to do."""
    _state["loaded"] = available()


@cache
def _kept(function: Callable[..., Any]) -> bool:
    """Whether the compiled function is kept on disk (or loaded: the package is warm anyway)."""
    source = Path(sys.modules[function.__module__].__file__ or "")
    folder = os.environ.get("NUMBA_CACHE_DIR")
    kept = Path(folder).rglob if folder else (source.parent / "__pycache__").glob
    try:
        written = source.stat().st_mtime
        return any(
            index.stat().st_mtime >= written
            for index in kept(f"{source.stem}.{function.__qualname__}-*.nbi")
        )
    except OSError:
        return False


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba
    from numba.extending import register_jitable

    module = sys.modules[function.__module__]
    for each in vars(module).values():
        if (
            isinstance(each, FunctionType)
            and each.__module__ == module.__name__
            and each is not function
            and each not in _REGISTERED
        ):
            _REGISTERED.add(each)
            # Nothing but another loop calls it, which saves a quarter of the compilation.
            register_jitable(no_cfunc_wrapper=True, no_cpython_wrapper=True)(each)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    loop = cast(Any, numba.njit(**options)(function))
    with suppress(RuntimeError):  # no folder to keep it in that can be written to
        loop.enable_caching()
    return cast(Callable[..., Any], loop)


_REGISTERED: set[Callable[..., Any]] = set()
