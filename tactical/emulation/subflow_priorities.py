"""Backup subflows: a station's MPTCP endpoints follow what the controller says of its paths.

A subflow that the allocation does not use is made a backup, on which the kernel sends nothing while
another one works, and of which it tells the other end (MP_PRIO: RFC 8684, section 3.3.8).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..host.process import CommandError
from . import commands
from .commands import Command
from .events import EventLog
from .plan import Plan
from .processes import COMMAND_TIMEOUT_S


class SubflowPriorities:
    """Follows the controller's records of a run, from its making on.

    Parameters
    ----------
    plan
        The network.
    events
        Where the controller's records arrive, and what was set is written.
    """

    def __init__(self, plan: Plan, events: EventLog) -> None:
        self._plan = plan
        self._events = events
        self._run: Callable[[Command], object] | None = None
        self._records = events.subscribe("subflow_priority")
        self._lock = threading.Lock()
        self._there: set[tuple[str, str]] = set()
        self._wanted: dict[tuple[str, str], bool] = {}
        self._set: dict[tuple[str, str], bool] = {}
        self._thread = threading.Thread(target=self._follow, name="subflow priorities", daemon=True)

    def begin(self, run: Callable[[Command], object]) -> None:
        """Carry out what was heard and what will be; `run` runs a command in its node."""
        self._run = run
        self._thread.start()

    def end(self) -> None:
        """Set nothing any more."""
        self._records.put(None)
        self._thread.join(COMMAND_TIMEOUT_S)

    def added(self, station: str, relay: str) -> None:
        """The station has an endpoint for a relay now; the kernel begins with it as no backup."""
        with self._lock:
            self._there.add((station, relay))
            self._apply(station, relay)

    def removed(self, station: str, relay: str) -> None:
        """The endpoint is gone, and what was said of it with it."""
        with self._lock:
            self._there.discard((station, relay))
            self._wanted.pop((station, relay), None)
            self._set.pop((station, relay), None)

    def _follow(self) -> None:
        while (record := self._records.get()) is not None:
            data = record["data"]
            with self._lock:
                self._wanted[data["user"], data["via"]] = data["backup"]
                self._apply(data["user"], data["via"])

    def _apply(self, station: str, relay: str) -> None:
        place = (station, relay)
        backup = self._wanted.get(place, False)
        if self._run is None or place not in self._there or backup == self._set.get(place, False):
            return
        interface = self._plan.station_interface(station, relay)
        try:
            self._run(commands.endpoint_priority(self._plan, interface, relay, backup=backup))
        except CommandError as error:
            self._events.write("error", station, message=str(error))
            return
        self._set[place] = backup
        self._events.write(
            "subflow_backup", station, interface=interface.name, via=relay, on=backup
        )
