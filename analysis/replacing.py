"""Files that are there whole or not at all."""

import contextlib
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file to write, which takes the place of `path` at the end of the context.

    Parameters
    ----------
    path : Path
        A regular file, a link to one, or nothing yet.

    Yields
    ------
    Path
        In the same directory; removed if the context ends with an exception.

    Raises
    ------
    OSError
        If the file cannot be written or take the place; it names `path`.
    """
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        yield fresh
        fresh.replace(target)
    except OSError as error:
        if str(error.filename) == str(fresh):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        fresh.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 that nobody ever sees half written.

    Anything but a regular file, such as /dev/stdout, is written as it is; a named pipe only if
    it has a reader.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
    if regular:
        with replacing(path) as fresh:
            fresh.write_bytes(data)
        return
    # Without O_NONBLOCK this would wait until somebody reads a pipe.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "wb") as stream:
        os.set_blocking(descriptor, True)
        stream.write(data)
