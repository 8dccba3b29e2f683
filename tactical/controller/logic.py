"""The controller's decisions: events and the current time in, decisions out. Pure.

One instance follows one network.  The caller feeds it events, carries out each
:class:`Decision` (in the order of :class:`~tactical.controller.deployment.Change`) and
confirms it; until then the old deployment counts as the one in force.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .allocation import Allocation, Situation
from .deployment import (
    SUBFLOW_PRIORITY,
    Change,
    Deployment,
    FlowEntry,
    Memory,
    PortNumbers,
    change,
    deployment,
    numbered,
    reached,
)
from .events import (
    AssociationChanged,
    AssociationExpected,
    CapacitySet,
    CountersRead,
    DatapathConnected,
    DatapathLost,
    DemandSet,
    DeploymentFailed,
    DistanceMeasured,
    Event,
    HandshakeSeen,
    PolicySet,
    PortChanged,
    QueuesRead,
    RoleChanged,
    SegmentHeld,
    SignalMeasured,
    StationHeard,
    Tick,
)
from .network import ControlledNetwork
from .policy import Policy, named
from .view import Place, View

_TELLS_WHAT_IS_DEPLOYED = (DatapathConnected, QueuesRead, DeploymentFailed, RoleChanged)


HOLD_S = 1.0
"""A segment that came too early is kept so long: its sender sends it again after that."""
HELD_SEGMENTS = 256

CAUSES = ("user", "access_point", "associated", "source")


class SolveError(RuntimeError):
    """A policy came to no decision, or not in time."""


@dataclass(frozen=True)
class Record:
    """An event for the run's event log."""

    kind: str
    node: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What one event led to: records for the log and, if anything must change, how.

    Attributes
    ----------
    records
        For the log, at once.
    outcome
        For the log, when the change is in force.
    cause
        The association behind it, if it is one: user, access point, whether associated, source.
    """

    trigger: str
    records: tuple[Record, ...] = ()
    change: Change | None = None
    target: Deployment | None = None
    solve_time_s: float = 0.0
    accepted: Accepted | None = field(default=None, repr=False)
    outcome: tuple[Record, ...] = ()
    backups: Mapping[Place, bool] | None = field(default=None, repr=False)
    cause: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Accepted:
    """An allocation, what it was made for, and when."""

    policy: str
    situation: Situation
    allocation: Allocation
    at_s: float


class Controller:
    """Watches, solves, and says what to deploy.

    Parameters
    ----------
    network
        What is controlled.
    clock
        Seconds, used only to measure how long a solve took.
    allocate
        Lets a policy decide; may raise :class:`SolveError`.
    elected
        Whether other controllers may be there, so that this one changes nothing before a
        :class:`~tactical.controller.events.RoleChanged` says that it is the master.
    """

    def __init__(
        self,
        network: ControlledNetwork,
        clock: Callable[[], float] = time.perf_counter,
        allocate: Callable[[Policy, Situation], Allocation] | None = None,
        *,
        elected: bool = False,
    ) -> None:
        self.network = network
        self.view = View(policy=network.policy, master=not elected)
        self.deployed = Deployment()
        self._clock = clock
        self._allocate = allocate or (lambda policy, situation: policy.allocate(situation))
        self._complete = False
        self._accepted: Accepted | None = None
        self._unsolved = False
        self._judged_s = -math.inf
        self._numbers: PortNumbers = {}
        self._memory: Memory = {}
        self._backups: Mapping[Place, bool] = {}
        self._held: tuple[tuple[float, SegmentHeld], ...] = ()

    @property
    def allocation(self) -> Allocation | None:
        """The allocation in force, if there is one."""
        return None if self._accepted is None else self._accepted.allocation

    @property
    def policy(self) -> Policy:
        """The policy that decides at present."""
        return named(self.view.policy)

    def handle(self, event: Event, now_s: float) -> Decision:
        """Take in `event` at `now_s` (seconds of any steady clock) and decide.

        Nothing is deployed before every described datapath has connected once, or was waited
        for in vain, and the queues that are there are known.  Afterwards a change of what is
        attached or usable leads to a new solution; so do demands and capacities that have
        changed so much that the allocation in force is not good enough.
        """
        before = self.view
        self.view = before.apply(event, self.network, now_s)
        self._adopt(event)
        trigger = _trigger(event, self.network)
        records = _link_records(event, self.network) if self.view != before else ()
        if isinstance(event, HandshakeSeen):
            return Decision(trigger, self._subflow_records(before))
        if isinstance(event, SegmentHeld):
            self._held = (*self._held, (now_s, event))[-HELD_SEGMENTS:]
            return Decision(trigger)
        self._complete = self._complete or (
            self.view.ready(self.network, now_s)
            and (self.view.queues_read or not self.policy.uses_queues)
        )
        if isinstance(event, CountersRead | DatapathLost):
            return Decision(trigger, records)
        if not self._complete or not self.view.master:
            return Decision(trigger, records)
        situation = replace(self.view.situation(self.network, now_s), before=self.allocation)
        return self._decide(event, trigger, records, situation, now_s)

    def confirm(self, decision: Decision) -> None:
        """The switches now hold `decision`'s target."""
        if decision.target is not None:
            steps = decision.change
            held = decision.target
            self.deployed = held if steps is None else reached(self.deployed, held, steps)
        if decision.accepted is not None:
            self._accepted = decision.accepted
        if decision.backups is not None:
            self._backups = decision.backups

    def released(self, now_s: float) -> tuple[SegmentHeld, ...]:
        """Segments that were held and have entries now; each is returned once."""
        if not self._held:
            return ()
        ready = {
            (f.dpid, dict(f.match)["ipv4_src"])
            for f in self.deployed.flows
            if f.priority == SUBFLOW_PRIORITY
        }
        fresh = [each for each in self._held if self.view.master and now_s < each[0] + HOLD_S]
        self._held = tuple(each for each in fresh if (each[1].dpid, each[1].source) not in ready)
        return tuple(s for _, s in fresh if (s.dpid, s.source) in ready)

    def next_moment_s(self, now_s: float) -> float | None:
        """When an expectation falls due that has not yet; a :class:`Tick` is to come then."""
        lead_s = self.network.settings.lead_time_s
        moments = [at_s - lead_s for _, at_s in self.view.expected.values()]
        return min((moment for moment in moments if moment > now_s), default=None)

    def _adopt(self, event: Event) -> None:
        """Take what is really deployed for deployed."""
        match event:
            case DatapathConnected(dpid, _, entries):
                if self.network.datapath_name(dpid) is not None:
                    self.deployed = self.deployed.holding(dpid, entries)
            case QueuesRead(queues):
                self.deployed = Deployment(self.deployed.flows, dict(queues))
                numbers = {place: dict(given) for place, given in self._numbers.items()}
                for q in queues:
                    place = numbers.setdefault((q.datapath, q.port), {})
                    place[q.user, q.via] = q.queue_id
                self._numbers = numbers
            case DeploymentFailed(held) if held is not None:
                self.deployed = held

    def _decide(
        self,
        event: Event,
        trigger: str,
        records: tuple[Record, ...],
        situation: Situation,
        now_s: float,
    ) -> Decision:
        accepted, took_s = self._accepted, 0.0
        if self._must_solve(event, accepted, situation, now_s):
            if isinstance(event, Tick):
                trigger = "periodic" if not self._unsolved else "solve again"
            started = self._clock()
            try:
                allocation = self._allocate(self.policy, situation)
            except Exception as error:  # noqa: BLE001 - whatever it is, the last answer stays
                self._unsolved = True
                return Decision(trigger, (*records, self._failed_solve(trigger, error)))
            took_s = self._clock() - started
            self._unsolved = False
            accepted = Accepted(self.view.policy, situation, allocation, now_s)
            if allocation.solution is not None:
                records = (*records, _solve_record(trigger, allocation, took_s))
            self._numbers = numbered(allocation, self._numbers)
        elif not isinstance(event, _TELLS_WHAT_IS_DEPLOYED):
            return Decision(trigger, records)
        assert accepted is not None
        target = deployment(
            self.network, self.view.connected, accepted.allocation, self._numbers, self._memory
        )
        away = self._away()
        target = target.keeping(away, self.deployed.queues_used(away, self.network))
        steps = change(self.deployed, target, tolerance=self.network.settings.queue_tolerance)
        backups = self._wanted_backups(accepted)
        return Decision(
            trigger,
            records,
            None if steps.empty else steps,
            target if not steps.empty else reached(self.deployed, target, steps),
            took_s,
            accepted,
            self._priority_records(backups, now_s),
            backups,
            _cause(event, self.network),
        )

    def _subflow_records(self, before: View) -> tuple[Record, ...]:
        """Subflows whose connection is known now and was not `before`."""
        known = self.view.subflows.connection
        if known == before.subflows.connection:
            return ()
        users = {a.address: (a.user, a.datapath) for a in self.network.attachments}
        records = []
        for ends, token in known.items():
            client, client_port, server, server_port = ends
            if token is None or before.subflows.connection.get(ends) == token:
                continue
            user, via = users.get(client, (client, None))
            data = {
                "source": f"{client}:{client_port}",
                "destination": f"{server}:{server_port}",
                "token": token,
                "via": via,
            }
            records.append(Record("subflow_established", user, data))
        return tuple(records)

    def _must_solve(
        self, event: Event, accepted: Accepted | None, situation: Situation, now_s: float
    ) -> bool:
        early = isinstance(event, Tick) and now_s - self._judged_s < self.network.settings.period_s
        if self._unsolved and early:
            return False
        if (
            accepted is None
            or self.view.policy != accepted.policy
            or not situation.same_structure(accepted.situation)
        ):
            self._judged_s = now_s
            return True
        if early or not isinstance(event, Tick | DemandSet | CapacitySet):
            return False
        self._judged_s = now_s
        since_s = now_s - accepted.at_s
        if self._unsolved:
            return True
        return not self.policy.keeps(situation, accepted.allocation, since_s)

    def _wanted_backups(self, accepted: Accepted) -> dict[Place, bool]:
        """Of every subflow that is there, whether its user is to use another one instead."""
        here = {(a.user, a.datapath) for a in self.view.attached(self.network)}
        idle = {
            (s.attachment.user, s.attachment.datapath): s.idle
            or s.attachment in accepted.situation.fading
            for s in accepted.allocation.subflows
        }
        busy = {place[0] for place in here if not idle.get(place, True)}
        return {
            place: unused and place[0] in busy for place, unused in idle.items() if place in here
        }

    def _priority_records(self, backups: Mapping[Place, bool], now_s: float) -> tuple[Record, ...]:
        """Say which subflows have become backups, or are none any more.

        A subflow that comes is none; what an earlier controller said is not known.
        """
        inherited = self._accepted is None and self.deployed.flows
        records = []
        for place, backup in sorted(backups.items()):
            if inherited or backup != self._backups.get(place, False):
                data = {"user": place[0], "via": place[1], "backup": backup}
                associated, at_s = self.view.expected.get(place, (True, 0.0))
                if backup and not associated:
                    data["expected_in_s"] = at_s - now_s
                records.append(Record("subflow_priority", "controller", data))
        return tuple(records)

    def _failed_solve(self, trigger: str, error: Exception) -> Record:
        stays = "the allocation in force stays" if self._accepted else "nothing is deployed"
        message = f"solve after {trigger!r} failed: {error or type(error).__name__}; {stays}"
        return Record("error", "controller", {"message": message})

    def _away(self) -> frozenset[FlowEntry]:
        """Entries of switches that are not connected: they still forward by them."""
        return frozenset(f for f in self.deployed.flows if f.dpid not in self.view.connected)


