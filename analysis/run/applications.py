"""What applications got out of a run, from what their own programs wrote down at both ends."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.run.directory import JsonObject, RunDirectory, count, items, mapping, number
from analysis.run.result import ApplicationResult

F64 = NDArray[np.float64]


def applications(files: RunDirectory) -> list[ApplicationResult]:
    """Measure every application of a run.

    Parameters
    ----------
    files : RunDirectory

    Returns
    -------
    list of ApplicationResult
        In the order of the plan; empty in runs of one bulk transfer a user.
    """
    schedules = mapping(files.traffic.get("schedules"))
    found = []
    for described in map(mapping, items(files.plan.get("applications"))):
        name = str(described.get("name", ""))
        client = files.traffic.get(f"{name}-client", {})
        server = files.traffic.get(f"{name}-server", {})
        if described.get("kind") == "bulk":
            found.append(_bulk(described, client))
        else:
            found.append(_served(described, mapping(schedules.get(name)), client, server))
    return found


def _common(described: JsonObject) -> dict[str, object]:
    words = ("name", "user", "kind", "direction", "transport")
    return {
        **{word: str(described.get(word, "")) for word in words},
        "offered_bps": number(described.get("offered_bps")),
        "duration_s": number(described.get("duration_s")),
    }


def _bulk(described: JsonObject, client: JsonObject) -> ApplicationResult:
    """A bulk transfer that captures do not follow: what iperf3 says of the receiving end."""
    received = mapping(mapping(client.get("end")).get("sum_received"))
    sent = mapping(mapping(client.get("end")).get("sum_sent"))
    error = client.get("error")
    if not client:
        error = "no result of the iperf3 client"
    return ApplicationResult(
        **_common(described),  # type: ignore[arg-type]
        received_bytes=count(received.get("bytes")),
        goodput_bps=number(received.get("bits_per_second")),
        retransmissions=count(sent.get("retransmits")),
        errors={str(error): 1} if error else {},
    )


def _served(
    described: JsonObject, schedule: JsonObject, client: JsonObject, server: JsonObject
) -> ApplicationResult:
    """An application of our own programs."""
    common = _common(described)
    upwards = common["direction"] == "up"
    sender, receiver = (client, server) if upwards else (server, client)
    missing = [side for side, said in (("client", client), ("server", server)) if not said]
    errors = {f"no record of the {side}'s program": 1 for side in missing}
    for said in (client, server):
        for what, times in mapping(said.get("errors")).items():
            errors[str(what)] = errors.get(str(what), 0) + (count(times) or 1)
    done_s = _times(receiver.get("done_s"))
    planned_s = _times(schedule.get("at_s"))
    if common["kind"] == "requests":
        # Who asks is also who gets the response.
        begun_s = _times(receiver.get("begun_s"))
        started = int(np.isfinite(begun_s).sum())
        late_s = np.zeros(0)
    else:
        # A file begins where its connection is opened: at the station.
        begun_s = _times((client if common["kind"] == "files" else sender).get("begun_s"))
        started = len(planned_s)
        late_s = _difference(begun_s, planned_s)
        if common["transport"] == "tcp":
            # What waits in the sender for room in its socket waits for the network.
            begun_s = planned_s
    taken_s = _difference(done_s, begun_s)
    taken_s = taken_s[np.isfinite(taken_s)]
    duration_s = number(described.get("duration_s"))
    received = count(receiver.get("received_bytes"))
    udp = common["transport"] == "udp"
    sent = int(np.isfinite(_times(sender.get("begun_s"))).sum())
    return ApplicationResult(
        **common,  # type: ignore[arg-type]
        items=started,
        completed=len(taken_s),
        received_bytes=received,
        goodput_bps=8 * received / duration_s if received is not None and duration_s else None,
        mean_time_s=float(taken_s.mean()) if len(taken_s) else None,
        p95_time_s=float(np.percentile(taken_s, 95)) if len(taken_s) else None,
        longest_time_s=float(taken_s.max()) if len(taken_s) else None,
        time_quantiles_s=np.quantile(taken_s, np.linspace(0, 1, 101)).tolist()
        if len(taken_s)
        else [],
        lost_packets=sent - len(taken_s) if udp and not missing else None,
        loss=1 - len(taken_s) / sent if udp and not missing and sent else None,
        duplicates=count(receiver.get("duplicates")) if udp else None,
        jitter_s=_jitter(done_s, begun_s) if udp else None,
        latest_begin_s=float(np.nanmax(late_s)) if np.isfinite(late_s).any() else None,
        errors=errors,
    )


def goodput_of(results: Sequence[ApplicationResult]) -> float | None:
    """What applications got through together, in either direction."""
    known = [each.goodput_bps for each in results if each.goodput_bps is not None]
    return sum(known) if known else None


def means_of(results: Sequence[ApplicationResult]) -> dict[str, Any]:
    """Times and losses of a user's applications together, by their names in `UserResult`."""
    datagrams = [each for each in results if each.transport == "udp"]
    others = [each for each in results if each.transport != "udp"]
    sent = sum((each.lost_packets or 0) + (each.completed or 0) for each in datagrams)
    return {
        "completion_time_s": _mean_time([each for each in others if each.kind == "files"]),
        "response_time_s": _mean_time([each for each in others if each.kind == "requests"]),
        "message_delay_s": _mean_time(
            [each for each in others if each.kind not in ("files", "requests")]
        ),
        "datagram_delay_s": _mean_time(datagrams),
        "datagram_loss": sum(each.lost_packets or 0 for each in datagrams) / sent if sent else None,
    }


