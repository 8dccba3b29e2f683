"""The life of a run, as seen from the host: prepare directories, start the worker, follow it.

::

    defined ──► configured ──► running ──► collecting ──► done
       │             │            │             │
       └─────────────┴────────────┴─────────────┴───────► failed

One worker process runs every request in turn, on this machine or inside one virtual machine (in
virtual time each in a virtual machine of its own); it writes ``events.jsonl``, which this side
follows for progress.  A run whose worker dies
keeps what it wrote and gets the state ``failed`` from this side.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Experiment

from .calibration import record
from .emulation.__main__ import VIRTUAL_TIME
from .emulation.adapters import MININET
from .emulation.injection import Kill
from .emulation.plan import Plan, PlannedApplication, Transfer, make_plan
from .host import hermetic
from .host.choice import choose
from .host.machine import HostError, Machine
from .host.process import Child, CommandError
from .host.simulated import SimulatedMachine
from .simulated import limits
from .tail import Tail

FOLLOW_PERIOD_S = 0.25
STOP_GRACE_S = 60.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Request:
    """One run to make."""

    experiment: Experiment
    protocol: str
    seed: int
    backend: str
    runs_dir: Path
    time: str = "auto"
    network: str = MININET
    kill: Kill | None = None
    steered: bool = False


@dataclass(frozen=True)
class Progress:
    """Something happened in a run; `state` is the run's state after it."""

    run_dir: Path
    protocol: str
    state: str
    time_s: float | None
    message: str


def execute(
    requests: Sequence[Request],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    started: Callable[[Path, Child], None] = lambda _, __: None,
) -> list[Path]:
    """Make the runs, all on one machine, and return their directories.

    `started` is called when the worker of a run has been started; what is said to the child
    (`Child.say`) are commands of people who steer it (`tactical.steering`).

    The directories hold everything but the analysis.  A run that fails has a last ``state``
    event ``failed`` with the reason; that is no exception.

    Raises
    ------
    HostError
        If the backend is impossible here.
    PlanError
        If a scenario cannot be laid out.
    KeyboardInterrupt
        After everything that was started has been stopped.
    """
    # With all that reads captures; the other commands start without.
    from .emulation.memory import guest_memory_mib
    from .emulation.recording import problem_at_start, room_bytes

    plans = [make_plan(r.experiment.build(r.seed), r.protocol) for r in requests]
    machine = choose(requests[0].backend, requests[0].time)
    simulated = machine.name == SimulatedMachine.name
    if simulated:
        _check_simulated(requests, plans)
    else:
        machine = machine.with_memory(guest_memory_mib(plans))
    run_dirs: list[Path] = []
    begun: set[Path] = set()
    with ExitStack() as unused:
        for request, plan in zip(requests, plans, strict=True):
            run_dirs.append(_new_directory(request, plan.protocol))
            # Until a worker starts nothing is recorded, and nothing is worth keeping.
            unused.callback(_remove_unless, begun, run_dirs[-1])
            try:
                _describe_run(run_dirs[-1], request, plan, machine)
            except OSError as error:
                raise HostError(f"{run_dirs[-1]}: {error.strerror}; nothing was run") from None
        parents = list(dict.fromkeys(run_dir.parent for run_dir in run_dirs))
        if not simulated and (problem := problem_at_start(plans, parents[0])) is not None:
            raise HostError(f"{problem}; nothing was run")
        prepared = list(zip(run_dirs, requests, plans, strict=True))
        # In virtual time each run has a machine of its own: it depends on no other run.
        size = 1 if machine.virtual_time else len(prepared)
        for first in range(0, len(prepared), size):
            part = prepared[first : first + size]
            directories = [run_dir for run_dir, _, _ in part]
            log = directories[0] / "logs" / "worker.log"
            child = machine.start(
                worker(directories, machine),
                directories if machine.virtual_time else parents,
                log,
                told=_told(directories[0], part[0][1]),
                room_bytes=sum(room_bytes(plan) for _, _, plan in part),
                seed=part[0][1].seed,
            )
            begun.update(directories)
            followers = [_Follower(run_dir, r.protocol) for run_dir, r, _ in part]
            _accompany(child, followers, progress, partial(started, directories[0], child))
    return run_dirs


