"""One simulated run, from its prepared directory to the same files that an emulated one leaves."""

from __future__ import annotations

import json
import platform
import random
import tomllib
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import scenarios
from scenarios import AccessPoint, Handover, LinkState, Scenario, Station
from simulation.transfers import CoDel, Loop, Subflow, Transfer

from ..controller import network as description
from ..controller.events import AssociationChanged, AssociationExpected, CapacitySet
from ..controller.logic import Decision, Record
from ..emulation.control import controlled_network
from ..emulation.leaf_queues import Disciplines
from ..emulation.movement import REPORTED_FROM_S
from ..emulation.plan import HostInterface, Plan, make_plan
from .control import SimulatedController
from .log import EPOCH_S, SimulatedLog
from .network import SimulatedNetwork

HEARD_S, ASSOCIATED_S, LEFT_S = 0.065, 0.105, 0.05
"""From the beginning of an association until the access point tells of it, until the station can
use it, and how long a dissociation takes: medians of an emulated network (docs/emulation.md)."""

PREPARATION_S = 10.0
"""Before the traffic: stations go where they are at its start, the controller deploys."""

DISCIPLINE_S = 0.04
"""Until the queues that were set have their discipline."""

PRIORITY_S = 0.01
"""Until a subflow is a backup once the controller says so."""

COOKIE_BYTES = 37
"""What iperf3 sends first over every connection."""

SEGMENT_BYTES = {True: 1420, False: 1448}
DRAIN_S = 25.0
"""How long data that are on their way at the end are waited for."""


def simulate(run_dir: Path) -> None:
    """Make the run of a prepared directory.

    Raises
    ------
    OSError
        If something cannot be written.
    """
    text = (run_dir / "run.toml").read_text()
    header: dict[str, Any] = tomllib.loads(text)["run"]
    scenario = scenarios.from_toml(text, "scenario", str(run_dir)).build(header["seed"])
    plan = make_plan(scenario, header["protocol"])
    loop = Loop(-PREPARATION_S)
    draws = random.Random(header["seed"])
    with SimulatedLog(run_dir, loop) as log:
        log.write("state", "run", state="configured")
        with SimulatedNetwork(plan, run_dir, loop, draws) as network:
            run = _Run(scenario, plan, loop, log, network, run_dir)
            run.follow()
        for point in plan.capture_points:
            packets = network.captures[point.interface].packets
            log.write(
                "capture_stop", point.node, interface=point.interface, position=point.position,
                received=packets, dropped=0, overwritten_files=0,
            )  # fmt: skip
        _write_environment(run_dir)
        log.write("state", "run", state="done")


