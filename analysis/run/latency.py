"""How long the controller takes from an association to what follows from it."""

from collections.abc import Sequence

import numpy as np

from analysis.run.directory import Event, mapping, number
from analysis.run.result import HandoverLatency, Spread

_STATION_EVENTS = {True: "station_joined", False: "station_left"}
_PARTS = ("waited_s", "solve_time_s", "deploy_time_s")
# The access point's own word of an association is not older than this when it is acted upon.
_BEFORE_S = 5.0


def handover_latency(events: Sequence[Event]) -> HandoverLatency | None:
    """Every deployment that an association caused, in parts.

    The association is the access point's own event or the moment in which the controller heard of
    it, whichever is earlier.

    Parameters
    ----------
    events : sequence of Event
        Of the whole run, in order of time.

    Returns
    -------
    HandoverLatency or None
        ``None`` if no association led to a deployment.
    """
    parts = []
    for event in events:
        cause = mapping(event.data.get("cause"))
        taken = [number(event.data.get(name)) for name in _PARTS]
        if event.kind != "assignment" or not cause or None in taken:
            continue
        waited_s, solve_s, deploy_s = (each or 0.0 for each in taken)
        heard_s = event.t_s - waited_s - solve_s - deploy_s
        told_s = [
            each.t_s
            for each in events
            if heard_s - _BEFORE_S <= each.t_s <= event.t_s
            and each.kind == _STATION_EVENTS[bool(cause.get("associated"))]
            and (each.node, each.data.get("user")) == (cause.get("access_point"), cause.get("user"))
        ]
        begin_s = min([heard_s, *told_s[-1:]])
        parts.append((heard_s - begin_s, waited_s, solve_s, deploy_s, event.t_s - begin_s))
    if not parts:
        return None
    spreads = [
        Spread(float(np.median(part)), float(np.quantile(part, 0.95)))
        for part in zip(*parts, strict=True)
    ]
    return HandoverLatency(len(parts), *spreads)