def _told(run_dir: Path, request: Request) -> list[Path]:
    """Files of a run that a machine in virtual time writes at once."""
    return [run_dir / name for name in ("events.jsonl", "samples.jsonl")[: 1 + request.steered]]


def _check_simulated(requests: Sequence[Request], plans: Sequence[Plan]) -> None:
    for request, plan in zip(requests, plans, strict=True):
        problem = limits.problem(request.experiment.build(request.seed), plan)
        if request.network != MININET:
            problem = f"it is simulated without --network {request.network}"
        if request.kill is not None:
            problem = "there are no processes that --kill could end"
        if problem is not None:
            raise HostError(f"--backend sim: {problem}; nothing was run")


def _remove_unless(begun: set[Path], run_dir: Path) -> None:
    if run_dir not in begun:
        shutil.rmtree(run_dir, ignore_errors=True)


def _accompany(
    child: Child,
    followers: Sequence[_Follower],
    progress: Callable[[Progress], None],
    started: Callable[[], None],
) -> None:
    """Follow the runs of one worker to their end, and close their records."""
    interrupted = False
    try:
        started()
        _follow(child, followers, progress)
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        with _undisturbed():
            child.stop(STOP_GRACE_S)
            for follower in followers:
                _close(follower, "interrupted" if interrupted else _reason(child), progress)


def recover(run_dir: Path) -> bool:
    """Bring back and close a run in virtual time that nobody was left to close.

    Returns
    -------
    bool
        Whether there was something to bring back.

    Raises
    ------
    HostError
        If it cannot be brought back; it stays where it is.
    """
    try:
        if not hermetic.recover(run_dir):
            return False
    except (CommandError, OSError) as error:
        image = run_dir / hermetic.IMAGE_NAME
        raise HostError(f"what {image} holds cannot be brought back: {error}") from error
    reason = "tactical was killed; what its virtual machine had recorded was brought back later"
    _close(_Follower(run_dir, ""), reason, lambda _: None)
    return True


def _follow(
    child: Child, followers: Sequence[_Follower], progress: Callable[[Progress], None]
) -> None:
    while child.wait(FOLLOW_PERIOD_S) is None:
        for follower in followers:
            for step in follower.read():
                progress(step)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Closing a run is short, and half closed it is worth less: a second Ctrl-C has to wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def worker(run_dirs: Sequence[Path], machine: Machine) -> list[str]:
    """The command that makes the runs of prepared directories on a machine."""
    if machine.name == SimulatedMachine.name:
        return [sys.executable, "-m", "tactical.simulated", *map(str, run_dirs)]
    how = [VIRTUAL_TIME] if machine.virtual_time else []
    return [sys.executable, "-m", "tactical.emulation", *how, *map(str, run_dirs)]


def _reason(child: Child) -> str:
    return f"{child.ending('the worker')}; the run was not done"


def _new_directory(request: Request, protocol: str) -> Path:
    """Make the directory of a run, with a name that no other has."""
    experiment = request.experiment
    parent = request.runs_dir.resolve() / experiment.name
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"{stamp}-{protocol}-{request.seed}-{scenarios.fingerprint(experiment)}"
    run_dir = parent / name
    number = 1
    while True:
        try:
            run_dir.mkdir(parents=True)
            return run_dir
        except FileExistsError:
            number += 1
            run_dir = parent / f"{name}.{number}"
        except OSError as error:
            raise HostError(f"{run_dir}: {error.strerror}; nothing was run") from None


