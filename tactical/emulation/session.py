"""What the worker does: run one or more prepared run directories on this machine, in turn.

::

    configured ──► running ──► collecting ──► done
         │            │             │
         └────────────┴─────────────┴──────► failed (with the reason)

Open vSwitch and the radios are started once for all runs; every run has its own network,
controller and recorders.
"""

from __future__ import annotations

import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Scenario

from ..host.process import CommandError
from .adapters import adapter
from .applications import programs
from .congestion import congestion_controls
from .control import controller
from .counters import BacklogSampler, Counters
from .ending import Ending
from .environment import sample_host, write_environment
from .events import EventLog
from .injection import Injection, Kill
from .leaf_queues import LeafQueues
from .movement import Movement
from .openvswitch import OpenVSwitch, open_vswitch
from .outage import ControllerOutage
from .plan import Plan, make_plan
from .processes import EmulationError, Process
from .radios import simulated_radios
from .recording import recorders
from .sampling import sampling
from .station_events import StationEvents
from .steered_movement import SteeredMovement
from .steering_input import heard_commands
from .subflow_priorities import SubflowPriorities
from .telling import told_at_once
from .traffic import check_transfers, iperf3, reported_error

FINISH_GRACE_S = 30.0
"""How long iperf3 may take to exchange its results."""


def run_all(run_dirs: Sequence[Path], *, virtual_time: bool = False) -> int:
    """Run each prepared directory; returns 0 if all ended as ``done``, else 1.

    With `virtual_time` events are also told at once, and samples where somebody steers, since
    nobody outside sees the directories.
    """
    tell = (told_at_once(0), told_at_once(1)) if virtual_time else None
    prepared = [(run_dir, *_load(run_dir)) for run_dir in run_dirs]
    radios = max(plan.radio_count for _, _, plan, _ in prepared)
    failed = 0
    try:
        with ExitStack() as stack:
            switching = stack.enter_context(open_vswitch(run_dirs[0] / "logs"))
            stack.enter_context(simulated_radios(radios))
            names = {name for _, _, plan, _ in prepared for name in plan.congestion_controls}
            stack.enter_context(congestion_controls(names))
            for run_dir, scenario, plan, kill in prepared:
                failed += not _run(run_dir, scenario, plan, kill, switching, tell)
    except (CommandError, EmulationError, OSError) as error:
        for run_dir, _, _, _ in prepared:
            _fail_if_unfinished(run_dir, str(error))
        return 1
    return 1 if failed else 0


def _load(run_dir: Path) -> tuple[Scenario, Plan, Kill | None]:
    text, header = (run_dir / "run.toml").read_text(), _header(run_dir)
    scenario = scenarios.from_toml(text, "scenario", str(run_dir)).build(header["seed"])
    kill = Kill.parse(header["kill"]) if "kill" in header else None
    return scenario, make_plan(scenario, header["protocol"]), kill


def _header(run_dir: Path) -> dict[str, Any]:
    """What a run is of, but for the scenario's parameters."""
    header: dict[str, Any] = tomllib.loads((run_dir / "run.toml").read_text())["run"]
    return header


def _run(
    run_dir: Path,
    scenario: Scenario,
    plan: Plan,
    kill: Kill | None,
    switching: OpenVSwitch,
    tell: tuple[Callable[[str], None], Callable[[str], None]] | None,
) -> bool:
    steered = _header(run_dir).get("steered", False)
    tell_event, tell_sample = tell or (None, None)
    with EventLog(run_dir, tell_event, tell_sample if steered else None) as events:
        try:
            _emulate(run_dir, scenario, plan, kill, switching, events)
        except (CommandError, EmulationError) as error:
            events.write("state", "run", state="failed", reason=str(error))
            return False
        except Exception as error:  # noqa: BLE001 - the next run may well work
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            events.write("state", "run", state="failed", reason=reason)
            return False
        except KeyboardInterrupt as interrupt:
            # Stopped while clearing away after a fault: the fault is the reason.
            fault = interrupt.__context__
            told = isinstance(fault, CommandError | EmulationError)
            reason = str(fault) if told else "interrupted"
            events.write("state", "run", state="failed", reason=reason)
            raise
        except SystemExit:
            # Mininet's way of giving up; its message is in the worker's log.
            events.write("state", "run", state="failed", reason="Mininet gave up: see worker.log")
            return False
        events.write("state", "run", state="done")
    return True


