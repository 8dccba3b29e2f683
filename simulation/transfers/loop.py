"""What happens when."""

import heapq
import itertools
from collections.abc import Callable
from typing import Any


class Loop:
    """Calls functions in order of their times; of the same time, in the order they were asked for.

    Parameters
    ----------
    start_s : float
        The time at first.

    Attributes
    ----------
    now_s : float
        The time, in seconds.
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self.now_s = start_s
        self._waiting: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._numbers = itertools.count()

    def at(self, time_s: float, call: Callable[..., object], *arguments: Any) -> None:
        """Call a function at a time, which is now if it has passed."""
        time_s = max(time_s, self.now_s)
        heapq.heappush(self._waiting, (time_s, next(self._numbers), call, arguments))

    def after(self, delay_s: float, call: Callable[..., object], *arguments: Any) -> None:
        """Call a function after a while."""
        self.at(self.now_s + delay_s, call, *arguments)

    def run(self, end_s: float) -> None:
        """Go on until a time."""
        waiting, pop = self._waiting, heapq.heappop
        while waiting and waiting[0][0] <= end_s:
            self.now_s, _, call, arguments = pop(waiting)
            call(*arguments)
        self.now_s = max(self.now_s, end_s)


class Timer:
    """A call that can be put off or cancelled."""

    def __init__(self, loop: Loop, call: Callable[[], object]) -> None:
        self._loop, self._call = loop, call
        self._due_s: float | None = None
        self._armed_s: float | None = None

    @property
    def running(self) -> bool:
        """Whether it will call."""
        return self._due_s is not None

    def start(self, delay_s: float) -> None:
        """Call after a while, and not before."""
        due_s = self._due_s = self._loop.now_s + delay_s
        if self._armed_s is None or self._armed_s > due_s:
            self._arm(due_s)

    def cancel(self) -> None:
        """Do not call."""
        self._due_s = None

    def _arm(self, due_s: float) -> None:
        self._armed_s = due_s
        self._loop.at(due_s, self._expire, due_s)

    def _expire(self, armed_s: float) -> None:
        if self._armed_s != armed_s:
            return  # another was armed before it
        self._armed_s = None
        if self._due_s is None:
            return
        if self._due_s > self._loop.now_s:
            self._arm(self._due_s)
            return
        self._due_s = None
        self._call()
