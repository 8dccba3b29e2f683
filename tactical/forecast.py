"""What a scenario will do before it runs: who can use which access when, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import mobility
from mobility.steps import Steps
from scenarios import AccessPoint, Handover, LinkState, Satellite, SatelliteHandover, Scenario


class Reach(NamedTuple):
    """A time during which a station can use an access.

    Attributes
    ----------
    station, access : str
        Names of the two.
    start_s, end_s : float
        From when to when, in seconds of run time.
    """

    station: str
    access: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Forecast:
    """What is known of a scenario before it runs.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    reaches : tuple of Reach
        By station, access point and time; satellites are left out, as they are always there.
    uses : tuple of Reach
        What each station uses if it has a single path, by station and time.
    handovers : tuple of Handover
        In order of time; access that a station has from the start is left out.
    satellite_handovers : tuple of SatelliteHandover
        In order of time.
    """

    scenario: Scenario
    reaches: tuple[Reach, ...]
    uses: tuple[Reach, ...]
    handovers: tuple[Handover, ...]
    satellite_handovers: tuple[SatelliteHandover, ...] = ()

    def access_at(self, station: str) -> list[Reach]:
        """Return what a station with a single path uses from when to when."""
        return [used for used in self.uses if used.station == station]

    def users(self, access: str) -> Steps:
        """Return how many stations use an access over time, if they have several paths."""
        if access in {satellite.name for satellite in self.scenario.satellites}:
            return Steps(np.zeros(1), np.full(1, float(len(self.scenario.stations))))
        mine = [each for each in self.uses if each.access == access]
        starts = np.sort([each.start_s for each in mine])
        ends = np.sort([each.end_s for each in mine])
        times = np.unique(np.concatenate([[0.0], starts, ends]))
        count = np.searchsorted(starts, times, side="right") - np.searchsorted(
            ends, times, side="right"
        )
        return Steps(times, count.astype(np.float64)).changes()

    def capacity_bps(self, access: Satellite | AccessPoint) -> Steps:
        """Return what an access carries over time; 0 while it is down."""
        return self._over_time(access, lambda state: state.capacity_bps)

    def delay_s(self, access: Satellite | AccessPoint) -> Steps:
        """Return the propagation delay of an access over time."""
        return self._over_time(access, lambda state: state.delay_s)

    def _over_time(
        self, access: Satellite | AccessPoint, what: Callable[[LinkState], float]
    ) -> Steps:
        link = access.backhaul
        until_s = self.scenario.duration_s
        later = [state for state in link.profile if 0.0 < state.time_s < until_s]
        times = np.array([0.0, *(state.time_s for state in later)])
        return Steps(times, np.array([what(link.at(0.0)), *map(what, later)])).changes()

    def share_bps(self, access: Satellite | AccessPoint) -> Steps:
        """Return what an access gives each user if they share it evenly; 0 where there is none."""
        users, capacity = self.users(access.name), self.capacity_bps(access)
        times = np.union1d(users.times_s, capacity.times_s)
        sharing = users.at(times)
        shares = np.divide(
            capacity.at(times), sharing, out=np.zeros_like(sharing), where=sharing > 0.0
        )
        return Steps(times, shares).changes()


def forecast(scenario: Scenario) -> Forecast:
    """Return what will happen in a scenario; times of handover are exact."""
    access_points = scenario.access_points
    contacts = mobility.contact_schedule(
        [station.trajectory for station in scenario.stations],
        [access_point.trajectory for access_point in access_points],
        [access_point.range_m for access_point in access_points],
        scenario.duration_s,
    )
    reaches = tuple(
        Reach(
            scenario.stations[node].name, access_points[access_point].name, float(start), float(end)
        )
        for node, access_point, start, end in zip(
            contacts.node, contacts.access_point, contacts.start_s, contacts.end_s, strict=True
        )
    )
    handovers = scenario.handovers()
    uses = tuple(
        used
        for station in scenario.stations
        for used in _uses(
            station.name,
            [change for change in handovers if change.station == station.name],
            scenario,
        )
    )
    changes = tuple(change for change in handovers if change.time_s > 0.0)
    return Forecast(scenario, reaches, uses, changes, scenario.satellite_handovers())


def _uses(station: str, handovers: list[Handover], scenario: Scenario) -> Iterator[Reach]:
    since_s, access = 0.0, scenario.home
    for change in handovers:
        if change.time_s > since_s:
            yield Reach(station, access, since_s, change.time_s)
        since_s, access = change.time_s, change.after
    yield Reach(station, access, since_s, scenario.duration_s)
