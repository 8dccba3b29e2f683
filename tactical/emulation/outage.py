"""A controller that fails in the middle of a run, and comes back."""

from __future__ import annotations

from .control import ControllerProcess
from .events import EventLog


class ControllerOutage:
    """Kills the controller of a run, and starts it again later.

    Parameters
    ----------
    times_s
        Run times of both; None for a run in which it stays.
    control, events
        The controller, and where what happens to it is written.
    """

    def __init__(
        self, times_s: tuple[float, float] | None, control: ControllerProcess, events: EventLog
    ) -> None:
        self._due = [] if times_s is None else [(times_s[0], self._kill), (times_s[1], self._begin)]
        self._control = control
        self._events = events
        self.away = False

    def follow(self, now_s: float) -> None:
        """Do what is due; from the main thread, with whose end the kernel ends a controller."""
        while self._due and now_s >= self._due[0][0]:
            _, step = self._due.pop(0)
            step()

    def _kill(self) -> None:
        self.away = True
        self._control.kill()
        self._events.write("controller", "controller", state="killed")

    def _begin(self) -> None:
        self._events.write("controller", "controller", state="started")
        self._control.restart()
        self.away = False
