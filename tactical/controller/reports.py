"""What is told to the controller on standard input: one JSON object a line. Pure.

===================================================================  =========================
``{"user": u, "access_point": a, "associated": true}``               it happened
the same with ``"in_s": 3.5``                                        it is expected in 3.5 s
the same with ``"source": "hostapd"``                                who has seen it
``{"user": u, "access_point": a, "signal_dbm": -71.0}``              signal of the access point
``{"user": u, "access_point": a, "distance_m": 900, "range_m": x}``  distance, and its reach
``{"user": u, "rate_bps": 3e6}``                                     a new demand
``{"trunk": t, "rate_bps": 4e6, "delay_s": 0.25}``                   what a trunk carries now
===================================================================  =========================
"""

from __future__ import annotations

import json
import math
from typing import Any

from .events import (
    AssociationChanged,
    AssociationExpected,
    CapacitySet,
    DemandSet,
    DistanceMeasured,
    Event,
    SignalMeasured,
)


def read_report(line: str, now_s: float) -> Event:
    """The event that a line tells, heard at `now_s` of the controller's clock.

    Raises
    ------
    ValueError
        If the line is none of the above.
    """
    report = json.loads(line)
    if not isinstance(report, dict):
        raise ValueError("expected an object with a user or a trunk")
    if isinstance(trunk := report.get("trunk"), str):
        if set(report) != {"trunk", "rate_bps", "delay_s"}:
            raise ValueError("expected trunk, rate_bps and delay_s")
        return CapacitySet(
            trunk, _number(report, "rate_bps", least=0.0), _number(report, "delay_s", least=0.0)
        )
    if not isinstance(report.get("user"), str):
        raise ValueError("expected an object with a user or a trunk")
    user: str = report["user"]
    fields = set(report) - {"user"}
    if fields == {"rate_bps"}:
        return DemandSet(user, _number(report, "rate_bps", least=0.0))
    place = report.get("access_point")
    if not isinstance(place, str):
        raise ValueError("expected the name of an access point")
    fields -= {"access_point"}
    if fields == {"signal_dbm"}:
        return SignalMeasured(user, place, _number(report, "signal_dbm"))
    if fields == {"distance_m", "range_m"}:
        return DistanceMeasured(
            user, place, _number(report, "distance_m", 0.0), _number(report, "range_m", 0.0)
        )
    associated = report.get("associated")
    if not isinstance(associated, bool):
        raise ValueError("expected associated to be true or false")
    if fields == {"associated"}:
        return AssociationChanged(user, place, associated)
    if fields == {"associated", "source"} and isinstance(report["source"], str):
        return AssociationChanged(user, place, associated, report["source"])
    if fields == {"associated", "in_s"}:
        return AssociationExpected(user, place, associated, now_s + _number(report, "in_s"))
    raise ValueError(f"unknown fields among {', '.join(sorted(fields))}")


def _number(report: dict[str, Any], name: str, least: float = -math.inf) -> float:
    value = report[name]
    if type(value) not in (int, float) or not math.isfinite(value) or value < least:
        raise ValueError(f"{name}: {value!r}; expected a number")
    return float(value)
