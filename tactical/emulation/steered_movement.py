"""Makes the network follow nodes that people move, and carries out what else they command.

Nodes go as their scenario says until somebody puts one elsewhere, from where it goes on; the
movement can be stopped and made faster. So nothing is known in advance: who is in range of whom is
looked at a few times a second and after every command.
"""

from __future__ import annotations

import dataclasses
import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

import mobility
from scenarios import Handover, LinkState, Scenario

from .. import steering
from ..playback import Playback
from .control import ControllerProcess
from .events import EventLog
from .movement import POSITION_PERIOD_S, Movement
from .network import Network
from .subflow_priorities import SubflowPriorities

LOOK_PERIOD_S = 0.25
"""How often it is looked at who is in range."""

CUT = "cut by hand"


class SteeredMovement(Movement):
    """Moves every node of a network as its scenario says, and as people do.

    Parameters
    ----------
    commands
        What people command, as it comes.
    """

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        controller: ControllerProcess,
        priorities: SubflowPriorities,
        events: EventLog,
        commands: queue.SimpleQueue[steering.Command],
    ) -> None:
        super().__init__(scenario, network, controller, priorities, events)
        self._predicting = False
        self._commands = commands
        self._clock = Playback(math.inf, playing=True)
        self._moved_m = {node.name: np.zeros(3) for node in self._nodes}
        self._used = {station.name: scenario.home for station in scenario.stations}
        self._selections = {name: mobility.Selection() for name in self._used}
        self._lock = threading.Lock()
        self._cut: set[str] = set()
        self._described = {
            access.name: dataclasses.replace(access.backhaul, profile=()).at(0.0)
            for access in scenario.accesses
        }
        self._in_force = dict(self._described)

    def follow(self, check: Callable[[], None]) -> None:
        """Carry out commands, and what they lead to, until the run is over; see `Movement`."""
        self._clock = dataclasses.replace(self._clock, at_s=self._events.now_s)
        stations = self._scenario.stations
        with ThreadPoolExecutor(len(stations) + len(self._changing) + 1) as pool:
            links = [pool.submit(self._follow_link, relay) for relay in self._changing]
            changes: dict[str, Future[None]] = {}
            written_s = -math.inf
            try:
                while (now_s := self._events.now_s) < self._scenario.duration_s:
                    places = self._places(self._clock.position(now_s))
                    if now_s >= written_s + POSITION_PERIOD_S:
                        written_s = math.floor(now_s)
                        self._write(places)
                        check()
                    self._select(places, now_s, changes, pool)
                    for each in (*links, *changes.values()):
                        if each.done():
                            each.result()
                    self._carry_out_next(LOOK_PERIOD_S)
            finally:
                # Leaving the pool waits for its threads, and they wait for their moments.
                self._over.set()

    # -- where nodes are, and what they use ----------------------------------------------

    def _places(self, moved_s: float) -> dict[str, NDArray[np.float64]]:
        return {
            node.name: node.trajectory.position(moved_s)[0] + self._moved_m[node.name]
            for node in self._nodes
        }

    def _select(
        self,
        places: dict[str, NDArray[np.float64]],
        now_s: float,
        changes: dict[str, Future[None]],
        pool: ThreadPoolExecutor,
    ) -> None:
        """Begin the handover of every station that is to use another access, one at a time each."""
        access_points = self._scenario.access_points
        for station, used in self._used.items():
            shares = [
                math.dist(places[station], places[each.name]) / each.range_m
                for each in access_points
            ]
            chosen = self._selections[station].after(shares, now_s, self._scenario.reluctance)
            self._selections[station] = chosen
            number = chosen.access_point
            wanted = self._scenario.home if number is None else access_points[number].name
            begun = changes.get(station)
            if wanted != used and (begun is None or begun.done()):
                change = Handover(now_s, station, used, wanted)
                changes[station] = pool.submit(self._change, change)

    def _change(self, change: Handover) -> None:
        super()._change(change)
        self._used[change.station] = change.after

    # -- links ---------------------------------------------------------------------------

    def _change_link(
        self, relay: str, before: LinkState, after: LinkState, *, reported: bool
    ) -> None:
        """Let a link become as it should be, unless it is cut."""
        with self._lock:
            self._described[relay] = after
            self._put_in_force(relay, reported=reported)

    def _put_in_force(self, relay: str, *, reported: bool) -> None:
        state = self._described[relay]
        if relay in self._cut:
            state = dataclasses.replace(state, loss=1.0, cause=CUT)
        super()._change_link(relay, self._in_force[relay], state, reported=reported)
        self._in_force[relay] = state

    def _wait_until(self, time_s: float) -> bool:
        """Wait until everything has moved so long; see `Movement`."""
        while self._clock.position(self._events.now_s) < time_s:
            if self._over.wait(LOOK_PERIOD_S):
                return False
        return not self._over.is_set()

    # -- commands ------------------------------------------------------------------------

    def _carry_out_next(self, within_s: float) -> None:
        """Carry out what is commanded, as soon as that is or when the time is over."""
        limit_s = time.monotonic() + within_s
        try:
            command = self._commands.get(timeout=max(0.0, limit_s - time.monotonic()))
            while True:
                self._carry_out(command)
                command = self._commands.get_nowait()
        except queue.Empty:
            pass

    def _carry_out(self, command: steering.Command) -> None:
        now_s = self._events.now_s
        said = steering.document(command)
        subject = next((str(said[key]) for key in ("node", "relay", "user") if key in said), "run")
        self._events.write("command", subject, **said)
        match command:
            case steering.Place(node, east_m, north_m):
                here = self._places(self._clock.position(now_s))[node]
                self._moved_m[node] += np.array([east_m, north_m, here[2]]) - here
                self._write(self._places(self._clock.position(now_s)))
            case steering.Link(relay, up):
                with self._lock:
                    (self._cut.discard if up else self._cut.add)(relay)
                    self._put_in_force(relay, reported=True)
            case steering.Demand(user, rate_bps):
                self._controller.report_demand(user, rate_bps)
            case steering.Policy(policy):
                self._controller.report_policy(policy)
            case steering.Play(playing):
                self._clock = self._clock.play(playing, now_s)
            case steering.Speed(speed):
                self._clock = self._clock.at_speed(speed, now_s)
