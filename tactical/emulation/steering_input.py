"""Commands of people who steer: lines on the worker's standard input."""

from __future__ import annotations

import json
import queue
import sys
import threading

from scenarios import Scenario

from .. import steering
from .events import EventLog


def heard_commands(scenario: Scenario, events: EventLog) -> queue.SimpleQueue[steering.Command]:
    """A queue that gets commands as they come; a line that is none is told as an error."""
    names = steering.Names(
        nodes=[s.name for s in scenario.stations] + [a.name for a in scenario.access_points],
        relays=[access.name for access in scenario.accesses],
        users=list(dict.fromkeys(each.user for each in scenario.traffic)),
    )
    heard: queue.SimpleQueue[steering.Command] = queue.SimpleQueue()

    def hear() -> None:
        for line in sys.stdin:
            try:
                heard.put(steering.read(json.loads(line), names))
            except ValueError as error:
                events.write("error", "run", message=f"{line.strip()}: {error}")

    threading.Thread(target=hear, daemon=True, name="commands").start()
    return heard
