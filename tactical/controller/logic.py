"""The controller's decisions: events and the current time in, decisions out. Pure.

One instance follows one network.  The caller feeds it events, carries out each
:class:`Decision` (in the order of :class:`~tactical.controller.deployment.Change`) and
confirms it; until then the old deployment counts as the one in force.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .allocation import Allocation, allocate
from .deployment import Change, Deployment, FlowEntry, change, deployment
from .network import ControlledNetwork
from .view import (
    AssociationChanged,
    DatapathConnected,
    DatapathLost,
    DeploymentFailed,
    Event,
    PortChanged,
    StationHeard,
    View,
)


@dataclass(frozen=True)
class Record:
    """An event for the run's event log."""

    kind: str
    node: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What one event led to: records for the log and, if anything must change, how."""

    trigger: str
    records: tuple[Record, ...] = ()
    change: Change | None = None
    target: Deployment | None = None


class Controller:
    """Watches, solves, and says what to deploy.

    Parameters
    ----------
    network
        What is controlled.
    clock
        Seconds, used only to measure how long a solve took.
    """

    def __init__(
        self, network: ControlledNetwork, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.network = network
        self.view = View()
        self.deployed = Deployment()
        self._clock = clock
        self._complete = False

    def handle(self, event: Event) -> Decision:
        """Take in `event` and decide.

        Nothing is deployed before every described datapath has connected once; afterwards a
        change of what is attached, or a datapath that comes back, leads to a new solution.
        """
        before = self.view
        self.view = before.apply(event, self.network)
        trigger = _trigger(event, self.network)
        if isinstance(event, DatapathConnected):
            self.deployed = self.deployed.reconnected(event.dpid)
        elif self.view == before and not isinstance(event, DeploymentFailed):
            return Decision(trigger)
        records = _link_records(event, self.network)
        self._complete = self._complete or self.view.ready(self.network)
        if isinstance(event, DatapathLost) or not self._complete:
            return Decision(trigger, records)
        started = self._clock()
        allocation = allocate(self.network, self.view)
        took_s = self._clock() - started
        target = deployment(self.network, self.view, allocation)
        target = target.keeping(self.deployed.queues_used(self._away(), self.network))
        steps = change(self.deployed, target)
        if allocation.solution is not None:
            records = (*records, _solve_record(trigger, allocation, took_s))
        return Decision(trigger, records, None if steps.empty else steps, target)

    def confirm(self, decision: Decision) -> None:
        """The switches now hold `decision`'s target."""
        if decision.target is not None:
            self.deployed = replace(decision.target, uncertain=self._away())

    def _away(self) -> frozenset[FlowEntry]:
        """Entries of switches that are not connected: they may still forward by them."""
        held = self.deployed.flows | self.deployed.uncertain
        return frozenset(flow for flow in held if flow.dpid not in self.view.connected)


def _trigger(event: Event, network: ControlledNetwork) -> str:
    match event:
        case DatapathConnected(dpid, _):
            return f"datapath {network.datapath_name(dpid) or dpid} connected"
        case DatapathLost(dpid):
            return f"datapath {network.datapath_name(dpid) or dpid} lost"
        case DeploymentFailed():
            return "deployment failed"
        case PortChanged(_, port, up):
            return f"port {port} {'up' if up else 'down'}"
        case AssociationChanged(user, datapath, associated):
            return f"{user} {'associated with' if associated else 'dissociated from'} {datapath}"
        case StationHeard(dpid, mac):
            return f"{_station(network, mac)} heard at {network.datapath_name(dpid) or dpid}"


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
            "path_flows": [
                {
                    "user": s.attachment.user,
                    "via": s.attachment.datapath,
                    "rate_bps": s.rate_bps,
                }
                for s in allocation.subflows
            ],
        },
    )
