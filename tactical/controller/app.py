"""The os-ken application: a thin shim between OpenFlow, OVSDB and the pure logic.

Handlers only translate and enqueue; one thread takes events in order, lets
:class:`~tactical.controller.logic.Controller` decide and carries the decision out.  Records
leave as JSON lines.  Ryu 4.34 offers the same interface under another name; the import below
is the only place that would change.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Sequence
from typing import IO, Any, ClassVar

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    set_ev_cls,
)
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

from .deployment import Change, FlowEntry
from .logic import Controller, Decision, Record
from .network import ControlledNetwork
from .openflow import flow_mod
from .queues import QueueError, QueueTable
from .view import (
    AssociationChanged,
    DatapathConnected,
    DatapathLost,
    DeploymentFailed,
    Event,
    PortChanged,
    StationHeard,
)

STATISTICS_PERIOD_S = 1.0
BARRIER_TIMEOUT_S = 10.0
DEPLOYMENT_RETRIES = 5
RETRY_PAUSE_S = 1.0


class DeployError(RuntimeError):
    """A switch did not confirm its flow entries."""


class RecordWriter:
    """Writes records as JSON lines, stamped with the monotonic clock; safe from any thread."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, record: Record) -> None:
        line = {
            "t_mono_s": time.monotonic(),
            "kind": record.kind,
            "node": record.node,
            "data": record.data,
        }
        with self._lock:
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()