def deployment_records(decision: Decision, times: Mapping[str, float]) -> list[Record]:
    """What is told of a change that is in force; `times` are how long it took."""
    steps = decision.change
    assert steps is not None
    records = [
        Record(
            "queue_set",
            "controller",
            {
                "datapath": q.datapath,
                "port": q.port,
                "queue_id": q.queue_id,
                "user": q.user,
                "via": q.via,
                "min_bps": rate.min_bps,
                "max_bps": rate.max_bps,
            },
        )
        for q, rate in {**steps.lowered, **steps.raised}.items()
        if q not in steps.dropped
    ]
    figures = {
        "added": len(steps.added),
        "removed": len(steps.removed),
        "queues_dropped": len(steps.dropped),
    }
    records.append(Record("flow_mod", "controller", figures))
    cause = {} if decision.cause is None else {"cause": decision.cause}
    records.append(
        Record("assignment", "controller", {"trigger": decision.trigger, **cause, **times})
    )
    return records


def _trigger(event: Event, network: ControlledNetwork) -> str:
    def name(dpid: int) -> str:
        return network.datapath_name(dpid) or str(dpid)

    match event:
        case DatapathConnected(dpid, _, _):
            return f"datapath {name(dpid)} connected"
        case DatapathLost(dpid):
            return f"datapath {name(dpid)} lost"
        case DeploymentFailed():
            return "deployment failed"
        case PortChanged(_, port, up):
            return f"port {port} {'up' if up else 'down'}"
        case AssociationChanged(user, datapath, associated, _):
            return f"{user} {'associated with' if associated else 'dissociated from'} {datapath}"
        case StationHeard(dpid, mac):
            return f"{_station(network, mac)} heard at {name(dpid)}"
        case AssociationExpected(user, datapath, associated, _):
            return f"{user} expected to {'join' if associated else 'leave'} {datapath}"
        case SignalMeasured(user, datapath) | DistanceMeasured(user, datapath):
            return f"trend of {user} at {datapath}"
        case DemandSet(user, _):
            return f"demand of {user}"
        case CapacitySet(trunk):
            return f"capacity of {trunk}"
        case PolicySet(policy):
            return f"policy {policy}"
        case RoleChanged(master):
            return "became master" if master else "became slave"
        case QueuesRead():
            return "queues read"
        case CountersRead():
            return "counters read"
        case HandshakeSeen():
            return "subflow seen"
        case SegmentHeld(_, _, source, _):
            return f"subflow of {source} is early"
        case Tick():
            return "expected change of association"


