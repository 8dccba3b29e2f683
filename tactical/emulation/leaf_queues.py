"""Queue disciplines at the switches: what Open vSwitch's queues do with packets that must wait.

OVSDB says how fast a queue is and nothing about how long it may get. So whenever the controller has
set queues, the switch's side gives each the discipline that the scenario asks for: CoDel with the
waiting time that the solution assumed (`fdm.active_queue`), or none, which leaves a FIFO of the
port's buffer.
"""

from __future__ import annotations

import re
import threading
from queue import SimpleQueue
from typing import Any

from fdm.active_queue import CoDel, codel
from scenarios import Scenario

from ..host.process import CommandError, run
from . import commands
from .events import Event, EventLog
from .plan import Plan
from .processes import COMMAND_TIMEOUT_S


class Disciplines:
    """What the queues of a network are given, as the controller's records go by. Pure.

    Parameters
    ----------
    plan, scenario
        The network, and the delay model that the controller solves with.
    """

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self._plan = plan
        self._scenario = scenario
        self._links = {u.relay: (float(u.rate_bps), u.delay_s) for u in plan.uplinks}
        self._flow_bps: dict[tuple[str, str], float] = {}
        self._changed: list[dict[str, Any]] = []

    def take(self, record: Event) -> dict[tuple[str, int], CoDel]:
        """Note what the controller says; returns what to set on which queue of which port now."""
        data = record["data"]
        match record["kind"]:
            case "solve":
                self._flow_bps = {}
                for way in ("path_flows", "down_flows"):
                    for flow in data.get(way, ()):
                        link = (flow["via"], way)
                        self._flow_bps[link] = self._flow_bps.get(link, 0.0) + flow["rate_bps"]
            case "link_change":
                self._links[record["node"]] = (data["rate_bps"], data["delay_s"])
            case "queue_set":
                self._changed.append(data)
            case "assignment":
                changed, self._changed = self._changed, []
                return {(q["port"], q["queue_id"]): self._leaf(q) for q in changed}
        return {}

    def _leaf(self, queue: dict[str, Any]) -> CoDel:
        name = queue["port"]
        uplink = next(u for u in self._plan.uplinks if name in (u.relay_port, u.shore_port))
        port = next(p for s in self._plan.switches for p in s.ports if p.name == name)
        rate_bps, delay_s = self._links[uplink.relay]
        way = "path_flows" if name == uplink.relay_port else "down_flows"
        return codel(
            rate_bps,
            self._flow_bps.get((uplink.relay, way), 0.0),
            queue["max_bps"],
            2.0 * delay_s,
            packet_bits=self._scenario.mean_packet_bits,
            kappa=self._scenario.kappa,
            buffer_packets=port.buffer_packets or 1000,
        )


class LeafQueues:
    """Follows the controller's records of a run and sets queue disciplines; a context manager.

    Parameters
    ----------
    plan, scenario
        The network, and the delay model that the controller solves with.
    events
        Where the controller's records arrive, and what was set is written.
    """

    def __init__(self, plan: Plan, scenario: Scenario, events: EventLog) -> None:
        self._wanted = scenario.queue_discipline == "codel"
        self._disciplines = Disciplines(plan, scenario)
        self._events = events
        self._records: SimpleQueue[Event | None] = events.subscribe(
            "solve", "queue_set", "assignment", "link_change"
        )
        self._thread = threading.Thread(target=self._follow, name="leaf queues", daemon=True)

    def __enter__(self) -> LeafQueues:
        if self._wanted:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._records.put(None)
        if self._thread.ident is not None:
            self._thread.join(COMMAND_TIMEOUT_S)

    def _follow(self) -> None:
        while (record := self._records.get()) is not None:
            if leaves := self._disciplines.take(record):
                self._apply(leaves)

    def _apply(self, leaves: dict[tuple[str, int], CoDel]) -> None:
        gone: frozenset[int] = frozenset()
        try:
            run(
                ("tc", "-force", "-batch", "-"),
                stdin=commands.leaf_batch(leaves),
                timeout_s=COMMAND_TIMEOUT_S,
            )
        except CommandError as error:
            gone, others = failed_lines(error.stderr)
            if others or not gone:
                self._events.write("error", "leaf queues", message=str(error))
        for number, ((port, queue_id), leaf) in enumerate(leaves.items(), start=1):
            if number in gone:
                continue
            self._events.write(
                "queue_discipline", "leaf queues", port=port, queue_id=queue_id, **leaf._asdict()
            )


def failed_lines(said: str) -> tuple[frozenset[int], frozenset[int]]:
    """Lines of a batch whose queue is there no more, and lines that failed otherwise.

    Where decisions follow each other closely, as when a radio leaves one access point and joins
    another, a queue may be gone before its discipline is set. `said` is what tc(8) complains of.
    """
    failed: dict[bool, set[int]] = {True: set(), False: set()}
    reason = ""
    for line in said.splitlines():
        if found := re.match(r"Command failed -:(\d+)", line):
            failed["Specified class not found" in reason].add(int(found[1]))
            reason = ""
        else:
            reason = line
    return frozenset(failed[True]), frozenset(failed[False])
