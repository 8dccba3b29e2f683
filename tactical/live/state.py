"""The state of a run as people watch it: records in, what is new out. Pure.

Sections of the state (see `store`):

==============  =============================================================================
``run``         ``phase``, ``reason``, ``t_s``, ``policy``, ``damaged`` (records left out)
``positions``   node to [east_m, north_m, up_m]
``associated``  station to the access point that its radio uses, or null
``links``       relay to whether it is up, its capacity, what passes, utilisation
``subflows``    "user relay" to what is measured, allocated, guaranteed and waiting
``goodput``     user to its rate, where it is known
``movement``    ``playing`` and ``speed``, where people steer
``demands``     user to what is planned for it
``stories``     number to a story (see `story`)
==============  =============================================================================

Series: ``measured``, ``allocated`` ("user relay"), ``link`` (relay), ``goodput`` (user) of
[t_s, bit/s], and ``track`` (node) of [east_m, north_m].
"""

from __future__ import annotations

import math
from typing import Any

from .records import Record
from .setup import Setup
from .store import Store
from .story import Teller

TRACK_STEP_M = 10.0
"""A node has to move that far for another point of its track."""
_NO_ALLOCATION = ("shortest", "ecmp", "wcmp", "maxflow")


class State:
    """What is known of a run at one moment of it.

    Parameters
    ----------
    setup : Setup
        What does not change.
    from_captures : bool
        Rates of subflows come from the captures (records of kind ``arrival``), and counters are not
        needed for them.
    """

    def __init__(self, setup: Setup, *, from_captures: bool = False) -> None:
        self.setup = setup
        self.store = Store()
        self._from_captures = from_captures
        ports = {port: link.relay for link in setup.links for port in (link.port, link.shore_port)}
        self._teller = Teller(self._put_story, ports)
        self._capacity_bps = {link.relay: link.rate_bps for link in setup.links}
        self._link_of_port = {(link.relay, link.port): link.relay for link in setup.links}
        self._link_of_shore_port = {link.shore_port: link.relay for link in setup.links}
        self._host = next((node.name for node in setup.nodes if node.kind == "host"), "")
        self._arriving_bps: dict[str, float] = {}
        self._queues: dict[tuple[str, str, int], tuple[str, str]] = {}
        self._counted: dict[tuple[object, ...], tuple[float, float]] = {}
        self._solved: dict[str, float] = {}
        self._track_end: dict[str, tuple[float, float]] = {}
        self.store.put("run", "phase", "defined")
        self.store.put("run", "policy", setup.policy)
        for user in setup.users:
            for via in setup.paths(user):
                wired = via not in setup.access_points
                self._subflow(user.name, via, user=user.name, via=via, attached=wired)
        for link in setup.links:
            self._link(link.relay, up=True, capacity_bps=link.rate_bps)
        for station in setup.stations:
            self.store.put("associated", station, None)
        for user in setup.users:
            self.store.put("demands", user.name, user.offered_bps)
        self.store.put("movement", "playing", True)
        self.store.put("movement", "speed", 1.0)

    def apply(self, record: Record) -> None:
        """Take in one record; records come in order of time.

        One that does not have what its kind has costs what it says, and is counted.
        """
        try:
            self._take(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.store.put("run", "damaged", self.store.get("run", "damaged", 0) + 1)
        if record.t_s is not None and record.kind != "arrival":
            self.at(record.t_s)

    def _take(self, record: Record) -> None:
        match record.kind:
            case "position":
                self._position(record)
            case "sample":
                self._sample(record)
            case "arrival":
                self._arrival(record)
            case "association":
                self._association(record)
            case "solve":
                flows = record.data.get("path_flows") or []
                self._solved = {f"{f['user']} {f['via']}": float(f["rate_bps"]) for f in flows}
            case "queue_set":
                self._queue_set(record)
            case "assignment":
                self._assignment(record)
            case "link_up" | "link_down":
                relay = self._link_of_port.get((record.node, str(record.data.get("port"))))
                if relay is not None:
                    self._link(relay, up=record.kind == "link_up")
            case "link_change":
                self._capacity_bps[record.node] = float(record.data["rate_bps"])
                up = record.data.get("loss") != 1.0
                self._link(record.node, capacity_bps=self._capacity_bps[record.node], up=up)
            case "command":
                self._command(record)
            case "state":
                self.store.put("run", "phase", record.data.get("state"))
                self.store.put("run", "reason", record.data.get("reason"))
        self._teller.hear(record)

    def at(self, t_s: float) -> None:
        """Run time is `t_s` now."""
        self.store.put("run", "t_s", round(t_s, 3))

    # -- what records change -------------------------------------------------------------

    def _position(self, record: Record) -> None:
        data = record.data
        here = [float(data["east_m"]), float(data["north_m"]), float(data["up_m"])]
        self.store.put("positions", record.node, here)
        east_m, north_m = here[:2]
        last = self._track_end.get(record.node)
        if last is None or math.dist(last, (east_m, north_m)) >= TRACK_STEP_M:
            self._track_end[record.node] = (east_m, north_m)
            self.store.append(f"track {record.node}", [east_m, north_m])

    def _association(self, record: Record) -> None:
        user, relay = record.node, record.data.get("access_point")
        state = record.data.get("state")
        if state == "associated":
            self.store.put("associated", user, relay)
        elif state == "dissociated" and self.store.get("associated", user) == relay:
            self.store.put("associated", user, None)
        if state in ("associated", "dissociated"):
            attached = state == "associated"
            self._subflow(user, str(relay), attached=attached)
            if not attached:
                self._measured(user, str(relay), 0.0, record.t_s)
            if self.setup.protocol == "sptcp" and self.setup.links:
                # One path at a time: the first satellite serves while the radio does not.
                self._subflow(user, self.setup.links[0].relay, attached=not attached)

    def _command(self, record: Record) -> None:
        match record.data:
            case {"do": "demand", "user": user, "rate_bps": rate_bps}:
                self.store.put("demands", str(user), rate_bps)
            case {"do": "policy", "policy": policy}:
                self.store.put("run", "policy", policy)
            case {"do": "play", "playing": playing}:
                self.store.put("movement", "playing", playing)
            case {"do": "speed", "speed": speed}:
                self.store.put("movement", "speed", speed)

    def _queue_set(self, record: Record) -> None:
        data = record.data
        user, via = str(data.get("user")), str(data.get("via"))
        key = (str(data.get("datapath")), str(data.get("port")), int(data.get("queue_id", 0)))
        if key[:2] in self._link_of_port:
            self._queues[key] = (user, via)
            self._subflow(user, via, min_bps=data.get("min_bps"), max_bps=data.get("max_bps"))

    def _assignment(self, record: Record) -> None:
        trigger = str(record.data.get("trigger", ""))
        if trigger.startswith("policy "):
            self.store.put("run", "policy", trigger.removeprefix("policy "))
        allocating = self.store.get("run", "policy") not in _NO_ALLOCATION
        for key, subflow in self.store.section("subflows").items():
            allocated = self._solved.get(key, 0.0) if allocating else None
            if subflow.get("allocated_bps") == allocated:
                continue
            self._allocated_point(key, subflow.get("allocated_bps"), record.t_s)
            self._allocated_point(key, allocated, record.t_s)
            unqueued = {} if allocating else {"min_bps": None, "max_bps": None}
            self._subflow(subflow["user"], subflow["via"], allocated_bps=allocated, **unqueued)
        if not allocating:
            self._queues.clear()

    def _allocated_point(self, key: str, value: float | None, t_s: float | None) -> None:
        moment = 0.0 if t_s is None else max(0.0, t_s)
        self.store.append(f"allocated {key}", [round(moment, 3), value])

    def _sample(self, record: Record) -> None:
        row = record.data
        kind, port = row.get("kind"), str(row.get("port"))
        if kind == "port":
            relay = self._link_of_port.get((record.node, port))
            if relay is not None:
                self._counter(record, ("link", relay), row.get("tx_bytes"))
            relay = self._link_of_shore_port.get(port)
            if relay is not None and not self._from_captures:
                self._counter(record, ("arriving", relay), row.get("rx_bytes"))
            user = self.setup.ports.get((record.node, port))
            if user is not None:
                self._counter(record, ("subflow", user, record.node), row.get("rx_bytes"))
        elif kind == "queue":
            queue = self._queues.get((record.node, port, int(row.get("queue_id") or 0)))
            if queue is not None:
                number = row.get("queue_id")
                self._counter(record, ("queue", *queue, number), row.get("tx_bytes"))
        elif kind == "backlog":
            queue = self._queues.get((record.node, port, int(row.get("queue_id") or 0)))
            if queue is not None:
                self._subflow(*queue, waiting_packets=row.get("backlog_packets"))

    def _counter(self, record: Record, key: tuple[object, ...], count: object) -> None:
        """Make a rate of two readings of a counter."""
        t_s = record.t_s
        if t_s is None or not isinstance(count, int | float):
            return
        before = self._counted.get(key)
        self._counted[key] = (t_s, count)
        if before is None or t_s <= before[0] or count < before[1]:
            return
        rate_bps = 8 * (count - before[1]) / (t_s - before[0])
        match key:
            case ("link", str(relay)):
                self._link_rate(relay, rate_bps, t_s)
            case ("arriving", str(relay)):
                self._arriving(relay, rate_bps, t_s)
            case ("subflow", str(user), str(via)) if not self._from_captures:
                self._measured(user, via, rate_bps, t_s)
            case ("queue", str(user), str(via), _):
                self._subflow(user, via, queue_bps=round(rate_bps))
                counted = ("subflow", user, via) in self._counted
                if not self._from_captures and not counted:
                    self._measured(user, via, rate_bps, t_s)

    def _arrival(self, record: Record) -> None:
        rate_bps, via = float(record.data.get("rate_bps", 0.0)), record.data.get("via")
        if record.t_s is None:
            return
        if via is None:
            self._goodput(record.node, rate_bps, record.t_s)
        else:
            self._measured(record.node, str(via), rate_bps, record.t_s)

    # -- what is shown -------------------------------------------------------------------

    def _goodput(self, node: str, rate_bps: float, t_s: float) -> None:
        self.store.put("goodput", node, round(rate_bps))
        self.store.append(f"goodput {node}", [round(t_s, 3), round(rate_bps)])

    def _arriving(self, relay: str, rate_bps: float, t_s: float) -> None:
        """What comes to the host is what comes over all links, once that is known of each."""
        self._arriving_bps[relay] = rate_bps
        if len(self._arriving_bps) == len(self.setup.links):
            self._goodput(self._host, sum(self._arriving_bps.values()), t_s)
            self._arriving_bps.clear()

    def _measured(self, user: str, via: str, rate_bps: float, t_s: float | None) -> None:
        self._subflow(user, via, measured_bps=round(rate_bps))
        if t_s is not None and t_s >= 0:
            self.store.append(f"measured {user} {via}", [round(t_s, 3), round(rate_bps)])
        self._teller.carries(user, via, rate_bps, t_s)

    def _link_rate(self, relay: str, rate_bps: float, t_s: float) -> None:
        share = round(rate_bps / self._capacity_bps[relay], 4)
        self._link(relay, rate_bps=round(rate_bps), utilisation=share)
        if t_s >= 0:
            self.store.append(f"link {relay}", [round(t_s, 3), share])

    def _subflow(self, subflow_user: str, relay: str, /, **figures: Any) -> None:
        key = f"{subflow_user} {relay}"
        known = self.store.get("subflows", key, {"user": subflow_user, "via": relay})
        self.store.put("subflows", key, {**known, **figures})

    def _link(self, relay: str, **figures: Any) -> None:
        known = self.store.get("links", relay, {})
        self.store.put("links", relay, {**known, **figures})

    def _put_story(self, number: str, story: dict[str, Any] | None) -> None:
        if story is None:
            self.store.forget("stories", number)
        else:
            self.store.put("stories", number, story)
