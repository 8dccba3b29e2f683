"""Standard output and error that may be closed, full, gone, or unable to show every character."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any, TextIO

# What our tables and sentences use beyond ASCII, and how it reads without.
_PLAIN = {
    "─": "-",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "µ": "u",
    "μ": "u",
    "σ": "sigma",
    "γ": "gamma",
    "κ": "kappa",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "±": "+-",
}
_ERRORS = "tactical.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    return (
        "".join(_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in part),
        error.end,
    )


codecs.register_error(_ERRORS, _plain)


class Tolerant(io.TextIOBase):
    """A stream that falls silent once it cannot be written, and then knows why.

    Parameters
    ----------
    stream : TextIO or None
        Where the text goes as long as that is possible; None is silent from the start, as
        ``sys.stderr`` is in a process that was given none.

    Attributes
    ----------
    problem : OSError, ValueError or None
        What went wrong.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream._stream if isinstance(stream, Tolerant) else stream
        self.problem: OSError | ValueError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        stream = self._stream
        if stream is not None:
            try:
                stream.write(text)
            except (OSError, ValueError) as error:
                self._give_up(stream, error)
        return len(text)

    def flush(self) -> None:
        stream = self._stream
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError) as error:
                self._give_up(stream, error)

    def isatty(self) -> bool:
        try:
            return self._stream is not None and self._stream.isatty()
        except (OSError, ValueError):
            return False

    def rewritable(self) -> bool:
        """Whether lines can be drawn over: a terminal that knows how."""
        return self.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")

    def fileno(self) -> int:
        if self._stream is None:
            raise io.UnsupportedOperation("there is no such stream")
        return self._stream.fileno()

    def _give_up(self, stream: TextIO, problem: OSError | ValueError) -> None:
        self.problem = problem
        self._stream = None
        abandon(stream)


def abandon(stream: TextIO) -> None:
    """Let what a broken stream still holds go nowhere, so that nothing fails at the exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
    with contextlib.suppress(OSError, ValueError):
        stream.flush()


@contextlib.contextmanager
def prepared() -> Iterator[Tolerant]:
    """Make both streams fit for printing whatever there is to tell.

    A closed one gets its descriptor back, which the next file would have taken; both are
    `Tolerant`; characters that an encoding lacks are written in ASCII.

    Yields
    ------
    Tolerant
        Standard output; flush it and look at its `problem` before the end.
    """
    before = sys.stdout, sys.stderr
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ERRORS)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors=_ERRORS)
    output, sys.stderr = Tolerant(sys.stdout), Tolerant(sys.stderr)
    sys.stdout = output
    try:
        yield output
    finally:
        sys.stdout, sys.stderr = before


def columns() -> int | None:
    """Width of the terminal, or what COLUMNS says; None where lines may be of any length."""
    return shutil.get_terminal_size((0, 0)).columns or None


def as_json(document: Any) -> str:
    """One JSON document, for people to read too.

    Raises
    ------
    ValueError
        If a number is not finite: JSON has no such numbers.
    """
    return json.dumps(document, indent=2, allow_nan=False)


def print_json(document: Any) -> None:
    """Print one JSON document."""
    print(as_json(document))
