"""What the kernel and Open vSwitch counted, beside what the captures show."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.run.directory import JsonObject, RunDirectory, count, items, mapping, number
from analysis.run.measure import Recorded, User
from analysis.run.result import CaptureQuality, CounterCheck, UserResult
from captures import one_way_delays

_ROOT = 0xFFFFFFFF
# Recorders run a little longer than the counters are read apart.
_EDGE_PACKETS = 10


def counter_checks(
    files: RunDirectory,
    stations: Mapping[str, tuple[User, Recorded | None]],
    host: tuple[str, Recorded | None],
    access_points: Mapping[str, Recorded],
    users: Mapping[str, UserResult],
    quality: Sequence[CaptureQuality],
) -> list[CounterCheck]:
    """Compare counters that were read before and after the traffic with the captures.

    Parameters
    ----------
    files : RunDirectory
    stations : mapping of (User, Recorded)
        Each user and what it recorded.
    host : (str, Recorded)
        The host's name and what it recorded.
    access_points : mapping of Recorded
        What was recorded at access points.
    users : mapping of UserResult
    quality : sequence of CaptureQuality

    Returns
    -------
    list of CounterCheck
        Only what is known of both sides; empty for a run without ``counters.json``.
    """
    checks = _interfaces(files, quality)
    for name, (_, recorded) in stations.items():
        if recorded is not None and recorded.whole and recorded.dropped == 0:
            checks += _sender(files, name, recorded)
    name, at_host = host
    if at_host is not None and at_host.whole and at_host.dropped == 0:
        checks += _receiver(files, name, at_host)
        checks += _host_port(files, name, quality)
    return checks + _drops(files, stations, access_points, users)


def _grown(files: RunDirectory, node: str, *path: str) -> int | None:
    """By how much a counter of a node grew during the traffic."""
    values: list[int] = []
    for moment in ("before", "after"):
        place: JsonObject = mapping(mapping(files.counters.get(moment)).get("nodes"))
        for key in (node, *path[:-1]):
            place = mapping(place.get(key))
        value = count(place.get(path[-1]))
        if value is None:
            return None
        values.append(value)
    return values[1] - values[0]


def _interfaces(files: RunDirectory, quality: Sequence[CaptureQuality]) -> list[CounterCheck]:
    checks: list[CounterCheck] = []
    for each in quality:
        path = ("interfaces", each.interface)
        sent = _grown(files, each.node, *path, "tx_packets")
        received = _grown(files, each.node, *path, "rx_packets")
        if sent is None or received is None or each.damaged:
            continue
        counted = sent + received
        checks.append(
            CounterCheck(
                each.node,
                f"frames at {each.interface}",
                each.packets + (each.dropped or 0),
                counted,
                max(_EDGE_PACKETS, counted // 100),
                "interface counters; recorders run a little longer",
            )
        )
    return checks


def _sender(files: RunDirectory, node: str, recorded: Recorded) -> list[CounterCheck]:
    checks: list[CounterCheck] = []
    opened = [each for each in recorded.connections if each.protocol == "mptcp" or each.fallback]
    joined = [s for each in opened for s in each.subflows if s.joined and s.backward.packets]
    repeated = sum(s.forward.retransmissions for c in recorded.connections for s in c.subflows)
    for what, counter, captured in (
        ("multipath connections opened", "MPTcpExtMPCapableSYNTX", len(opened)),
        ("subflows joined", "MPTcpExtMPJoinSynAckRx", len(joined)),
    ):
        counted = _grown(files, node, "protocols", counter)
        # Of single-path TCP there is nothing to compare.
        if counted is not None and (captured or counted):
            checks.append(CounterCheck(node, f"{what} ({counter})", captured, counted))
    counted = _grown(files, node, "protocols", "TcpRetransSegs")
    if counted is not None:
        checks.append(
            CounterCheck(
                node,
                "segments retransmitted (TcpRetransSegs)",
                repeated,
                counted,
                2 + repeated // 50,
                "what never left the interface, as after a radio has lost its access point, is "
                "counted, but not captured",
                at_most=True,
            )
        )
    return checks


def _receiver(files: RunDirectory, node: str, recorded: Recorded) -> list[CounterCheck]:
    opened = [each for each in recorded.connections if each.protocol == "mptcp"]
    joined = [s for each in opened for s in each.subflows if s.joined]
    again = [s.forward for each in opened for s in each.subflows]
    duplicates = sum(each.reinjections + each.resends for each in again)
    checks: list[CounterCheck] = []
    for what, counter, captured, tolerance, note in (
        ("multipath connections accepted", "MPTcpExtMPCapableACKRX", len(opened), 0, ""),
        ("subflows accepted", "MPTcpExtMPJoinAckRx", len(joined), 0, ""),
        (
            "packets of data that was there already",
            "MPTcpExtDuplicateData",
            duplicates,
            5 + duplicates // 20,
            "the kernel sees packets after it has merged some",
        ),
    ):
        counted = _grown(files, node, "protocols", counter)
        # Of single-path TCP there is nothing to compare.
        if counted is not None and (captured or counted):
            checks.append(
                CounterCheck(node, f"{what} ({counter})", captured, counted, tolerance, note)
            )
    return checks


def _host_port(
    files: RunDirectory, node: str, quality: Sequence[CaptureQuality]
) -> list[CounterCheck]:
    """The switch port in front of the host, from the controller's samples."""
    shore = {str(mapping(each).get("shore_port")) for each in items(files.plan.get("uplinks"))}
    datapaths = {str(row.get("datapath")) for row in files.samples if str(row.get("port")) in shore}
    starts = [event.t_s for event in files.of_kind("capture_start") if event.node == node]
    rows = [
        row
        for row in files.samples
        if row.get("kind") == "port"
        and str(row.get("datapath")) in datapaths
        and str(row.get("port")) not in shore | datapaths
        and (number(row.get("t_s")) or 0.0) >= max(starts, default=0.0) - 1.0
    ]
    ports = {str(row.get("port")) for row in rows}
    mine = [each for each in quality if each.node == node]
    if len(ports) != 1 or len(mine) != 1 or len(rows) < 2 or mine[0].damaged:
        return []

    def total(row: JsonObject) -> int:
        return (count(row.get("tx_packets")) or 0) + (count(row.get("rx_packets")) or 0)

    rows.sort(key=lambda row: number(row.get("t_s")) or 0.0)
    counted = total(rows[-1]) - total(rows[0])
    return [
        CounterCheck(
            node,
            f"frames at {ports.pop()} (Open vSwitch)",
            mine[0].packets + (mine[0].dropped or 0),
            counted,
            max(_EDGE_PACKETS, counted // 100),
            "samples are a second apart",
        )
    ]


def _drops(
    files: RunDirectory,
    stations: Mapping[str, tuple[User, Recorded | None]],
    access_points: Mapping[str, Recorded],
    users: Mapping[str, UserResult],
) -> list[CounterCheck]:
    """Packets dropped on the way of each uplink, by its queues and by its medium."""
    checks: list[CounterCheck] = []
    for uplink in map(mapping, items(files.plan.get("uplinks"))):
        relay, port = str(uplink.get("relay")), str(uplink.get("relay_port"))
        shares = [s for user in users.values() for s in user.subflows if s.via == relay]
        lost = [each.lost_packets for each in shares if each.lost_packets is not None]
        counted = _qdisc_drops(files, relay, port)
        if counted is None or not shares or len(lost) < len(shares):
            continue
        captured = sum(lost)
        note = (
            "packets without data are counted, but not captured as lost; what a switch drops for "
            "want of an entry is captured as lost, but not counted"
        )
        if relay in access_points:
            radio = _lost_on_the_radio(relay, stations, access_points[relay])
            captured -= radio
            note += f"; {radio} more were lost on the radio, before the queues"
        checks.append(
            CounterCheck(
                relay,
                f"data packets lost behind {relay} (queues of {port} and medium)",
                captured,
                counted,
                2 + counted // 20,
                note,
            )
        )
    return checks


def _lost_on_the_radio(
    relay: str, stations: Mapping[str, tuple[User, Recorded | None]], there: Recorded
) -> int:
    """Data packets that stations sent by their radio and the access point did not get."""
    lost = 0
    for user, recorded in stations.values():
        if recorded is None:
            continue
        ours = [index for index, each in enumerate(user.interfaces) if each.via == relay]
        sent = recorded.packets.select(np.isin(recorded.packets.interface, ours))
        lost += len(one_way_delays(sent, there.packets).lost_row)
    return lost


def _qdisc_drops(files: RunDirectory, relay: str, port: str) -> int | None:
    dropped: list[int] = []
    for moment in ("before", "after"):
        document = mapping(files.counters.get(moment))
        roots = [
            count(row.get("drops"))
            for row in map(mapping, items(document.get("qdiscs")))
            if row.get("interface") == port and row.get("parent") == _ROOT
        ]
        media = [
            count(row.get("drops"))
            for row in map(mapping, items(mapping(document.get("media")).get(f"{relay}-air")))
        ]
        known = [each for each in roots + media if each is not None]
        if not roots or len(known) < len(roots + media):
            return None
        dropped.append(sum(known))
    return dropped[1] - dropped[0]
