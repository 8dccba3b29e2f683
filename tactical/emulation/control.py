"""The controller's process as the testbed sees it: associations in, records out."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scenarios import Scenario

from ..controller import network as description
from .events import EventLog
from .plan import OPENFLOW_PORT, Plan
from .processes import EmulationError, Process

READY_TIMEOUT_S = 180.0
ACCESS_RATE_BPS = 100e6
"""Rate of a station's own link to a relay, and of the host's: never the bottleneck here."""


def controlled_network(plan: Plan, scenario: Scenario) -> description.ControlledNetwork:
    """What the controller is told about the planned network. Pure."""
    attachments = []
    for user, interfaces in plan.stations.items():
        for interface in interfaces:
            if interface.wireless:
                ends = [(radio.access_point, radio.interface) for radio in plan.radios]
            else:
                ends = [wire.b for wire in plan.wires if wire.a == (interface.node, interface.name)]
            attachments += [
                description.Attachment(
                    user=user,
                    interface=interface.name,
                    address=interface.address,
                    mac=interface.mac,
                    datapath=datapath,
                    port=port,
                    rate_bps=ACCESS_RATE_BPS,
                    wireless=interface.wireless,
                )
                for datapath, port in ends
            ]
    shore = next(s for s in plan.switches if s.name == plan.host.relay)
    return description.ControlledNetwork(
        policy="fdm" if plan.protocol == "fdm" else "shortest",
        datapaths=tuple(description.Datapath(s.name, s.dpid) for s in plan.switches),
        ports=tuple(
            description.Port(s.name, p.name, p.number) for s in plan.switches for p in s.ports
        ),
        attachments=tuple(attachments),
        trunks=tuple(
            description.Trunk(
                u.relay, u.relay_port, shore.name, u.shore_port, u.rate_bps, u.delay_s
            )
            for u in plan.uplinks
        ),
        server=description.Server(
            plan.host.node,
            plan.host.address,
            plan.host.mac,
            shore.name,
            shore.ports[0].name,
            ACCESS_RATE_BPS,
        ),
        demands=tuple(
            description.Demand(user, scenario.demand_bps(user), _down_bps(scenario, user))
            for user in dict.fromkeys(each.user for each in scenario.traffic)
        ),
        mean_packet_bits=scenario.mean_packet_bits,
        delay_coefficient=scenario.kappa,
        capacity_share=scenario.capacity_share,
        # In a slow guest every row of a reply costs milliseconds; captures tell more.
        settings=description.Settings(
            count_subflows=False,
            # Switches come one after the other, and a first solve may have to import a compiler.
            start_grace_s=READY_TIMEOUT_S,
            solve_deadline_s=READY_TIMEOUT_S / 2,
            queue_mode="work-conserving" if scenario.queue_discipline == "codel" else "overflow",
        ),
    )


def _down_bps(scenario: Scenario, user: str) -> float:
    """What comes from the host; acknowledgments alone are not worth queues."""
    return scenario.demand_bps(user, "down") if scenario.offered_bps(user, "down") else 0.0


class ControllerProcess:
    """A running controller, which may be killed and started again.

    Parameters
    ----------
    start
        Starts the process.
    events
        Where its records go.
    """

    def __init__(self, start: Callable[[], Process], events: EventLog) -> None:
        self._start = start
        self._events = events
        self._lock = threading.Lock()
        self._associated: dict[tuple[str, str], bool] = {}
        self._links: dict[str, tuple[float, float]] = {}
        self._demands: dict[str, float] = {}
        self._policy: str | None = None
        self._killed = False
        self._begin()

    def _begin(self) -> None:
        self.process = self._start()
        self._reader = threading.Thread(
            target=self._read, args=(self.process,), daemon=True, name="controller"
        )
        self._reader.start()

    def kill(self) -> None:
        """End it as a crash would; switches forward by what they have."""
        self._killed = True
        self.process.stop(signal.SIGKILL)
        self._reader.join(5.0)

    def restart(self) -> None:
        """Start it again after :meth:`kill`, and tell it what it had been told.

        The kernel ends the process with the thread that calls this.
        """
        with self._lock:
            self._begin()
            self._killed = False
        for (user, access_point), associated in list(self._associated.items()):
            self._tell(user=user, access_point=access_point, associated=associated)
        for trunk, (rate_bps, delay_s) in list(self._links.items()):
            self._tell(trunk=trunk, rate_bps=rate_bps, delay_s=delay_s)
        for user, rate_bps in list(self._demands.items()):
            self._tell(user=user, rate_bps=rate_bps)
        if self._policy is not None:
            self._tell(policy=self._policy)

    def report(
        self, user: str, access_point: str, associated: bool, source: str = "testbed"
    ) -> None:
        """Tell the controller that a station joined or left an access point, and who says so."""
        self._associated[user, access_point] = associated
        self._tell(user=user, access_point=access_point, associated=associated, source=source)

    def report_link(self, trunk: str, rate_bps: float, delay_s: float) -> None:
        """Tell the controller what a trunk carries from now on, as a modem does (RFC 8175)."""
        self._links[trunk] = (rate_bps, delay_s)
        self._tell(trunk=trunk, rate_bps=rate_bps, delay_s=delay_s)

    def report_demand(self, user: str, rate_bps: float) -> None:
        """Tell the controller what to plan with for a user."""
        self._demands[user] = rate_bps
        self._tell(user=user, rate_bps=rate_bps)

    def report_policy(self, policy: str) -> None:
        """Tell the controller which of its policies decides from now on."""
        self._policy = policy
        self._tell(policy=policy)

    def _tell(self, **line: object) -> None:
        with self._lock:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):  # it has died, which is noticed elsewhere
                self.process.stdin.write(json.dumps(line) + "\n")
                self.process.stdin.flush()

    def expect(self, user: str, access_point: str, associated: bool, in_s: float) -> None:
        """Tell the controller that a station will join or leave an access point in `in_s`."""
        self._tell(user=user, access_point=access_point, associated=associated, in_s=in_s)

    def wait_until_deployed(self) -> None:
        """Return when the first assignment is in force.

        Raises
        ------
        CommandError
            If that does not happen in time.
        EmulationError
            If the controller reports a fault instead.
        """
        # It connects while the network is still being built, and tries again what came too early.
        first = self._events.wait_for(
            lambda e: (
                e["kind"] == "assignment"
                or (_is_controller_error(e) and self.process.status is not None)
            ),
            READY_TIMEOUT_S,
        ) or self._events.wait_for(_is_controller_error, 0.0)
        if first is None:
            raise self.process.failure(f"deployed nothing within {READY_TIMEOUT_S:g} s")
        if first["kind"] == "error":
            raise EmulationError(f"controller: {first['data']['message']}")

    def _read(self, process: Process) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                record = json.loads(line)
            except ValueError:
                self._events.write("error", "controller", message=f"not a record: {line.strip()}")
                continue
            self._events.write(record["kind"], record["node"], record["t_mono_s"], **record["data"])
        if process.wait(5.0) and not self._killed:
            failure = process.failure(f"ended with status {process.status}")
            self._events.write("error", "controller", message=str(failure))

    def close(self) -> None:
        """End it: its input ends, and so does it."""
        assert self.process.stdin is not None
        with self._lock, suppress(BrokenPipeError):
            self.process.stdin.close()
        if self.process.wait(10.0) is None:
            self.process.stop()
        self._reader.join(5.0)


@contextmanager
def controller(
    plan: Plan, scenario: Scenario, run_dir: Path, ovsdb: str, events: EventLog
) -> Iterator[ControllerProcess]:
    """A controller for the planned network runs inside the block, in its own process."""
    file = run_dir / "network.json"
    description.save(controlled_network(plan, scenario), file)
    # os-ken imports eventlet even where it is not used, and eventlet warns of itself.
    argv = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tactical.controller"]
    argv += ["--network", str(file)]
    argv += ["--port", str(OPENFLOW_PORT), "--ovsdb", ovsdb]
    log = run_dir / "logs" / "controller.log"
    process = ControllerProcess(lambda: Process(argv, log, piped=True), events)
    try:
        yield process
    finally:
        process.close()


def _is_controller_error(event: dict[str, object]) -> bool:
    return event["kind"] == "error" and event["node"] == "controller"
