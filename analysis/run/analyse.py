"""From a run directory to its result."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.replacing import write_text
from analysis.run.applications import (
    applications,
    goodput_of,
    means_of,
    remarks_of,
    unfinished,
)
from analysis.run.counters import counter_checks
from analysis.run.directory import (
    Event,
    JsonObject,
    RunDirectory,
    check_regular,
    count,
    items,
    mapping,
    number,
    read_run,
)
from analysis.run.latency import handover_latency
from analysis.run.machine import machine_load, stalls
from analysis.run.measure import (
    Clock,
    Interface,
    Recorded,
    Surroundings,
    User,
    measure_user,
)
from analysis.run.queues import allocation_periods, queues
from analysis.run.result import (
    ApplicationResult,
    Band,
    CaptureQuality,
    Chart,
    RunResult,
    Solve,
    UserResult,
)
from analysis.run.story import Timeline, link_changes, stories
from captures import Capture, connections, merge, one_way_delays, read

_CLOCK_TOLERANCE_S = 1e-3
_LONGEST_RUN_S = 86_400.0
_TOLD_ERRORS = 5
_LATE_S = 0.05
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
    if not host_files and files.plan:
        remarks.append(f"plan.json names no capture of {host_name}")
    host = _recorded(files, host_name, host_files, quality, remarks)
    users: dict[str, UserResult] = {}
    senders: dict[str, tuple[User, Recorded | None]] = {}
    for name, described in plan_users.items():
        user = _user(str(name), mapping(described), files.traffic)
        if user.port and f"{name}-client" not in files.traffic:
            remarks.append(f"traffic/{name}-client.json is missing")
        interfaces = mapping(mapping(described).get("interfaces"))
        paths = [str(mapping(each).get("capture") or "") for each in interfaces.values()]
        senders[user.name] = (user, _recorded(files, user.name, paths, quality, remarks))
    access_points = _access_points(files, quality, remarks)
    sides = [host, *(sender for _, sender in senders.values())]
    clock = _clock(files, sides, remarks)
    changes = link_changes(files.events)
    end_s = _end(files, sides, clock)
    around = Surroundings(clock, files.events, end_s, stalls(files.host), changes)
    transfers: list[str] = []
    timelines: dict[str, Timeline] = {}
    served = applications(files)
    for name, (user, sender) in senders.items():
        if not user.port:
            users[name] = _served(name, served, host, sender)
            continue
        users[name], timeline = measure_user(user, host, sender, around, transfers)
        if timeline is not None:
            timelines[name] = timeline
    for name, each in users.items():
        users[name] = replace(each, **means_of([a for a in served if a.user == name]))
    transfers += remarks_of(served, _LATE_S)
    remarks = [*_errors(files, reason), *transfers, *remarks]
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
    handovers = _handovers(files)
    found_queues = queues(files)
    dropped = [each.dropped for each in quality if each.dropped is not None]
    machine = machine_load(files.host)
    if machine is not None and machine.overloaded:
        remarks.insert(0, f"the machine could not keep up, the figures show it: {machine}")
    elif machine is not None and machine.slow_control:
        remarks.append(
            f"handovers and the controller were slow, as figures after them show: {machine}"
        )
    return RunResult(
        state=state,
        reason=reason,
        # A directory may have a name that is no text.
        run=os.fsencode(files.path.resolve().name).decode(errors="backslashreplace"),
        scenario=str(files.run.get("scenario", "")),
        protocol=protocol,
        seed=count(files.run.get("seed")),
        backend=str(files.run.get("backend", "")),
        users=users,
        jain=jain(goodputs),
        solves=len(files.of_kind("solve")),
        handovers=len(handovers),
        fingerprint=str(files.run.get("fingerprint", "")),
        created=next(
            (str(e.data["created"]) for e in files.of_kind("state") if "created" in e.data), ""
        ),
        duration_s=number(files.plan.get("duration_s")),
        goodput_bps=sum(goodputs) if goodputs else None,
        reference_goodput_bps=references.get(protocol),
        reference=str(files.plan.get("reference") or ""),
        parameters=files.parameters,
        handover_s=[end.t_s - begin.t_s for begin, end in handovers if end is not None],
        associations=sum(
            each.data.get("state") == "associated" for each in files.of_kind("association")
        ),
        queues=found_queues,
        allocation=allocation_periods(files, users, found_queues),
        captures=quality,
        capture_drops=sum(dropped) if dropped else None,
        machine=machine,
        overloaded=machine is not None and machine.overloaded,
        remarks=list(dict.fromkeys(remarks)),
        bands=_bands(files, list(users), handovers),
        counter_checks=counter_checks(
            files,
            senders,
            (host_name, host),
            access_points,
            users,
            quality,
        ),
        applications=served,
        chart=_chart(files),
        solve_log=[_solve(each) for each in files.of_kind("solve")],
        handover_stories=stories(files.events, changes, timelines, multipath=protocol != "sptcp"),
        handover_latency=handover_latency(files.events),
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
    write_text(Path(run_directory) / "result.json", text)
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
    if not said and last == "interrupted":
        said = last
    if not said and errors:
        said = _message(errors[-1])
    if not said and not files.events_known:
        said = "events.jsonl is missing or cannot be read: not known how the run ended"
    if not said:
        said = f"the run ended in state {last!r}" if last else "the run never started"
    return "failed", str(said)


def _message(event: Event) -> str:
    data = event.data
    said = data.get("message") or data.get("reason") or data.get("error")
    return str(said) if said else json.dumps(data)


def _errors(files: RunDirectory, reason: str | None) -> list[str]:
    """What went wrong during the run, each once; not what the run ended with."""
    told: dict[tuple[str, str], list[Event]] = {}
    for event in files.of_kind("error"):
        told.setdefault((event.node, _message(event)), []).append(event)
    said: list[str] = []
    for (node, message), events in told.items():
        if message == reason:
            continue
        again = f", {len(events)} times" if len(events) > 1 else ""
        where = f" of {node}" if node else ""
        said.append(f"error{where} at {events[0].t_s:.1f} s{again}: {message}")
    if len(said) > _TOLD_ERRORS:
        more = len(said) - _TOLD_ERRORS
        said[_TOLD_ERRORS:] = [f"and {more} more errors: see events.jsonl"]
    return said


def _end(files: RunDirectory, sides: list[Recorded | None], clock: Clock) -> float:
    """Run time at which the recording of the traffic ended.

    The run says when it begins to collect. Otherwise it is the last packet that anybody recorded.
    """
    for event in files.of_kind("state"):
        if event.data.get("state") == "collecting":
            return event.t_s
    lasts = [int(side.packets.time_ns[-1]) for side in sides if side and len(side.packets)]
    return (max(lasts, default=clock.epoch_ns) - clock.epoch_ns) / 1e9


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


def _served(
    name: str,
    served: Sequence[ApplicationResult],
    host: Recorded | None,
    sender: Recorded | None,
) -> UserResult:
    """A user without a bulk transfer to the host."""
    delays = np.zeros(0)
    if host is not None and sender is not None:
        # What came from the host was there earlier.
        delays = np.abs(one_way_delays(sender.packets, host.packets).delay_s)
    mine = [each for each in served if each.user == name]
    incomplete = unfinished(mine)
    return UserResult(
        goodput_bps=goodput_of(mine),
        data_bytes=sum(each.received_bytes or 0 for each in mine),
        longest_interruption_s=None,
        interruptions=[],
        mean_packet_delay_s=float(delays.mean()) if len(delays) else None,
        p95_packet_delay_s=float(np.percentile(delays, 95)) if len(delays) else None,
        throughput_cov=None,
        subflows=[],
        matched_packets=len(delays),
        delay_quantiles_s=np.quantile(delays, np.linspace(0, 1, 101)).tolist()
        if len(delays)
        else [],
        offered_bps=sum(each.offered_bps or 0.0 for each in mine),
        completed=incomplete is None,
        incomplete=incomplete,
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
            check_regular(files.path / relative)
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
    # A damaged file without a packet is as good as none.
    cut = [(index, each) for index, each in present if each.damaged and len(each.packets)]
    absent = [index for index, each in enumerate(found) if each is None]
    absent += [index for index, each in present if each.damaged and not len(each.packets)]
    ends = [int(each.packets.time_ns.max()) for _, each in cut]
    dropped = 0
    recorded_connections = connections(merged)
    unmapped = sum(
        each.forward.unmapped_bytes + each.backward.unmapped_bytes for each in recorded_connections
    )
    for index, capture in present:
        quality.append(_quality(files, node, paths[index], capture, unmapped))
        remarks.extend(f"{paths[index]}: {remark}" for remark in capture.remarks)
        remarks += _overwritten(files, node, Path(paths[index]).name.split(".")[0])
        lost = quality[-1].dropped
        if lost:
            dropped += lost
            remarks.append(f"{paths[index]}: the recorder dropped {lost} packets")
    return Recorded(
        merged,
        recorded_connections,
        missing=frozenset(absent),
        cut=frozenset(index for index, _ in cut),
        until_ns=min(ends, default=None),
        dropped=dropped,
    )


def _overwritten(files: RunDirectory, node: str, interface: str) -> list[str]:
    """What a recorder that had no more room left out."""
    return [
        f"{interface}: the recorder had no more room and overwrote its {number_of} oldest files"
        for event in files.of_kind("capture_stop")
        if event.node == node and event.data.get("interface") == interface
        if (number_of := count(event.data.get("overwritten_files")) or 0) > 0
    ]


def _access_points(
    files: RunDirectory, quality: list[CaptureQuality], remarks: list[str]
) -> dict[str, Recorded]:
    """What was recorded at access points, by their names."""
    found: dict[str, Recorded] = {}
    for each in map(mapping, items(files.plan.get("captures"))):
        if each.get("side") == "access point":
            node, file = str(each.get("node")), str(each.get("file"))
            recorded = _recorded(files, node, [file], quality, remarks)
            if recorded is not None:
                found[node] = recorded
    return found


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


def _handovers(files: RunDirectory) -> list[tuple[Event, Event | None]]:
    """Begin and end of each handover; None where it did not end.

    What stations do before the traffic, to get where they are at its start, is none.
    """
    found: list[tuple[Event, Event | None]] = []
    open_at: dict[str, int] = {}
    for event in files.of_kind("handover"):
        if event.t_s < 0:
            continue
        if event.data.get("phase", "begin") == "begin":
            open_at[event.node] = len(found)
            found.append((event, None))
        elif event.node in open_at:
            place = open_at.pop(event.node)
            found[place] = (found[place][0], event)
    return found


def _move(files: RunDirectory, event: Event) -> str:
    """What a handover does: with one address it moves, with two a path comes or goes."""
    old, new = str(event.data.get("from", "?")), str(event.data.get("to", "?"))
    if files.run.get("protocol") != "sptcp":
        passing = {str(each.data.get("access_point", "")) for each in files.of_kind("association")}
        steps = [f"leaves {old}"] * (old in passing) + [f"joins {new}"] * (new in passing)
        if steps:
            return ", ".join(steps)
    return f"{old} → {new}"


def _chart(files: RunDirectory) -> Chart | None:
    """Where nodes were; nothing if no positions were told."""
    tracks: dict[str, list[list[float]]] = {}
    for event in files.of_kind("position"):
        place = [number(event.data.get(f"{axis}_m")) for axis in ("east", "north", "up")]
        if None not in place:
            tracks.setdefault(event.node, []).append([event.t_s, *(p or 0.0 for p in place)])
    ranges_m: dict[str, float] = {}
    for name in tracks:
        described = mapping(mapping(files.plan.get("access_points")).get(name))
        # Runs of an earlier version have it among their parameters only.
        range_m = number(described.get("range_m", files.parameters.get(f"{name}.range_m")))
        if range_m is not None:
            ranges_m[name] = range_m
    return Chart(tracks, ranges_m) if tracks else None


def _bands(
    files: RunDirectory, users: list[str], handovers: list[tuple[Event, Event | None]]
) -> list[Band]:
    """When each user was associated, its handovers, and pauses of links, which are for all."""
    end_s = max((event.t_s for event in files.events), default=0.0)
    bands: list[Band] = []
    for user in users:
        since: dict[str, float] = {}
        for event in files.of_kind("association"):
            if event.node != user:
                continue
            name = str(event.data.get("access_point", ""))
            state = event.data.get("state")
            if state == "associated":
                since.setdefault(name, event.t_s)
            elif state in ("dissociating", "dissociated") and name in since:
                bands.append(Band(user, "associated", since.pop(name), event.t_s, f"with {name}"))
        bands.extend(
            Band(user, "associated", start, end_s, f"with {name}") for name, start in since.items()
        )
        for begin, end in handovers:
            if begin.node == user:
                label = _move(files, begin) + ("" if end is not None else ", not finished")
                stop_s = end.t_s if end is not None else end_s
                bands.append(Band(user, "handover", begin.t_s, stop_s, label))
    pauses = _pauses(files, end_s)
    return [*bands, *(Band(user, *pause) for user in users for pause in pauses)]


def _pauses(files: RunDirectory, end_s: float) -> list[tuple[str, float, float, str]]:
    """When links carried nothing: kind, start, end and what it was."""
    found: list[tuple[str, float, float, str]] = []
    down: dict[str, Event] = {}

    def close(relay: str, until_s: float) -> None:
        if (begin := down.pop(relay, None)) is not None:
            cause = str(begin.data.get("cause") or "down")
            kind = "handover" if cause == "handover" else "outage"
            found.append((kind, begin.t_s, until_s, f"{relay}: {cause}"))

    for event in files.of_kind("link_change"):
        if number(event.data.get("loss")) == 1.0:
            down.setdefault(event.node, event)
        else:
            close(event.node, event.t_s)
    for relay in list(down):
        close(relay, end_s)
    return found
