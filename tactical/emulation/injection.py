"""A fault on purpose: one process of a run is killed, as by a crash, at a given run time."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from .events import EventLog


@dataclass(frozen=True)
class Kill:
    """Which process is killed, and when.

    Attributes
    ----------
    name : str
        Name of the program, or one of its arguments (``tactical.controller``).
    at_s : float
        Run time.
    """

    name: str
    at_s: float

    @classmethod
    def parse(cls, text: str) -> Kill:
        """Read ``NAME@SECONDS``.

        Raises
        ------
        ValueError
            If it is something else; the message says what is expected.
        """
        name, at, seconds = text.rpartition("@")
        try:
            moment = float(seconds)
        except ValueError:
            moment = -1.0
        if not at or not name or not 0.0 <= moment < float("inf"):
            raise ValueError(f"{text!r} is not NAME@SECONDS, such as hostapd@10")
        return cls(name, moment)

    def __str__(self) -> str:
        return f"{self.name}@{self.at_s:g}"


class Injection:
    """Kills what is to be killed once that time has come."""

    def __init__(self, kill: Kill | None, events: EventLog) -> None:
        self._kill = kill
        self._events = events

    def follow(self, now_s: float) -> None:
        """Do what is due; of several processes of that name, the first one started is killed."""
        if self._kill is None or now_s < self._kill.at_s:
            return
        name, self._kill = self._kill.name, None
        found = [pid for pid in descendants(os.getpid()) if name in _names(pid)]
        if not found:
            self._events.write("error", "run", message=f"no process {name!r} that could be killed")
            return
        os.kill(min(found), signal.SIGKILL)
        self._events.write("killed", "run", process=name, pid=min(found))


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they did (proc(5), ``children``)."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:
            continue  # ended meanwhile
        for child in children:
            found += [child, *descendants(child)]
    return found


def _names(pid: int) -> set[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return set()
    return {Path(words[0]).name, *words[1:]}
