"""The controller in simulated time: its decisions are its own, how long they take is given.

Between hearing of something and the change in force pass `SOLVE_S`, where it solves, and
`DEPLOY_S`: the medians of an emulated network (docs/controller.md). What is heard meanwhile waits.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable

from simulation.transfers import Loop
from tactical.controller.events import DatapathConnected, Event, QueuesRead, Tick
from tactical.controller.logic import Controller, Decision, Record, deployment_records
from tactical.controller.network import ControlledNetwork

SOLVE_S, DEPLOY_S = 0.003, 0.055
TICK_S = 1.0


class SimulatedController:
    """Decides, and carries decisions out a little later.

    Parameters
    ----------
    network : ControlledNetwork
    loop : Loop
    write : callable
        Takes its records.
    apply : callable
        Carries out a decision.
    """

    def __init__(
        self,
        network: ControlledNetwork,
        loop: Loop,
        write: Callable[[Record], object],
        apply: Callable[[Decision], object],
    ) -> None:
        self.network = network
        self._loop, self._write, self._apply = loop, write, apply
        steps = itertools.count()
        self._logic = Controller(network, clock=lambda: SOLVE_S * next(steps))
        self._waiting: deque[tuple[float, Event]] = deque()
        self._busy = False

    def begin(self) -> None:
        """Find the switches, and deploy what that leads to."""
        for datapath in self.network.datapaths:
            self.hear(DatapathConnected(datapath.dpid))
        self.hear(QueuesRead({}))
        self._loop.after(TICK_S, self._tick)

    def hear(self, event: Event) -> None:
        """Take in an event, as soon as the change before it is in force."""
        self._waiting.append((self._loop.now_s, event))
        self._next()
        due_s = self._logic.next_moment_s(self._loop.now_s)
        if due_s is not None:
            self._loop.at(math.nextafter(due_s, math.inf), self._hear_tick)

    def _hear_tick(self) -> None:
        self._waiting.append((self._loop.now_s, Tick()))
        self._next()

    def _tick(self) -> None:
        self._hear_tick()
        self._loop.after(TICK_S, self._tick)

    def _next(self) -> None:
        while self._waiting and not self._busy:
            _, event = self._waiting.popleft()
            self._decide(event)

    def _decide(self, event: Event) -> None:
        decision = self._logic.handle(event, self._loop.now_s)
        for record in decision.records:
            self._write(_simulated(record))
        if decision.change is None:
            self._finish(decision)
        else:
            self._busy = True
            self._loop.after(decision.solve_time_s + DEPLOY_S, self._deployed, decision)

    def _deployed(self, decision: Decision) -> None:
        self._finish(decision)
        self._busy = False
        self._next()

    def _finish(self, decision: Decision) -> None:
        if decision.change is not None:
            self._apply(decision)
            times = {
                "waited_s": 0.0,
                "solve_time_s": decision.solve_time_s,
                "deploy_time_s": DEPLOY_S,
                "verify_time_s": 0.0,
            }
            for record in deployment_records(decision, times):
                self._write(record)
        self._logic.confirm(decision)
        for record in decision.outcome:
            self._write(record)


def _simulated(record: Record) -> Record:
    """The record without what this machine needed for it."""
    if record.kind != "solve":
        return record
    own = ("solver_time_s", "cpu_time_s")
    data = {key: value for key, value in record.data.items() if key not in own}
    return Record(record.kind, record.node, data)