def _describe_run(run_dir: Path, request: Request, plan: Plan, machine: Machine) -> None:
    """Fill the directory of a run with everything that is known before it.

    What tells two runs of the same apart stays out of the files that a guest reads: even the
    moment in `run.toml` made another run of it.  It is in the first event, which is this side's.
    """
    scenario = request.experiment.build(request.seed)
    for folder in ("captures", "traffic", "logs"):
        (run_dir / folder).mkdir()
    header = [
        "[run]",
        f'scenario = "{scenario.name}"',
        f'protocol = "{request.protocol}"',
        f"seed = {request.seed}",
        f'backend = "{machine.name}"',
        f'network = "{request.network}"',
        f'time = "{_clock(machine)}"',
        f'machine = "{machine.description}"',
        f'fingerprint = "{scenarios.fingerprint(request.experiment)}"',
    ]
    if request.steered:
        header.append("steered = true")
    if request.kill is not None:
        header.append(f"kill = {json.dumps(str(request.kill))}")
    resolved = scenarios.to_toml(request.experiment, "scenario")
    (run_dir / "run.toml").write_text("\n".join(header) + "\n\n" + resolved)
    (run_dir / "plan.json").write_text(json.dumps(_plan_document(plan, scenario), indent=1) + "\n")
    if plan.applications:
        schedules = run_dir / "traffic" / "schedules.json"
        schedules.write_text(json.dumps(_schedules(plan)) + "\n")
    if (calibration := record.latest(machine)) is not None:
        (run_dir / "calibration.json").write_text(json.dumps(calibration, indent=1) + "\n")
    _append_event(
        run_dir,
        "state",
        "run",
        state="defined",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        host_kernel=platform.release(),
    )


def _clock(machine: Machine) -> str:
    if machine.name == SimulatedMachine.name:
        return "simulated"
    return "virtual" if machine.virtual_time else "real"


def _plan_document(plan: Plan, scenario: scenarios.Scenario) -> dict[str, Any]:
    """What analysis needs to know about the network that was built."""
    users: dict[str, dict[str, Any]] = {}
    for user in dict.fromkeys(each.user for each in scenario.traffic):
        interfaces = {}
        for i in plan.stations[user]:
            via = i.relay
            if i.wireless:  # see `analysis.run.links`
                via = "+".join(radio.access_point for radio in plan.radios)
            interfaces[i.name] = {"via": via, "address": i.address, "capture": i.capture}
        users[user] = {"interfaces": interfaces}
        if (transfer := plan.transfer_of(user)) is not None:
            users[user] |= {
                "port": transfer.port,
                "offered_bps": transfer.rate_bps,
                "start_s": transfer.start_s,
                "duration_s": transfer.duration_s,
            }
    return {
        "host": {
            "name": plan.host.node,
            "address": plan.host.address,
            "captures": [plan.host.capture],
        },
        "users": users,
        "applications": [
            *(_transfer_document(t) for t in plan.transfers if t.name != t.user),
            *(_application_document(each) for each in plan.applications),
        ],
        "captures": [
            {"file": p.file, "node": p.node, "side": p.side, "position": p.position}
            for p in plan.capture_points
        ],
        "access_points": {a.name: {"range_m": a.range_m} for a in scenario.access_points},
        "uplinks": [dataclasses.asdict(uplink) for uplink in plan.uplinks],
        "duration_s": plan.duration_s,
        "reference_goodput_bps": dict(scenario.reference_goodput_bps),
        "reference": scenario.reference,
    }


def _transfer_document(transfer: Transfer) -> dict[str, Any]:
    """A bulk transfer of which iperf3's own figures are all that is known."""
    return {
        "name": transfer.name,
        "user": transfer.user,
        "kind": "bulk",
        "direction": "down" if transfer.reverse else "up",
        "transport": "tcp",
        "port": transfer.port,
        "connections": transfer.connections,
        "start_s": transfer.start_s,
        "duration_s": transfer.duration_s,
        "offered_bps": transfer.rate_bps * transfer.connections,
    }


def _application_document(planned: PlannedApplication) -> dict[str, Any]:
    """An application; `_schedules` says what it sends when."""
    application = planned.application
    return {
        "name": planned.name,
        "user": application.user,
        "kind": application.kind,
        "direction": application.direction,
        "transport": application.transport_protocol,
        "port": planned.port,
        "connections": 1,
        "start_s": application.start_s,
        "duration_s": application.duration_s,
        "offered_bps": application.offered_bps(application.direction),
    }


