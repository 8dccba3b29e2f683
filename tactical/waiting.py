"""What people see who wait for a solve or the like: nothing for two seconds, then how far it is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

import fdm
from tactical.streams import Tolerant

if TYPE_CHECKING:
    from rich.status import Status

PATIENCE_S = 2.0
PLAIN_PERIOD_S = 10.0
_REFRESH_S = 0.25


@contextmanager
def waiting(what: str, patience_s: float = PATIENCE_S) -> Iterator[Callable[[fdm.Progress], None]]:
    """Tell on standard error that something is going on, if it lasts longer than `patience_s`.

    On a terminal a line that is rewritten, elsewhere a plain line every ten seconds; each says
    for how long it has been going on.

    Parameters
    ----------
    what : str
        What is going on, as in "solving germany50-90".
    patience_s : float
        Seconds of silence.

    Yields
    ------
    callable
        To be given to `fdm.solve` as its `progress`.
    """
    latest: list[fdm.Progress] = []
    begun_s = time.monotonic()

    def said() -> str:
        told = f"{what}… {time.monotonic() - begun_s:.0f} s"
        if latest:
            told += f", {latest[-1].iterations} iterations"
            if (gap := latest[-1].relative_gap) < float("inf"):
                told += f", relative gap {gap:.1e}"
        return told

    with telling(said, patience_s):
        yield latest.append


@contextmanager
def telling(said: Callable[[], str], patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Tell on standard error what `said` returns, if this lasts longer than `patience_s`.

    Parameters
    ----------
    said : callable
        What is going on now; called in another thread.
    patience_s : float
        Seconds of silence.
    """
    stream = Tolerant(sys.stderr)
    over = threading.Event()

    def tell() -> None:
        if over.wait(patience_s):
            return
        if not stream.rewritable():
            while True:
                print(said(), file=stream, flush=True)
                if over.wait(PLAIN_PERIOD_S):
                    return
        with _status(stream, said()) as status:
            while not over.wait(_REFRESH_S):
                status.update(said())

    teller = threading.Thread(target=tell, daemon=True, name="waiting")
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _status(stream: Tolerant, text: str) -> Status:
    from rich.console import Console

    return Console(file=cast("TextIO", stream)).status(text)
