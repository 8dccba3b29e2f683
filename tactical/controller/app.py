"""The application: a thin shim between OpenFlow, OVSDB and the pure logic.

Handlers only translate and enqueue; one thread takes events in order, lets
:class:`~tactical.controller.logic.Controller` decide and carries the decision out.  Records
leave as JSON lines.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fdm.queues import QueueRate

from .databases import Databases
from .deadline import Deadline
from .deployment import (
    COUNTED,
    HELD,
    Change,
    Queue,
    subflow_cookie,
)
from .events import (
    AssociationExpected,
    Counted,
    CountersRead,
    DatapathConnected,
    DatapathLost,
    DeploymentFailed,
    Event,
    HandshakeSeen,
    PolicySet,
    PortChanged,
    QueuesRead,
    RoleChanged,
    SegmentHeld,
    StationHeard,
    Tick,
)
from .framework import App, handler, ofp_event, ofproto_v1_3
from .logic import Controller, Decision, Record, deployment_records
from .network import ControlledNetwork
from .policy import named
from .records import RecordWriter
from .rollout import Rollout
from .subflows import read_handshake
from .switches import Switches

STATISTICS_PERIOD_S = 1.0
DEPLOYMENT_RETRIES = 5
RETRY_PAUSE_S = 1.0
LONGEST_WAIT_S = 3600.0
"""The trend of a signal that hardly falls may end in thousands of years."""
_MAIN, _DEAD, _CONFIG = (
    handler.MAIN_DISPATCHER,
    handler.DEAD_DISPATCHER,
    handler.CONFIG_DISPATCHER,
)


@dataclass(frozen=True)
class Outcome:
    """What came of an event.

    Attributes
    ----------
    trigger
        What the controller calls the event.
    in_force
        Whether everything that was decided is deployed.
    reason
        Why not.
    """

    trigger: str
    in_force: bool
    reason: str = ""


@dataclass(frozen=True)
class Options:
    """How the application is run.

    Attributes
    ----------
    ovsdb
        OVSDB connection method of datapaths without one of their own.
    elected
        Whether other controllers serve the same switches: the holder of a lock of `ovsdb` is
        master, the others are slaves.
    """

    ovsdb: str
    elected: bool = False


def _guarded(method: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """A handler whose faults are records: the framework would swallow them."""

    @functools.wraps(method)
    def guarded(self: ControllerApp, ev: Any) -> None:
        try:
            method(self, ev)
        except Exception as error:  # noqa: BLE001 - a switch's message must not end anything
            self.report_fault(f"{type(ev).__name__}: {error!r}")

    return guarded


class ControllerApp(App):
    """Connects one :class:`Controller` to real switches.

    The class attributes are set by :mod:`tactical.controller.serving` before the framework makes
    the instance, because it calls the constructor itself.
    """

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]
    network: ClassVar[ControlledNetwork]
    options: ClassVar[Options]
    write: ClassVar[RecordWriter]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.controller = Controller(
            self.network,
            allocate=Deadline(self.network.settings.solve_deadline_s),
            elected=self.options.elected,
        )
        self.master = not self.options.elected
        self.samples: dict[tuple[str, ...], Mapping[str, Any]] = {}
        """("port", datapath, port) or ("queue", datapath, port, id) → the last sample."""
        self._port_names: dict[tuple[int, int], str] = {}
        self._events: queue.Queue[tuple[Event, float, Future[Outcome] | None]] = queue.Queue()
        self._switches = Switches(self.network)
        self._databases = Databases(
            self.network,
            self.options.ovsdb,
            self._on_queues,
            self._on_database_problem,
            self._on_lock if self.options.elected else None,
        )
        self._rollout = Rollout(self.network, self._switches, self._databases)
        self._failures = 0
        self._subflows = {
            subflow_cookie(a.user, a.datapath): (a.user, a.datapath)
            for a in self.network.attachments
        }
        if named(self.network.policy).uses_queues or self.options.elected:
            self._databases.open()
        for f in self.network.forecast:
            at_s = time.monotonic() + f.in_s
            self._put(AssociationExpected(f.user, f.access_point, f.associated, at_s))
        for target in (self._decide_forever, self._poll_statistics):
            threading.Thread(target=target, daemon=True, name=target.__name__).start()

    def submit(self, event: Event) -> Future[Outcome]:
        """Let `event` be handled; the result is there when what it led to is deployed."""
        future: Future[Outcome] = Future()
        self._events.put((event, time.monotonic(), future))
        return future

    def report_fault(self, message: str) -> None:
        """Write an ``error`` record about this controller, with the exception at hand."""
        detail = {"message": message, "traceback": traceback.format_exc()}
        self.write(Record("error", "controller", detail))

    def close(self) -> None:
        """End the connections to OVSDB; the network goes on as it is."""
        self._databases.close()

    def _put(self, event: Event) -> None:
        self._events.put((event, time.monotonic(), None))

    # -- OpenFlow in ---------------------------------------------------------------------

    @handler.set_ev_cls(ofp_event.EventOFPStateChange, [_MAIN, _DEAD])
    @_guarded
    def _on_state(self, ev: Any) -> None:
        datapath: Any = ev.datapath
        if datapath.id is None:
            return  # gone before it said who it is
        dpid: int = datapath.id
        if ev.state == _MAIN:
            self._switches.join(datapath)
            down = set()
            for number, port in datapath.ports.items():
                self._port_names[dpid, number] = _name(port)
                if port.state & datapath.ofproto.OFPPS_LINK_DOWN:
                    down.add(_name(port))
            self._put(DatapathConnected(dpid, frozenset(down)))
        elif self._switches.leave(datapath):
            self._put(DatapathLost(dpid))

    @handler.set_ev_cls(ofp_event.EventOFPPortStatus, _MAIN)
    @_guarded
    def _on_port_status(self, ev: Any) -> None:
        datapath, port = ev.msg.datapath, ev.msg.desc
        self._port_names[datapath.id, port.port_no] = _name(port)
        gone = ev.msg.reason == datapath.ofproto.OFPPR_DELETE
        up = not gone and not port.state & datapath.ofproto.OFPPS_LINK_DOWN
        self._put(PortChanged(datapath.id, _name(port), up))

    @handler.set_ev_cls(ofp_event.EventOFPPacketIn, _MAIN)
    @_guarded
    def _on_packet(self, ev: Any) -> None:
        frame = bytes(ev.msg.data)
        if len(frame) < 14:
            return
        if int.from_bytes(frame[12:14], "big") < 0x0600:  # a length: IEEE 802.3 with LLC
            self._put(StationHeard(ev.msg.datapath.id, frame[6:12].hex(":")))
        elif (handshake := read_handshake(frame)) is None:
            return
        elif ev.msg.cookie == HELD:
            port = ev.msg.match["in_port"]
            self._put(SegmentHeld(ev.msg.datapath.id, port, handshake.source, frame))
        else:
            self._put(HandshakeSeen(handshake))

    @handler.set_ev_cls(ofp_event.EventOFPErrorMsg, [_CONFIG, _MAIN])
    @_guarded
    def _on_error(self, ev: Any) -> None:
        name = self.network.datapath_name(ev.msg.datapath.id) or str(ev.msg.datapath.id)
        message = f"OpenFlow error type {ev.msg.type} code {ev.msg.code}"
        self._switches.refused(ev.msg, message)
        self.write(Record("error", name, {"message": message}))

    @handler.set_ev_cls(ofp_event.EventOFPBarrierReply, _MAIN)
    @handler.set_ev_cls(ofp_event.EventOFPRoleReply, _MAIN)
    @_guarded
    def _on_answer(self, ev: Any) -> None:
        self._switches.answered(ev.msg)

    @handler.set_ev_cls(ofp_event.EventOFPFlowStatsReply, _MAIN)
    @_guarded
    def _on_flow_statistics(self, ev: Any) -> None:
        if rows := self._switches.counted(ev.msg):
            self._put(CountersRead(tuple(self._subflow_counters(rows))))

    def _subflow_counters(self, rows: Iterable[Any]) -> Iterable[Counted]:
        """The bytes of every subflow: of all its entries, as connections have their own."""
        sums: Counter[tuple[str, str]] = Counter()
        for row in rows:
            if (subflow := self._subflows.get(row.cookie & ~COUNTED)) is not None:
                sums[subflow] += row.byte_count
        return (Counted(("subflow", *subflow), total) for subflow, total in sums.items())

    @handler.set_ev_cls(ofp_event.EventOFPPortStatsReply, _MAIN)
    @_guarded
    def _on_port_statistics(self, ev: Any) -> None:
        counted = [
            self._sample(
                ev.msg.datapath.id,
                row,
                "port",
                rx_bytes=row.rx_bytes,
                rx_packets=row.rx_packets,
                tx_dropped=row.tx_dropped,
            )
            for row in ev.msg.body
        ]
        self._put(CountersRead(tuple(c for c in counted if c is not None)))

    @handler.set_ev_cls(ofp_event.EventOFPQueueStatsReply, _MAIN)
    @_guarded
    def _on_queue_statistics(self, ev: Any) -> None:
        counted = [
            self._sample(
                ev.msg.datapath.id, row, "queue", queue_id=row.queue_id, tx_errors=row.tx_errors
            )
            for row in ev.msg.body
        ]
        self._put(CountersRead(tuple(c for c in counted if c is not None)))

    def _sample(self, dpid: int, row: Any, kind: str, **figures: int) -> Counted | None:
        name = self._port_names.get((dpid, row.port_no))
        datapath = self.network.datapath_name(dpid)
        if name is None or datapath is None:
            return None
        data = {
            "kind": kind,
            "port": name,
            # Age of the port or queue: its difference is the time between two samples.
            "duration_s": row.duration_sec + row.duration_nsec / 1e9,
            "tx_bytes": row.tx_bytes,
            "tx_packets": row.tx_packets,
            **figures,
        }
        key: tuple[str, ...] = (kind, datapath, name)
        if kind == "queue":
            key = (*key, str(figures["queue_id"]))
        self.samples[key] = data
        self.write(Record("sample", datapath, data))
        return Counted(key, row.tx_bytes)

    # -- deciding and carrying out -------------------------------------------------------

    def _decide_forever(self) -> None:
        while True:
            event, received_s, future = self._next()
            try:
                outcome = self._decide(event, received_s)
                if future is not None:
                    future.set_result(outcome)
            except Exception as error:  # noqa: BLE001 - a fault must not end the controller
                self.report_fault(f"{event}: {error}")
                if future is not None:
                    future.set_exception(error)

    def _next(self) -> tuple[Event, float, Future[Outcome] | None]:
        """The next event, or a tick when an expectation falls due before there is one."""
        now_s = time.monotonic()
        moment_s = self.controller.next_moment_s(now_s)
        try:
            left_s = None if moment_s is None else min(moment_s - now_s, LONGEST_WAIT_S)
            return self._events.get(timeout=left_s)
        except queue.Empty:
            return Tick(), time.monotonic(), None

    def _decide(self, event: Event, received_s: float) -> Outcome:
        match event:
            case DatapathConnected(dpid, _, _) if self.network.datapath_name(dpid) is not None:
                if self.options.elected:
                    self._switches.assume_role(dpid, master=self.master)
                entries = self._switches.read(dpid)
                if entries is None:
                    return Outcome("", False, "the switch was lost again")
                event = replace(event, entries=entries)
            case RoleChanged(master):
                self.master = master
                self._change_role()
            case PolicySet(policy) if named(policy).uses_queues:
                self._databases.open()
        decision = self.controller.handle(event, time.monotonic())
        outcome = self._carry_out(decision, received_s)
        self._send_held()
        return outcome

    def _change_role(self) -> None:
        """Tell all switches, and as a new master learn what the old one has left there."""
        for dpid in self._switches.connected:
            self._switches.assume_role(dpid, master=self.master)
            if self.master and self.network.datapath_name(dpid) is not None:
                entries = self._switches.read(dpid)
                if entries is not None:
                    down = frozenset(
                        port
                        for datapath, port in self.controller.view.down_ports
                        if datapath == self.network.datapath_name(dpid)
                    )
                    connected = DatapathConnected(dpid, down, entries)
                    self.controller.handle(connected, time.monotonic())

    def _carry_out(self, decision: Decision, received_s: float) -> Outcome:
        problem = ""
        for record in decision.records:
            self.write(record)
            problem = record.data["message"] if record.kind == "error" else problem
        if decision.change is None or decision.target is None:
            self.controller.confirm(decision)
            for record in decision.outcome:
                self.write(record)
            return Outcome(decision.trigger, not problem, problem)
        started_s = time.monotonic()
        try:
            self._rollout.deploy(decision.change)
            deployed_s = time.monotonic()
            self._rollout.verify(decision.change, decision.target)
        except Exception as error:  # noqa: BLE001 - whatever it is, the old state comes back
            return Outcome(decision.trigger, False, self._restore(decision.change, error))
        self._failures = 0
        self.controller.confirm(decision)
        times = {
            "waited_s": started_s - received_s - decision.solve_time_s,
            "solve_time_s": decision.solve_time_s,
            "deploy_time_s": time.monotonic() - started_s,
            "verify_time_s": time.monotonic() - deployed_s,
        }
        for record in (*deployment_records(decision, times), *decision.outcome):
            self.write(record)
        return Outcome(decision.trigger, True)

    def _send_held(self) -> None:
        """Send on what came before its entries."""
        for segment in self.controller.released(time.monotonic()):
            self._switches.send_frame(segment.dpid, segment.in_port, segment.frame)

    def _restore(self, steps: Change, error: Exception) -> str:
        """After a failure: bring the old state back, say so, and try again later."""
        held, outcome = self._rollout.restore(steps, self.controller.deployed)
        message = f"{error}; {outcome}"
        self.write(Record("error", "controller", {"message": message}))
        self._failures += 1
        if self._failures <= DEPLOYMENT_RETRIES:
            retry = threading.Timer(RETRY_PAUSE_S, self._put, (DeploymentFailed(held),))
            retry.daemon = True
            retry.start()
        return message

    # -- OVSDB in ------------------------------------------------------------------------

    def _on_queues(self, rows: Mapping[Queue, QueueRate]) -> None:
        self._put(QueuesRead(rows))

    def _on_database_problem(self, message: str) -> None:
        self.write(Record("error", "controller", {"message": message}))

    def _on_lock(self, locked: bool) -> None:
        self._put(RoleChanged(locked))

    # -- once a second -------------------------------------------------------------------

    def _poll_statistics(self) -> None:
        next_s = time.monotonic()
        while True:
            # A period that was missed is skipped, not made up for in a burst.
            now_s = time.monotonic()
            next_s = max(next_s + STATISTICS_PERIOD_S, now_s)
            time.sleep(next_s - now_s)
            self._switches.forget_counts()
            for dpid in self._switches.connected:
                try:
                    self._switches.ask_for_counters(
                        dpid, subflows=self.network.settings.count_subflows
                    )
                except Exception as error:  # noqa: BLE001 - a switch that goes at this moment
                    self.report_fault(f"counters: {error!r}")
            self._put(Tick())


def _name(port: Any) -> str:
    return str(port.name.decode(errors="replace"))
