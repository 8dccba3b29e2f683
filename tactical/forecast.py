"""What a scenario will do before it runs: who can use which access when, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import mobility
from mobility.steps import Steps
from scenarios import AccessPoint, Satellite, Scenario


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


class Handover(NamedTuple):
    """The instant at which a station with a single path changes its access.

    With several paths, it gains or loses the path over the access point then, and keeps the
    others.

    Attributes
    ----------
    time_s : float
        Seconds of run time.
    station : str
        Who.
    before, after : str
        Names of the two accesses.
    """

    time_s: float
    station: str
    before: str
    after: str


@dataclass(frozen=True)
class Forecast:
    """What is known of a scenario before it runs.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    reaches : tuple of Reach
        By station, access point and time; satellites are left out, as they are always there.
    handovers : tuple of Handover
        In order of time.
    """

    scenario: Scenario
    reaches: tuple[Reach, ...]
    handovers: tuple[Handover, ...]

    def access_at(self, station: str) -> list[Reach]:
        """Return what a station with a single path uses from when to when."""
        home = _home(self.scenario)
        used, since_s, access = [], 0.0, home
        reached = [each for each in self.reaches if each.station == station]
        begun = [each.access for each in reached if each.start_s <= 0.0]
        access = begun[-1] if begun else home
        for change in self.handovers:
            if change.station == station:
                used.append(Reach(station, access, since_s, change.time_s))
                since_s, access = change.time_s, change.after
        used.append(Reach(station, access, since_s, self.scenario.duration_s))
        return used

    def users(self, access: str) -> Steps:
        """Return how many stations can use an access over time."""
        stations = len(self.scenario.stations)
        if access in {satellite.name for satellite in self.scenario.satellites}:
            return Steps(np.zeros(1), np.full(1, float(stations)))
        mine = [each for each in self.reaches if each.access == access]
        starts = np.sort([each.start_s for each in mine])
        ends = np.sort([each.end_s for each in mine])
        times = np.unique(np.concatenate([[0.0], starts, ends]))
        count = np.searchsorted(starts, times, side="right") - np.searchsorted(
            ends, times, side="right"
        )
        return Steps(times, count.astype(np.float64)).changes()

    def share_bps(self, access: Satellite | AccessPoint) -> Steps:
        """Return what an access gives each user if they share it evenly; 0 where there is none."""
        users = self.users(access.name)
        shares = np.divide(
            access.backhaul.rate_bps, users.values, out=np.zeros_like(users.values),
            where=users.values > 0.0,
        )  # fmt: skip
        return Steps(users.times_s, shares)


def forecast(scenario: Scenario) -> Forecast:
    """Return what will happen in a scenario; times of handover are exact.

    A station with a single path uses the access point whose range it entered last, and without
    any the first satellite.
    """
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
    changes = [
        change
        for station in scenario.stations
        for change in _handovers(
            station.name,
            [each for each in reaches if each.station == station.name],
            _home(scenario),
            scenario.duration_s,
        )
    ]
    return Forecast(scenario, reaches, tuple(sorted(changes)))


def _handovers(station: str, reaches: list[Reach], home: str, until_s: float) -> list[Handover]:
    events = [(each.start_s, True, each.access) for each in reaches]
    events += [(each.end_s, False, each.access) for each in reaches if each.end_s < until_s]
    entered: list[str] = []
    changes = []
    for time_s, entering, access in sorted(events):
        before = entered[-1] if entered else home
        if entering:
            entered.append(access)
        else:
            entered.remove(access)
        after = entered[-1] if entered else home
        if after != before and time_s > 0.0:
            changes.append(Handover(time_s, station, before, after))
    return changes


def _home(scenario: Scenario) -> str:
    return scenario.satellites[0].name if scenario.satellites else ""
