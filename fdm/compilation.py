"""Whether the compiled loops can be had without compiling.

Numba keeps machine code for each version of itself, of Python, of the source and for each
processor. Finding out by asking it means to import it, and on a slow machine with another
processor to compile; so `fdm.prepare` leaves a line for each such combination beside the code.
"""

import importlib.util
import os
import platform
from functools import cache
from pathlib import Path

_SOURCES = tuple(
    Path(__file__).with_name(name) for name in ("kernels.py", "simplex.py", "entropy.py")
)
_STAMPS, _MARKER = "fdm-kernels.prepared", "fdm-kernels.source"


@cache
def available() -> bool:
    """Return whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def prepared() -> bool:
    """Return whether the compiled loops can be loaded as they are."""
    folder = cache_folder()
    if folder is None:
        return False
    try:
        return _stamp() in (folder / _STAMPS).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return False


def remember() -> None:
    """Note that everything is compiled, for `prepared`."""
    folder = cache_folder()
    if folder is not None and not prepared():
        with (folder / _STAMPS).open("a", encoding="ascii") as file:
            file.write(f"{_stamp()}\n")


def keep() -> bool:
    """Return whether compiled code can be kept; throws away what other sources were compiled to.

    Numba does that for the file that a loop is in, and not for those that it calls.
    """
    folder = cache_folder()
    if folder is None:
        return False
    marker, now = folder / _MARKER, _digest()
    try:
        if marker.exists() and marker.read_text(encoding="ascii") == now:
            return True
        for source in _SOURCES:
            # Machine code too (nbc): Numba writes a new index before the code that it names, and
            # another process would find the old code under that name in between.
            for file in folder.rglob(f"{source.stem}.*.nb[ic]"):
                file.unlink(missing_ok=True)
        marker.write_text(now, encoding="ascii")
    except (OSError, ValueError):
        return False
    return True


def cache_folder() -> Path | None:
    """Return where Numba keeps compiled code, or None if it can write nowhere.

    These are the first three places that it tries, in its order.
    """
    import tempfile

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


@cache
def _stamp() -> str:
    import hashlib
    import importlib.metadata

    versions = (importlib.metadata.version("numba"), platform.python_version(), _processor())
    return hashlib.sha256("\n".join((_digest(), *versions)).encode()).hexdigest()


@cache
def _digest() -> str:
    import hashlib

    return hashlib.sha256(b"".join([source.read_bytes() for source in _SOURCES])).hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    first = dict.fromkeys(("model name", "flags", "Features", "CPU part"), "")
    for line in lines:
        name, _, value = line.partition(":")
        if first.get(name.strip()) == "":
            first[name.strip()] = value.strip()
    return "\n".join(first.values())