def _mean_time(results: Sequence[ApplicationResult]) -> float | None:
    """Mean over the items of several applications."""
    weighed = [
        (each.mean_time_s, each.completed)
        for each in results
        if each.mean_time_s is not None and each.completed
    ]
    items_of_all = sum(completed for _, completed in weighed)
    if not items_of_all:
        return None
    return sum(mean_s * completed for mean_s, completed in weighed) / items_of_all


def unfinished(results: Sequence[ApplicationResult]) -> str | None:
    """What did not arrive of some applications; ``None`` if everything did.

    Datagrams may be lost; nobody waits for them.
    """
    said = []
    for each in results:
        if each.transport == "udp":
            continue
        if each.items is not None and each.completed is not None and each.completed < each.items:
            said.append(f"{each.items - each.completed} of {each.items} {each.name}")
        elif each.kind == "bulk" and each.errors:
            said.append(f"{each.name}: {', '.join(each.errors)}")
    return f"did not arrive: {'; '.join(said)}" if said else None


def remarks_of(results: Sequence[ApplicationResult], late_s: float) -> list[str]:
    """What a reader should know of the applications."""
    said = []
    for each in results:
        for what, times in each.errors.items():
            said.append(f"{each.name}: {what}" + (f", {times} times" if times > 1 else ""))
        if each.transport == "udp" and (each.latest_begin_s or 0) > late_s:
            said.append(
                f"{each.name}: a datagram was sent {each.latest_begin_s:.2f} s late: "
                "the machine could not keep up"
            )
    return said


def _times(values: object) -> F64:
    """Times of a record; not a number where something did not happen."""
    return np.array(
        [np.nan if (known := number(each)) is None else known for each in items(values)],
        dtype=np.float64,
    )


def _difference(later_s: F64, earlier_s: F64) -> F64:
    length = min(len(later_s), len(earlier_s))
    return np.asarray(later_s[:length] - earlier_s[:length], dtype=np.float64)


def _jitter(done_s: F64, begun_s: F64) -> float | None:
    """Mean difference of the transit times of packets that arrived one after the other.

    The estimator of RFC 3550, 6.4.1, without its smoothing: J = E|D(i - 1, i)|, in the order of
    arrival.
    """
    transit_s = _difference(done_s, begun_s)
    arrived = np.flatnonzero(np.isfinite(transit_s))
    in_order = arrived[np.argsort(done_s[arrived], kind="stable")]
    if len(in_order) < 2:
        return None
    return float(np.abs(np.diff(transit_s[in_order])).mean())