class _Run:
    """Stations that move, transfers, and the controller that follows."""

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        loop: Loop,
        log: SimulatedLog,
        network: SimulatedNetwork,
        run_dir: Path,
    ) -> None:
        self._scenario, self._plan, self._loop = scenario, plan, loop
        self._log, self._network, self._run_dir = log, network, run_dir
        self._disciplines = Disciplines(plan, scenario)
        self._access_points = {each.name for each in scenario.access_points}
        self._queue_keys: dict[tuple[str, int], tuple[str, str]] = {}
        described = controlled_network(plan, scenario)
        description.save(described, run_dir / "network.json")
        self._controller = SimulatedController(described, loop, self._told, self._deploy)
        self._transfers: dict[str, Transfer] = {}
        self._backups: dict[tuple[str, str], bool] = {}
        self._subflows: dict[tuple[str, str], Subflow] = {}
        self._handovers = scenario.handovers()
        self._predicting = plan.protocol == "fdm" and scenario.prediction == "mobility"

    def follow(self) -> None:
        """Simulate from before the traffic until all has arrived."""
        for interfaces in self._plan.stations.values():
            for interface in interfaces:
                if not interface.wireless:
                    self._network.attach(interface, interface.relay)
        self._make_transfers()
        self._controller.begin()
        for change in self._handovers:
            if change.time_s <= 0.0:
                self._change(change)
        self._loop.run(0.0)
        for access in self._scenario.accesses:
            self._follow_link(access.name, access.backhaul)
        for point in self._plan.capture_points:
            self._log.write(
                "capture_start", point.node, interface=point.interface, file=point.file,
                side=point.side, position=point.position,
                snap_length_bytes=self._plan.snap_length_bytes,
            )  # fmt: skip
        self._log.write("state", "run", state="running", epoch_s=EPOCH_S)
        for change in self._handovers:
            if change.time_s > 0.0:
                self._loop.at(change.time_s, self._change, change)
        if self._predicting:
            self._expect_next()
        self._positions()
        duration_s = self._plan.duration_s
        self._loop.run(duration_s)
        limit_s = duration_s + DRAIN_S
        while self._loop.now_s < limit_s and not all(t.ended for t in self._transfers.values()):
            self._loop.run(min(limit_s, self._loop.now_s + 0.5))
        self._log.write("state", "run", state="collecting")
        self._loop.run(self._loop.now_s + 2.0)
        for name, transfer in self._transfers.items():
            sent = max(0, transfer.sender.written - COOKIE_BYTES)
            said = {
                "simulated": True,
                "end": {"sum_sent": {"bytes": sent, "seconds": transfer.duration_s}},
            }
            file = self._run_dir / "traffic" / f"{name}-client.json"
            file.write_text(json.dumps(said, indent=1) + "\n")

    def _make_transfers(self) -> None:
        for planned in self._plan.transfers:
            transfer = Transfer(
                self._loop,
                planned.user,
                self._network.send,
                multipath=self._plan.multipath,
                cubic=planned.congestion_control == "cubic",
                rate_bps=float(planned.rate_bps),
                start_s=planned.start_s,
                duration_s=planned.duration_s,
                block_bytes=planned.block_bytes,
                segment_bytes=SEGMENT_BYTES[self._plan.multipath],
                first_bytes=COOKIE_BYTES,
            )
            self._transfers[planned.user] = transfer
            self._network.frames.expect(transfer, planned.port)
            self._loop.at(planned.start_s, self._open_all, planned.user)

    def _open_all(self, user: str) -> None:
        """Open the subflows that there can be; the first by the first satellite."""
        for interface in self._plan.stations[user]:
            relay = self._network.reached(interface)
            if relay is None or (not self._plan.multipath and (user, "") in self._subflows):
                continue
            self._open(user, interface, relay)

    def _open(self, user: str, interface: HostInterface, relay: str) -> None:
        transfer = self._transfers[user]
        if self._loop.now_s < transfer.start_s:
            return
        place = (user, relay if self._plan.multipath else "")
        number = len(transfer.subflows) if self._plan.multipath else 0
        if number and not transfer.usable:
            # Others join once the first has been opened.
            self._loop.after(0.05, self._open_later, user, interface, relay)
            return
        subflow = transfer.prepare(interface, number, backup=self._backups.get(place, False))
        self._subflows[place] = subflow
        self._network.use(subflow, interface)
        subflow.open()

    def _open_later(self, user: str, interface: HostInterface, relay: str) -> None:
        if self._network.reached(interface) == relay and (user, relay) not in self._subflows:
            self._open(user, interface, relay)

    # -- movement ------------------------------------------------------------------------

    def _change(self, change: Handover) -> None:
        """A station leaves one access, then joins the other."""
        self._handover(change, "begin")
        if change.before in self._access_points:
            self._associate(change, change.before, "dissociating")
            self._loop.after(LEFT_S, self._left, change)
        else:
            if not self._plan.multipath:
                self._network.attach(self._satellite(change), None)
            self._join(change)

    def _left(self, change: Handover) -> None:
        user, relay = change.station, change.before
        radio = self._plan.station_interface(user, relay)
        self._network.attach(radio, None)
        self._associate(change, relay, "dissociated")
        self._controller.hear(AssociationChanged(user, relay, False, "testbed"))
        if self._plan.multipath and (gone := self._subflows.pop((user, relay), None)) is not None:
            self._backups.pop((user, relay), None)
            self._transfers[user].remove(gone)
        self._join(change)

    def _join(self, change: Handover) -> None:
        if change.after in self._access_points:
            self._associate(change, change.after, "associating")
            self._loop.after(HEARD_S, self._heard, change)
            self._loop.after(ASSOCIATED_S, self._joined, change)
            return
        if not self._plan.multipath:
            interface = self._satellite(change)
            self._network.attach(interface, interface.relay)
            self._move(change.station, interface)
        self._handover(change, "end")

    def _heard(self, change: Handover) -> None:
        event = AssociationChanged(change.station, change.after, True, "hostapd")
        self._controller.hear(event)

    def _joined(self, change: Handover) -> None:
        user, relay = change.station, change.after
        radio = self._plan.station_interface(user, relay)
        self._network.attach(radio, relay)
        self._associate(change, relay, "associated")
        self._handover(change, "end")
        if self._plan.multipath:
            self._open(user, radio, relay)
        else:
            self._move(user, radio)
        if self._predicting:
            self._expect_next()

    def _move(self, user: str, interface: HostInterface) -> None:
        """The one address of a station is on another interface from now on."""
        if (subflow := self._subflows.get((user, ""))) is not None:
            self._network.use(subflow, interface)

    def _satellite(self, change: Handover) -> HostInterface:
        return self._plan.station_interface(change.station, self._scenario.home)

    def _expect_next(self) -> None:
        """Tell the controller of each station's next change."""
        told: set[str] = set()
        for change in self._handovers:
            if change.time_s <= self._loop.now_s or change.station in told:
                continue
            told.add(change.station)
            for relay, joins in ((change.before, False), (change.after, True)):
                if relay in self._access_points:
                    self._controller.hear(
                        AssociationExpected(change.station, relay, joins, change.time_s)
                    )

    def _associate(self, change: Handover, relay: str, state: str) -> None:
        interface = self._plan.station_interface(change.station, relay).name
        self._log.write(
            "association", change.station, access_point=relay, interface=interface, state=state
        )

    def _handover(self, change: Handover, phase: str) -> None:
        ends = {"from": change.before, "to": change.after}
        self._log.write("handover", change.station, **ends, phase=phase)

    def _positions(self) -> None:
        now_s = self._loop.now_s
        nodes: list[Station | AccessPoint] = [*self._scenario.stations]
        nodes += self._scenario.access_points
        for node in nodes:
            east, north, up = (float(x) for x in node.trajectory.position(now_s)[0])
            self._log.write("position", node.name, east_m=east, north_m=north, up_m=up)
        for switch in self._plan.switches:
            for port in switch.ports:
                if port.name in self._network.ports:
                    self._count(switch.name, port.name)
        if now_s + 1.0 <= self._plan.duration_s:
            self._loop.at(round(now_s) + 1.0, self._positions)

    def _count(self, datapath: str, name: str) -> None:
        """Write the counters of a port and its queues, under OpenFlow's names."""
        port, age_s = self._network.ports[name], self._loop.now_s
        packets, octets, dropped = port.counted
        self._log.sample(
            datapath, kind="port", port=name, duration_s=age_s,
            tx_bytes=octets, tx_packets=packets, tx_dropped=dropped, rx_bytes=0, rx_packets=0,
        )  # fmt: skip
        by_queue = port.counted_by_queue
        for (there, number), key in self._queue_keys.items():
            if there == name and key in by_queue:
                packets, octets, dropped = by_queue[key]
                self._log.sample(
                    datapath, kind="queue", port=name, queue_id=number, duration_s=age_s,
                    tx_bytes=octets, tx_packets=packets, tx_errors=dropped,
                )  # fmt: skip

    # -- links that change ---------------------------------------------------------------

    def _follow_link(self, relay: str, link: scenarios.Link) -> None:
        if not link.profile:
            return
        self._change_link(relay, link.at(0.0), reported=True)
        for number, state in enumerate(link.profile):
            if state.time_s > 0.0:
                then = link.profile[number + 1 :]
                lasts = not then or then[0].time_s - state.time_s >= REPORTED_FROM_S
                self._loop.at(
                    state.time_s, partial(self._change_link, relay, state, reported=lasts)
                )

    def _change_link(self, relay: str, state: LinkState, *, reported: bool) -> None:
        self._network.change_link(relay, state.rate_bps, state.delay_s, state.loss)
        event = self._log.write(
            "link_change", relay, time_s=state.time_s, rate_bps=state.rate_bps,
            delay_s=state.delay_s, loss=state.loss, cause=state.cause,
        )  # fmt: skip
        self._disciplines.take(event)
        if reported:
            trunk = f"{relay}:{self._plan.uplink(relay).relay_port}"
            self._controller.hear(CapacitySet(trunk, state.capacity_bps, state.delay_s))

    # -- what the controller says ----------------------------------------------------------

    def _told(self, record: Record) -> None:
        event = self._log.write(record.kind, record.node, **record.data)
        if record.kind == "subflow_priority":
            self._loop.after(PRIORITY_S, self._prioritise, record.data)
        leaves = self._disciplines.take(event)
        if leaves and self._scenario.queue_discipline == "codel":
            self._loop.after(DISCIPLINE_S, self._discipline, leaves)

    def _discipline(self, leaves: dict[tuple[str, int], Any]) -> None:
        for (port, number), leaf in leaves.items():
            if (key := self._queue_keys.get((port, number))) is None:
                continue
            codel = CoDel(leaf.target_s, leaf.interval_s, leaf.limit_packets)
            self._network.set_discipline(port, key, codel)
            self._log.write(
                "queue_discipline", "leaf queues", port=port, queue_id=number, **leaf._asdict()
            )

    def _prioritise(self, data: dict[str, Any]) -> None:
        place = (data["user"], data["via"])
        backup = bool(data["backup"])
        if backup == self._backups.get(place, False):
            return
        self._backups[place] = backup
        if (subflow := self._subflows.get(place)) is not None:
            subflow.prioritise(backup)
            interface = self._plan.station_interface(*place).name
            self._log.write(
                "subflow_backup", place[0], interface=interface, via=place[1], on=backup
            )

    def _deploy(self, decision: Decision) -> None:
        """Carry out a change: queues, then the entries by which subflows find them."""
        steps, target = decision.change, decision.target
        assert steps is not None and target is not None
        for queue, rate in {**steps.lowered, **steps.raised}.items():
            key = (queue.user, queue.via)
            self._queue_keys[queue.port, queue.queue_id] = key
            self._network.ports[queue.port].set_queue(key, rate.min_bps, rate.max_bps)
        addresses = {
            (attachment.address, attachment.datapath): (attachment.user, attachment.datapath)
            for attachment in self._controller.network.attachments
        }
        names = {d.dpid: d.name for d in self._controller.network.datapaths}
        held = set()
        for entry in target.flows:
            match = dict(entry.match)
            place = addresses.get((str(match.get("ipv4_src")), names.get(entry.dpid, "")))
            if place is not None:
                held.add(place)
        self._network.hold_entries(held)
        for queue in steps.dropped:
            self._network.ports[queue.port].drop_queue((queue.user, queue.via))
            self._queue_keys.pop((queue.port, queue.queue_id), None)


def _write_environment(run_dir: Path) -> None:
    about = {
        "simulator": version("tactical"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    (run_dir / "environment.json").write_text(json.dumps(about, indent=1) + "\n")
