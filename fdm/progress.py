"""How far a solve has come, for those who wait for it."""

import time
from collections.abc import Callable
from typing import NamedTuple

EVERY_S = 0.5
"""A solve reports no more often than this."""


class Progress(NamedTuple):
    """State of a solve.

    Attributes
    ----------
    iterations : int
        Steps of the method so far.
    relative_gap : float
        The smallest relative gap so far; infinite while there is none.
    """

    iterations: int
    relative_gap: float


class Reporter:
    """Calls back at most every `EVERY_S` seconds; does nothing without a callback.

    Parameters
    ----------
    callback : callable, optional
        Gets a `Progress`.
    """

    def __init__(self, callback: Callable[[Progress], None] | None = None) -> None:
        self._callback = callback
        self._due_s = time.monotonic() + EVERY_S if callback is not None else 0.0

    def __bool__(self) -> bool:
        return self._callback is not None

    def __call__(self, iterations: int, relative_gap: float) -> None:
        if self._callback is None:
            return
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._callback(Progress(iterations, relative_gap))


SILENT = Reporter()
