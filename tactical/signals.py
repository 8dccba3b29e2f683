"""Signals that ask for an end, as an exception that an orderly end can follow."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A signal asked for an orderly end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def stopped_by_signals(notice: str = "") -> Iterator[None]:
    """Make SIGTERM and SIGHUP end things in order, as Ctrl-C does.

    With a `notice`, that is said at once, and further signals only make it be said again: what
    follows has a time limit of its own and must not be left half done. Signals that are ignored,
    as by `nohup`, stay ignored.
    """
    stopping = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if notice:
            # Not from here: the signal may have come in the middle of another print.
            threading.Thread(target=_say, args=(notice,)).start()
            if stopping:
                return
        stopping = True
        raise Stopped(number)

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    # In one piece: another thread may say the same at the same time. Perhaps nobody listens.
    with suppress(OSError, ValueError):
        sys.stderr.write(f"tactical: {text}\n")
        sys.stderr.flush()
