"""Makes the network follow the ships: associations and handovers at the scheduled moments.

Links that change in a run do so here, too (`link_commands`).

The schedule is exact and known in advance (:meth:`scenarios.Scenario.handovers`); this module
waits for each moment and does what a station would do then
(`leave` and `join` of :class:`tactical.emulation.network.Network`):

* under ``sptcp`` a station has one address.  It leaves the old access first, then joins the new
  one with the same address (break-before-make);
* under MPTCP the satellites stay.  A new association adds an endpoint, so that the kernel
  opens a subflow; a lost association removes it, so that the kernel sends at once elsewhere
  what that subflow had not delivered.  The radio leaves one access point before it joins another;
* under ``fdm`` with prediction the controller is told of a change beforehand: it makes a subflow a
  backup before the station loses it, and what is under way arrives.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from scenarios import AccessPoint, Handover, LinkState, Scenario, Station

from . import commands
from .control import ControllerProcess
from .events import EventLog
from .network import Network
from .subflow_priorities import SubflowPriorities

POSITION_PERIOD_S = 1.0

REPORTED_FROM_S = 1.0
"""The controller is not told of a state of a link that lasts less long than this."""


class Movement:
    """Moves every station of a network through a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        controller: ControllerProcess,
        priorities: SubflowPriorities,
        events: EventLog,
    ) -> None:
        self._scenario = scenario
        self._network = network
        self._controller = controller
        self._priorities = priorities
        self._events = events
        self._predicting = network.plan.protocol == "fdm" and scenario.prediction == "mobility"
        self._over = threading.Event()
        self._nodes: list[Station | AccessPoint] = [*scenario.stations, *scenario.access_points]
        self._access_points = {access_point.name for access_point in scenario.access_points}
        self._handovers = scenario.handovers()
        self._changing = {a.name: a.backhaul for a in scenario.accesses if a.backhaul.profile}

    def start_position(self) -> None:
        """Bring up the access that every station has before traffic starts."""
        for station in self._network.plan.stations:
            self._network.run_all(commands.start_access(self._network.plan, station))
            for interface in self._network.plan.stations[station]:
                if not interface.wireless:
                    self._priorities.added(station, interface.relay)
        for change in self._handovers:
            if change.time_s <= 0:
                self._change(change)
        for relay, link in self._changing.items():
            described = dataclasses.replace(link, profile=()).at(0.0)
            self._change_link(relay, described, link.at(0.0), reported=True)

    def follow(self, check: Callable[[], None]) -> None:
        """Carry out the schedule until it ends; every station and every link for itself.

        Parameters
        ----------
        check
            Called about once a second; what it raises ends the movement.

        Raises
        ------
        CommandError
            If an association fails.
        """
        moving = [
            *(functools.partial(self._follow_station, s.name) for s in self._scenario.stations),
            *(functools.partial(self._follow_link, relay) for relay in self._changing),
        ]
        # Each waits for its moments, so each needs a thread of its own.
        with ThreadPoolExecutor(len(moving), thread_name_prefix="movement") as pool:
            following = [pool.submit(each) for each in moving]
            try:
                for time_s in np.arange(0.0, self._scenario.duration_s + 1e-9, POSITION_PERIOD_S):
                    self._wait_until(float(time_s))
                    self._write_positions(float(time_s))
                    check()
                    for each in following:
                        if each.done():
                            each.result()
            except BaseException:
                # Leaving the pool waits for its threads, and they wait for their moments.
                self._over.set()
                raise
            for each in following:
                each.result()

    def _wait_until(self, time_s: float) -> bool:
        """Wait until the given run time; False if the movement is over before that."""
        return not self._over.wait(max(0.0, time_s - self._events.now_s))

    def _follow_station(self, station: str) -> None:
        for change in self._handovers:
            if change.station == station and change.time_s > 0:
                if self._predicting:
                    self._expect(change)
                if not self._wait_until(change.time_s):
                    return
                self._change(change)

    def _expect(self, change: Handover) -> None:
        """Tell the controller of a change before it comes."""
        left_s = max(0.0, change.time_s - self._events.now_s)
        for place, joined in ((change.before, False), (change.after, True)):
            if place in self._access_points:
                self._controller.expect(change.station, place, joined, left_s)

    def _follow_link(self, relay: str) -> None:
        link = self._changing[relay]
        before = link.at(0.0)
        for state, then in itertools.zip_longest(link.profile, link.profile[1:]):
            if state.time_s <= 0:
                continue
            if state.time_s >= self._scenario.duration_s:
                return
            if not self._wait_until(state.time_s):
                return
            lasts = then is None or then.time_s - state.time_s >= REPORTED_FROM_S
            self._change_link(relay, before, state, reported=lasts)
            before = state

    def _change_link(
        self, relay: str, before: LinkState, after: LinkState, *, reported: bool
    ) -> None:
        plan = self._network.plan
        self._network.run_all(commands.link_commands(plan, relay, before, after))
        self._events.write("link_change", relay, **dataclasses.asdict(after))
        if reported:
            trunk = f"{relay}:{plan.uplink(relay).relay_port}"
            self._controller.report_link(trunk, after.capacity_bps, after.delay_s)

    def _write_positions(self, time_s: float) -> None:
        self._write({node.name: node.trajectory.position(time_s)[0] for node in self._nodes})

    def _write(self, places: Mapping[str, NDArray[np.float64]]) -> None:
        for node, place in places.items():
            east, north, up = (float(x) for x in place)
            self._events.write("position", node, east_m=east, north_m=north, up_m=up)
        self._network.place(places)

    def _change(self, change: Handover) -> None:
        before, after = change.before, change.after
        self._handover(change, "begin")
        station = change.station
        if before in self._access_points:
            self._priorities.removed(station, before)
        self._step(self._network.leave, change, before, ("dissociating", "dissociated"))
        self._step(self._network.join, change, after, ("associating", "associated"))
        if after in self._access_points:
            self._priorities.added(station, after)
        self._handover(change, "end")

    def _step(
        self,
        half: Callable[[str, str, str], None],
        change: Handover,
        relay: str,
        states: tuple[str, str],
    ) -> None:
        """Carry out half of a handover; where it is about the radio, tell of it."""
        station, (begun, done) = change.station, states
        if relay in self._access_points:
            self._association(station, relay, begun)
        half(station, change.before, change.after)
        if relay in self._access_points:
            self._association(station, relay, done)
            self._controller.report(station, relay, done == "associated")

    def _association(self, station: str, access_point: str, state: str) -> None:
        interface = self._network.plan.station_interface(station, access_point).name
        self._events.write(
            "association", station, access_point=access_point, interface=interface, state=state
        )

    def _handover(self, change: Handover, phase: str) -> None:
        ends = {"from": change.before, "to": change.after}
        self._events.write("handover", change.station, **ends, phase=phase)
