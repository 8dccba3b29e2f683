"""The command `tactical` as a process: `python -m tactical`, or the script of that name."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def command() -> NoReturn:
    """Run the command line and end the process.

    A signal that asks for an end while the command is still loaded ends it without a word, and one
    that comes when all is said and written no longer changes anything. What comes between is the
    command's own (:mod:`tactical.signals`). Signals that are ignored stay ignored.
    """
    asking = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    for number in asking:
        signal.signal(number, _end)
    from tactical.cli import main

    for number in asking:
        signal.signal(number, _come_too_late)
    try:
        status = main()
    finally:
        for number in asking:
            signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)


def _come_too_late(_number: int, _frame: FrameType | None) -> None:
    """In force when the command has put back what it found, until all signals are ignored."""


if __name__ == "__main__":
    command()
