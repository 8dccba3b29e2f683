"""A time limit for a policy's decision."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import replace

from .allocation import Allocation, Situation
from .logic import SolveError
from .policy import Policy


class Deadline:
    """Lets policies decide, each time for at most so long.

    A solve cannot be broken off.  One that is late goes on in the thread that solves; if it ends,
    and the same question is asked again, its answer is taken.

    Parameters
    ----------
    limit_s
        Longest wait for a decision.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._late: _Solve | None = None
        self._asked: queue.SimpleQueue[_Solve] = queue.SimpleQueue()
        threading.Thread(target=_answer, args=(self._asked,), daemon=True, name="solve").start()

    def __call__(self, policy: Policy, situation: Situation) -> Allocation:
        """What `policy` decides.

        Raises
        ------
        SolveError
            If it does not do so in time, or an earlier solve still runs.
        """
        late, self._late = self._late, None
        if late is not None and not late.done.is_set():
            self._late = late
            raise SolveError("the solve before it, which was late, still runs")
        if late is not None and (late.policy, late.situation) == (policy, situation):
            return late.result()
        solve = _Solve(policy, situation)
        self._asked.put(solve)
        if not solve.done.wait(self._limit_s):
            self._late = solve
            raise SolveError(f"it took longer than {self._limit_s:g} s")
        return solve.result()


class _Solve:
    def __init__(self, policy: Policy, situation: Situation) -> None:
        self.policy, self.situation = policy, situation
        self.done = threading.Event()
        self._answer: Allocation | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            begun_s = time.thread_time()
            answer = self.policy.allocate(self.situation)
            self._answer = replace(answer, cpu_time_s=time.thread_time() - begun_s)
        except Exception as error:  # noqa: BLE001 - told to whoever asks for the result
            self._error = error
        self.done.set()

    def result(self) -> Allocation:
        if self._answer is None:
            raise self._error or SolveError("no answer")
        return self._answer


def _answer(asked: queue.SimpleQueue[_Solve]) -> None:
    while True:
        asked.get().run()