def _emulate(
    run_dir: Path,
    scenario: Scenario,
    plan: Plan,
    kill: Kill | None,
    switching: OpenVSwitch,
    events: EventLog,
) -> None:
    events.write("state", "run", state="configured")
    with ExitStack() as stack:
        stack.enter_context(LeafQueues(plan, scenario, events))
        priorities = SubflowPriorities(plan, events)
        # Starts while the network is built, and ends before it is taken down.
        control = stack.enter_context(controller(plan, scenario, run_dir, switching.ovsdb, events))
        network = stack.enter_context(adapter(_header(run_dir)["network"])(plan, run_dir))
        stack.callback(control.close)
        stack.enter_context(StationEvents(network, control, events))
        priorities.begin(network.run)
        stack.callback(priorities.end)
        parts = (scenario, network, control, priorities, events)
        movement = (
            SteeredMovement(*parts, heard_commands(scenario, events))
            if _header(run_dir).get("steered", False)
            else Movement(*parts)
        )
        movement.start_position()
        # They need addresses; as the controller, they may take long to start.
        applications = stack.enter_context(programs(network, run_dir))
        control.wait_until_deployed()
        recording = stack.enter_context(recorders(network, run_dir, events))
        listening = stack.enter_context(iperf3(network, run_dir, "server"))
        counters = Counters(network)
        events.start()
        epoch_s = time.time()
        applications.begin(time.monotonic() - events.now_s)
        sending = stack.enter_context(iperf3(network, run_dir, "client"))
        events.write("state", "run", state="running", epoch_s=epoch_s)
        ending = Ending(network, events)

        lasting = (*switching.processes, *network.processes, *recording, *applications.processes)
        outage = ControllerOutage(scenario.outage_s, control, events)
        injection = Injection(kill, events)

        def check() -> None:
            outage.follow(events.now_s)
            injection.follow(events.now_s)
            for process in lasting if outage.away else (*lasting, control.process):
                if process.status is not None:
                    raise process.failure(f"ended by itself with status {process.status}")
            if events.fault is not None:
                raise EmulationError(events.fault)
            check_transfers(plan, sending, listening, run_dir, events.now_s)
            ending.prepare()

        with (
            sampling("host sampler", partial(sample_host, run_dir / "host.jsonl")),
            sampling("backlog sampler", BacklogSampler(plan, events).sample),
        ):
            movement.follow(check)
            ending.drain()
        events.write("state", "run", state="collecting")
        applications.end()
        _finish(sending, listening, run_dir, events)
        write_environment(network, run_dir)
        # As late as can be: the recorders stop next, and both are compared.
        counters.write(run_dir)


def _finish(
    sending: dict[str, Process], listening: dict[str, Process], run_dir: Path, events: EventLog
) -> None:
    """Let iperf3 exchange its results and end."""
    limit_s = events.now_s + FINISH_GRACE_S
    for user, process in sending.items():
        if process.wait(max(0.1, limit_s - events.now_s)) is None:
            message = f"iperf3 did not end within {FINISH_GRACE_S:g} s; stopped"
            events.write("error", user, message=message)
        elif (reason := reported_error(run_dir, user)) is not None:
            events.write("error", user, message=reason)
        elif process.status:
            events.write("error", user, message=str(process.failure("iperf3 failed")))
    for process in listening.values():
        process.wait(2.0)


def _fail_if_unfinished(run_dir: Path, reason: str) -> None:
    events = run_dir / "events.jsonl"
    text = events.read_text() if events.exists() else ""
    if '"state": "done"' not in text and '"state": "failed"' not in text:
        with EventLog(run_dir) as log:
            log.write("state", "run", state="failed", reason=reason)
