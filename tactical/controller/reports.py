"""What is told to the controller on standard input: one JSON object a line. Pure.

===================================================================  =========================
``{"user": u, "access_point": a, "associated": true}``               it happened
the same with ``"in_s": 3.5``                                        it is expected in 3.5 s
the same with ``"source": "hostapd"``                                who has seen it
``{"user": u, "access_point": a, "signal_dbm": -71.0}``              signal of the access point
``{"user": u, "access_point": a, "distance_m": 900, "range_m": x}``  distance, and its reach
``{"user": u, "rate_bps": 3e6}``                                     a new demand
``{"trunk": t, "rate_bps": 4e6, "delay_s": 0.25}``                   what a trunk carries now
``{"policy": "shortest"}``                                           which policy decides
===================================================================  =========================
"""

from __future__ import annotations

import json
from typing import Any

from . import policy
from .events import (
    AssociationChanged,
    AssociationExpected,
    CapacitySet,
    DemandSet,
    DistanceMeasured,
    Event,
    PolicySet,
    SignalMeasured,
)
from .network import ControlledNetwork
from .quantities import (
    DELAY_S,
    DISTANCE_M,
    MOMENT_S,
    RATE_OR_NONE_BPS,
    SIGNAL_DBM,
    Quantity,
    shown,
)

LONGEST_LINE = 65_536
"""Characters."""


def read_report(line: str, now_s: float, network: ControlledNetwork) -> Event:
    """The event that a line tells, heard at `now_s` of the controller's clock.

    Raises
    ------
    ValueError
        If the line is none of the above, or about something that `network` does not have.
    """
    event = _event(_object(line), now_s)
    match event:
        case CapacitySet(trunk):
            if not any(t.name == trunk for t in network.trunks):
                raise ValueError(f"there is no trunk {shown(trunk)}")
        case DemandSet(user):
            if not any(d.user == user for d in network.demands):
                raise ValueError(f"no demand of a user {shown(user)} is described")
        case AssociationChanged() | AssociationExpected() | SignalMeasured() | DistanceMeasured():
            if not network.has_attachment(event.user, event.datapath):
                user, place = shown(event.user), shown(event.datapath)
                raise ValueError(f"user {user} has no attachment at {place}")
    return event


def _object(line: str) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it has more than {LONGEST_LINE} characters")
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):  # among the first: numbers with thousands of digits
        raise ValueError("expected a JSON object") from None
    if not isinstance(report, dict):
        raise ValueError("expected an object with a user, a trunk or a policy")
    return report


def _event(report: dict[str, Any], now_s: float) -> Event:
    if isinstance(trunk := report.get("trunk"), str):
        if set(report) != {"trunk", "rate_bps", "delay_s"}:
            raise ValueError("expected trunk, rate_bps and delay_s")
        rate_bps = _number(report, "rate_bps", RATE_OR_NONE_BPS)
        return CapacitySet(trunk, rate_bps, _number(report, "delay_s", DELAY_S))
    if "policy" in report:
        if set(report) != {"policy"} or report["policy"] not in policy.NAMES:
            raise ValueError(f"expected policy alone, one of {', '.join(policy.NAMES)}")
        return PolicySet(report["policy"])
    if not isinstance(report.get("user"), str):
        raise ValueError("expected an object with a user, a trunk or a policy")
    user: str = report["user"]
    fields = set(report) - {"user"}
    if fields == {"rate_bps"}:
        return DemandSet(user, _number(report, "rate_bps", RATE_OR_NONE_BPS))
    place = report.get("access_point")
    if not isinstance(place, str):
        raise ValueError("expected the name of an access point")
    fields -= {"access_point"}
    if fields == {"signal_dbm"}:
        return SignalMeasured(user, place, _number(report, "signal_dbm", SIGNAL_DBM))
    if fields == {"distance_m", "range_m"}:
        distance_m = _number(report, "distance_m", DISTANCE_M)
        return DistanceMeasured(user, place, distance_m, _number(report, "range_m", DISTANCE_M))
    associated = report.get("associated")
    if not isinstance(associated, bool):
        raise ValueError("expected associated to be true or false")
    if fields == {"associated"}:
        return AssociationChanged(user, place, associated)
    if fields == {"associated", "source"} and isinstance(report["source"], str):
        return AssociationChanged(user, place, associated, report["source"])
    if fields == {"associated", "in_s"}:
        in_s = _number(report, "in_s", MOMENT_S)
        return AssociationExpected(user, place, associated, now_s + in_s)
    raise ValueError(f"unknown fields among {shown(', '.join(sorted(fields)))}")


def _number(report: dict[str, Any], name: str, bounds: Quantity) -> float:
    try:
        return float(bounds.check(report[name]))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
