"""Makes the network follow the ships: associations and handovers at the scheduled moments.

The schedule is exact and known in advance (:meth:`scenarios.Scenario.coverage`); this module
waits for each moment and does what a station would do then:

* under ``sptcp`` a station has one address.  It leaves the old access first, then joins the new
  one with the same address (break-before-make);
* under MPTCP the old access stays.  A new association adds an endpoint, so that the kernel
  opens a subflow; a lost association removes it, so that the kernel sends at once elsewhere
  what that subflow had not delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from scenarios import AccessPoint, CoverageChange, Scenario, Station

from . import commands
from .control import ControllerProcess
from .events import EventLog
from .network import Network
from .plan import HostInterface

POSITION_PERIOD_S = 1.0


class Movement:
    """Moves every station of a network through a scenario."""

    def __init__(
        self, scenario: Scenario, network: Network, controller: ControllerProcess, events: EventLog
    ) -> None:
        self._scenario = scenario
        self._network = network
        self._controller = controller
        self._events = events
        self._access = {
            station: interfaces[0].relay for station, interfaces in network.plan.stations.items()
        }

    def start_position(self) -> None:
        """Bring up the access that every station has before traffic starts."""
        plan = self._network.plan
        for interfaces in plan.stations.values():
            for interface in interfaces:
                if plan.multipath or interface is interfaces[0]:
                    self._up(interface)
                if plan.multipath and not interface.wireless:
                    self._network.run(commands.endpoint_added(plan, interface))
        for change in self._scenario.coverage():
            if change.time_s <= 0:
                self._change(change)

    def follow(self, wait_until: Callable[[float], bool]) -> None:
        """Carry out the schedule until it ends; every station moves on its own.

        Parameters
        ----------
        wait_until
            Waits until the given run time; False if the run is over before that.

        Raises
        ------
        CommandError
            If an association fails.
        """
        with ThreadPoolExecutor(thread_name_prefix="movement") as pool:
            moving = [
                pool.submit(self._follow_station, station.name, wait_until)
                for station in self._scenario.stations
            ]
            for time_s in np.arange(0.0, self._scenario.duration_s + 1e-9, POSITION_PERIOD_S):
                if not wait_until(float(time_s)):
                    break
                self._write_positions(float(time_s))
                for station in moving:
                    if station.done():
                        station.result()
            for station in moving:
                station.result()

    def _follow_station(self, station: str, wait_until: Callable[[float], bool]) -> None:
        for change in self._scenario.coverage():
            if change.station == station and change.time_s > 0:
                if not wait_until(change.time_s):
                    return
                self._change(change)

    def _write_positions(self, time_s: float) -> None:
        nodes: list[Station | AccessPoint] = [*self._scenario.stations]
        nodes += self._scenario.access_points
        for node in nodes:
            east, north, up = (float(x) for x in node.trajectory.position(time_s)[0])
            self._events.write("position", node.name, east_m=east, north_m=north, up_m=up)

    def _change(self, change: CoverageChange) -> None:
        if change.entering:
            self._enter(change.station, change.access_point)
        else:
            self._leave(change.station, change.access_point)

    def _enter(self, station: str, access_point: str) -> None:
        plan = self._network.plan
        interface = plan.station_interface(station, access_point)
        before = self._access[station]
        self._handover(station, before, access_point, "begin")
        if not plan.multipath:
            old = plan.station_interface(station, before)
            self._network.run_all(commands.interface_down(old))
        self._associate(interface, access_point)
        if plan.multipath:
            self._network.run(commands.endpoint_added(plan, interface))
        else:
            self._up(interface)
        self._access[station] = access_point
        self._handover(station, before, access_point, "end")

    def _leave(self, station: str, access_point: str) -> None:
        plan = self._network.plan
        interface = plan.station_interface(station, access_point)
        after = plan.stations[station][0].relay
        self._handover(station, access_point, after, "begin")
        self._dissociate(interface, access_point)
        if plan.multipath:
            self._network.run(commands.endpoint_removed(plan, interface))
        else:
            self._network.run_all(commands.interface_down(interface))
            self._up(plan.station_interface(station, after))
        self._access[station] = after
        self._handover(station, access_point, after, "end")

    def _associate(self, interface: HostInterface, access_point: str) -> None:
        self._association(interface, access_point, "associating")
        self._network.associate(interface, access_point)
        self._association(interface, access_point, "associated")
        self._controller.report(interface.node, access_point, True)

    def _dissociate(self, interface: HostInterface, access_point: str) -> None:
        self._association(interface, access_point, "dissociating")
        self._network.dissociate(interface)
        self._association(interface, access_point, "dissociated")
        self._controller.report(interface.node, access_point, False)

    def _up(self, interface: HostInterface) -> None:
        self._network.run_all(commands.interface_up(self._network.plan, interface))

    def _association(self, interface: HostInterface, access_point: str, state: str) -> None:
        self._events.write(
            "association",
            interface.node,
            access_point=access_point,
            interface=interface.name,
            state=state,
        )

    def _handover(self, station: str, before: str, after: str, phase: str) -> None:
        self._events.write("handover", station, **{"from": before, "to": after, "phase": phase})