def _cause(event: Event, network: ControlledNetwork) -> Mapping[str, Any] | None:
    match event:
        case AssociationChanged(user, datapath, associated, source):
            return dict(zip(CAUSES, (user, datapath, associated, source), strict=True))
        case StationHeard(dpid, mac):
            place = (_station(network, mac), network.datapath_name(dpid))
            return dict(zip(CAUSES, (*place, True, "frame"), strict=True))
        case _:
            return None


def _station(network: ControlledNetwork, mac: str) -> str:
    return next((a.user for a in network.attachments if a.mac == mac), mac)


def _link_records(event: Event, network: ControlledNetwork) -> tuple[Record, ...]:
    match event:
        case PortChanged(dpid, port, up):
            name = network.datapath_name(dpid) or str(dpid)
            return (Record("link_up" if up else "link_down", name, {"port": port}),)
        case DatapathLost(dpid):
            name = network.datapath_name(dpid) or str(dpid)
            return (Record("error", name, {"message": "control connection lost"}),)
        case RoleChanged(master):
            return (Record("role", "controller", {"role": "master" if master else "slave"}),)
        case _:
            return ()


def _solve_record(trigger: str, allocation: Allocation, took_s: float) -> Record:
    solution = allocation.solution
    assert solution is not None
    return Record(
        "solve",
        "controller",
        {
            "trigger": trigger,
            "feasible": solution.feasible,
            "method": solution.method,
            "iterations": solution.iterations,
            "mean_packet_delay_s": solution.mean_packet_delay_s,
            "relative_gap": solution.relative_gap,
            "solve_time_s": took_s,
            "solver_time_s": solution.solve_time_s,
            "cpu_time_s": allocation.cpu_time_s,
            "path_flows": [
                {
                    "user": s.attachment.user,
                    "via": s.attachment.datapath,
                    "rate_bps": s.rate_bps,
                }
                for s in allocation.subflows
            ],
            "down_flows": [
                {
                    "user": s.attachment.user,
                    "via": s.attachment.datapath,
                    "rate_bps": s.down_bps,
                }
                for s in allocation.subflows
                if s.down_bps is not None
            ],
        },
    )