def _schedules(plan: Plan) -> dict[str, Any]:
    """What each application sends when, by its name."""
    schedules = {each.name: each.application.schedule() for each in plan.applications}
    return {
        name: {"at_s": schedule.at_s, "size_bytes": schedule.size_bytes}
        for name, schedule in schedules.items()
    }


class _Follower:
    """Reads new events of one run as they happen."""

    def __init__(self, run_dir: Path, protocol: str) -> None:
        self.run_dir = run_dir
        self.protocol = protocol
        self.state = "defined"
        self._events = Tail(run_dir / "events.jsonl")

    def read(self) -> list[Progress]:
        """What has happened since the last call."""
        steps = []
        for event in self._events.read():
            if event["kind"] == "state":
                self.state = event["data"]["state"]
            message = _message(event)
            if message is not None:
                steps.append(
                    Progress(self.run_dir, self.protocol, self.state, event["t_s"], message)
                )
        return steps


def _message(event: dict[str, Any]) -> str | None:
    """One line about an event for people who wait, or None if it is not worth one."""
    data, node = event["data"], event["node"]
    match event["kind"]:
        case "state":
            return f"{data['state']}: {data['reason']}" if "reason" in data else str(data["state"])
        case "position":
            return ""
        case "association" if data["state"] in ("associated", "dissociated"):
            preposition = "with" if data["state"] == "associated" else "from"
            return f"{node} {data['state']} {preposition} {data['access_point']}"
        case "solve":
            return (
                f"solved in {data['solve_time_s'] * 1e3:.3g} ms, gap {data['relative_gap']:.0e} "
                f"({data['trigger']})"
            )
        case "assignment":
            return f"deployed in {data['deploy_time_s'] * 1e3:.0f} ms ({data['trigger']})"
        case "link_down" | "link_up":
            return f"{node} {data['port']} {event['kind'].removeprefix('link_')}"
        case "error":
            return f"error: {node}: {data['message']}"
    return None


def _close(follower: _Follower, reason: str, progress: Callable[[Progress], None]) -> None:
    """End the record of a run: a final state, and run time for the events of its set-up.

    What goes wrong here (a full disk) is told and does not keep other runs from being closed.
    """
    try:
        steps = follower.read()
        if follower.state not in ("done", "failed"):
            _append_event(follower.run_dir, "state", "run", state="failed", reason=reason)
            message = f"failed: {reason}"
            steps.append(Progress(follower.run_dir, follower.protocol, "failed", None, message))
        for step in steps:
            progress(step)
        _fill_in_run_time(follower.run_dir)
    except OSError as error:
        message = f"failed: {reason} (and this could not be recorded: {error})"
        progress(Progress(follower.run_dir, follower.protocol, "failed", None, message))


def _append_event(run_dir: Path, kind: str, node: str, **data: Any) -> None:
    """An event by this side.  The worker numbers its own from 0; ours have no number."""
    event = {"seq": None, "t_s": None, "t_mono_s": None, "kind": kind, "node": node, "data": data}
    with (run_dir / "events.jsonl").open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":  # the writer was killed in the middle of a line
                stream.write(b"\n")
        stream.write(json.dumps(event).encode() + b"\n")


def _fill_in_run_time(run_dir: Path) -> None:
    """Number the events in file order, and give those before the start their negative time."""
    events = []
    zero_s = None
    for line in (run_dir / "events.jsonl").read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of a worker that was killed
        events.append(event)
        if zero_s is None and event["t_s"] is not None:
            zero_s = event["t_mono_s"] - event["t_s"]
    known = [e["t_mono_s"] for e in events if e["t_mono_s"] is not None]
    for number, event in enumerate(events):
        event["seq"] = number
        if event["t_s"] is None and zero_s is not None:
            # This side's events have no clock in common with the worker: first, or last.
            moment = event["t_mono_s"] or (known[0] if number < len(events) / 2 else known[-1])
            event["t_s"] = round(moment - zero_s, 6)
    finished = run_dir / "events.jsonl.new"
    try:
        finished.write_text("".join(json.dumps(event) + "\n" for event in events))
        finished.replace(run_dir / "events.jsonl")
    finally:
        finished.unlink(missing_ok=True)
