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

_SOURCE = Path(__file__).with_name("kernels.py")
_STAMPS = "fdm-kernels.prepared"


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


def cache_folder() -> Path | None:
    """Return where Numba keeps compiled code, or None if it can write nowhere.

    These are the first three places that it tries, in its order.
    """
    import tempfile

    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(own)] if own else []
    places += [_SOURCE.parent / "__pycache__", Path(home).expanduser() / "numba"]
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

    what = hashlib.sha256(_SOURCE.read_bytes())
    versions = (importlib.metadata.version("numba"), platform.python_version(), _processor())
    what.update("\n".join(versions).encode())
    return what.hexdigest()


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
