"""From a run directory to its result."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from analysis.machine import machine_load
from analysis.measure import Clock, Interface, Recorded, User, measure_user
from analysis.result import (
    Band,
    CaptureQuality,
    QueueResult,
    RunResult,
    Solve,
    UserResult,
)
from analysis.rundirectory import (
    Event,
    JsonObject,
    RunDirectory,
    count,
    items,
    mapping,
    number,
    read_run,
)
from captures import Capture, connections, merge, read

_CLOCK_TOLERANCE_S = 1e-3
_LONGEST_RUN_S = 86_400.0
_POSITION = "on the node's own interface; what it sends is seen after its queueing discipline"


def analyse(run_directory: str | Path) -> RunResult:
    """Measure one run from the files it left.

    Parameters
    ----------
    run_directory : str or Path
        A failed or interrupted run gives what can be measured, `state` "failed" and a `reason`.

    Returns
    -------
    RunResult

    Raises
    ------
    RunDirectoryError
        If the path is no run directory.
    """
    files = read_run(Path(run_directory))
    remarks = list(files.remarks)
    state, reason = _state(files)
    plan_users = mapping(files.plan.get("users"))
    host_plan = mapping(files.plan.get("host"))

    host_name = str(host_plan.get("name", "host"))
    quality: list[CaptureQuality] = []
    host_files = [str(each) for each in items(host_plan.get("captures"))]
    host = _recorded(files, host_name, host_files, quality, remarks)
    users: dict[str, UserResult] = {}
    senders: dict[str, tuple[User, Recorded | None]] = {}
    for name, described in plan_users.items():
        user = _user(str(name), mapping(described), files.traffic)
        interfaces = mapping(mapping(described).get("interfaces"))
        paths = [str(mapping(each).get("capture") or "") for each in interfaces.values()]
        senders[user.name] = (user, _recorded(files, user.name, paths, quality, remarks))
    clock = _clock(files, [host, *(sender for _, sender in senders.values())], remarks)
    for name, (user, sender) in senders.items():
        users[name] = measure_user(user, host, sender, clock, files.events, remarks)
    if not users:
        remarks.append("no users in plan.json: nothing to measure")
    _check_clock(users, remarks)

    goodputs = [each.goodput_bps for each in users.values() if each.goodput_bps is not None]
    references = {
        str(key): rate
        for key, value in mapping(files.plan.get("reference_goodput_bps")).items()
        if (rate := number(value)) is not None
    }
    protocol = str(files.run.get("protocol", ""))
    dropped = [each.dropped for each in quality if each.dropped is not None]
    machine = machine_load(files.host)
    if machine is not None and machine.overloaded:
        remarks.insert(0, f"the machine could not keep up, the figures show it: {machine}")
    return RunResult(
        state=state,
        reason=reason,
        run=files.path.resolve().name,
        scenario=str(files.run.get("scenario", "")),
        protocol=protocol,
        seed=count(files.run.get("seed")),
        backend=str(files.run.get("backend", "")),
        users=users,
        jain=jain(goodputs),
        solves=len(files.of_kind("solve")),
        handovers=sum(
            each.data.get("phase", "begin") == "begin" for each in files.of_kind("handover")
        ),
        fingerprint=str(files.run.get("fingerprint", "")),
        created=str(files.run.get("created", "")),
        duration_s=number(files.plan.get("duration_s")),
        goodput_bps=sum(goodputs) if goodputs else None,
        reference_goodput_bps=references.get(protocol),
        associations=sum(
            each.data.get("state") == "associated" for each in files.of_kind("association")
        ),
        queues=_queues(files),
        captures=quality,
        capture_drops=sum(dropped) if dropped else None,
        machine=machine,
        overloaded=machine is not None and machine.overloaded,
        remarks=remarks,
        bands=_bands(files, list(users)),
        solve_log=[_solve(each) for each in files.of_kind("solve")],
        environment=files.environment,
        references_bps=references,
    )


def write(run_directory: str | Path) -> RunResult:
    """Analyse a run and write result.json into its directory.

    Parameters
    ----------
    run_directory : str or Path

    Returns
    -------
    RunResult

    Raises
    ------
    RunDirectoryError
        If the path is no run directory.
    OSError
        If the file cannot be written.
    """
    result = analyse(run_directory)
    text = json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"
    (Path(run_directory) / "result.json").write_text(text)
    return result


def jain(rates: Sequence[float]) -> float | None:
    """Jain's fairness index of some rates: 1 if equal, 1/n if one has everything.

    Parameters
    ----------
    rates : sequence of float
        Any unit.

    Returns
    -------
    float or None
        ``None`` for no rates, or only zeros (Jain, Chiu, Hawe 1984, DEC-TR-301).
    """
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


def _state(files: RunDirectory) -> tuple[str, str | None]:
    states = files.of_kind("state")
    last = str(states[-1].data.get("state", "")) if states else ""
    if last == "done":
        return "done", None
    said = states[-1].data.get("reason") if states else None
    errors = files.of_kind("error")
    if not said and errors:
        data = errors[-1].data
        said = data.get("message") or data.get("reason") or data.get("error")
        if not said:
            said = json.dumps(data)
    if not said:
        said = f"the run ended in state {last!r}" if last else "the run never started"
    return "failed", str(said)


def _user(name: str, described: JsonObject, traffic: dict[str, JsonObject]) -> User:
    interfaces = tuple(
        Interface(str(key), str(mapping(each).get("via", key)), str(mapping(each).get("address")))
        for key, each in mapping(described.get("interfaces")).items()
    )
    return User(
        name=name,
        port=count(described.get("port")) or 0,
        interfaces=interfaces,
        offered_bps=number(described.get("offered_bps")),
        start_s=number(described.get("start_s")) or 0.0,
        duration_s=number(described.get("duration_s")),
        client=traffic.get(f"{name}-client", {}),
        server=traffic.get(f"{name}-server", {}),
    )


def _recorded(
    files: RunDirectory,
    node: str,
    paths: list[str],
    quality: list[CaptureQuality],
    remarks: list[str],
) -> Recorded | None:
    """Read one node's captures; positions in `paths` number the interfaces."""
    found: list[Capture | None] = []
    for relative in paths:
        try:
            found.append(read(files.path / relative))
        except (OSError, ValueError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"({error})"
            remarks.append(f"capture {relative or '(no file)'} of {node} {reason}")
            found.append(None)
    present = [(index, each) for index, each in enumerate(found) if each is not None]
    if not present:
        return None
    merged = merge([each for _, each in present])
    # Numbered by the plan's interfaces, also where a file is missing.
    for position, (index, _) in reversed(list(enumerate(present))):
        merged.interface[merged.interface == position] = index
    recorded = Recorded(merged, connections(merged))
    unmapped = sum(
        each.forward.unmapped_bytes + each.backward.unmapped_bytes for each in recorded.connections
    )
    for index, capture in present:
        quality.append(_quality(files, node, paths[index], capture, unmapped))
        remarks.extend(f"{paths[index]}: {remark}" for remark in capture.remarks)
        dropped = quality[-1].dropped
        if dropped:
            remarks.append(f"{paths[index]}: the recorder dropped {dropped} packets")
    return recorded


def _quality(
    files: RunDirectory, node: str, relative: str, capture: Capture, unmapped: int
) -> CaptureQuality:
    stem = Path(relative).name.split(".")[0]
    counters: JsonObject = {}
    for event in files.of_kind("capture_stop"):
        if event.node == node and event.data.get("interface") in (stem, None):
            counters = event.data

    def counter(key: str, in_file: int | None) -> int | None:
        value = count(counters.get(key))
        return value if value is not None else in_file

    snap = [each.snap_length_bytes for each in capture.interfaces]
    ticks = {each.ticks_per_second for each in capture.interfaces}
    names = {1_000_000: "microseconds", 1_000_000_000: "nanoseconds"}
    clock = ", ".join(names.get(each, f"1/{each} s") for each in sorted(ticks))
    return CaptureQuality(
        file=relative,
        node=node,
        interface=stem,
        position=str(counters.get("position") or _POSITION),
        packets=capture.frames,
        snap_length_bytes=snap[0] if snap and snap[0] else None,
        received=counter("received", capture.received),
        dropped=counter("dropped", capture.dropped),
        damaged=capture.damaged,
        large_packets=capture.large_frames,
        unmapped_bytes=unmapped,
        clock=f"wall clock of one kernel, {clock}" if clock else "",
        recorder=capture.application,
        remarks=list(capture.remarks),
    )


def _clock(files: RunDirectory, sides: list[Recorded | None], remarks: list[str]) -> Clock:
    firsts = [
        int(side.packets.time_ns[0]) for side in sides if side is not None and len(side.packets)
    ]
    first_ns = min(firsts, default=None)
    for event in files.of_kind("state"):
        epoch_s = number(event.data.get("epoch_s"))
        if epoch_s is None:
            continue
        if first_ns is None or abs(epoch_s - first_ns / 1e9) < _LONGEST_RUN_S:
            return Clock(round(epoch_s * 1e9))
        remarks.append("the traffic's start and the captures are more than a day apart")
    if first_ns is not None:
        remarks.append(
            "no event says when the traffic began: times count from the first captured packet"
        )
    return Clock(first_ns or 0)


def _check_clock(users: dict[str, UserResult], remarks: list[str]) -> None:
    for name, user in users.items():
        means = [share.mean_packet_delay_s for share in user.subflows]
        if any(mean is not None and mean < -_CLOCK_TOLERANCE_S for mean in means):
            remarks.append(f"{name}: negative one-way delays, the captures' clocks differ")


def _solve(event: Event) -> Solve:
    data = event.data
    return Solve(
        t_s=event.t_s,
        trigger=str(data.get("trigger", "")),
        relative_gap=number(data.get("relative_gap")),
        solve_time_s=number(data.get("solve_time_s")),
        path_flows=[each for each in items(data.get("path_flows")) if isinstance(each, dict)],
    )


def _queues(files: RunDirectory) -> list[QueueResult]:
    """Queues that were sampled or set, with their rates over time."""
    settings: dict[tuple[str, int], list[Event]] = {}
    for event in files.of_kind("queue_set"):
        queue_id = count(event.data.get("queue_id"))
        if queue_id is not None:
            key = (str(event.data.get("port", "")), queue_id)
            settings.setdefault(key, []).append(event)
    samples: dict[tuple[str, int], list[tuple[float, int]]] = {}
    datapaths: dict[tuple[str, int], str] = {}
    errors: dict[tuple[str, int], int] = {}
    for row in files.samples:
        queue_id, t_s = count(row.get("queue_id")), number(row.get("t_s"))
        sent = count(row.get("tx_bytes"))
        if row.get("kind") == "queue" and not (queue_id is None or t_s is None or sent is None):
            key = (str(row.get("port", "")), queue_id)
            samples.setdefault(key, []).append((t_s, sent))
            datapaths[key] = str(row.get("datapath") or "")
            errors[key] = max(errors.get(key, 0), count(row.get("tx_errors")) or 0)
    found: list[QueueResult] = []
    for key in sorted(settings.keys() | samples.keys()):
        port, queue_id = key
        rows = sorted(samples.get(key, []))
        total = rows[0][1] if rows else 0
        rates: list[list[float]] = []
        for (before_s, before), (after_s, after) in pairwise(rows):
            # A counter that went back: the queue was made anew.
            grown = after - before if after >= before else after
            total += grown
            if after_s > before_s:
                rates.append([after_s, 8 * grown / (after_s - before_s)])
        events = settings.get(key, [])
        about = next((event.data for event in reversed(events) if event.data.get("user")), {})
        found.append(
            QueueResult(
                datapath=datapaths.get(key) or port.split("-")[0],
                port=port,
                queue_id=queue_id,
                user=str(about["user"]) if about.get("user") else None,
                via=str(about["via"]) if about.get("via") else None,
                tx_bytes=total,
                tx_errors=errors.get(key, 0),
                settings=[
                    [event.t_s, low, high]
                    for event in events
                    if (low := number(event.data.get("min_bps"))) is not None
                    and (high := number(event.data.get("max_bps"))) is not None
                ],
                rates=rates,
            )
        )
    return found


def _bands(files: RunDirectory, users: list[str]) -> list[Band]:
    """When each user was associated, and its handovers."""
    end_s = max((event.t_s for event in files.events), default=0.0)
    bands: list[Band] = []
    for user in users:
        since: dict[str, float] = {}
        handover: Event | None = None
        for event in files.events:
            if event.node != user:
                continue
            if event.kind == "association":
                name = str(event.data.get("access_point", ""))
                state = event.data.get("state")
                if state == "associated":
                    since.setdefault(name, event.t_s)
                elif state in ("dissociating", "dissociated") and name in since:
                    bands.append(
                        Band(user, "associated", since.pop(name), event.t_s, f"with {name}")
                    )
            elif event.kind == "handover":
                if event.data.get("phase", "begin") == "begin":
                    handover = event
                elif handover is not None:
                    label = f"{handover.data.get('from', '?')} → {handover.data.get('to', '?')}"
                    bands.append(Band(user, "handover", handover.t_s, event.t_s, label))
                    handover = None
        bands.extend(
            Band(user, "associated", start, end_s, f"with {name}") for name, start in since.items()
        )
        if handover is not None:
            bands.append(Band(user, "handover", handover.t_s, end_s, "handover not finished"))
    return bands