class ControllerApp(app_manager.OSKenApp):
    """Connects one :class:`Controller` to real switches.

    The class attributes are set by :mod:`tactical.controller.__main__` before os-ken makes the
    instance, because os-ken calls the constructor itself.
    """

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]
    network: ClassVar[ControlledNetwork]
    ovsdb: ClassVar[str]
    write: ClassVar[RecordWriter]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.controller = Controller(self.network)
        self._datapaths: dict[int, Any] = {}
        self._port_names: dict[tuple[int, int], str] = {}
        self._events: queue.Queue[Event] = queue.Queue()
        self._barriers: dict[int, threading.Event] = {}
        self._queues: QueueTable | None = None
        self._failures = 0
        for target in (self._decide_forever, self._poll_statistics):
            threading.Thread(target=target, daemon=True, name=target.__name__).start()

    def association(self, user: str, datapath: str, associated: bool) -> None:
        """The testbed reports that `user` joined or left the access point `datapath`."""
        self._events.put(AssociationChanged(user, datapath, associated))

    # -- OpenFlow in ---------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _on_state(self, ev: Any) -> None:
        datapath: Any = ev.datapath
        if ev.state == MAIN_DISPATCHER:
            self._datapaths[datapath.id] = datapath
            down = set()
            for number, port in datapath.ports.items():
                self._port_names[datapath.id, number] = port.name.decode()
                if port.state & datapath.ofproto.OFPPS_LINK_DOWN:
                    down.add(port.name.decode())
            self._events.put(DatapathConnected(datapath.id, frozenset(down)))
            return
        # A switch that reconnected has a newer connection by now.
        dpid: int = datapath.id
        if self._datapaths.get(dpid) is datapath:
            del self._datapaths[dpid]
            self._events.put(DatapathLost(dpid))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _on_port_status(self, ev: Any) -> None:
        datapath, port = ev.msg.datapath, ev.msg.desc
        name = port.name.decode()
        self._port_names[datapath.id, port.port_no] = name
        gone = ev.msg.reason == datapath.ofproto.OFPPR_DELETE
        up = not gone and not port.state & datapath.ofproto.OFPPS_LINK_DOWN
        self._events.put(PortChanged(datapath.id, name, up))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _on_packet(self, ev: Any) -> None:
        frame: Any = packet.Packet(ev.msg.data).get_protocol(ethernet.ethernet)
        if frame is not None:
            self._events.put(StationHeard(ev.msg.datapath.id, frame.src))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _on_error(self, ev: Any) -> None:
        name = self.network.datapath_name(ev.msg.datapath.id) or str(ev.msg.datapath.id)
        message = f"OpenFlow error type {ev.msg.type} code {ev.msg.code}"
        self.write(Record("error", name, {"message": message}))

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _on_barrier(self, ev: Any) -> None:
        if (waiting := self._barriers.get(ev.msg.datapath.id)) is not None:
            waiting.set()

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def _on_port_statistics(self, ev: Any) -> None:
        for row in ev.msg.body:
            self._sample(
                ev.msg.datapath.id,
                row,
                "port",
                rx_bytes=row.rx_bytes,
                rx_packets=row.rx_packets,
                tx_dropped=row.tx_dropped,
            )

    @set_ev_cls(ofp_event.EventOFPQueueStatsReply, MAIN_DISPATCHER)
    def _on_queue_statistics(self, ev: Any) -> None:
        for row in ev.msg.body:
            self._sample(
                ev.msg.datapath.id, row, "queue", queue_id=row.queue_id, tx_errors=row.tx_errors
            )

    def _sample(self, dpid: int, row: Any, kind: str, **figures: int) -> None:
        name = self._port_names.get((dpid, row.port_no))
        datapath = self.network.datapath_name(dpid)
        if name is None or datapath is None:
            return
        data = {
            "kind": kind,
            "port": name,
            # Age of the port or queue: its difference is the time between two samples.
            "duration_s": row.duration_sec + row.duration_nsec / 1e9,
            "tx_bytes": row.tx_bytes,
            "tx_packets": row.tx_packets,
        }
        self.write(Record("sample", datapath, {**data, **figures}))

    # -- deciding and carrying out -------------------------------------------------------

    def _decide_forever(self) -> None:
        while True:
            event = self._events.get()
            try:
                self._carry_out(self.controller.handle(event))
            except Exception as error:  # noqa: BLE001 - a fault must not end the controller
                detail = {"message": f"{event}: {error}", "traceback": traceback.format_exc()}
                self.write(Record("error", "controller", detail))

    def _carry_out(self, decision: Decision) -> None:
        for record in decision.records:
            self.write(record)
        if decision.change is None:
            self.controller.confirm(decision)
            return
        started = time.monotonic()
        try:
            self._deploy(decision.change)
        except (QueueError, DeployError) as error:
            self.write(Record("error", "controller", {"message": str(error)}))
            self._failures += 1
            if self._failures <= DEPLOYMENT_RETRIES:
                retry = threading.Timer(RETRY_PAUSE_S, self._events.put, (DeploymentFailed(),))
                retry.daemon = True
                retry.start()
            return
        self._failures = 0
        self.controller.confirm(decision)
        for record in _deployment_records(decision, time.monotonic() - started):
            self.write(record)

    def _deploy(self, change: Change) -> None:
        if change.lowered or change.raised or change.dropped:
            if self._queues is None:
                self._queues = QueueTable(self.ovsdb)
            self._queues.set(change.lowered)
            self._queues.set(change.raised)
        self._send(change.added)
        self._send(change.removed, delete=True)
        if change.dropped and self._queues is not None:
            self._queues.drop(change.dropped)

    def _send(self, entries: Sequence[FlowEntry], *, delete: bool = False) -> None:
        """Send flow entries and wait until every switch concerned has confirmed them."""
        waiting: dict[int, threading.Event] = {}
        for entry in entries:
            datapath = self._datapaths.get(entry.dpid)
            if datapath is None:
                continue  # lost meanwhile: it gets everything when it is back
            waiting.setdefault(entry.dpid, threading.Event())
            datapath.send_msg(flow_mod(datapath, entry, delete=delete))
        self._barriers = waiting
        for dpid in waiting:
            if (datapath := self._datapaths.get(dpid)) is not None:
                datapath.send_msg(datapath.ofproto_parser.OFPBarrierRequest(datapath))
        deadline = time.monotonic() + BARRIER_TIMEOUT_S
        for dpid, confirmed in waiting.items():
            if not confirmed.wait(max(0.0, deadline - time.monotonic())):
                name = self.network.datapath_name(dpid)
                raise DeployError(f"datapath {name} did not answer the barrier in time")

    def _poll_statistics(self) -> None:
        next_s = time.monotonic()
        while True:
            # A period that was missed is skipped, not made up for in a burst.
            now_s = time.monotonic()
            next_s = max(next_s + STATISTICS_PERIOD_S, now_s)
            time.sleep(next_s - now_s)
            for datapath in list(self._datapaths.values()):
                parser, protocol = datapath.ofproto_parser, datapath.ofproto
                datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, protocol.OFPP_ANY))
                datapath.send_msg(
                    parser.OFPQueueStatsRequest(datapath, 0, protocol.OFPP_ANY, protocol.OFPQ_ALL)
                )


def _deployment_records(decision: Decision, took_s: float) -> list[Record]:
    change = decision.change
    assert change is not None
    records = [
        Record(
            "queue_set",
            "controller",
            {
                "port": q.port,
                "queue_id": q.queue_id,
                "user": q.user,
                "via": q.via,
                "min_bps": rate.min_bps,
                "max_bps": rate.max_bps,
            },
        )
        for q, rate in {**change.lowered, **change.raised}.items()
    ]
    records.append(
        Record(
            "flow_mod",
            "controller",
            {"added": len(change.added), "removed": len(change.removed)},
        )
    )
    records.append(
        Record("assignment", "controller", {"trigger": decision.trigger, "deploy_time_s": took_s})
    )
    return records
